import Primitives
import Testing

@testable import PhoneRuntime

@Suite struct BadLinkTests {
  @Test func aGoodLinkLosesAndDelaysNothing() {
    var chance = LinkChance(BadLink(), seed: 1)
    for _ in 0..<100 {
      let (delay, isLost) = (chance.delay(), chance.loses())
      #expect(delay == .zero && !isLost)
    }
    #expect(!BadLink().isBad && BadLink(lossPercent: 1).isBad)
  }

  @Test func aBadOneDoesSoOftenAndSoLong() {
    let link = BadLink(latency: .milliseconds(800), jitter: .milliseconds(200), lossPercent: 20)
    var chance = LinkChance(link, seed: 7)
    var lost = 0
    var delays: Set<Duration> = []
    for _ in 0..<10_000 {
      if chance.loses() { lost += 1 }
      delays.insert(chance.delay())
    }
    #expect((1_800...2_200).contains(lost), "\(lost)")
    #expect(delays.min()! >= .milliseconds(800) && delays.max()! <= .milliseconds(1000))
    #expect(delays.count > 100)
  }

  @Test func theSameSeedLosesTheSame() {
    func lost(_ seed: UInt64) -> [Bool] {
      var chance = LinkChance(BadLink(lossPercent: 50), seed: seed)
      return (0..<64).map { _ in chance.loses() }
    }
    #expect(lost(3) == lost(3) && lost(3) != lost(4))
  }
}
