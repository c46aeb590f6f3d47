import FoundationEssentials
import Logging
import NIOCore
import NIOPosix
import RelayCore

/// The meaning of a 200 with the journal in JetStream, as far as a server's monitoring tells (NATS
/// documentation, "Monitoring", "General Information").
struct EnginePromise {
  let level: Logger.Level
  let text: String

  static func told(by monitor: String) async -> EnginePromise {
    guard !monitor.isEmpty else {
      return EnginePromise(
        level: .notice,
        text: "a 200 means that JetStream has it; whether on disk is not known without "
          + "natsMonitor: see that its servers have sync_interval: always")
    }
    do {
      let page = try await MonitoringPage.fetch(monitor)
      return EnginePromise(try JSONTree.read(page)["jetstream"]?["config"])
    } catch {
      return EnginePromise(
        level: .warning,
        text: "a 200 means that JetStream has it; whether on disk is not known: natsMonitor "
          + "\(monitor) does not tell (\(error))")
    }
  }

  private init(level: Logger.Level, text: String) {
    (self.level, self.text) = (level, text)
  }

  private init(_ config: JSONTree?) {
    if case .flag(true) = config?["sync_always"]?.value {
      level = .notice
      text =
        "a 200 means: on disk, synced, on a majority of the journal's servers, if the others "
        + "have sync_interval: always as the one asked"
    } else {
      level = .warning
      var pause = "at times"
      if case .number(let number) = config?["sync_interval"]?.value,
        let nanoseconds = Int64(exactly: number)
      {
        pause = "every \(nanoseconds / 1_000_000_000) s"
      }
      text =
        "a 200 means: in memory on a majority of the journal's servers, which sync to disk "
        + "\(pause); a power cut of them loses it: set sync_interval: always there"
    }
  }
}

/// One GET of a small page over HTTP/1.0 (RFC 1945): the answer ends with the connection.
private enum MonitoringPage {
  struct Problem: Error, CustomStringConvertible {
    let description: String
  }

  private static let limitBytes = 1 << 20

  static func fetch(_ address: String) async throws -> [UInt8] {
    guard let url = URL(string: address), url.scheme == "http", let host = url.host() else {
      throw Problem(description: "it is no URL like http://127.0.0.1:8222")
    }
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connectTimeout(.seconds(2))
      .connect(host: host, port: url.port ?? 8222) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    // Hangs up when there is no answer.
    let timeout = channel.channel.eventLoop.scheduleTask(in: .seconds(2)) {
      channel.channel.close(promise: nil)
    }
    defer { timeout.cancel() }
    let answer = try await channel.executeThenClose { input, output in
      try await output.write(ByteBuffer(string: "GET /varz HTTP/1.0\r\nHost: \(host)\r\n\r\n"))
      var answer: [UInt8] = []
      for try await part in input {
        answer += Array(part.readableBytesView)
        guard answer.count <= limitBytes else { throw Problem(description: "it says too much") }
      }
      return answer
    }
    guard let end = answer.firstRange(of: Array("\r\n\r\n".utf8)) else {
      throw Problem(description: "it does not answer")
    }
    return Array(answer[end.upperBound...])
  }
}
