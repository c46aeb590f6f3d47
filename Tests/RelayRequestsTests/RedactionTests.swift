import RelayCore
import RelayRequests
import Testing

@Suite("Redaction") struct RedactionTests {
  private func redacted(_ payload: String, _ paths: [String]) -> String {
    let redaction = Redaction(paths.map { PayloadPath($0) })
    return String(decoding: redaction.redacted(Array(payload.utf8)), as: UTF8.self)
  }

  @Test func kindAndLengthStandForWhatIsNotKept() {
    let payload =
      #"{"aps":{"alert":{"title":"Hi","body":"Secret é"},"badge":1},"x":[1,"y"],"f":true}"#
    #expect(
      redacted(payload, ["aps.alert.body", "x.1", "f"])
        == #"{"aps":{"alert":{"title":"Hi","body":"[text of 8]"},"badge":1},"x":[1,"[text of 1]"],"#
        + #""f":"[flag]"}"#)
    #expect(redacted(payload, ["aps"]).hasPrefix(#"{"aps":"[object of 2]","x""#))
    #expect(redacted(payload, ["x"]).contains(#""x":"[list of 2]""#))
    #expect(redacted(#"{"a":null,"b":12}"#, ["a", "b"]) == #"{"a":"[null]","b":"[number]"}"#)
  }

  @Test func whatNoPathNamesStaysAsItIs() {
    let payload = #"{ "a" : 1.0,  "b":{"c" :2} }"#
    #expect(redacted(payload, []) == payload)
    #expect(redacted(payload, ["z", "a.b"]) == payload)
    #expect(redacted(payload, ["z", "a"]) == #"{"a":"[number]","b":{"c" :2}}"#)
  }

  /// Which of two members with one name counts is open (RFC 8259, section 4): none is kept.
  @Test func ofMembersWithTheSameNameNoneIsKept() {
    for payload in [
      #"{"aps":{"alert":"SECRET"},"aps":{"badge":1}}"#,
      #"{"aps":{"badge":1},"aps":{"alert":"SECRET"}}"#,
      #"{"aps":{"alert":"SECRET"},"aps":1}"#, #"{"aps":{"alert":"SECRET","alert":2}}"#,
    ] {
      let kept = redacted(payload, ["aps.alert"])
      #expect(!kept.contains("SECRET") && kept.contains("[text of 6]"), "\(kept)")
    }
  }

  @Test func ofABodyThatIsNoJSONNothingIsKept() {
    #expect(redacted("Secret", ["aps.alert"]) == "[6 bytes]")
  }

  @Test func aNameWithinANameStaysEscaped() throws {
    let kept = redacted(#"{"a\"b":{"secret":"s"}}"#, [#"a"b.secret"#])
    #expect(kept == #"{"a\"b":{"secret":"[text of 1]"}}"#)
    _ = try JSONTree.read(Array(kept.utf8))
  }
}
