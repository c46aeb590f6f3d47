import RelayCore
import Testing

/// The scan of a text, or the error as a failure of the test.
private func scan(_ text: String) throws -> PayloadScan {
  try scanPayload(Array(text.utf8).span)
}

private func error(_ bytes: [UInt8]) -> PayloadError? {
  do throws(PayloadError) {
    _ = try scanPayload(bytes.span)
    return nil
  } catch { return error }
}

@Suite struct PayloadScannerTests {
  @Test(arguments: [
    ("{}", PayloadScan.Aps.absent), (#"{"aps":null}"#, .absent), (#"{"aps":{}}"#, .object),
    (#"{"aps":[]}"#, .other), (#"{"aps":"x"}"#, .other), (#"{"aps":1}"#, .other),
    (#"{"aps":true}"#, .other), (#"{ "a" : { "aps" : 1 } }"#, .absent),
    (#"{"aps":null,"x":{"aps":{}}}"#, .absent), (#" {"x":[{}],"aps" : { } } "#, .object),
  ])
  func findsAps(text: String, expected: PayloadScan.Aps) throws {
    let found = try scan(text)
    #expect(found.aps == expected, "\(text)")
    #expect(found.warnings.contains(.apsNotObject) == (expected == .other), "\(text)")
  }

  @Test(arguments: [
    ("1", PayloadScan.ContentAvailable.one), ("1.0", .one), ("1e0", .one), ("1E+00", .one),
    ("10e-1", .one), ("0.1e1", .one), ("0.001E3", .one), ("1000e-003", .one), ("1.000", .one),
    ("100.00e-2", .one), ("0", .zero), ("-0", .zero), ("0.0", .zero),
    ("0e99999999999999999999", .zero),
    ("-0.00E-7", .zero), ("null", .absent), ("2", .unusual), ("-1", .unusual), ("11", .unusual),
    ("1.01", .unusual), ("10", .unusual), ("0.1", .unusual), ("1e1", .unusual), ("1e-1", .unusual),
    ("1e99999999999999999999999", .unusual), ("1e-99999999999999999999999", .unusual),
    ("1.1", .unusual), ("-1.0", .unusual), ("true", .unusual), ("false", .unusual),
    (#""1""#, .unusual), ("[1]", .unusual), (#"{"a":1}"#, .unusual),
  ])
  func readsContentAvailable(value: String, expected: PayloadScan.ContentAvailable) throws {
    let found = try scan(#"{"aps":{"content-available":\#(value)}}"#)
    #expect(found.contentAvailable == expected, "\(value)")
    #expect(found.keys.contains(.contentAvailable) == (expected != .absent))
    #expect(found.warnings.contains(.contentAvailableUnusual) == (expected == .unusual))
    let mutable = try scan(#"{"aps":{"mutable-content" : \#(value) }}"#)
    #expect(mutable.isMutable == (expected == .one), "\(value)")
  }

  @Test(arguments: [
    (#""badge":0"#, false), (#""badge":-1"#, true), (#""badge":"-1""#, false),
    (#""badge":-1,"badge":2"#, false), (#""interruption-level":"passive""#, false),
    (#""interruption-level":"time-sensitive""#, false),
    (#""interruption-level":"time\u002dsensitive""#, false),
    (#""interruption-level":"urgent""#, true), (#""interruption-level":2"#, false),
    (#""interruption-level":null"#, false),
  ])
  func valuesAreThoseThatAreDocumented(member: String, isUnusual: Bool) throws {
    let found = try scan("{\"aps\":{\(member)}}")
    #expect(found.warnings.contains(.unusualValue) == isUnusual)
  }

  @Test(arguments: ApsKey.allCases)
  func knowsEveryKeyWithEveryKind(key: ApsKey) throws {
    let samples: [(JSONKind, String)] = [
      (.object, #"{"a":[{}]}"#), (.array, "[1]"), (.string, #""s""#), (.number, "7"),
      (.boolean, "true"), (.null, "null"),
    ]
    #expect(Set(samples.map(\.0)) == Set(JSONKind.allCases))
    var accepted = 0
    for (kind, value) in samples {
      // Last in the text, last in the object, and followed by more: the name is read in each way.
      for rest in ["", #","zz":1"#, #","zz":"and a good deal more of text behind it""#] {
        let found = try scan(#"{"aps":{"\#(key.name)":\#(value)\#(rest)}}"#)
        #expect(found.keys.members == (kind == .null ? [] : [key]), "\(key) \(value)")
        let isUnexpected = kind != .null && !key.accepts(kind)
        #expect(found.unexpected.members == (isUnexpected ? [key] : []), "\(key) \(value)")
        #expect(found.warnings.contains(.unexpectedType) == isUnexpected, "\(key) \(value)")
        #expect(found.warnings.contains(.unknownApsKey) == !rest.isEmpty)
        let visible: Set<ApsKey> = [.alert, .badge, .sound]
        #expect(found.hasVisibleKeys == (visible.contains(key) && kind != .null))
      }
      accepted += key.accepts(kind) ? 1 : 0
    }
    #expect(accepted >= 1, "no kind of value is documented for \(key)")
    let beside = try scan(#"{"\#(key.name)":1,"aps":{"alert":"a"}}"#)
    #expect(beside.keys.members == [.alert], "keys beside aps mean nothing")
  }

  @Test(
    arguments: [
      ("aps", "aps"), (#"\u0061ps"#, "aps"), (#"a\u0070s"#, "aps"), (#"\u0061\u0070\u0073"#, "aps"),
      (#"aps\u0000"#, nil), ("Aps", nil), ("aps ", nil), (#"\u00e1ps"#, nil), ("áps", nil),
      ("ap", nil),
      ("apsapsapsapsapsapsapsapsaps", nil), (#"\ud83d\ude00"#, nil), ("", nil), (#"\/aps"#, nil),
    ] as [(String, String?)])
  func comparesKeysUnescaped(key: String, means: String?) throws {
    let found = try scan(#"{"\#(key)":{"alert":"x"}}"#)
    #expect(found.hasVisibleKeys == (means == "aps"), "\(key)")
  }

  @Test(arguments: [
    (#"content\u002davailable"#, ApsKey.contentAvailable), (#"b\u0061dge"#, .badge),
    (#"\u0069nterruption-level"#, .interruptionLevel),
    (#"input-push-channe\u006C"#, .inputPushChannel),
  ])
  func comparesApsKeysUnescaped(key: String, means: ApsKey) throws {
    #expect(try scan(#"{"aps":{"\#(key)":1}}"#).keys.members == [means])
  }

  @Test(arguments: [
    ("start", PayloadScan.Event.start), ("update", .update), ("end", .end), ("", .other),
    ("stop", .other), (#"\u0065nd"#, .end), ("Start", .other),
  ])
  func readsEvents(value: String, expected: PayloadScan.Event) throws {
    #expect(try scan(#"{"aps":{"event":"\#(value)"}}"#).event == expected)
    #expect(try scan(#"{"aps":{"event":null}}"#).event == .absent)
    #expect(try scan(#"{"aps":{"event":3}}"#).event == .other)
  }

  @Test(arguments: [
    (#""""#, true), ("{}", true), ("{ \n\t}", true), (#""x""#, false), (#"{"body":""}"#, false),
    ("null", false), ("0", false),
  ])
  func notesEmptyAlerts(value: String, isEmpty: Bool) throws {
    let found = try scan(#"{"aps":{"alert":\#(value)}}"#)
    #expect(found.hasEmptyAlert == isEmpty, "\(value)")
    #expect(found.warnings.contains(.emptyAlert) == isEmpty, "\(value)")
    #expect(found.hasVisibleKeys == (value != "null"), "an empty alert is still there")
  }

  @Test func lastDuplicateCounts() throws {
    let inside = try scan(
      #"{"aps":{"content-available":1,"alert":"","content-available":0,"alert":null}}"#)
    #expect(inside.contentAvailable == .zero)
    #expect(inside.keys.members == [.contentAvailable])
    #expect(inside.warnings.members == [.duplicateKey], "what was replaced leaves no other note")
    let whole = try scan(#"{"aps":{"alert":5,"q":1},"mdm":"x","aps":{"content-available":1}}"#)
    #expect(whole.contentAvailable == .one)
    #expect(whole.keys.members == [.contentAvailable])
    #expect(whole.hasMDM)
    #expect(whole.warnings.members == [.duplicateKey])
    let escaped = try scan(#"{"aps":{},"\u0061ps":7}"#)
    #expect(escaped.aps == .other)
    #expect(escaped.warnings.members == [.duplicateKey, .apsNotObject])
    #expect(try scan(#"{"mdm":1,"mdm":null}"#).hasMDM == false)
    #expect(try scan(#"{"mdm":1,"mdm":null}"#).warnings.members == [.duplicateKey])
    #expect(
      try scan(#"{"x":1,"x":2,"aps":{"y":{"z":1,"z":1}}}"#).warnings.members == [.unknownApsKey])
  }

  @Test func isSmallAndPlain() throws {
    #expect(MemoryLayout<PayloadScan>.size <= 28)
    let full = try scan(#"{"aps":{"alert":{"title":"t"},"badge":0,"sound":"default"},"n":1}"#)
    #expect(full.keys.members == [.alert, .badge, .sound])
    #expect(full.warnings.isEmpty)
    #expect(full.hasMDM == false)
    #expect(try scan(#"{"mdm":"magic"}"#).hasMDM)
  }

  @Test(arguments: [
    ("", PayloadError.empty), (" ", .notJSON(offset: 1)), ("[]", .notObject), (#""x""#, .notObject),
    (" 12 ", .notObject), ("true", .notObject), ("null\n", .notObject), ("[", .notJSON(offset: 1)),
    ("[]x", .notJSON(offset: 2)), ("{} {}", .notJSON(offset: 3)), ("{}x", .notJSON(offset: 2)),
    ("{", .notJSON(offset: 1)), ("}", .notJSON(offset: 0)), ("{,}", .notJSON(offset: 1)),
    (#"{"a"}"#, .notJSON(offset: 4)), (#"{"a":}"#, .notJSON(offset: 5)),
    (#"{"a":1,}"#, .notJSON(offset: 7)), (#"{"a":1]"#, .notJSON(offset: 6)),
    (#"{"a":[1}"#, .notJSON(offset: 7)), (#"{"a":[1,]}"#, .notJSON(offset: 8)),
    (#"{"a":{"b":1,}}"#, .notJSON(offset: 12)), (#"{a:1}"#, .notJSON(offset: 1)),
    (#"{'a':1}"#, .notJSON(offset: 1)), (#"{"a":tru}"#, .notJSON(offset: 8)),
    (#"{"a":nulll}"#, .notJSON(offset: 9)), (#"{"a":01}"#, .notJSON(offset: 6)),
    (#"{"a":+1}"#, .notJSON(offset: 5)), (#"{"a":.5}"#, .notJSON(offset: 5)),
    (#"{"a":1.}"#, .notJSON(offset: 7)), (#"{"a":1e}"#, .notJSON(offset: 7)),
    (#"{"a":-}"#, .notJSON(offset: 6)), (#"{"a":0x1}"#, .notJSON(offset: 6)),
    (#"{"a":NaN}"#, .notJSON(offset: 5)), (#"{"a":"\x"}"#, .notJSON(offset: 7)),
    (#"{"a":"\u12g4"}"#, .notJSON(offset: 10)), ("{\"a\":\"\n\"}", .notJSON(offset: 6)),
    ("{\"a\":\"\u{0}\"}", .notJSON(offset: 6)), (#"{"a":"\ud800"}"#, .notJSON(offset: 12)),
    (#"{"a":"\udc00"}"#, .notJSON(offset: 6)), (#"{"a":"\ud800\u0041"}"#, .notJSON(offset: 12)),
    (#"{"a":"\ud800\n"}"#, .notJSON(offset: 13)), ("{\"a\":1}\u{c}", .notJSON(offset: 7)),
    ("\u{feff}{}", .notJSON(offset: 0)), (#"{"a" 1}"#, .notJSON(offset: 5)),
    ("{/**/}", .notJSON(offset: 1)), (#"{"aps":{"alert":"x"},}"#, .notJSON(offset: 21)),
    (#"{"aps":{"alert":"x",}}"#, .notJSON(offset: 20)),
    (#"{"aps":{"alert"}}"#, .notJSON(offset: 15)),
  ])
  func refusesWhatIsNotAnObject(text: String, expected: PayloadError) {
    #expect(error(Array(text.utf8)) == expected, "\(text)")
  }

  @Test func limitsDepth() {
    for (open, close) in [("[", "]"), (#"{"a":"#, "}")] {
      // The root is the first of the 64, so 63 may be open inside; the innermost ones are empty.
      for (inside, expected) in [(62, nil), (63, .tooDeep), (64, .tooDeep), (5000, .tooDeep)]
        as [(Int, PayloadError?)]
      {
        let inner = open == "[" ? "[]" : "{}"
        let nested =
          String(repeating: open, count: inside) + inner + String(repeating: close, count: inside)
        #expect(error(Array(#"{"x":\#(nested)}"#.utf8)) == expected, "\(inside) \(open)")
        // One level less under aps, which is open itself.
        let found = error(Array(#"{"aps":{"x":\#(nested)}}"#.utf8))
        #expect(found == (inside < 62 ? nil : .tooDeep), "\(inside) \(open) in aps")
      }
    }
    #expect(error([UInt8](repeating: UInt8(ascii: "["), count: 100_000)) == .tooDeep)
  }
}
