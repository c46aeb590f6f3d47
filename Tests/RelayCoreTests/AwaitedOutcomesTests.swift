import Testing

@testable import RelayCore

struct AwaitedOutcomesTests {
  private func id(_ number: UInt64) -> UniqueID { UniqueID(high: 7, low: number) }

  /// Which of these promises are kept, by number of the id and device, one after the other.
  private func kept(
    _ awaited: inout AwaitedOutcomes, _ asked: [(number: UInt64, device: Int32)]
  ) -> [Bool] {
    asked.map { awaited.remove(id($0.number), of: $0.device) }
  }

  @Test func aPromiseIsKeptOnceByItsDevice() {
    var awaited = AwaitedOutcomes(limit: 4)
    awaited.insert(id(1), of: 3)
    let kept = kept(&awaited, [(1, 4), (2, 3), (1, 3), (1, 3)])
    #expect(kept == [false, false, true, false])
  }

  @Test func aDeviceMaySaySoOftenWhatItDecides() {
    var awaited = AwaitedOutcomes(limit: 4)
    awaited.insert(id(1), of: 3)
    let strange = [awaited.noteDecision(id(1), of: 4), awaited.noteDecision(id(2), of: 3)]
    #expect(strange == [false, false])
    let noted = (0...Limits.decisionsPerPush).map { _ in awaited.noteDecision(id(1), of: 3) }
    #expect(noted.count(where: \.self) == Int(Limits.decisionsPerPush) && noted.last == false)
    // Wherever the device goes, the count goes along.
    var moved = AwaitedOutcomes(limit: 4)
    moved.fill(awaited.state)
    let isNoted = moved.noteDecision(id(1), of: 3)
    #expect(!isNoted)
    let taken = awaited.take(of: [3: 0])
    #expect(taken.map(\.decisions) == [Limits.decisionsPerPush])
  }

  @Test func theOldestIsForgotten() {
    var awaited = AwaitedOutcomes(limit: 3)
    for number in 1...4 { awaited.insert(id(UInt64(number)), of: 1) }
    let kept = kept(&awaited, [(1, 1), (2, 1), (3, 1), (4, 1)])
    #expect(kept == [false, true, true, true])
  }

  @Test func anIDThatComesTwiceIsOnePromise() {
    var awaited = AwaitedOutcomes(limit: 2)
    awaited.insert(id(1), of: 1)
    awaited.insert(id(1), of: 2)
    // Forgets the first promise of the id, which the second has replaced.
    awaited.insert(id(2), of: 2)
    let kept = kept(&awaited, [(1, 1), (1, 2), (2, 2)])
    #expect(kept == [false, true, true])
  }

  @Test func itNeverHoldsMoreThanItsLimit() {
    var awaited = AwaitedOutcomes(limit: 5)
    for number in 0..<1000 as Range<UInt64> {
      awaited.insert(id(number), of: Int32(number % 3))
      if number % 4 == 0 { _ = awaited.remove(id(number), of: Int32(number % 3)) }
    }
    let left = (0..<1000 as Range<UInt64>).filter { number in
      awaited.remove(id(number), of: Int32(number % 3))
    }
    #expect(left.count <= 5)
    #expect(left.last == 999)
  }
}
