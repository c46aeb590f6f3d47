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
  /// Reads a file, or standard input for `-`; throws with a hint to what it should be.
  static func payload(_ file: String, _ hint: String) async throws -> [UInt8] {
    let bytes =
      if file == "-" { await readAll(limitBytes: 1 << 20) } else { PrivateFile.read(file) }
    guard let bytes else {
      throw CommandError("\(file) cannot be read: name \(hint), or - for stdin")
    }
    return bytes
  }

  /// Reads to the end; nil when unreadable. A pipe is read up to `limitBytes`. Foundation reads
  /// files but not pipes, NIO pipes and terminals but not files.
  private static func readAll(limitBytes: Int) async -> [UInt8]? {
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
