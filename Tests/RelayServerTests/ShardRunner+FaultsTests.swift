import Primitives
import Testing

@testable import RelayServer

@Suite struct PutOffTests {
  @Test func whatIsDueComesInTheOrderInWhichItCame() {
    let start = Instant(milliseconds: 1000)
    var done: [Int] = []
    var putOff = PutOff()
    for (number, seconds) in [3, 1, 2, 1, 3].enumerated() {
      putOff.add(at: start + .seconds(Int64(seconds))) { done.append(number) }
    }
    #expect(putOff.next == start + .seconds(1))
    for work in putOff.nextDue(at: start) { work() }
    #expect(done.isEmpty)
    for work in putOff.nextDue(at: start + .seconds(2)) { work() }
    #expect(done == [1, 3, 2] && putOff.next == start + .seconds(3))
    for work in putOff.nextDue(at: start + .seconds(9)) { work() }
    #expect(done == [1, 3, 2, 0, 4] && putOff.next == nil)
  }
}

@Suite struct LoopFaultsTests {
  @Test func theJournalIsHeldAsLongAsBeforeWhenTheClockIsSet() {
    var faults = LoopFaults()
    #expect(!faults.mayHoldJournal)
    faults.journalHeldUntil = Instant(milliseconds: 1000)
    faults.stepClock(by: .seconds(1))
    #expect(faults.mayHoldJournal && faults.journalHeldUntil == Instant(milliseconds: 2000))
  }
}
