import Testing

@testable import DeviceSimulator

/// What a phone promises also holds when something comes in between.
@Suite struct InterruptionTests {
  struct Story: Sendable, CustomTestStringConvertible {
    var name: String
    var phones: String
    var events: String
    var expect: String
    var more = ""

    var testDescription: String { name }
  }

  private static func told(_ event: String, _ more: String = "") -> Story {
    Story(
      name: "the app ends while it is told of a transfer: \(event)",
      phones: """
        [{"name":"anna","apps":[{"name":"tv","onTransfers":{"takes":"10s"},
          "onPush":{"transfers":[{"name":"film","bytes":1000000}]}}]}]
        """,
      events: """
        [{"at":"30s","do":"use","phone":"anna","app":"tv","for":"5s"},
         {"at":"1m","push":{"to":"anna/tv","payload":"silent"}},\(more)
         {"at":"1m8s",\(event),"phone":"anna"},
         {"at":"30m","do":"open","phone":"anna","app":"tv"}]
        """,
      expect: """
        [{"expect":{"what":"began","why":"transfers"},"before":"2m","count":1},
         {"expect":{"what":"began","why":"transfers"},"after":"2m","count":1}]
        """)
  }

  private static let provider = """
    [{"name":"anna","apps":[{"name":"drive","container":"provider",
      "onDocument":{"takes":"300ms","bytes":2000},"onTransfers":{"takes":"100ms","bytes":0}},
      {"name":"editor"}]}]
    """

