import Glibc
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import RelayServer

@Suite("Descriptors") struct DescriptorsTests {
  /// Nothing is accepted for a moment, and it is said once, with what to raise.
  @Test func aLackIsSaidOnceAndAcceptPauses() async throws {
    let (events, feed) = AsyncStream.makeStream(of: LogEntry.self)
    let descriptors = Descriptors(Logger(label: "test") { _ in FeedingLogHandler(feed: feed) })
    let listener = NIOAsyncTestingChannel()
    try await descriptors.watch(listener)
    try await listener.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
    func isReading() -> Bool? {
      listener.options.last { $0.option is ChannelOptions.Types.AutoReadOption }?.value as? Bool
    }
    for _ in 0..<3 {
      try await listener.testingEventLoop.executeInContext {
        listener.pipeline.fireErrorCaught(IOError(errnoCode: EMFILE, reason: "accept"))
      }
      #expect(isReading() == false)
      await listener.testingEventLoop.advanceTime(by: .milliseconds(200))
      #expect(isReading() == true)
    }
    try await listener.writeInbound(NIOAsyncTestingChannel() as any Channel)
    feed.finish()
    var said: [LogEntry] = []
    for await entry in events { said.append(entry) }
    #expect(said.map(\.level) == [.error, .notice])
    #expect(said.first?.metadata["limit"]?.contains("RLIMIT_NOFILE") == true)
    _ = try? await listener.finish()
  }

  /// A reserve is kept: the next one waits until there is a place, and so do those of another
  /// listener, but not who looks after the relay.
  @Test func connectionsLeaveAReserve() async throws {
    let (events, feed) = AsyncStream.makeStream(of: LogEntry.self)
    let descriptors = Descriptors(Logger(label: "test") { _ in FeedingLogHandler(feed: feed) })
    let (listener, admin) = (NIOAsyncTestingChannel(), NIOAsyncTestingChannel())
    try await descriptors.watch(listener)
    try await descriptors.watch(admin, reserve: .max)
    for listener in [listener, admin] {
      try await listener.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
    }
    descriptors.allow(connections: 18, of: 100)
    func isReading(_ channel: NIOAsyncTestingChannel) -> Bool {
      let last = channel.options.last { $0.option is ChannelOptions.Types.AutoReadOption }
      return last?.value as? Bool ?? true
    }
    func pass(_ milliseconds: Int64) async {
      await listener.testingEventLoop.advanceTime(by: .milliseconds(milliseconds))
    }
    let first = NIOAsyncTestingChannel()
    try await listener.writeInbound(first as any Channel)
    #expect(isReading(listener))
    let second = NIOAsyncTestingChannel()
    try await listener.writeInbound(second as any Channel)
    try await admin.writeInbound(NIOAsyncTestingChannel() as any Channel)
    #expect(!isReading(listener) && isReading(admin))
    await pass(1000)
    #expect(!isReading(listener))
    // All three, and there is room for one.
    try await second.close().get()
    await pass(1000)
    #expect(!isReading(listener))
    try await first.close().get()
    await pass(200)
    #expect(isReading(listener))
    feed.finish()
    var said: [LogEntry] = []
    for await entry in events { said.append(entry) }
    #expect(said.map(\.level) == [.error])
    _ = try? await listener.finish()
    _ = try? await admin.finish()
  }

  /// Of the admin listener a few more, and no more than these.
  @Test func aFewMayTakeFromTheReserve() async throws {
    let descriptors = Descriptors(Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let listener = NIOAsyncTestingChannel()
    try await descriptors.watch(listener, reserve: 2)
    try await listener.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
    descriptors.allow(connections: 17, of: 100)
    for (number, isReading) in [(1, true), (2, true), (3, false)] {
      try await listener.writeInbound(NIOAsyncTestingChannel() as any Channel)
      let last = listener.options.last { $0.option is ChannelOptions.Types.AutoReadOption }
      #expect(last?.value as? Bool ?? true == isReading, "\(number)")
      #expect(descriptors.connectionCount == number)
    }
    _ = try? await listener.finish()
  }

  @Test(arguments: [(64, 48), (128, 112), (256, 224), (512, 448), (20_000, 19_936)])
  func theReserveHasBounds(limit: Int, most: Int) {
    let descriptors = Descriptors(Logger(label: "test"))
    descriptors.allow(connections: limit, of: limit)
    #expect(descriptors.mostConnections.load(ordering: .relaxed) == most)
  }
}
