import Dispatch
import FoundationEssentials
import NIOCore
import NIOPosix
import SystemPackage

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

enum StandardInput {
  /// Reads to the end; nil when unreadable. A pipe is read up to `limitBytes`. Foundation reads
  /// files but not pipes, NIO pipes and terminals but not files.
  static func readAll(limitBytes: Int) async -> [UInt8]? {
    guard let type = try? FileDescriptor.standardInput.stat().type else { return nil }
    switch type {
    case .regular: return FileManager.default.contents(atPath: "/dev/stdin").map(Array.init)
    case .fifo, .socket: return try? await readPipe(limitBytes: limitBytes)
    case .characterSpecial:
      // A terminal, or /dev/null, which is empty and cannot be waited for.
      return isatty(0) == 1 ? try? await readPipe(limitBytes: limitBytes) : []
    default: return nil
    }
  }

  /// Lines as they arrive, on a thread of their own: a terminal can only be read by blocking.
  static func lines() -> AsyncStream<String> {
    let (lines, feed) = AsyncStream.makeStream(of: String.self)
    DispatchQueue(label: "pushrelay.standard-input").async {
      while let line = readLine() { feed.yield(line) }
      feed.finish()
    }
    return lines
  }

  private static func readPipe(limitBytes: Int) async throws -> [UInt8] {
    let input = try await NIOPipeBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .takingOwnershipOfDescriptor(input: 0) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, Never>(wrappingChannelSynchronously: channel)
        }
      }
    return try await input.executeThenClose { pieces in
      var all: [UInt8] = []
      for try await piece in pieces {
        all.append(contentsOf: piece.readableBytesView)
        if all.count >= limitBytes { break }
      }
      return all
    }
  }
}
