import Primitives
import RelayServer
import Testing

@testable import Cockpit

@Suite struct MetricsRoutesTests {
  @Test func samplesAreInTheTextFormat() {
    var text = MetricsText()
    text.add("a_total", "Things", [([("via", "direct")], 3), ([], 4)])
    #expect(
      text.text == """
        # HELP pushrelay_a_total Things
        # TYPE pushrelay_a_total counter
        pushrelay_a_total{via="direct"} 3
        pushrelay_a_total 4

        """)
  }

  @Test func histogramsCountWhatIsBelow() {
    var histogram = Histogram()
    histogram.add(1)
    histogram.add(3)
    var text = MetricsText()
    text.add("x_seconds", "Things", unit: 1e-3, [([("via", "direct")], histogram)])
    let lines = text.text.split(separator: "\n")
    #expect(lines[1] == "# TYPE pushrelay_x_seconds histogram")
    #expect(lines[2] == #"pushrelay_x_seconds_bucket{via="direct",le="0.001"} 1"#)
    #expect(lines[3] == #"pushrelay_x_seconds_bucket{via="direct",le="0.002"} 1"#)
    #expect(lines[4] == #"pushrelay_x_seconds_bucket{via="direct",le="0.004"} 2"#)
    #expect(lines[25] == #"pushrelay_x_seconds_bucket{via="direct",le="+Inf"} 2"#)
    #expect(lines[26] == #"pushrelay_x_seconds_sum{via="direct"} 0.004"#)
    #expect(lines[27] == #"pushrelay_x_seconds_count{via="direct"} 2"#)
    #expect(lines.count == 28)
  }
}
