import Testing

@testable import RelayServer

@Suite struct ConnectionNumbersTests {
  @Test func theyCountUpFromOne() {
    var numbers = ConnectionNumbers()
    #expect((0..<3).map { _ in numbers.next { _ in false } } == [1, 2, 3])
  }

  @Test func theyBeginAgainAndPassOverNoneAndThoseInUse() {
    var numbers = ConnectionNumbers(last: .max - 1)
    let taken: Set<UInt32> = [1, 2, 4]
    let next = (0..<4).map { _ in numbers.next { taken.contains($0) } }
    #expect(next == [.max, 3, 5, 6])
  }
}
