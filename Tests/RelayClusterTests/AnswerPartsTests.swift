import RelayCore
import Testing

@testable import RelayCluster

@Suite struct AnswerPartsTests {
  private static func answer(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 / 1000 + $0) }
  }

  @Test(arguments: [0, 1, Limits.hopMessageBytes, Limits.hopMessageBytes + 1, 3_000_000])
  func anAnswerComesWhole(_ count: Int) throws {
    let answer = Self.answer(count)
    let parts = AnswerParts.split(answer)
    #expect(parts.allSatisfy { $0.count <= Limits.hopMessageBytes })
    var taken = AnswerParts()
    for part in parts.dropLast() { taken.add(part) }
    #expect(taken.whole(with: try #require(parts.last), totalBytes: count) == answer)
  }

  @Test func anAnswerWithAPartMissingIsNone() throws {
    let parts = AnswerParts.split(Self.answer(3_000_000))
    var taken = AnswerParts()
    for part in parts.dropFirst().dropLast() { taken.add(part) }
    #expect(taken.whole(with: try #require(parts.last), totalBytes: 3_000_000) == nil)
  }

  @Test func whatIsTooLongIsNotSentAndNotKept() {
    #expect(AnswerParts.split(Array(repeating: 7, count: Limits.nodeAnswerBytes + 1)) == [[]])
    var taken = AnswerParts()
    let half = [UInt8](repeating: 7, count: Limits.nodeAnswerBytes / 2)
    for _ in 0..<5 { taken.add(half) }
    #expect(taken.whole(with: [], totalBytes: Limits.nodeAnswerBytes)?.count == 2 * half.count)
  }
}
