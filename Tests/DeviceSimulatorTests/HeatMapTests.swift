import Testing

@testable import DeviceSimulator

/// Maps of uses, fetches and pushes.
@Suite struct HeatMapTests {
  private func simulation() throws -> Simulation {
    try play(
      """
      {"title": "map", "length": "9d", "phones": [{"name": "a&b", "apps": [{"name": "chat"}],
        "usage": [{"app": "chat", "at": ["06:10"], "days": "weekdays"},
                  {"app": "chat", "at": ["23:40"], "days": "weekends"}]}],
       "events": [{"at": "12h", "every": "10m", "count": 3,
                   "push": {"to": "a&b/*", "payload": {"aps": {"alert": "x"}}}}]}
      """
    ).simulation
  }

  @Test func countsAreWhereTheyBelong() throws {
    let map = try #require(try simulation().heatMaps.first)
    // Day 1 is a Saturday.
    #expect(map.counts(.uses, days: 0..<2)[47] == 2 && map.counts(.uses, days: 0..<2)[12] == 0)
    #expect(map.counts(.uses, days: 2..<7)[12] == 5 && map.counts(.uses, days: 2..<7)[47] == 0)
    #expect(map.counts(.pushes, days: 0..<9)[24] == 3)
    #expect(map.counts(.uses, days: 0..<9).reduce(0, +) == 9)
  }

  @Test func textHasARowAWeekAndLayer() throws {
    let rows = try #require(try simulation().heatMaps.first).text.split(separator: "\n")
    #expect(rows.count == 1 + 2 * 3 && rows[0].hasPrefix("a&b/chat"))
    #expect(Set(rows.dropFirst().map(\.count)) == [18 + HeatMap.binCount])
    #expect(rows[1].hasPrefix("  week 1  uses") && rows[4].hasPrefix("  week 2  uses"))
  }
}
