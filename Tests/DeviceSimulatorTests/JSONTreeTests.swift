import Foundation
import RelayCore
import Testing

@testable import DeviceSimulator

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
    // And back.
    let again = try JSONDecoder().decode([String].self, from: Data("[\(quoted(found))]".utf8))
    #expect(again == [found])
  }

  @Test(arguments: [("0", 0), ("-1.5e2", -150), ("9007199254740992", 9_007_199_254_740_992)])
  func numbers(text: String, expected: Double) throws {
    guard case .number(let found)? = try read("{\"n\":\(text)}")["n"]?.value else {
      throw Missing()
    }
    #expect(found == expected)
  }

  @Test func whatPayloadsHold() {
    #expect(Payload.alert("a \"b\"\n", wakesApp: true).alert == "a \"b\"\n")
    #expect(Payload.alert("a", wakesApp: true).wakesApp)
    #expect(!Payload.alert("a").wakesApp)
    #expect(Payload.silent.wakesApp && Payload.silent.alert == nil)
    let full: Payload = #"{"aps":{"alert":{"title":"A","body":"B"},"badge":3,"sound":"default"}}"#
    #expect(full.alert == "A: B" && full.badge == 3 && full.hasSound)
    let localized: Payload =
      #"{"aps":{"alert":{"title":"A","title-loc-key":"T","loc-key":"HELLO"}}}"#
    #expect(localized.alert == "A: HELLO")
    let subtitle: Payload = #"{"aps":{"alert":{"subtitle-loc-key":"S","body":"B"}}}"#
    #expect(subtitle.alert == "S: B" && !subtitle.hasSound)
    // Of a Live Activity.
    let inner: Payload = #"""
      {"aps":{"alert":{"title":{"loc-key":"T"},"body":{"loc-key":"B","loc-args":[]},"sound":"x"}}}
      """#
    #expect(inner.alert == "T: B" && inner.hasSound)
    #expect((#"{"aps":{"alert":{}}}"# as Payload).alert == nil)
    let odd: Payload = #"{"aps":{"alert":7,"badge":1e300,"sound":null,"content-available":true}}"#
    #expect(odd.alert == nil && odd.badge == nil && !odd.hasSound && !odd.wakesApp)
    #expect(Payload(bytes: [0xFF]).alert == nil)
  }

  private struct Missing: Error {}
}