  static let stories = [
    told(#""do":"reboot""#), told(#""do":"crash","app":"tv""#),
    told(
      #""do":"swipe away","app":"tv""#, #"{"at":"1m7s","do":"unlock","phone":"anna"},"#),
    Story(
      name: "a transfer ends while its app is as busy as it may be",
      phones: """
        [{"name":"anna","limits":{"callbacksPerApp":1},"apps":[{"name":"tv",
          "onPush":{"takes":"10s"},
          "onLeave":{"transfers":[{"name":"film","bytes":25000000}]}}]}]
        """,
      events: """
        [{"at":"1m","do":"use","phone":"anna","app":"tv","for":"10s"},
         {"at":"1m15s","push":{"to":"anna/tv","payload":"silent"}}]
        """,
      expect: #"[{"expect":{"what":"began","why":"transfers"},"count":1}]"#),
    Story(
      name: "the app is updated while a server asks",
      phones: """
        [{"name":"anna","apps":[{"name":"tv","onAuthentication":{"provides":"10s"},
          "onPush":{"transfers":[{"name":"film","bytes":1000000,"credentials":true}]}}]}]
        """,
      events: """
        [{"at":"10m","push":{"to":"anna/tv","payload":"silent"}},
         {"at":"10m5s","do":"update","phone":"anna","app":"tv","version":"2.0"}]
        """,
      expect: #"[{"expect":{"what":"transfer-ended","why":"finished"}}]"#),
    Story(
      name: "a server that is never answered is not asked for ever",
      phones: """
        [{"name":"anna","apps":[{"name":"tv","onAuthentication":{"provides":"40s"},
          "onPush":{"transfers":[{"name":"film","bytes":1000000,"credentials":true}]}}]}]
        """,
      events: #"[{"at":"10m","push":{"to":"anna/tv","payload":"silent"}}]"#,
      expect: """
        [{"expect":{"what":"credentials-demanded"},"count":{"min":5,"max":14}},
         {"never":{"what":"transfer-ended"}}]
        """),
    Story(
      name: "the phone is unlocked while an app works without its state",
      phones: """
        [{"name":"anna","apps":[{"name":"mail","state":{"window/list":{}},
          "restoration":{"tables":[{"path":"window/list","key":"row"}]},
          "onPush":{"takes":"10s","brings":["m1"],"remembers":{"window/list":{"row":"m1"}}}}]}]
        """,
      events: """
        [{"at":"1m","do":"use","phone":"anna","app":"mail","for":"10s"},
         {"at":"2m","do":"exhaust memory","phone":"anna"},
         {"at":"3m","push":{"to":"anna/mail","payload":"silent"}},
         {"at":"3m5s","do":"unlock","phone":"anna"},
         {"at":"4m","do":"use","phone":"anna","app":"mail","for":"10s"},
         {"at":"5m","do":"exhaust memory","phone":"anna"},
         {"at":"6m","do":"open","phone":"anna","app":"mail"}]
        """,
      expect: #"[{"expect":{"what":"state","app":"mail","why":"*row*"},"after":"5m"}]"#),
    Story(
      name: "a provider is swiped away before it has uploaded",
      phones: provider,
      events: """
        [{"at":"1m","do":"use","phone":"anna","app":"drive","for":"10s"},
         {"at":"2m","do":"provider","phone":"anna","app":"drive","to":"on"},
         {"at":"5m","do":"announce document","phone":"anna","app":"drive","name":"plan",
          "bytes":900000},
         {"at":"11m","do":"open","phone":"anna","app":"editor"},
         {"at":"11m10s","do":"pick document","phone":"anna","app":"editor","document":1},
         {"at":"11m20s","do":"coordinate","phone":"anna","app":"editor","documents":"read:1",
          "for":"500ms"},
         {"at":"11m40s","do":"swipe away","phone":"anna","app":"drive"},
         {"at":"12m","do":"coordinate","phone":"anna","app":"editor","documents":"write:1",
          "for":"500ms","bytes":1000},
         {"at":"1h","do":"use","phone":"anna","app":"drive","for":"30s"}]
        """,
      expect: """
        [{"expect":{"what":"document","why":"*is with its provider"},"after":"1h"}]
        """),
    Story(
      name: "without a word on the container the system carries documents over",
      phones: """
        [{"name":"anna","account":"x","apps":[{"name":"notes"}]},
         {"name":"ben","account":"x","apps":[{"name":"notes"}]}]
        """,
      events: """
        [{"at":"1m","do":"open","phone":"anna","app":"notes"},
         {"at":"2m","do":"create document","phone":"anna","app":"notes","name":"doc","bytes":500}]
        """,
      expect: #"[{"expect":{"what":"document","phone":"ben"}}]"#),
    Story(
      name: "the energy of the day ends under a discretionary transfer",
      phones: """
        [{"name":"anna","limits":{"appEnergyPerDay":100000,"phoneEnergyPerDay":100000},
          "apps":[{"name":"tv","onPush":{"takes":"1s","bytes":0,"energy":0,
          "transfers":[{"name":"film","bytes":2500000000}]}}]}]
        """,
      events: #"[{"at":"1m","push":{"to":"anna/tv","payload":"silent"}}]"#,
      expect: """
        [{"expect":{"what":"transfer-held","why":"energyBudget"},"count":1,"before":"10m"},
         {"never":{"what":"transfer-ended"}}]
        """),
    Story(
      name: "without energy for a discretionary transfer nothing begins again and again",
      phones: """
        [{"name":"anna","limits":{"appEnergyPerDay":50,"phoneEnergyPerDay":50},
          "apps":[{"name":"tv","onPush":{"transfers":[{"name":"film","bytes":2500000000}]}}]}]
        """,
      events: #"[{"at":"1m","push":{"to":"anna/tv","payload":"silent"}}]"#,
      expect: #"[{"expect":{"what":"transfer-held"},"count":{"max":300}}]"#),
    Story(
      name: "a transfer ends the use that the call about another has waited for",
      phones: """
        [{"name":"anna","apps":[{"name":"tv",
          "onTransfers":{"takes":"1s","uses":[{"documents":"read:1","for":"1s"}]},
          "onPush":{"transfers":[
            {"name":"film","bytes":100000,"session":"a"},
            {"name":"doc","bytes":10000000,"actualBytes":20000000,"document":1,"session":"b"},
            {"name":"big","bytes":50000000,"session":"c"}]}}]}]
        """,
      events: """
        [{"at":"30s","do":"announce document","phone":"anna","app":"tv","name":"plan",
          "bytes":10000000},
         {"at":"1m","push":{"to":"anna/tv","payload":"silent"}}]
        """,
      expect: """
        [{"expect":{"what":"transfer-ended","why":"finished"},"count":{"min":2}},
         {"expect":{"what":"transfer-ended","why":"tooLarge"},"count":1}]
        """),
    Story(
      name: "the network goes under work that loads something",
      phones: #"[{"name":"anna","apps":[{"name":"chat","onPush":{"takes":"10s"}}]}]"#,
      events: """
        [{"at":"1m","push":{"to":"anna/chat",
          "payload":{"aps":{"alert":"hi","content-available":1}}}},
         {"at":"1m1s","do":"network","phone":"anna","to":"airplane"}]
        """,
      expect: """
        [{"expect":{"what":"completed","why":"failed"}},
         {"never":{"what":"completed","why":"newData"}}]
        """),
    Story(
      name: "the phone is off for a while with a push that expires",
      phones: #"[{"name":"anna","limits":{"silentBurst":1},"apps":[{"name":"a"}]}]"#,
      events: """
        [{"at":"1m","push":{"to":"anna/a","payload":"silent"}},
         {"at":"2m","push":{"name":"held","to":"anna/a","payload":"silent","expires":"30m"}},
         {"at":"5m","do":"power","phone":"anna","to":"off"},
         {"at":"6m","do":"power","phone":"anna","to":"on"}]
        """,
      expect: """
        [{"expect":{"what":"outcome","push":"held","why":"not launched: expired"},"within":"31m"}]
        """,
      more: #","relay":{"policy":"unlimited"}"#),
    Story(
      name: "a document is deleted while it is downloaded",
      phones: #"[{"name":"anna","network":"cellular","apps":[{"name":"notes"}]}]"#,
      events: """
        [{"at":"1m","do":"announce document","phone":"anna","app":"notes","name":"film",
          "bytes":60000000},
         {"at":"2m","do":"open","phone":"anna","app":"notes"},
         {"at":"3m","do":"want document","phone":"anna","app":"notes","document":1},
         {"at":"3m5s","do":"lose document","phone":"anna","document":1}]
        """,
      expect: """
        [{"expect":{"what":"transfer-ended","why":"cancelled"},"before":"4m"},
         {"never":{"what":"transfer-ended","why":"finished"}}]
        """),
    Story(
      name: "what is switched while the phone is off has not changed",
      phones: #"[{"name":"anna","apps":[{"name":"a"}]}]"#,
      events: """
        [{"at":"1m","do":"power","phone":"anna","to":"off"},
         {"at":"2m","do":"low power","phone":"anna","to":"on"},
         {"at":"2m","do":"refresh","phone":"anna","to":"off"},
         {"at":"2m","do":"refresh","phone":"anna","app":"a","to":"off"}]
        """,
      expect: """
        [{"never":{"what":"changed","why":"low power on"}},
         {"never":{"what":"changed","why":"refresh off*"}},
         {"expect":{"what":"ignored"},"count":3}]
        """),
  ]

  @Test(arguments: stories) func itKeepsItsWord(story: Story) throws {
    let result = try play(
      scenarioText(
        phones: story.phones, events: story.events, expect: story.expect, more: story.more))
    #expect(result.isPassed, "\(result.verdicts)")
  }

  /// Questions cost nothing, and are no work that an app is judged by.
  @Test func answeringAServerIsNoWork() throws {
    func standings(_ credentials: Bool) throws -> [String] {
      let text = scenarioText(
        phones: """
          [{"name":"anna","charging":true,"apps":[{"name":"tv","onPush":{"takes":"1s",
            "transfers":[{"name":"film","bytes":1000,"credentials":\(credentials)}]}}]}]
          """,
        events: """
          [{"at":"1m","every":"20m","count":5,"push":{"to":"anna/tv","payload":"silent"}}]
          """,
        more: #","relay":{"policy":"unlimited"}"#)
      let lines = try play(text).json.filter { $0.contains("\"standing\"") }
      return lines.map { String($0.drop { $0 != "o" }.split(separator: "why").last ?? "") }
    }
    #expect(try !standings(true).isEmpty)
    #expect(try standings(true) == standings(false))
  }
}
