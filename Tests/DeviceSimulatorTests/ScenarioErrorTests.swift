import Testing

@testable import DeviceSimulator

/// What is wrong with a file is said with file, line and key.
@Suite struct ScenarioErrorTests {
  private func problem(_ text: String) -> String {
    do {
      _ = try Scenario(json: Array(text.utf8), file: "x.json")
      return "no problem"
    } catch {
      return "\(error)"
    }
  }

  @Test(arguments: [
    ("", "x.json:1: the file is empty"),
    ("[1]", "x.json:1: this is not a JSON object"),
    ("{\n\"title\": \"a\"\n\"length\": \"1h\"}", "x.json:3: this is not JSON, from column 1 on"),
    ("{}", "x.json:1: title is missing"),
    ("{\"title\": 1}", "x.json:1: title: a text is wanted"),
    ("{\"title\": \"a\",\n\"title\": \"b\"}", "x.json:2: title: the key stands there twice"),
    ("{\"title\": \"a\"}", "x.json:1: length is missing"),
    (
      "{\"title\": \"a\",\n \"length\": \"1w\"}",
      "x.json:2: length: \"1w\" is no length of time such as 500ms, 20m, 1h30m or 2d"
    ),
    (
      "{\"title\": \"a\", \"length\": \"500d\"}",
      "x.json:1: length: a length is above 0, and 400d at most"
    ),
    (
      "{\"title\": \"a\", \"length\": \"0s\"}",
      "x.json:1: length: a length is above 0, and 400d at most"
    ),
    (
      "{\"title\": \"a\", \"length\": \"1h\", \"phones\": {}}",
      "x.json:1: phones: a list is wanted"
    ),
    (
      "{\"title\": \"a\", \"seed\": -1}",
      "x.json:1: seed: a whole number from 0 to 9007199254740992 is wanted"
    ),
    (
      "{\"title\": \"a\", \"length\": \"1h\", \"tokensTo\": \"tokens\"}",
      "x.json:1: tokensTo: an address that begins with http:// or https:// is wanted"
    ),
  ])
  func filesThatAreNoScenarios(text: String, expected: String) {
    #expect(problem(text) == expected)
  }

  @Test func whereTokensGo() throws {
    let text = #"{"title":"t","length":"1h","tokensTo":"http://[::1]:9/t","phones":[]}"#
    let scenario = try Scenario(json: Array(text.utf8), file: "x.json")
    #expect(scenario.tokensTo == "http://[::1]:9/t")
  }

