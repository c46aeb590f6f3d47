import RelayCore
import Testing

@Suite("ObjectCursor") struct ObjectCursorTests {
  private func members(_ text: String) throws(PayloadError) -> [(key: String, text: String)] {
    let bytes = Array(text.utf8)
    var cursor = try ObjectCursor(bytes.span)
    var members: [(key: String, text: String)] = []
    while let member = try cursor.next(bytes.span) {
      members.append(
        (
          String(decoding: bytes[member.key], as: UTF8.self),
          String(decoding: bytes[member.text], as: UTF8.self)
        ))
    }
    return members
  }

  @Test func membersComeInOrderAndStringsWithoutQuotes() throws {
    let found = try members(#" { "a" : "xy" ,"b":-1.5, "":{"c":["d"]},"e":"","f":null} "#)
    #expect(found.map(\.key) == ["a", "b", "", "e", "f"])
    #expect(found.map(\.text) == ["xy", "-1.5", #"{"c":["d"]}"#, "", "null"])
    #expect(try members("{}").isEmpty)
  }

  @Test func kindsAreKnown() throws {
    let bytes = Array(#"{"a":"null","b":null,"c":0}"#.utf8)
    var cursor = try ObjectCursor(bytes.span)
    let (first, second, third) = (
      try cursor.next(bytes.span), try cursor.next(bytes.span), try cursor.next(bytes.span)
    )
    #expect(first?.isString == true && first?.isNull == false)
    #expect(second?.isString == false && second?.isNull == true)
    #expect(third?.isString == false && third?.isNull == false)
    #expect(try cursor.next(bytes.span) == nil)
  }

  @Test(arguments: [
    "", "[]", "{", #"{"a"}"#, #"{"a":1,}"#, #"{a:1}"#, #"{"a":1}x"#, "{}x", #"{"a":"b}"#,
  ])
  func whatIsNoObjectIsRefused(text: String) {
    #expect(throws: PayloadError.self) { _ = try members(text) }
  }
}
