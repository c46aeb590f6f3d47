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
    (#"{"never":{"what":"banner"}}"#, false),
    (#"{"never":{"what":"banner"},"before":"10m"}"#, true),
    (#"{"order":[{"what":"banner","push":"a"},{"what":"banner","push":"b"}]}"#, true),
    (#"{"order":[{"what":"banner","push":"b"},{"what":"banner","push":"a"}]}"#, false),
    (#"{"order":[{"what":"banner"},{"what":"banner"},{"what":"banner"}]}"#, false),
    (#"{"fetchedBeforeUse":{"percentOfDays":0}}"#, false),
  ])
  func verdicts(expectation: String, isTrue: Bool) throws {
    let result = try play(scenarioText(events: Self.events, expect: "[\(expectation)]"))
    #expect(result.verdicts.map(\.isPassed) == [isTrue], "\(result.verdicts)")
    #expect(result.isPassed == isTrue)
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
}
