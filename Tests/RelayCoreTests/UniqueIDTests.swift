import Primitives
import Testing

@testable import RelayCore

@Suite struct UniqueIDTests {
  private func read(_ bytes: [UInt8]) -> UniqueID? { UniqueID(parsing: bytes.span) }

  @Test func theCanonicalFormIsReadInEitherCaseAndWrittenInLowerCase() throws {
    for text in [
      "123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000",
      "ffffffff-ffff-ffff-ffff-ffffffffffff", "01234567-89ab-cdef-0123-456789abcdef",
    ] {
      #expect(try #require(UniqueID(text)).description == text)
      #expect(try #require(UniqueID(text.uppercased())).description == text)
    }
    let id = try #require(UniqueID("01234567-89ab-cdef-fedc-ba9876543210"))
    #expect(id.high == 0x0123_4567_89AB_CDEF)
    #expect(id.low == 0xFEDC_BA98_7654_3210)
  }

  @Test func nothingElseIsRead() {
    let good = Array("123e4567-e89b-12d3-a456-426614174000".utf8)
    for index in good.indices {
      for replacement in Array("gG/:@`- {\0".utf8) + [0x80, 0xFF] where replacement != good[index] {
        var bad = good
        bad[index] = replacement
        #expect(read(bad) == nil, "\(index), \(replacement)")
      }
      #expect(read(Array(good[..<index])) == nil)
    }
    #expect(UniqueID("{123e4567-e89b-12d3-a456-426614174000}") == nil)
    #expect(UniqueID("123e4567e89b12d3a456426614174000") == nil)
    #expect(UniqueID("123e4567-e89b-12d3-a456-4266141740000") == nil)
  }

  @Test func writingAndReadingAreInverse() {
    var generator = SeededRandom(seed: 1)
    for _ in 0..<1000 {
      let id = UniqueID(high: generator.next(), low: generator.next())
      #expect(UniqueID(id.description) == id)
    }
  }

  @Test func generatedOnesAreValidAndDiffer() {
    var seen: Set<UniqueID> = []
    for number in UInt64(0)..<1000 {
      let id = UniqueID(generator: 0xDEAD_BEEF_DEAD_BEEF, number: number)
      let text = Array(id.description)
      #expect(text[14] == "8", "version 8 (RFC 9562)")
      #expect("89ab".contains(text[19]), "variant")
      seen.insert(id)
    }
    #expect(seen.count == 1000)
    #expect(
      UniqueID(generator: 1, number: 5) != UniqueID(generator: 2, number: 5))
  }

  @Test func digitsAndValuesAreInverse() {
    for value in UInt8(0)..<16 {
      #expect(hexadecimalValue(hexadecimalDigit(value)) == value)
    }
    #expect((UInt8.min...UInt8.max).count { hexadecimalValue($0) != nil } == 22)
  }
}
