import FoundationEssentials
import HTTP2
import Logging
package import NIOCore
import NIOPosix
import Synchronization
import SystemPackage

/// The files and sockets that this process may have open. When there is none left, listeners accept
/// nothing for a moment instead of trying without end, and that is said once.
package final class Descriptors: Sendable {
  private let logger: Logger
  private let areShort = Atomic(false)

  init(_ logger: Logger) { self.logger = logger }

  /// Takes as many as the system allows, and says how many are left.
  func raise() {
    guard let limit = SystemResources.raiseOpenFiles() else { return }
    let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    logger.info(
      "files and sockets", metadata: ["limit": "\(limit)", "left": "\(max(0, limit - open))"])
  }

  /// Has a listener pause when there is none left.
  package func watch(_ listener: any Channel) async throws {
    try await listener.eventLoop.submit { [self] in
      try listener.pipeline.syncOperations.addHandler(AcceptPause(self), position: .first)
    }.get()
  }

  /// Whether a file could be opened now.
  func areLeft() -> Bool {
    do {
      try FileDescriptor.open(FilePath("/dev/null"), .readOnly).close()
    } catch {
      return !((error as? Errno).map { note($0) } ?? false)
    }
    return true
  }

  /// Whether that is what an error says; says it once, until there are some again.
  fileprivate func note(_ error: Errno) -> Bool {
    let limit: String
    switch error {
    case .tooManyOpenFiles: limit = "RLIMIT_NOFILE of this process (ulimit -n, LimitNOFILE)"
    case .tooManyOpenFilesInSystem: limit = "fs.file-max of this machine"
    case .noBufferSpace, .noMemory: limit = "memory of the kernel"
    default: return false
    }
    if !areShort.exchange(true, ordering: .relaxed) {
      logger.error(
        "no file or socket can be opened: connections wait until some end, or raise the limit",
        metadata: ["limit": "\(limit)", "error": "\(error)"])
    }
    return true
  }

  fileprivate func accepted() {
    guard areShort.load(ordering: .relaxed) else { return }
    areShort.store(false, ordering: .relaxed)
    logger.notice("connections are accepted again")
  }
}

/// Stops accepting for a moment when that fails for lack of something. Without it the listener is
/// ready again at once, and the loop does nothing else.
private final class AcceptPause: ChannelInboundHandler {
  typealias InboundIn = NIOAny
  private static let pause = TimeAmount.milliseconds(200)

  private let descriptors: Descriptors

  init(_ descriptors: Descriptors) { self.descriptors = descriptors }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    descriptors.accepted()
    context.fireChannelRead(data)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let code = (error as? IOError)?.errnoCode, descriptors.note(Errno(rawValue: code)) else {
      return context.fireErrorCaught(error)
    }
    let listener = context.channel
    try? listener.syncOptions?.setOption(.autoRead, value: false)
    context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
      try? listener.syncOptions?.setOption(.autoRead, value: true)
    }
  }
}

extension Relay {
  /// Gives memory that nobody uses back to the system. Takes its time: not for event loops.
  package static func returnMemory() { SystemResources.returnMemory() }
}
