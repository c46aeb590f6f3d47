import Foundation
import RelayCore
import Testing

@Suite struct JSONTreeTests {
  private func read(_ text: String) throws -> JSONTree { try JSONTree.read(Array(text.utf8)) }

  @Test func linesAndSource() throws {
    let tree = try read("{\n \"a\": 1,\n\n \"b\": [true,\n  null, {\"c\" : \"x\"}] }")
    #expect(tree["a"]?.line == 2)
    guard case .list(let items)? = tree["b"]?.value else { throw Missing() }
    #expect(items.map(\.line) == [4, 5, 5])
    #expect(items[2].source == Array("{\"c\" : \"x\"}".utf8))
    #expect(tree["d"] == nil)
  }

  /// Strings as Foundation reads them.
  @Test(arguments: [
    "plain", "\\\"\\\\\\/\\b\\f\\n\\r\\t", "\\u00e9\\u20AC", "\\ud83d\\ude00", "é€😀",
    "a\\ud83d\\ude00b", "{[,:]}", "\\\\", "a\\\\\\\"b", "", "\\u0041\\u0042c",
  ])
  func strings(escaped: String) throws {
    let text = "{\"k\\u0065y\":\"\(escaped)\"}"
    let expected = try JSONDecoder().decode([String: String].self, from: Data(text.utf8))["key"]
    guard case .text(let found)? = try read(text)["key"]?.value else { throw Missing() }
    #expect(found == expected)
  }

  @Test(arguments: [("0", 0), ("-1.5e2", -150), ("9007199254740992", 9_007_199_254_740_992)])
  func numbers(text: String, expected: Double) throws {
    guard case .number(let found)? = try read("{\"n\":\(text)}")["n"]?.value else {
      throw Missing()
    }
    #expect(found == expected)
  }

  private struct Missing: Error {}
}
