import Testing

@testable import RelayCore

@Suite struct FieldNameTests {
  private func read(_ bytes: [UInt8]) -> FieldName? { FieldName(bytes.span) }

  @Test(arguments: FieldName.allCases)
  func everyNameIsFoundAndNothingLikeIt(field: FieldName) {
    let name = Array(field.wireName.utf8)
    #expect(read(name) == field)
    for index in name.indices {
      var other = name
      other[index] ^= 0x20
      #expect(read(other) != field, "HTTP/2 names are lower case")
      #expect(read(Array(name[..<index])) != field)
    }
    #expect(read(name + [0]) == nil)
  }

  @Test func unknownNamesAreNone() {
    for name in ["", ":scheme", ":authorit", "cookie", String(repeating: "x", count: 100)] {
      #expect(read(Array(name.utf8)) == nil, "\(name)")
    }
  }

  @Test func rawValuesFitASet() {
    #expect(FieldName.allCases.allSatisfy { $0.rawValue < 32 })
  }
}
