import FoundationEssentials
import HTTP2
import Logging
package import NIOCore
import NIOPosix
import Synchronization
import SystemPackage

/// The open files and sockets of this process. When none are left, listeners pause instead of
/// trying without end, and that is logged once.
package final class Descriptors: Sendable {
  private let logger: Logger
  private let isShortage = Atomic(false)

  init(_ logger: Logger) { self.logger = logger }

  /// Raises the limit to the system's maximum and logs how many are left.
  func raise() {
    guard let limit = SystemResources.raiseOpenFiles() else { return }
    let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    logger.info(
      "files and sockets", metadata: ["limit": "\(limit)", "left": "\(max(0, limit - open))"])
  }

  /// Makes a listener pause when none are left.
  package func watch(_ listener: any Channel) async throws {
    try await listener.eventLoop.submit { [self] in
      try listener.pipeline.syncOperations.addHandler(AcceptPause(self), position: .first)
    }.get()
  }

  var areShort: Bool { isShortage.load(ordering: .relaxed) }

  func areLeft() -> Bool {
    do {
      try FileDescriptor.open(FilePath("/dev/null"), .readOnly).close()
    } catch {
      return !((error as? Errno).map { recordShortage($0) } ?? false)
    }
    return true
  }

  /// Returns whether the error means that none are left; logs it once until there are some again.
  fileprivate func recordShortage(_ error: Errno) -> Bool {
    let limit: String
    switch error {
    case .tooManyOpenFiles: limit = "RLIMIT_NOFILE of this process (ulimit -n, LimitNOFILE)"
    case .tooManyOpenFilesInSystem: limit = "fs.file-max of this machine"
    case .noBufferSpace, .noMemory: limit = "memory of the kernel"
    default: return false
    }
    if !isShortage.exchange(true, ordering: .relaxed) {
      logger.error(
        "no file or socket can be opened: connections wait until some end, or raise the limit",
        metadata: ["limit": "\(limit)", "error": "\(error)"])
    }
    return true
  }

  fileprivate func accepted() {
    guard areShort else { return }
    isShortage.store(false, ordering: .relaxed)
    logger.notice("connections are accepted again")
  }
}

/// Stops accepting for a moment after a failure for lack of resources. Otherwise the listener would
/// be ready again at once and keep the loop busy.
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
    guard let code = (error as? IOError)?.errnoCode,
      descriptors.recordShortage(Errno(rawValue: code))
    else {
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
  /// Returns unused memory to the system. Slow: not for event loops.
  package static func returnMemory() { SystemResources.returnMemory() }
}
