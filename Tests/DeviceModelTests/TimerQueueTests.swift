import Primitives
import Testing

@testable import DeviceModel

@Suite struct TimerQueueTests {
  private func at(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }

  private func drain(_ queue: inout TimerQueue, at moment: Instant) -> [TimerKind] {
    var kinds: [TimerKind] = []
    while let entry = queue.popDue(at: moment) { kinds.append(entry.kind) }
    return kinds
  }

  @Test func theEarliestIsFirstAndEqualsInTheirOrder() {
    var queue = TimerQueue()
    let kinds: [TimerKind] = [.graceEnds(mail), .heldPush(news), .heldPush(mail)]
    queue.set(kinds[2], at: at(2))
    queue.set(kinds[0], at: at(1))
    queue.set(kinds[1], at: at(1))
    #expect(queue.nextMoment == at(1))
    #expect(drain(&queue, at: at(1)) == Array(kinds.prefix(2)))
    #expect(queue.nextMoment == at(2))
    #expect(drain(&queue, at: at(2)) == [kinds[2]])
    #expect(queue.nextMoment == nil)
  }

  @Test(arguments: Look.allCases) func aLookIsOne(look: Look) {
    var queue = TimerQueue()
    queue.set(look, at: at(5))
    // Later: there is one already. Earlier: takes its place.
    queue.set(look, at: at(6))
    queue.set(look, at: at(3))
    #expect(drain(&queue, at: at(2)).isEmpty)
    #expect(drain(&queue, at: at(3)) == [.look(look)])
    #expect(queue.nextMoment == nil)
    // What it took the place of does not come.
    #expect(drain(&queue, at: at(10)).isEmpty)
    queue.set(look, at: at(12))
    #expect(drain(&queue, at: at(12)) == [.look(look)])
    queue.set(look, at: .never)
    #expect(queue.nextMoment == nil)
  }

  @Test func looksAreNotEachOthers() {
    var queue = TimerQueue()
    for look in Look.allCases { queue.set(look, at: at(4)) }
    #expect(drain(&queue, at: at(4)) == Look.allCases.map { .look($0) })
  }
}
