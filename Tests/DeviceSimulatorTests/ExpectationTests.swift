import Testing

@testable import DeviceSimulator

/// What an expectation takes for true, and for false.
@Suite struct ExpectationTests {
  private static let events = """
    [ {"at":"10m","push":{"name":"a","to":"anna/chat","payload":{"aps":{"alert":"one"}}}},
      {"at":"20m","push":{"name":"b","to":"anna/news","payload":{"aps":{"alert":"two"}}}} ]
    """

  @Test(arguments: [
    (#"{"expect":{"what":"banner"}}"#, true),
    (#"{"expect":{"what":"banner"},"count":2}"#, true),
    (#"{"expect":{"what":"banner"},"count":1}"#, false),
    (#"{"expect":{"what":"banner"},"count":{"min":1}}"#, true),
    (#"{"expect":{"what":"banner"},"count":{"max":1}}"#, false),
    (#"{"expect":{"what":"banner","app":"news"},"count":1}"#, true),
    (#"{"expect":{"what":"banner","push":"a"},"within":"5s"}"#, true),
    (#"{"expect":{"what":"banner","push":"a"},"within":"1ms"}"#, false),
    (#"{"expect":{"what":"banner"},"within":"5s"}"#, false),
    (#"{"expect":{"what":"banner"},"after":"10m","within":"5s"}"#, true),
    (#"{"expect":{"what":"banner","push":"a"},"after":"11m"}"#, false),
    (#"{"expect":{"what":"banner","push":"b"},"before":"20m"}"#, false),
    (#"{"expect":{"what":"banner","why":"one"}}"#, true),
    (#"{"expect":{"what":"banner","why":"*ne"}}"#, true),
    (#"{"expect":{"what":"banner","why":"o*"}}"#, true),
    (#"{"expect":{"what":"banner","why":"*n*"},"count":1}"#, true),
    (#"{"expect":{"what":"banner","why":"*"},"count":2}"#, true),
    (#"{"expect":{"what":"banner","why":"n"}}"#, false),
    (#"{"expect":{"what":"banner","phone":"anna"}}"#, true),
    (#"{"never":{"what":"refused"}}"#, true),
    (#"{"expect":{"what":"banner"},"between":["00:05","00:15"],"count":1}"#, true),
    (#"{"expect":{"what":"banner"},"between":["00:05","00:25"],"count":2}"#, true),
    (#"{"never":{"what":"banner"},"between":["00:21","23:59"]}"#, true),
    (#"{"never":{"what":"banner"},"between":["00:10","00:11"]}"#, false),
    (#"{"never":{"what":"banner"},"between":["01:59","23:59"]}"#, true),
    (#"{"never":{"what":"banner"},"between":["08:00","09:00"]}"#, false),
    (#"{"never":{"what":"banner"}}"#, false),
    (#"{"never":{"what":"banner"},"before":"10m"}"#, true),
    (#"{"order":[{"what":"banner","push":"a"},{"what":"banner","push":"b"}]}"#, true),
    (#"{"order":[{"what":"banner","push":"b"},{"what":"banner","push":"a"}]}"#, false),
    (#"{"order":[{"what":"banner"},{"what":"banner"},{"what":"banner"}]}"#, false),
    (#"{"expect":{"what":"banner","push":1},"count":1}"#, true),
    (#"{"expect":{"what":"banner","push":2,"app":"chat"}}"#, false),
    (#"{"fetchedBeforeUse":{"percentOfDays":0}}"#, false),
  ])
  func verdicts(expectation: String, isTrue: Bool) throws {
    let result = try play(scenarioText(events: Self.events, expect: "[\(expectation)]"))
    #expect(result.verdicts.map(\.isPassed) == [isTrue], "\(result.verdicts)")
    #expect(result.isPassed == isTrue)
  }

  /// A push with a mistake passes for one of which nothing came: so it is said.
  @Test func aRefusedPushIsNamedWhereNothingHappened() throws {
    let result = try play(
      scenarioText(
        events: """
          [{"at":"10m","push":{"name":"a","to":"anna/chat","priority":3,
            "payload":{"aps":{"alert":"one"}}}}]
          """,
        expect: #"[{"never":{"what":"delivered","push":"a"}},{"never":{"what":"delivered"}}]"#))
    #expect(result.isPassed)
    #expect(result.verdicts[0].found.contains("it did not happen; day 1 00:10:00.000"))
    #expect(result.verdicts[0].found.hasSuffix("refused for anna/chat: 400 BadPriority"))
    #expect(result.verdicts[1].found == "it did not happen")
  }

  @Test func whatTheySay() throws {
    let result = try play(
      scenarioText(
        events: Self.events,
        expect: """
          [ {"expect":{"what":"banner","push":"a","phone":"anna","app":"chat"},"within":"5s"},
            {"never":{"what":"refused"},"after":"1m","before":"day 1 00:05"},
            {"says":"own words","expect":{"what":"banner"},"count":2},
            {"expect":{"what":"banner","why":"t*"},"count":{"min":1,"max":2}} ]
          """))
    #expect(
      result.verdicts.map(\.says) == [
        "push a anna/chat banner within 5s",
        "never refused after day 1 00:01:00.000 before day 1 00:05:00.000",
        "own words",
        "banner \"t*\", 1 to 2 times",
      ])
    #expect(result.verdicts[0].found == "day 1 00:10:00.053 push 1 (a) banner: one")
    #expect(result.verdicts[1].found == "it did not happen")
    #expect(result.verdicts[2].found == "day 1 00:10:00.053 push 1 (a) banner: one, 2 times")
  }

  /// A verdict that is no says what there was instead.
  @Test(arguments: [
    (
      #"{"expect":{"what":"banner"},"count":1}"#,
      "2 times: day 1 00:10:00.053 push 1 (a) banner: one; "
        + "day 1 00:20:00.050 push 2 (b) banner: two"
    ),
    (
      #"{"expect":{"what":"banner","push":"a"},"count":{"min":2}}"#,
      "once: day 1 00:10:00.053 push 1 (a) banner: one"
    ),
    (
      #"{"never":{"what":"banner"},"after":"15m"}"#,
      "once: day 1 00:20:00.050 push 2 (b) banner: two"
    ),
    (
      #"{"expect":{"what":"banner","push":"a"},"after":"15m"}"#,
      "it did not happen then, but day 1 00:10:00.053 push 1 (a) banner: one"
    ),
    (
      #"{"expect":{"what":"banner","push":"a","why":"uno"}}"#,
      "it did not happen; what did: day 1 00:10:00.053 push 1 (a) banner: one"
    ),
    (
      #"{"expect":{"what":"banner","phone":"anna","app":"chat","push":"b"}}"#,
      "it did not happen; what did: day 1 00:10:00.053 push 1 (a) banner: one; "
        + "day 1 00:20:00.050 push 2 (b) banner: two"
    ),
    (#"{"expect":{"what":"refused"}}"#, "it did not happen"),
    (
      #"{"order":[{"what":"banner","push":"b"},{"what":"banner","push":"a"}]}"#,
      "number 2 did not happen after day 1 00:20:00.050 push 2 (b) banner: two, "
        + "but day 1 00:10:00.053 push 1 (a) banner: one"
    ),
    (
      #"{"order":[{"what":"banner","why":"uno"},{"what":"banner","push":"a"}]}"#,
      "number 1 did not happen; what did: day 1 00:10:00.053 push 1 (a) banner: one; "
        + "day 1 00:20:00.050 push 2 (b) banner: two"
    ),
    (
      #"{"expect":{"what":"refused","push":"b"},"within":"110m"}"#,
      "it did not happen; the scenario ended 10m before that time did"
    ),
    (
      #"{"never":{"what":"refused","push":"b"},"within":"110m"}"#,
      "it did not happen; the scenario ended 10m before that time did"
    ),
    (
      #"{"expect":{"what":"banner","push":"b"},"within":"110m","count":1}"#,
      "day 1 00:20:00.050 push 2 (b) banner: two; the scenario ended 10m before that time did"
    ),
    (
      #"{"never":{"what":"banner","push":"b"},"within":"110m"}"#,
      "once: day 1 00:20:00.050 push 2 (b) banner: two"
    ),
  ])
  func whatAFailedOneSays(expectation: String, found: String) throws {
    let result = try play(scenarioText(events: Self.events, expect: "[\(expectation)]"))
    #expect(result.verdicts.map(\.isPassed) == [false])
    #expect(result.verdicts.map(\.found) == [found])
  }

  /// Also where only some kinds of entries are kept, as with `--quiet`.
  @Test func aPushThatWasRefusedSaysSo() throws {
    let events = """
      [ {"at":"10m","push":{"name":"a","to":"anna/chat","payload":"silent"}},
        {"at":"20m","push":{"name":"b","to":"anna/chat","priority":7,"payload":"silent"}} ]
      """
    let text = scenarioText(
      events: events, expect: #"[{"expect":{"what":"delivered","push":"b"}}]"#)
    let scenario = try Scenario(json: Array(text.utf8), file: "test.json")
    let kinds = Expectation.kinds(of: scenario.expectations)
    #expect(kinds == [.delivered, .refused])
    let found = try play(text).verdicts[0].found
    #expect(
      found.hasPrefix(
        "it did not happen; day 1 00:20:00.000 push 2 (b) refused for anna/chat: 400 BadPriority; "
          + "what did: day 1 00:10:"), "\(found)")
  }

  @Test func aLongListIsCut() throws {
    let events = """
      [{"at":"1m","every":"1m","count":9,
        "push":{"to":"anna/chat","payload":{"aps":{"alert":"hi"}}}}]
      """
    let result = try play(
      scenarioText(events: events, expect: #"[{"never":{"what":"banner"}}]"#))
    let found = result.verdicts[0].found
    #expect(found.hasPrefix("9 times: day 1 00:01:00.0"), "\(found)")
    #expect(found.hasSuffix("; and 4 more") && found.split(separator: ";").count == 6, "\(found)")
  }

  /// A wish of the sort `never` that holds says how much else there was that it might have meant.
  @Test func whatHeldSaysWhatElseThereWas() throws {
    let result = try play(
      scenarioText(
        events: Self.events,
        expect: """
          [{"never":{"what":"banner","push":"a","why":"uno"}},
           {"never":{"what":"banner","why":"no"}}, {"never":{"what":"refused"}}]
          """))
    #expect(result.isPassed)
    #expect(
      result.verdicts.map(\.found) == [
        "it did not happen, another did", "it did not happen, 2 others did", "it did not happen",
      ])
  }

  /// Use and learning go by the same clock, wherever the phone is.
  @Test(arguments: ["0h", "5h", "-5h", "14h"]) func usageIsByThePhonesClock(timeZone: String) throws
  {
    let result = try play(
      """
      {"title":"test","length":"36d","phones":[{"name":"anna","limits":{"timeZone":"\(timeZone)"},
      "apps":[{"name":"news","modes":["fetch"],"fetch":"minimum"}],
      "usage":[{"app":"news","at":["22:00"],"days":"weekends"}]}],"events":[],
      "expect":[{"fetchedBeforeUse":{"percentOfDays":90,"within":"1h","after":"day 15 00:00",
      "before":"day 36 00:00"}}]}
      """)
    #expect(result.verdicts.map(\.isPassed) == [true], "\(result.verdicts)")
    let opened = result.simulation.trace().filter { $0.kind == .opened }
    #expect(opened.count >= 10, "\(opened.count) of five weekends")
  }

  /// Somebody else has written it.
  @Test func aBannersTextIsOneLine() throws {
    let payload = #"{"aps":{"alert":"hi\nday 1 00:02:00.000  anna  terminated"}}"#
    let result = try play(
      scenarioText(
        events: #"[{"at":"1m","push":{"to":"anna/chat","payload":\#(payload)}}]"#))
    let lines = result.simulation.trace().map { $0.text(timeWidth: 20, whoWidth: 10) }
    #expect(lines.contains { $0.contains("banner: hi\\u{a}day 1") }, "\(lines)")
    #expect(!lines.contains { $0.contains("\n") })
  }
}
