import Primitives
import Testing

@testable import PhoneRuntime

@Suite struct BadLinkTests {
  @Test func aGoodLinkLosesAndDelaysNothing() {
    var chance = LinkChance(BadLink(), seed: 1)
    let now = ContinuousClock.now
    for _ in 0..<100 {
      let (arrival, isLost) = (chance.arrival(sentAt: now), chance.loses())
      #expect(arrival == now && !isLost)
    }
    #expect(!BadLink().isBad && BadLink(lossPercent: 1).isBad)
  }

  @Test func aBadOneDoesSoOftenAndSoLong() {
    let link = BadLink(latency: .milliseconds(800), jitter: .milliseconds(200), lossPercent: 20)
    var chance = LinkChance(link, seed: 7)
    var lost = 0
    var delays: Set<Duration> = []
    let now = ContinuousClock.now
    for number in 0..<10_000 {
      if chance.loses() { lost += 1 }
      // Far enough apart that none waits for the one before.
      let sent = now + .seconds(number)
      delays.insert(chance.arrival(sentAt: sent) - sent)
    }
    #expect((1_800...2_200).contains(lost), "\(lost)")
    #expect(delays.min()! >= .milliseconds(800) && delays.max()! <= .milliseconds(1000))
    #expect(delays.count > 100)
  }

  /// What is sent together arrives together, what is sent later in order, and nothing waits longer
  /// than it would by itself but for what was sent before.
  @Test func delaysDoNotAddUp() {
    var steady = LinkChance(BadLink(latency: .milliseconds(800)), seed: 1)
    let now = ContinuousClock.now
    let together = Set((0..<100).map { _ in steady.arrival(sentAt: now) })
    #expect(together == [now + .milliseconds(800)])
    for seed in UInt64(1)...20 {
      let link = BadLink(latency: .milliseconds(100), jitter: .milliseconds(900))
      var chance = LinkChance(link, seed: seed)
      let arrivals = (0..<200).map { chance.arrival(sentAt: now + .milliseconds(3 * $0)) }
      #expect(arrivals == arrivals.sorted(), "seed \(seed)")
      let last = now + .milliseconds(3 * 199 + 1000)
      #expect(arrivals.allSatisfy { $0 <= last }, "seed \(seed)")
    }
  }

  @Test func theSameSeedLosesTheSame() {
    func lost(_ seed: UInt64) -> [Bool] {
      var chance = LinkChance(BadLink(lossPercent: 50), seed: seed)
      return (0..<64).map { _ in chance.loses() }
    }
    #expect(lost(3) == lost(3) && lost(3) != lost(4))
  }
}
