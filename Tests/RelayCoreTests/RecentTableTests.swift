import Primitives
import Testing

@testable import RelayCore

@Suite struct RecentTableTests {
  private func token(_ number: UInt64) -> DeviceToken {
    DeviceToken(random: (number, 0, 0), routingKey: 0)
  }

  private func instant(_ number: Int64) -> Instant { Instant(milliseconds: number) }

  @Test func theOldestAreForgotten() {
    var gone = GoneTokens(limit: 3)
    for number in UInt64(1)...3 { #expect(gone.insert(instant(1), for: token(number))?.key == nil) }
    #expect(gone.insert(instant(2), for: token(4))?.key == token(1))
    #expect(gone.insert(instant(3), for: token(2))?.key == nil, "the youngest now")
    #expect(gone.insert(instant(4), for: token(5))?.key == token(3))
    #expect(gone[token(2)] == instant(3) && gone[token(3)] == nil)
  }

  /// A token that comes and goes, be it in one millisecond, takes only its own place.
  @Test func aTokenThatComesAndGoesPushesNobodyOut() {
    var gone = GoneTokens(limit: 50)
    for number in UInt64(1)...49 { _ = gone.insert(instant(1), for: token(number)) }
    for _ in 0..<1000 {
      gone.remove(token(0))
      #expect(gone.insert(instant(2), for: token(0))?.key == nil)
    }
    for number in UInt64(1)...49 { #expect(gone[token(number)] == instant(1)) }
    #expect(gone.count == 50)
    #expect(gone.placeCount <= 2 * 50 + 16)
  }

  @Test func valuesChangeInTheirPlacesAndLeaveThem() {
    var awaited = AwaitedOutcomes(limit: 3)
    let ids = (0..<4).map { UniqueID(high: 7, low: $0) }
    for (device, id) in zip(Int32(0)..., ids.prefix(3)) {
      _ = awaited.insert(AwaitedOutcome(device: .init(device)), for: id)
    }
    awaited.change(ids[1]) { $0.decisions += 1 }
    awaited.change(ids[3]) { $0.decisions += 1 }
    #expect(awaited[ids[1]]?.decisions == 1 && awaited[ids[3]] == nil)
    awaited.removeAll { $0.value.device == 0 }
    #expect(awaited.count == 2 && awaited.oldest?.key == ids[1])
    #expect(awaited.insert(AwaitedOutcome(device: 4), for: ids[3]) == nil)
    #expect(awaited.insert(AwaitedOutcome(device: 5), for: ids[0])?.key == ids[1])
  }

  /// Against a list that keeps no places.
  @Test func randomTrafficForgetsTheOldest() {
    for seed in UInt64(0)..<100 {
      var generator = SeededRandom(seed: seed)
      var gone = GoneTokens(limit: 8)
      var model: [(token: DeviceToken, since: Instant)] = []
      for step in 0..<200 as Range<Int64> {
        let token = token(.random(in: 0..<20, using: &generator))
        model.removeAll { $0.token == token }
        if generator.chance(40) {
          gone.remove(token)
        } else {
          model.append((token, instant(step / 3)))
          let forgotten = model.count > 8 ? model.removeFirst().token : nil
          #expect(gone.insert(instant(step / 3), for: token)?.key == forgotten, "seed \(seed)")
        }
        #expect(gone.count == model.count && gone.placeCount <= 2 * 8 + 17, "seed \(seed)")
        for (token, since) in model { #expect(gone[token] == since, "seed \(seed)") }
      }
    }
  }
}
