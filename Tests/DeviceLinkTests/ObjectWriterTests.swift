import RelayCore
import Testing

@testable import DeviceLink

struct ObjectWriterTests {
  @Test func everyASCIICharacterComesBack() throws {
    for code in UInt8(0)..<128 {
      let text = "<" + String(UnicodeScalar(code)) + ">"
      var written: [UInt8] = []
      var object = ObjectWriter()
      object.member(LineKey("key"), text, to: &written)
      object.end(&written)
      #expect(!written.dropLast().contains { $0 < 0x20 }, "code \(code)")
      var cursor = try ObjectCursor(written.span)
      let member = try #require(try cursor.next(written.span))
      #expect(
        written.span.extracting(member.text).unescapedText(limitBytes: 100) == text,
        "code \(code)")
      #expect(try cursor.next(written.span) == nil)
    }
  }

  @Test(
    arguments: [
      0, 7, 10, -1, 999, 1_790_000_000_000, -1_790_000_000_000, .max, .min,
    ] as [Int64])
  func numbersAreWrittenInFull(number: Int64) {
    var written: [UInt8] = []
    var object = ObjectWriter()
    object.member(LineKey("n"), number, to: &written)
    object.end(&written)
    #expect(written == bytes("{\"n\":\(number)}\n"))
  }

  @Test func members() {
    var written: [UInt8] = []
    var object = ObjectWriter()
    object.member(LineKey("n"), -5, to: &written)
    object.member(LineKey("j"), json: bytes("[1,\r\n2]"), to: &written)
    object.member(LineKey("p"), to: &written) { $0.append(UInt8(ascii: "x")) }
    object.end(&written)
    #expect(written == bytes(#"{"n":-5,"j":[1,  2],"p":"x"}"# + "\n"))
    var empty: [UInt8] = []
    ObjectWriter().end(&empty)
    #expect(empty == bytes("{}\n"))
  }
}
