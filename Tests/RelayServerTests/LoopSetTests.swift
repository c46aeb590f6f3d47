import NIOCore
import NIOPosix
import Primitives
import RelayCore
import RelaySetup
import TestSupport
import Testing

@testable import RelayServer

/// The loops of a relay that has ended, and those who still hold them.
@Suite(.timeLimit(.minutes(1))) struct LoopSetTests {
  /// A question that comes too late is answered that there is no answer, and never waits for one.
  @Test(arguments: [1, 2])
  func loopsThatHaveEndedAnswerNothing(threads: Int) async throws {
    var held: LoopSet?
    var asking: Task<Void, Never>?
    try await LoopbackRelay.runRelay(threads: threads) { relay, _, _ in
      let loops = try #require(relay.inbox.loops)
      #expect(await loops.onEach { _ in 1 } == Array(repeating: 1, count: threads))
      #expect(await loops.ask(0) { _ in 1 } == 1)
      // In the middle of the end.
      asking = Task { while await !loops.onEach({ _ in 1 }).isEmpty {} }
      held = loops
    }
    await asking?.value
    let loops = try #require(held)
    #expect(await loops.onEach { _ in 1 }.isEmpty)
    #expect(await loops.ask(0) { _ in 1 } == nil)
    #expect(!loops.onLoop(0) { _ in Issue.record("a loop that has ended has run") })
    let device = DeviceID(UniqueID(high: 1, low: 2))
    guard case .takesNone = await loops.order(nil, to: device) else {
      Issue.record("a phone of a relay that has ended took an order")
      return
    }
    await loops.release([PartitionID(0)])
  }

  /// A balancer that tries the address at that moment goes on to the next relay.
  @Test func nobodyConnectsToAnAddressThatIsOnlyChecked() async throws {
    let group = MultiThreadedEventLoopGroup.singleton
    // Below those that clients get, so that none connects to itself.
    var port = Int.random(in: 20_000..<30_000)
    func listen() async throws -> any Channel {
      try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: port).get()
    }
    while true {
      guard let channel = try? await listen() else {
        port += 1
        continue
      }
      let endpoint = RelayConfiguration.Endpoint(host: "127.0.0.1", port: port)
      await #expect(throws: RelayConfiguration.ReadingError.self) {
        try await LoopSet.check(endpoint, "provider")
      }
      try await channel.close()
      break
    }
    var connected = 0
    let free = RelayConfiguration.Endpoint(host: "127.0.0.1", port: port)
    for _ in 0..<50 {
      async let isChecked: Void = LoopSet.check(free, "provider")
      let client = ClientBootstrap(group: group)
      if let channel = try? await client.connect(host: free.host, port: free.port).get() {
        connected += 1
        try await channel.close()
      }
      try await isChecked
    }
    #expect(connected == 0)
    // The address is free.
    try await listen().close()
  }
}
