import RelayCore
import Testing

private func classify(
  _ text: String, _ type: PushType?, _ priority: Priority, topic: String = "com.example.app"
) throws -> Classification {
  let scan = try scanPayload(Array(text.utf8).span)
  return Classification(scan, pushType: type, topic: Array(topic.utf8).span, priority: priority)
}

private let wake = #"{"aps":{"content-available":1}}"#
private let visible = ["alert", "badge", "sound"].map { key in
  key == "badge" ? #""badge":3"# : #""\#(key)":"x""#
}

@Suite struct ClassificationTests {
  // What is silent, and what is not.

  @Test func backgroundWakeAtFiveIsTheOneProperSilentPush() throws {
    let found = try classify(wake, .background, .powerAware)
    #expect(found.kind == .silent)
    #expect(found.wakesApp)
    #expect(found.warnings.isEmpty)
    #expect(found.pushType == .background)
  }

  /// What tells Wallet that a pass has changed is an empty dictionary (Apple, "Adding a web service
  /// to update passes").
  @Test(arguments: [PushType.alert, .background], ["{}", #"{"aps":{}}"#])
  func anEmptyPushToAPassIsNoMismatch(type: PushType, text: String) throws {
    let found = try classify(text, type, .powerAware, topic: "pass.com.example.card")
    #expect(found.warnings.isEmpty && found.kind == (type == .alert ? .visible : .silent))
    for topic in ["com.example.pass.card", "pass.", "passes.com.example"] {
      #expect(
        try classify(text, type, .powerAware, topic: topic).warnings.contains(.mismatch), "\(topic)"
      )
    }
  }

  @Test(arguments: visible)
  func backgroundWakeWithVisibleKeysIsASilentMismatch(member: String) throws {
    let found = try classify(
      #"{"aps":{"content-available":1,\#(member)}}"#, .background, .powerAware)
    #expect(found.kind == .silent)
    #expect(found.wakesApp)
    #expect(found.warnings.members == [.mismatch, .visibleKeysInBackground])
  }

  @Test(
    arguments: [#""content-available":0"#, #""x-custom":1"#, #""content-available":null"#],
    ["", ",\"alert\":\"a\""])
  func backgroundWithoutWakeIsASilentMismatch(member: String, more: String) throws {
    let found = try classify(#"{"aps":{\#(member)\#(more)}}"#, .background, .powerAware)
    #expect(found.kind == .silent)
    #expect(!found.wakesApp)
    #expect(found.warnings.contains(.mismatch))
    #expect(found.warnings.contains(.contentAvailableMissing))
    #expect(found.warnings.contains(.visibleKeysInBackground) == !more.isEmpty)
  }

  @Test(arguments: ["", ",\"alert\":\"a\""])
  func backgroundAtTenIsNotedForTheStrictMode(more: String) throws {
    let found = try classify(
      #"{"aps":{"content-available":1\#(more)}}"#, .background, .immediate)
    #expect(found.kind == .silent)
    #expect(found.wakesApp)
    #expect(found.warnings.contains(.silentAtPriorityTen))
    #expect(found.warnings.contains(.mismatch) == !more.isEmpty)
  }

  @Test(arguments: [Priority.powerAware, .immediate], visible)
  func alertWithWakeIsVisibleAndWakes(priority: Priority, member: String) throws {
    let found = try classify(#"{"aps":{"content-available":1,\#(member)}}"#, .alert, priority)
    #expect(found.kind == .visible)
    #expect(found.wakesApp)
    #expect(found.warnings.isEmpty)
  }

  @Test func alertWithNothingToShowIsAMismatch() throws {
    let silent = try classify(wake, .alert, .powerAware)
    #expect(silent.kind == .silent, "the payload decides, whatever the push type says")
    #expect(silent.warnings.members == [.mismatch, .nothingToShow])
    for text in [#"{"aps":{"content-available":0}}"#, #"{"aps":{"alert":null}}"#] {
      let found = try classify(text, .alert, .powerAware)
      #expect(found.kind == .visible, "\(text)")
      #expect(!found.wakesApp)
      #expect(found.warnings.members == [.mismatch, .nothingToShow])
    }
  }

  @Test func wakeWithoutPushTypeIsInferredSilent() throws {
    let found = try classify(wake, nil, .immediate)
    #expect(found.kind == .silent)
    #expect(found.pushType == .background)
    #expect(found.warnings.members == [.silentAtPriorityTen, .pushTypeInferred])
    #expect(try classify(wake, nil, .powerAware).warnings.members == [.pushTypeInferred])
  }

  // Beyond the table.

  @Test(arguments: PushType.allCases, Priority.allCases)
  func onlyAlertAndBackgroundAreEverSilent(type: PushType, priority: Priority) throws {
    let found = try classify(wake, type, priority)
    #expect((found.kind == .silent) == (type == .alert || type == .background))
    #expect(found.wakesApp == (found.kind == .silent))
    #expect(
      found.warnings.contains(.silentAtPriorityTen) == (type.canBeSilent && priority == .immediate))
    #expect(!found.warnings.contains(.pushTypeInferred))
    let undocumented = (type == .liveactivity || type == .location) && priority == .powerFirst
    #expect(found.warnings.contains(.priorityUnusual) == undocumented)
  }

  @Test(arguments: PushType.allCases)
  func onlyWhatShowsSoundsOrBadgesIsNoticed(type: PushType) throws {
    let handled: Set<PushType> = [.voip, .liveactivity, .pushtotalk]
    for text in ["{}", #"{"aps":{}}"#, #"{"aps":{"alert":null}}"#, wake] {
      let found = try classify(text, type, .powerAware)
      #expect(
        found.showsNothing == (found.kind == .visible && !handled.contains(type)), "\(text)")
    }
    // An alert that says nothing shows nothing, whatever class it is of.
    for text in [#"{"aps":{"alert":""}}"#, #"{"aps":{"alert":{}}}"#] {
      let found = try classify(text, type, .powerAware)
      #expect(
        found.showsNothing == (found.kind == .visible && !handled.contains(type)), "\(text)")
    }
    for member in visible {
      let found = try classify(#"{"aps":{\#(member)}}"#, type, .powerAware)
      let isNoticed = type == .alert || type == .background || handled.contains(type)
      #expect(found.showsNothing == !isNoticed, "\(member)")
    }
  }

  @Test(arguments: ["true", #""1""#, "2"])
  func unusualContentAvailableDoesNotWake(value: String) throws {
    let found = try classify(#"{"aps":{"content-available":\#(value)}}"#, nil, .powerAware)
    #expect(found.kind == .visible)
    #expect(!found.wakesApp)
    #expect(found.warnings.contains(.contentAvailableUnusual))
  }

  @Test(arguments: [#""thread-id":"t""#, #""x":1"#, #""mutable-content":1"#])
  func silentShouldHoldOnlyTheWake(member: String) throws {
    let found = try classify(
      #"{"aps":{"content-available":1,\#(member)},"custom":1}"#, .background, .powerAware)
    #expect(found.kind == .silent)
    #expect(found.warnings.contains(.silentWithOtherKeys))
    #expect(!found.warnings.contains(.mismatch))
  }

  @Test func otherTypesAreCheckedByTheirOwnKeys() throws {
    let start =
      #""event":"start","timestamp":1,"content-state":{},"attributes-type":"A","attributes":{}"#
    let rows: [(PushType, String, [PayloadWarning])] = [
      (.mdm, #"{"mdm":"magic"}"#, []), (.mdm, "{}", [.mismatch, .mdmKeyMissing]),
      (.voip, "{}", []), (.fileprovider, #"{"domain":"d"}"#, []), (.location, "{}", []),
      (.widgets, #"{"aps":{"content-changed":true}}"#, []),
      (.alert, "{}", [.mismatch, .nothingToShow, .apsMissing]),
      (.background, "{}", [.mismatch, .contentAvailableMissing, .apsMissing]),
      (.liveactivity, #"{"aps":{"event":"end","timestamp":1}}"#, []),
      (.liveactivity, #"{"aps":{"event":"update","timestamp":1,"content-state":{}}}"#, []),
      (
        .liveactivity, #"{"aps":{"event":"update","timestamp":1}}"#,
        [.mismatch, .liveActivityIncomplete, .activityContentMissing]
      ),
      (.liveactivity, #"{"aps":{\#(start),"alert":"a"}}"#, []),
      (
        .liveactivity, #"{"aps":{\#(start)}}"#,
        [.mismatch, .liveActivityIncomplete, .activityStartWithoutAlert]
      ),
      (
        .liveactivity, #"{"aps":{"event":"end"}}"#,
        [.mismatch, .liveActivityIncomplete, .activityTimestampMissing]
      ),
      (
        .liveactivity, #"{"aps":{"event":"update","timestamp":1,"content-state":"open"}}"#,
        [.unexpectedType, .activityContentMissing]
      ),
      (
        .liveactivity, #"{"aps":{"event":"end","timestamp":1795219200123}}"#,
        [.activityDateInMilliseconds]
      ),
      (
        .liveactivity, #"{"aps":{"event":"end","timestamp":1,"dismissal-date":1795219200123}}"#,
        [.activityDateInMilliseconds]
      ),
      (
        .liveactivity,
        #"{"aps":{"event":"end","timestamp":1,"stale-date":1795219200123,"stale-date":1}}"#,
        [.duplicateKey, .activityDateInMilliseconds]
      ),
      (.liveactivity, #"{"aps":{"event":"end","timestamp":17952192001.5}}"#, []),
      (.alert, #"{"aps":{"alert":"a","timestamp":1795219200123}}"#, []),
      (
        .liveactivity,
        #"{"aps":{"event":"update","timestamp":1,"content-state":{},"attributes":{}}}"#,
        [.activityKeysOfAStart]
      ),
      (
        .liveactivity, #"{"aps":{"event":"end","timestamp":1,"input-push-token":1}}"#,
        [.activityKeysOfAStart]
      ),
      (
        .alert, #"{"aps":{\#(start),"alert":"a"}}"#, [.mismatch, .activityOfAnotherType]
      ),
      (
        .background, #"{"aps":{"content-available":1,"content-state":{}}}"#,
        [.mismatch, .silentWithOtherKeys, .activityOfAnotherType]
      ),
      (
        .liveactivity, #"{"aps":{"event":"go","timestamp":1}}"#,
        [.mismatch, .liveActivityIncomplete]
      ),
    ]
    for (type, text, expected) in rows {
      let topic = type == .mdm ? "com.apple.mgmt.External.1" : "com.example.app"
      let warnings = try classify(text, type, .powerAware, topic: topic).warnings.members
      #expect(warnings == expected, "\(type) \(text)")
    }
  }

  /// A bundle ID may end as it likes, so this is no reason to refuse it.
  @Test func aTopicOfAnotherTypeIsNoted() throws {
    func isNoted(_ type: PushType?, _ topic: String) throws -> Bool {
      try classify(#"{"aps":{"alert":"a"}}"#, type, .immediate, topic: topic).warnings
        .contains(.topicUnusual)
    }
    for type in PushType.allCases where !type.topicSuffix.isEmpty {
      let topic = "com.example.app" + type.topicSuffix
      for other in [PushType.alert, .background] { #expect(try isNoted(other, topic), "\(topic)") }
      #expect(try !isNoted(type, topic) && !isNoted(nil, topic), "\(topic)")
    }
    for topic in ["com.example.app", "voip", "com.example.avoip", "com.example.push-type.other"] {
      #expect(try !isNoted(.alert, topic) && !isNoted(.background, topic), "\(topic)")
      #expect(try isNoted(.mdm, topic), "\(topic)")
    }
  }

  @Test(arguments: 0..<6) func aStartNeedsEachOfItsKeys(missing: Int) throws {
    var members = [
      #""timestamp":1"#, #""content-state":{}"#, #""attributes-type":"A""#, #""attributes":{}"#,
      #""alert":"a""#, #""event":"start""#,
    ]
    let all = members.joined(separator: ",")
    members.remove(at: missing)
    let rest = members.joined(separator: ",")
    func warnings(_ text: String) throws -> CaseSet<PayloadWarning> {
      try classify("{\"aps\":{\(text)}}", .liveactivity, .powerAware).warnings
    }
    #expect(try !warnings(all).contains(.liveActivityIncomplete))
    #expect(try warnings(rest).contains(.liveActivityIncomplete), "\(rest)")
  }

  @Test func everyCombinationKeepsTheRules() throws {
    let wakes = ["", #""content-available":1,"#, #""content-available":0,"#]
    for type in PushType.allCases.map(Optional.some) + [nil] {
      for priority in Priority.allCases {
        for wake in wakes {
          for keys in 0..<8 {
            let members = visible.indices.filter { keys & (1 << $0) != 0 }.map { visible[$0] }
            let text =
              #"{"aps":{\#(wake)\#((members + [#""thread-id":"t""#]).joined(separator: ","))}}"#
            let found = try classify(text, type, priority)
            let asks = wake.contains("1")
            let handles = found.pushType.canBeSilent
            let isSilent = found.pushType == .background || handles && asks && members.isEmpty
            #expect((found.kind == .silent) == isSilent, "\(String(describing: type)) \(text)")
            #expect(found.wakesApp == (asks && handles))
            #expect(found.warnings.contains(.pushTypeInferred) == (type == nil))
            let named: [PayloadWarning] = [
              .visibleKeysInBackground, .contentAvailableMissing, .nothingToShow, .mdmKeyMissing,
              .liveActivityIncomplete,
            ]
            #expect(
              found.warnings.contains(.mismatch) == named.contains { found.warnings.contains($0) })
          }
        }
      }
    }
    #expect(MemoryLayout<Classification>.size <= 8)
  }
}
