import Primitives
import RelayCore
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
}
