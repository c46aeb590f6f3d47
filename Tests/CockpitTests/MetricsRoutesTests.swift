import Testing

@testable import Cockpit

@Suite struct MetricsRoutesTests {
  @Test func samplesAreInTheTextFormat() {
    var text = MetricsText()
    text.add("a_total", .counter, "Things", [([("via", "direct")], 3), ([], 4)])
    #expect(
      text.text == """
        # HELP pushrelay_a_total Things
        # TYPE pushrelay_a_total counter
        pushrelay_a_total{via="direct"} 3
        pushrelay_a_total 4

        """)
  }
}
