import HTTPTypes
import Primitives
import RelayServer
import RelaySetup
import Testing

@testable import Cockpit
@testable import RelayTestKit

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

  /// By kind, and by topic where that is wanted: the topics may be many.
  @Test(arguments: [false, true]) func whatWasReceivedIsCounted(isByTopic: Bool) async throws {
    try await AdminScene.run(changing: { $0.metricsTopics = isByTopic }) { ask in
      #expect(try await ask(.post, "/v1/devices", #"{"name":"anna"}"#).status == 201)
      for (topic, count) in [("a.b", 2), ("a.c", 1)] {
        #expect(try await ask(.put, "/v1/devices/anna/apps/\(topic)", "{}").status == 200)
        for kind in ["alert", "background"] {
          let body = kind == "alert" ? #""alert":"a""# : #""content-available":1"#
          for _ in 0..<(kind == "alert" ? count : count + 2) {
            let pushed = try await ask(
              .post, "/v1/push",
              #"{"to":"anna","topic":"\#(topic)","headers":{"apns-push-type":"\#(kind)","#
                + #""apns-priority":5},"payload":{"aps":{\#(body)}}}"#)
            #expect(pushed.json["status"] as? Int == 200, "\(pushed.text)")
          }
        }
      }
      let text = try await ask(.get, "/metrics").text
      let lines = text.split(separator: "\n").filter {
        $0.contains("notifications_received_total{")
      }
      .map { String($0.dropFirst("pushrelay_notifications_received_total".count)) }
      #expect(
        lines
          == (isByTopic
            ? [
              #"{kind="visible",topic="a.b"} 2"#, #"{kind="silent",topic="a.b"} 4"#,
              #"{kind="visible",topic="a.c"} 1"#, #"{kind="silent",topic="a.c"} 3"#,
              #"{kind="visible",topic="other"} 0"#, #"{kind="silent",topic="other"} 0"#,
            ] : [#"{kind="visible"} 3"#, #"{kind="silent"} 7"#]))
    }
  }

  @Test func allLengthsOfTimeAreThere() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      for _ in 0..<4 { try await ask.relay.pushSilently(to: phone) }
      try await ask.relay.advance(by: .seconds(1200))
      let text = try await ask(.get, "/metrics").text
      for line in [
        #"delivery_duration_seconds_count{via="direct"} 3"#,
        #"delivery_duration_seconds_count{via="refill"} 1"#,
        #"hold_duration_seconds_count{limit="app-budget"} 1"#,
        #"hold_duration_seconds_sum{limit="app-budget"} 1200"#,
        "accept_duration_seconds_count ", "journal_commit_duration_seconds_count ",
      ] {
        #expect(text.contains("\npushrelay_\(line)"), "\(line)")
      }
    }
  }
}
