import Foundation
import Testing

/// The command that makes load, against the real relay.
@Suite("Load", .timeLimit(.minutes(2))) struct LoadTests {
  private struct Report: Decodable {
    struct Times: Decodable {
      var p50: Int
      var p99: Int
      var max: Int
    }

    var devices: Int
    var answers: [String: Int]
    var delivered: Int
    var answerMicroseconds: Times?
    var deliveryMicroseconds: Times?
  }

  @Test func everyPushIsAnsweredAndDelivered() async throws {
    try await RelayProcess.run { relay in
      let outcome = try await relay.command(
        "load", "--devices", "50", "--rate", "200", "--seconds", "1", "--json", "--provider",
        relay.provider, "--device", relay.device, "--key", RelaySetup.keyID)
      let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output.utf8))
      #expect(outcome.succeeded && report.devices == 50, "\(outcome)")
      #expect(report.answers == ["200": 200] && report.delivered == 200, "\(outcome)")
      let answer = try #require(report.answerMicroseconds)
      let delivery = try #require(report.deliveryMicroseconds)
      #expect(answer.p50 > 0 && answer.p50 <= answer.p99 && answer.p99 <= answer.max)
      #expect(delivery.p50 > 0 && delivery.p99 <= delivery.max)
    }
  }

  /// What the relay refuses, and what it throttles, is told apart.
  @Test func refusalsAndThrottlingShow() async throws {
    try await RelayProcess.run { relay in
      let fault = try await relay.command(
        "fault", "set", "busy", "provider", "answer=ServiceUnavailable", "--times", "7")
      #expect(fault.succeeded, "\(fault)")
      let outcome = try await relay.command(
        "load", "--devices", "1", "--rate", "100", "--seconds", "0.5", "--silent", "0.2", "--wait",
        "1", "--json", "--provider", relay.provider, "--device", relay.device, "--key",
        RelaySetup.keyID)
      let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output.utf8))
      #expect(report.answers == ["200": 43, "503 ServiceUnavailable": 7], "\(outcome)")
      // Ten are silent, of which three fit into an hour; one more goes along with each alert.
      #expect((30...43).contains(report.delivered), "\(outcome)")
    }
  }

  /// All that a rate beyond what is possible asks for is sent, and payloads are as long as wanted.
  @Test func aRateThatNobodyTakesIsAsFastAsItGoes() async throws {
    try await RelayProcess.run { relay in
      let outcome = try await relay.command(
        "load", "--away", "--devices", "3", "--rate", "1000000", "--seconds", "0.0005", "--open",
        "7", "--bytes", "220", "--json", "--provider", relay.provider, "--device", relay.device,
        "--key", RelaySetup.keyID)
      let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output.utf8))
      #expect(report.answers == ["200": 500] && report.delivered == 0, "\(outcome)")
      let requests = try await relay.command("requests", "--limit", "2", "--json")
      #expect(requests.output.contains(#""bodyBytes":220"#), "\(requests)")
    }
  }

  @Test func whatMakesNoSenseIsRefused() async throws {
    for arguments in [
      ["--rate", "0"], ["--silent", "2"], ["--devices", "0"], ["--wait", "-1"], ["--open", "0"],
      ["--bytes", "4097"],
    ] {
      let outcome = try await Program.run(Program.pushrelay, ["load"] + arguments)
      #expect(!outcome.succeeded && outcome.errors.contains("--"), "\(arguments): \(outcome)")
    }
  }
}
