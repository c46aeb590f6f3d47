import RelayCore
import Testing

/// Facts 2.3 and 3.1, typed in once more.
private let table: [(String, PushType, suffix: String, limitBytes: Int)] = [
  ("alert", .alert, "", 4096), ("background", .background, "", 4096),
  ("complication", .complication, ".complication", 4096),
  ("controls", .controls, ".push-type.controls", 4096),
  ("fileprovider", .fileprovider, ".pushkit.fileprovider", 4096),
  ("liveactivity", .liveactivity, ".push-type.liveactivity", 4096),
  ("location", .location, ".location-query", 4096), ("mdm", .mdm, "", 4096),
  ("pushtotalk", .pushtotalk, ".voip-ptt", 4096), ("voip", .voip, ".voip", 5120),
  ("widgets", .widgets, ".push-type.widgets", 4096),
  ("accessory", .accessory, ".push-type.accessory", 4096),
]

private func pushType(_ name: [UInt8]) -> PushType? { PushType(wireName: name.span) }

private func priority(_ text: String) -> Priority? {
  Priority(wireValue: Array(text.utf8).span)
}

private func fits(_ type: PushType, _ topic: String) -> Bool {
  type.fits(topic: Array(topic.utf8).span)
}

@Suite struct PushTypeTests {
  @Test func everyTypeIsAsDocumented() {
    #expect(Set(table.map(\.1)) == Set(PushType.allCases))
    for (name, type, suffix, limitBytes) in table {
      #expect(pushType(Array(name.utf8)) == type)
      #expect(type.wireName == name)
      #expect(type.topicSuffix == suffix)
      #expect(type.payloadLimitBytes == limitBytes)
      #expect(type.requiresProviderToken == (type == .location))
      #expect(type.canBeSilent == (type == .alert || type == .background))
      #expect(fits(type, "com.example.app" + suffix))
      #expect(!fits(type, suffix), "a suffix alone is no topic")
      #expect(fits(type, "com.example.app") == suffix.isEmpty)
    }
  }

  /// Journals, stripes and recordings of earlier builds have these numbers.
  @Test func theNumbersStayWhatTheyAre() {
    let names = [
      "alert", "background", "voip", "complication", "fileprovider", "mdm", "liveactivity",
      "location", "pushtotalk", "widgets", "controls", "accessory",
    ]
    for (number, name) in names.enumerated() {
      #expect(PushType(rawValue: UInt8(number))?.wireName == name)
    }
    #expect(PushType(rawValue: UInt8(names.count)) == nil)
  }

  @Test(arguments: [
    "", "Alert", "ALERT", "alert ", " alert", "alerts", "aler", "voip\u{0}",
    "liveactivityliveactivityliveactivity", "fileproviderx", "backgroun", "é",
  ])
  func refusesOtherNames(name: String) {
    #expect(pushType(Array(name.utf8)) == nil, "\(name)")
  }

  @Test func everyPrefixAndExtensionOfANameIsRefused() {
    for type in PushType.allCases {
      let name = Array(type.wireName.utf8)
      for length in 0..<name.count {
        #expect(pushType(Array(name[..<length])) == nil)
      }
      for byte in UInt8(0)...255 { #expect(pushType(name + [byte]) == nil) }
    }
  }

  @Test func readsPriorities() {
    for number in 0...300 {
      let expected: Priority? =
        switch number {
        case 1: .powerFirst
        case 5: .powerAware
        case 10: .immediate
        default: nil
        }
      #expect(priority(String(number)) == expected, "\(number)")
    }
    for text in ["", " 5", "5 ", "05", "10.0", "+5", "-1", "1\u{0}", "100", "five"] {
      #expect(priority(text) == nil, "\(text)")
    }
  }

  @Test func infersTypes() throws {
    let rows: [(String, String, PushType)] = [
      (#"{"aps":{"alert":"a"}}"#, "com.example.app", .alert),
      (#"{"aps":{"content-available":1}}"#, "com.example.app", .background),
      (#"{"aps":{"content-available":1,"alert":null}}"#, "com.example.app", .background),
      (#"{"aps":{"content-available":1,"badge":0}}"#, "com.example.app", .alert),
      (#"{"aps":{"content-available":true}}"#, "com.example.app", .alert),
      ("{}", "com.example.app", .alert),
      (#"{"mdm":"magic"}"#, "com.apple.mgmt.External.1", .mdm),
      (#"{"mdm":"magic","aps":{"alert":"a"}}"#, "com.example.app", .alert),
      // Also of a bundle ID that merely ends like a suffix: it says the type, or gets this one.
      (#"{"aps":{"content-available":1}}"#, "com.example.voip", .voip),
      (#"{"aps":{"content-available":1}}"#, "com.example.app.complication", .complication),
      (#"{"aps":{"content-available":1}}"#, "com.example.voip.app", .background),
    ]
    for (text, topic, expected) in rows {
      let scan = try scanPayload(Array(text.utf8).span)
      let found = PushType.inferred(from: scan, topic: Array(topic.utf8).span)
      #expect(found == expected, "\(text)")
    }
    let call = try scanPayload(Array(#"{"caller":"x"}"#.utf8).span)
    for type in PushType.allCases where !type.topicSuffix.isEmpty {
      let topic = Array(("com.example.app" + type.topicSuffix).utf8)
      let found = PushType.inferred(from: call, topic: topic.span)
      #expect(found == type)
    }
    for topic in ["", ".", "voip", ".voip", "com.example.widgets", "com.example.push-type.widget"] {
      let found = PushType.inferred(from: call, topic: Array(topic.utf8).span)
      #expect(found == .alert, "\(topic)")
    }
  }
}