  @Test(arguments: [
    (
      #"[{"name":"anna","apps":[{"name":"chat"},{"name":"news","fetch":"often"}]}]"#,
      "phones[0].apps[1].fetch: \"often\" is none of never, minimum, "
        + "or a length of time such as 15m"
    ),
    (
      #"[{"name":"anna","network":"5g"}]"#,
      #"phones[0].network: "5g" is none of wifi, cellular, none, airplane"#
    ),
    (#"[{"name":"anna","charging":"yes"}]"#, "phones[0].charging: true or false is wanted"),
    (
      #"[{"name":"anna","apps":[{"name":"m","onDocument":{}}]}]"#,
      "phones[0].apps[0].onDocument: only an app with the container \"provider\" is called for "
        + "documents"
    ),
    (
      #"[{"name":"anna","limits":{"callbackTime":"soon"}}]"#,
      "phones[0].limits.callbackTime: soon is no value of callbackTime"
    ),
    (
      #"[{"name":"anna","limits":{"silentBurst":2,"callbacksPerApp":4000}}]"#,
      "phones[0].limits: these contradict the other limits, or each other: silentBurst 2, "
        + "callbacksPerApp 4000"
    ),
    (
      #"[{"name":"anna","limits":{"resumeTime":"2s"}}]"#,
      "phones[0].limits: these contradict the other limits, or each other: resumeTime 2s"
    ),
    (#"[{"apps":[]}]"#, "phones[0]: name is missing"),
    (
      #"[{"name":"anna"},{"name":"anna"}]"#,
      #"phones[1]: there are two phones with the name "anna""#
    ),
    (
      #"[{"name":"anna","apps":[{"name":"a"},{"name":"a"}]}]"#,
      #"phones[0].apps[1]: there are two apps with the name "a""#
    ),
    (
      #"[{"name":"anna","apps":[{"name":"a","copies":3}]}]"#,
      "phones[0].apps[0].copies: the name needs a # where the copies' numbers go"
    ),
    (
      #"[{"name":"anna","apps":[{"name":"a","modes":["voip"]}]}]"#,
      #"phones[0].apps[0].modes[0]: "voip" is none of fetch, "#
        + "remote-notification, location, audio, newsstand"
    ),
    (
      #"[{"name":"anna","apps":[{"name":"a","onPush":{"takes":3}}]}]"#,
      "phones[0].apps[0].onPush.takes: a text is wanted"
    ),
    (
      #"[{"name":"anna","apps":[{"name":"a","onLeave":{"tasks":{}}}]}]"#,
      "phones[0].apps[0].onLeave.tasks: there is no such key; there are transfers, task"
    ),
    (
      #"[{"name":"anna","apps":[{"name":"a"}],"usage":[{"app":"a","at":["25:00"]}]}]"#,
      #"phones[0].usage[0].at[0]: "25:00" is no time of day such as 08:15"#
    ),
    (
      #"[{"name":"anna","habits":{"perDay":[3,1],"between":["01:00","02:00"],"apart":"1h"}}]"#,
      "phones[0].habits.perDay: the first is above the second"
    ),
  ])
  func phones(text: String, expected: String) {
    #expect(problem(scenarioText(phones: text)) == "x.json:3: \(expected)")
  }

  @Test(arguments: [
    (#"{"at":"1m","do":"dance"}"#, "events[0].do: \"dance\" is none of open, open banner,"),
    (#"{"do":"lock","phone":"anna"}"#, "events[0]: at is missing"),
    (#"{"at":"noon","do":"lock","phone":"anna"}"#, "events[0].at: \"noon\" is no time such as"),
    (#"{"at":"day 0 08:00","do":"lock","phone":"anna"}"#, "events[0].at: \"day 0 08:00\" is no"),
    (#"{"at":"1m","do":"lock","phone":"ben"}"#, "events[0].phone: \"ben\" is none of anna"),
    (#"{"at":"1m","do":"open","phone":"anna"}"#, "events[0]: app is missing"),
    (
      #"{"at":"1m","do":"open","phone":"anna","app":"tv"}"#,
      "events[0].app: \"tv\" is none of chat, news"
    ),
    (#"{"at":"1m","count":2,"do":"lock","phone":"anna"}"#, "events[0].count: only an event with"),
    (#"{"at":"1m","every":"0s","do":"lock","phone":"anna"}"#, "events[0].every: there must be"),
    (#"{"at":"1m","push":{"to":"anna/chat"}}"#, "events[0].push: payload is missing"),
    (
      #"{"at":"1m","push":{"to":"chat","payload":"silent"}}"#,
      "events[0].push.to: \"chat\" is no app such as phone/app, or phone/*"
    ),
    (
      #"{"at":"1m","push":{"to":"anna/chat","payload":1}}"#,
      "events[0].push.payload: an object is wanted, or \"silent\""
    ),
    (
      #"{"at":"1m","do":"lock","push":{"to":"anna/chat","payload":"silent"}}"#,
      "events[0].do: push and do do not go together"
    ),
    (
      #"{"at":"1m","do":"charger","phone":"anna","to":"yes"}"#,
      "events[0].to: \"yes\" is none of on, off"
    ),
    (
      #"{"at":"1m","do":"policy","to":"lax"}"#,
      "events[0].to: \"lax\" is none of documented, strict, unlimited"
    ),
    (
      #"{"at":"1m","do":"policy","to":{"app":{"count":2}}}"#,
      "events[0].to: app is count and per"
    ),
  ])
  func events(text: String, expected: String) {
    let found = problem(scenarioText(events: "[\(text)]"))
    #expect(found.hasPrefix("x.json:4: \(expected)"), "\(found)")
  }

  @Test(arguments: [
    (#"{"says":"nothing"}"#, "expect[0]: one of expect, never, order, fetchedBeforeUse is wanted"),
    (#"{"expect":{}}"#, "expect[0].expect: what is missing"),
    (
      #"{"never":{"what":"crashed","phone":"anna"}}"#,
      "expect[0].never: crashed is of the relay, and has no phone, app or push"
    ),
    (#"{"expect":{"what":"flew"}}"#, "expect[0].expect.what: \"flew\" is none of received,"),
    (#"{"expect":{"app":"tv"}}"#, "expect[0].expect.app: no phone has an app \"tv\""),
    (#"{"order":[{"what":"banner"}]}"#, "expect[0].order: two or more are wanted"),
    (#"{"never":{"what":"banner"},"count":2}"#, "expect[0].count: never does not have it"),
    (
      #"{"expect":{"what":"banner"},"count":{"min":3,"max":2}}"#,
      "expect[0].count: min is above max"
    ),
    (
      #"{"never":{"what":"delivered","push":"on"}}"#,
      #"expect[0].never.push: no push has the name "on"; there are one, two"#
    ),
    (
      #"{"order":[{"what":"sent","push":"one"},{"what":"sent","push":"twoo"}]}"#,
      #"expect[0].order[1].push: no push has the name "twoo"; there are one, two"#
    ),
    (
      #"{"expect":{"what":"sent","push":"1"}}"#,
      #"expect[0].expect.push: no push has the name "1"; there are one, two; a number is written"#
    ),
    (
      #"{"never":{"what":"sent","push":15}}"#,
      "expect[0].never.push: there is no push 15; at most 14 are posted"
    ),
    (
      #"{"never":{"what":"opened","phone":"ben","app":"news"}}"#,
      #"expect[0].never.app: ben has no app "news""#
    ),
    (
      #"{"never":{"what":"sent"},"after":"3h"}"#,
      "expect[0].after: the scenario is over after 2h"
    ),
    (
      #"{"never":{"what":"sent"},"before":"2h1ms"}"#,
      "expect[0].before: the scenario is over after 2h"
    ),
    (
      #"{"never":{"what":"sent"},"within":"3h"}"#,
      "expect[0].within: the scenario is over after 2h"
    ),
    (
      #"{"never":{"what":"sent"},"after":"119m","within":"61s"}"#,
      "expect[0].within: the scenario is over after 2h"
    ),
    (
      #"{"never":{"what":"sent"},"after":"1h","before":"1h"}"#,
      "expect[0].before: it is not later than after"
    ),
    (
      #"{"fetchedBeforeUse":{"percentOfDays":1,"after":"day 2 00:00"}}"#,
      "expect[0].fetchedBeforeUse.after: the scenario is over after 2h"
    ),
    (
      #"{"fetchedBeforeUse":{"percentOfDays":101}}"#,
      "expect[0].fetchedBeforeUse.percentOfDays: a whole number from 0 to 100 is wanted"
    ),
  ])
  func expectations(text: String, expected: String) {
    let phones = #"[{"name":"anna","apps":[{"name":"chat"},{"name":"news"}]},{"name":"ben"}]"#
    let push = #""push":{"to":"anna/chat","payload":"silent","name":"#
    let events = """
      [{"at":"1m",\(push)"one"}}, {"at":"10m","every":"10m",\(push)"two"}}, \
      {"at":"2h",\(push)null}}]
      """
    let found = problem(scenarioText(phones: phones, events: events, expect: "[\(text)]"))
    #expect(found.hasPrefix("x.json:5: \(expected)"), "\(found)")
  }

  @Test(arguments: ["", "an/na"]) func aPhonesNameCanBeAddressed(name: String) {
    let found = problem(scenarioText(phones: #"[{"name":"\#(name)","apps":[{"name":"chat"}]}]"#))
    #expect(found.contains("name: a name has a character or more, and no slash"), "\(found)")
  }

  /// An expectation that is always met says nothing.
  @Test(arguments: [
    (#"{"expect":{"what":"banner"},"count":{}}"#, "count: any number of times"),
    (#"{"expect":{"what":"banner"},"count":{"min":0}}"#, "count: any number of times"),
    (#"{"never":{"what":"banner"},"between":["01:00","01:00"]}"#, "between: nothing is between"),
  ])
  func whatIsAlwaysSoIsRefused(expectation: String, expected: String) {
    let found = problem(scenarioText(expect: "[\(expectation)]"))
    #expect(found.contains(expected), "\(found)")
  }

  /// What would be dropped without a word is refused.
  @Test(arguments: [
    (#"{"at":"3h","do":"lock","phone":"anna"}"#, "at: the scenario is over after 2h"),
    (
      #"{"at":"3h","push":{"to":"anna/chat","payload":"silent"}}"#,
      "at: the scenario is over after 2h"
    ),
    (
      #"{"at":"1h","every":"1m","until":"2h30m","do":"lock","phone":"anna"}"#,
      "until: the scenario is over after 2h"
    ),
    (
      #"{"at":"1h","every":"1m","until":"30m","do":"lock","phone":"anna"}"#,
      "until: it is before the first time"
    ),
    (
      #"{"at":"1h","every":"10m","count":8,"do":"lock","phone":"anna"}"#,
      "count: only 7 of them fit before the end of the scenario"
    ),
    (
      #"{"perDay":3,"at":"1h","until":"1h","do":"lock","phone":"anna"}"#,
      "until: it is not later than at"
    ),
    (
      #"{"perDay":3,"every":"1h","do":"lock","phone":"anna"}"#,
      "every: every and perDay do not go together"
    ),
    (
      #"{"perDay":3,"count":1,"do":"lock","phone":"anna"}"#,
      "count: only an event with every has it"
    ),
    (#"{"at":"1m","do":"lock","phone":"anna","app":"chat"}"#, "app: lock does not have it"),
    (
      #"{"at":"1m","do":"open","phone":"anna","app":"chat","to":"on"}"#,
      "to: open does not have it"
    ),
    (
      #"{"at":"1m","do":"policy","phone":"anna","to":"strict"}"#,
      "phone: policy does not have it"
    ),
    (
      #"{"at":"1m","phone":"anna","push":{"to":"anna/chat","payload":"silent"}}"#,
      "phone: push does not have it"
    ),
  ])
  func whatWouldBeDropped(text: String, expected: String) {
    let found = problem(scenarioText(events: "[\(text)]"))
    #expect(found == "x.json:4: events[0].\(expected)")
  }

  @Test func aUseThatNeverHappensIsRefused() {
    let usage = #""usage":[{"app":"a","at":["01:00","08:15"]}]"#
    #expect(
      problem(scenarioText(phones: #"[{"name":"anna","apps":[{"name":"a"}],\#(usage)}]"#))
        == "x.json:3: phones[0].usage[0].at[1]: the scenario is over after 2h")
    let habits = #""habits":{"perDay":2,"between":["07:00","08:00"],"apart":"1h"}"#
    #expect(
      problem(scenarioText(phones: #"[{"name":"anna",\#(habits)}]"#))
        == "x.json:3: phones[0].habits.between: the scenario is over after 2h")
  }

  @Test(arguments: [
    (#""url":"ftp://a/b""#, "url: an address that begins with http:// or https:// is wanted"),
    (#""url":5"#, "url: a text is wanted"),
    (#""url":"https:///b""#, "url: the address has no host, or one with characters that no host"),
    (#""url":"http://a:65536""#, "url: the port of the address is no number from 1 to 65535"),
    (#""url":"http://a/b\nc""#, "url: spaces and other such characters are written with % in an"),
    (#""url":"http://b:c@a/""#, "url: an address with a name and password is not wanted; there"),
    (#""authorization":"a""#, "authorization: only a transfer with a url has a server that asks"),
    (#""url":"http://a","authorization":"""#, "authorization: plain characters are wanted, with"),
    (#""url":"http://a","authorization":" a""#, "authorization: plain characters are wanted"),
    (
      #""url":"http://a","authorization":"a\r\nb: c""#,
      "authorization: plain characters are wanted"
    ),
  ])
  func addresses(members: String, expected: String) {
    let transfer = #"{"name":"t","bytes":1,\#(members)}"#
    let event = #"{"at":"1m","do":"queue transfer","phone":"anna","app":"chat","transfer":"#
    let found = problem(scenarioText(events: "[\(event)\(transfer)}]"))
    #expect(found.hasPrefix("x.json:4: events[0].transfer.\(expected)"), "\(found)")
  }

  /// A name is printed as it is.
  @Test(arguments: ["\\u001b]0;x", "a\\n", "\\u007f"])
  func namesHaveNoControlCharacters(name: String) {
    let text = #"[{"name":"\#(name)","apps":[{"name":"chat"}]}]"#
    #expect(problem(scenarioText(phones: text)).hasSuffix("a name has no control characters"))
  }

  @Test(arguments: ["http://a", "https://files.example:8443/a/b?c=d&e#f", "http://[::1]/"])
  func goodAddresses(url: String) {
    let app = #"{"name":"chat","onLeave":{"transfers":[{"name":"t","bytes":1,"url":"\#(url)","#
    let text = "[{\"name\":\"anna\",\"apps\":[\(app)\"authorization\":\"Bearer a b\"}]}}]}]"
    #expect(problem(scenarioText(phones: text)) == "no problem")
  }

  @Test func tooMuchIsRefused() {
    let event = #"{"at":"0s","every":"1ms","do":"lock","phone":"anna"}"#
    let found = problem(scenarioText(events: "[\(event)]"))
    #expect(found == "x.json:1: 7200001 things would happen; the most is 2000000")
    #expect(
      problem(scenarioText(more: #", "relay": {"keepAlive": "1s"}"#))
        == "x.json:5: relay.keepAlive: the least is 1m")
    #expect(
      problem(scenarioText(more: #", "relay": {"policy": "lax"}"#)).hasPrefix(
        "x.json:5: relay.policy: \"lax\" is none of documented, strict, unlimited, or"))
    for (rate, missing) in [(#"{"per":"1h"}"#, "count"), (#"{"count":2}"#, "per")] {
      #expect(
        problem(scenarioText(more: #", "relay": {"policy": {"perApp": \#(rate)}}"#))
          == "x.json:5: relay.policy.perApp: \(missing) is missing")
    }
  }

  /// In the words of configuration and API, or of the library.
  @Test func aPolicyMayBeNumbers() throws {
    let rate = #"{"count":2,"per":"1d"}"#
    for limits in [#"{"app":\#(rate)}"#, #"{"perApp":\#(rate)}"#] {
      let text = scenarioText(
        events: #"[{"at":"1m","do":"policy","to":\#(limits)}]"#,
        more: #", "relay": {"policy": \#(limits)}"#)
      let scenario = try Scenario(json: Array(text.utf8), file: "x.json")
      #expect(
        scenario.relay.policy
          == .custom(perApp: .init(2, per: .days(1), burst: 2), perPhone: nil))
    }
  }

  /// Names are looked up, not searched for.
  @Test func manyPhonesAreReadInTheirTime() throws {
    let phones = (0..<10_000).map { #"{"name":"p\#($0)","apps":[{"name":"a"},{"name":"b"}]}"# }
    let events = (0..<10_000).map { #"{"at":"1m","push":{"to":"p\#($0)/*","payload":"silent"}}"# }
    let text = scenarioText(
      phones: "[\(phones.joined(separator: ","))]", events: "[\(events.joined(separator: ","))]")
    #expect(try Scenario(json: Array(text.utf8), file: "test.json").events.count == 10_000)
  }
}
