import AdminAPI
import FoundationEssentials
import RelayCore
import Testing

@Suite("JSON values in answers") struct JSONValueTests {
  @Test(arguments: [
    #"{"a":[1,-2,2.5,9007199254740993],"b":"x\\n","c":{"d":true,"e":null}}"#, "{}",
  ])
  func comesBackAsItWas(text: String) throws {
    let value = JSONValue(try JSONTree.read(Array(text.utf8)))
    #expect(String(decoding: try JSONText.bytes(value), as: UTF8.self) == text)
    #expect(try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8)) == value)
  }

  /// A provider may send what no encoder writes.
  @Test(arguments: ["1e400", "-1e400"])
  func aNumberTooLargeIsShownAsWritten(number: String) throws {
    let value = JSONValue(try JSONTree.read(Array("{\"n\":\(number)}".utf8)))
    #expect(String(decoding: try JSONText.bytes(value), as: UTF8.self) == "{\"n\":\"\(number)\"}")
  }
}
