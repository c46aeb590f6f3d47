import Foundation
import Testing

@testable import DeviceSimulator

@Suite struct PayloadTests {
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

  /// As Foundation reads it again.
  @Test(arguments: ["plain", "\"\\/\u{8}\u{c}\n\r\t", "é€😀", "{[,:]}", "", "\u{0}\u{7f}"])
  func textsAreQuoted(text: String) throws {
    let again = try JSONDecoder().decode([String].self, from: Data("[\(quoted(text))]".utf8))
    #expect(again == [text])
  }
}
