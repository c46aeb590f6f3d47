import Primitives
import RelayCore
import RelaySetup
import Testing

@testable import RelayServer

@Suite struct LoopClockTests {
  private let start = Instant(milliseconds: 1_000_000)

  private func makeClock(judgesTokens: Bool = false) -> (LoopClock, VirtualTime) {
    let time = VirtualTime(start: start)
    var settings = ServerSettings()
    settings.clock = .virtual(time)
    settings.configuration.tokenClock = judgesTokens ? .virtual : .system
    return (LoopClock(settings), time)
  }

  @Test func aVirtualClockStandsAndSocketsGoOn() {
    var (clock, time) = makeClock()
    time.advance(to: start + .seconds(5))
    #expect(clock.isVirtual && clock.now == start + .seconds(5))
    #expect(clock.wall(start) > start && clock.steady(start) > start)
    #expect(
      clock.tokenTime(start) > start && makeClock(judgesTokens: true).0.tokenTime(start) == start)
    clock.beginBatch(at: start)
    #expect(clock.batchTime > start)
  }

  @Test func lengthsDoNotGoByAStepOfTheMachinesClock() {
    var clock = LoopClock(ServerSettings())
    let before = clock.now
    clock.step(by: .hours(1))
    #expect(!clock.isVirtual && clock.now - before >= .hours(1) && clock.offset == .hours(1))
    #expect(clock.unset(clock.now) - before < .hours(1))
    #expect(clock.steady(start) == start - .hours(1) && clock.wall(start) == start)
  }
}
