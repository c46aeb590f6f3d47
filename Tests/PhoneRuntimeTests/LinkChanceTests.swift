import DeviceSimulator
import Primitives
import Testing

@testable import PhoneRuntime

@Suite struct LinkChanceTests {
  @Test func aGoodLinkLosesAndDelaysNothing() {
    var chance = LinkChance(LinkModel.plain, seed: 1)
    let now = ContinuousClock.now
    for _ in 0..<100 {
      let (arrival, isLost) = (chance.arrival(sentAt: now), chance.loses())
      #expect(arrival == now && !isLost)
    }
    #expect(
      !LinkModel.plain.isBad && LinkModel(latency: .zero, jitter: .zero, lossPercent: 1).isBad)
  }

  @Test func aBadOneDoesSoOftenAndSoLong() {
    let link = LinkModel(latency: .milliseconds(800), jitter: .milliseconds(200), lossPercent: 20)
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

  @Test func aFractionOfAHundredthIsLostToo() {
    for (percent, expected) in [(0.5, 900...1_100), (99.5, 198_900...199_100)] {
      let link = LinkModel(latency: .zero, jitter: .zero, lossPercent: percent)
      var chance = LinkChance(link, seed: 3)
      let lost = (0..<200_000).count { _ in chance.loses() }
      #expect(expected.contains(lost), "\(lost)")
    }
  }

  /// What is sent together arrives together, what is sent later in order, and nothing waits longer
  /// than it would by itself but for what was sent before.
  @Test func delaysDoNotAddUp() {
    var steady = LinkChance(LinkModel(latency: .milliseconds(800), jitter: .zero), seed: 1)
    let now = ContinuousClock.now
    let together = Set((0..<100).map { _ in steady.arrival(sentAt: now) })
    #expect(together == [now + .milliseconds(800)])
    for seed in UInt64(1)...20 {
      let link = LinkModel(latency: .milliseconds(100), jitter: .milliseconds(900))
      var chance = LinkChance(link, seed: seed)
      let arrivals = (0..<200).map { chance.arrival(sentAt: now + .milliseconds(3 * $0)) }
      #expect(arrivals == arrivals.sorted(), "seed \(seed)")
      let last = now + .milliseconds(3 * 199 + 1000)
      #expect(arrivals.allSatisfy { $0 <= last }, "seed \(seed)")
    }
  }

  @Test func theSameSeedLosesTheSame() {
    func lost(_ seed: UInt64) -> [Bool] {
      var chance = LinkChance(LinkModel(latency: .zero, jitter: .zero, lossPercent: 50), seed: seed)
      return (0..<64).map { _ in chance.loses() }
    }
    #expect(lost(3) == lost(3) && lost(3) != lost(4))
  }
}
