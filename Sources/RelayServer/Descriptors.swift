import FoundationEssentials
import HTTP2
import Logging
package import NIOCore
import NIOPosix
import RelayCore
import Synchronization
import SystemPackage

/// The open files and sockets of this process. When no connection may be opened any more, listeners
/// pause instead of trying without end, and that is logged once.
///
/// Some are kept from connections: where a file cannot be opened when it is needed, not only the
/// journal fails. Grand Central Dispatch, on which Swift's tasks run, opens one for each of its
/// threads when there is more work than threads, and ends the process where it cannot
/// (`_dispatch_workq_count_runnable_workers` of swift-corelibs-libdispatch).
package final class Descriptors: Sendable {
  private let logger: Logger
  private let isShortage = Atomic(false)
  private let limit = Atomic(Int.max)
  private let connections = Atomic(0)
  let mostConnections = Atomic(Int.max)

  init(_ logger: Logger) { self.logger = logger }

  private static var openCount: Int? {
    try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
  }

  /// Raises the limit to the system's maximum and logs how many are left.
  func raise() {
    guard let limit = SystemResources.raiseOpenFiles() else { return }
    self.limit.store(limit, ordering: .relaxed)
    logger.info(
      "files and sockets",
      metadata: ["limit": "\(limit)", "left": "\(max(0, limit - (Self.openCount ?? 0)))"])
    measure()
  }

  /// Makes a listener pause when no connection may be opened any more.
  ///
  /// - Parameter reserve: so many more it may open, so that operators can look at the relay.
  package func watch(_ listener: any Channel, reserve: Int = 0) async throws {
    measure()
    // Accepts one at a time: a pause comes before the next one.
    try await listener.setOption(.maxMessagesPerRead, value: 1).get()
    try await listener.eventLoop.submit { [self] in
      let handler = AcceptPause(self, reserve: reserve)
      try listener.pipeline.syncOperations.addHandler(handler, position: .first)
    }.get()
  }

  /// Counts what is open beside connections when the relay listens.
  private func measure() {
    guard let open = Self.openCount else { return }
    let limit = limit.load(ordering: .relaxed)
    allow(connections: limit - open + connections.load(ordering: .relaxed), of: limit)
  }

  /// Allows as many connections as there is room for, but for the reserve.
  func allow(connections room: Int, of limit: Int) {
    let reserve = Limits.reservedDescriptors
    let kept = min(max(limit / 8, reserve.lowerBound), reserve.upperBound)
    mostConnections.store(max(1, room - kept), ordering: .relaxed)
  }

  /// The connections of all listeners that are open.
  package var connectionCount: Int { connections.load(ordering: .relaxed) }

  fileprivate func mayAccept(reserve: Int) -> Bool {
    connectionCount - reserve < mostConnections.load(ordering: .relaxed)
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
    say(limit, error)
    return true
  }

  private func say(_ limit: String, _ error: Errno) {
    guard !isShortage.exchange(true, ordering: .relaxed) else { return }
    logger.error(
      "connections wait until some end: too many files and sockets are open; raise the limit",
      metadata: ["limit": "\(limit)", "error": "\(error)"])
  }

  /// Counts a connection until it is closed; says whether there may be another.
  fileprivate func count(_ connection: any Channel, reserve: Int) -> Bool {
    let count = connections.add(1, ordering: .relaxed).newValue
    connection.closeFuture.whenComplete { [self] _ in connections.subtract(1, ordering: .relaxed) }
    let most = mostConnections.load(ordering: .relaxed)
    guard count < most else {
      say("RLIMIT_NOFILE of this process (ulimit -n, LimitNOFILE)", .tooManyOpenFiles)
      return mayAccept(reserve: reserve)
    }
    // A place or two that come and go are no end of it.
    if areShort, count <= most - most / 16 {
      isShortage.store(false, ordering: .relaxed)
      logger.notice("connections are accepted again")
    }
    return true
  }
}

/// Stops accepting for a moment after a failure for lack of resources. Otherwise the listener would
/// be ready again at once and keep the loop busy.
private final class AcceptPause: ChannelInboundHandler {
  typealias InboundIn = any Channel
  private static let pause = TimeAmount.milliseconds(200)

  private let descriptors: Descriptors
  private let reserve: Int

  init(_ descriptors: Descriptors, reserve: Int) {
    (self.descriptors, self.reserve) = (descriptors, reserve)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if !descriptors.count(unwrapInboundIn(data), reserve: reserve) { pause(context) }
    context.fireChannelRead(data)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let code = (error as? IOError)?.errnoCode,
      descriptors.recordShortage(Errno(rawValue: code))
    else {
      return context.fireErrorCaught(error)
    }
    pause(context)
  }

  private func pause(_ context: ChannelHandlerContext) {
    let listener = context.channel
    try? listener.syncOptions?.setOption(.autoRead, value: false)
    resume(listener, on: context.eventLoop.assumeIsolated())
  }

  private func resume(_ listener: any Channel, on loop: NIOIsolatedEventLoop) {
    loop.scheduleTask(in: Self.pause) { [self] in
      guard listener.isActive else { return }
      guard descriptors.mayAccept(reserve: reserve) else { return resume(listener, on: loop) }
      try? listener.syncOptions?.setOption(.autoRead, value: true)
    }
  }
}

extension Relay {
  /// Returns unused memory to the system. Slow: not for event loops.
  package static func returnMemory() { SystemResources.returnMemory() }
}
