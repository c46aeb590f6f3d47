import Primitives
import RelayCore
import Testing

@testable import AdminAPI

@Suite struct PushVerdictTests {
  private func codes(
    _ headers: [(name: String, value: String)], _ payload: String = #"{"aps":{"alert":"Hello"}}"#
  ) throws -> [String] {
    var draft = PushDraft()
    draft.headers = headers
    draft.payload = Array(payload.utf8)
    var warnings = CaseSet<PayloadWarning>()
    let id = UniqueID(high: 1, low: 2)
    _ = try draft.notification(
      token: String(repeating: "0a", count: 32), topic: "com.example.app", uniqueID: id,
      isStrict: false, at: Instant(milliseconds: 0), &warnings)
    return PushVerdict(200, id, warnings, draft.payload).warnings.map(\.code)
  }

  @Test func aMisspeltHeaderIsNoted() throws {
    let type = (name: "apns-push-type", value: "alert")
    #expect(try codes([type]) == [])
    #expect(try codes([type, ("apns-expires", "0")]) == ["unknownHeader"])
    #expect(try codes([type, ("user-agent", "curl"), ("apns-topic", "another.app")]) == [])
    #expect(try codes([type], #"{"aps":{"alert":{"tilte":"Hello"}}}"#) == ["unknownAlertKey"])
  }

  @Test func aNoteNamesWhatItIsAbout() throws {
    let tree = try JSONTree.read(Array(#"{"aps":{"badg":3,"badge":1.5}}"#.utf8))
    let notes = PushVerdict.Warning.all(CaseSet(.nothingToShow), tree)
    #expect(notes.map(\.code) == ["unknownApsKey", "nothingToShow", "unusualValue"])
    #expect(notes.map(\.keys) == [["aps.badg"], nil, ["aps.badge"]])
    #expect(notes[0].text.hasSuffix("custom keys belong beside aps: aps.badg"))
    #expect(PushVerdict.Warning.all(CaseSet(.unknownApsKey), nil).map(\.keys) == [nil])
  }
}
