import Glibc
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import RelayServer

@Suite("Descriptors") struct DescriptorsTests {
  /// Nothing is accepted for a moment, and it is said once, with what to raise.
  @Test func aLackIsSaidOnceAndAcceptPauses() async throws {
    let (events, feed) = AsyncStream.makeStream(of: LogEntry.self)
    let descriptors = Descriptors(Logger(label: "test") { _ in FeedingLogHandler(feed: feed) })
    let listener = NIOAsyncTestingChannel()
    try await descriptors.watch(listener)
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
    try await listener.writeInbound(ByteBuffer())
    feed.finish()
    var said: [LogEntry] = []
    for await entry in events { said.append(entry) }
    #expect(said.map(\.level) == [.error, .notice])
    #expect(said.first?.metadata["limit"]?.contains("RLIMIT_NOFILE") == true)
    _ = try? await listener.finish()
  }
}
