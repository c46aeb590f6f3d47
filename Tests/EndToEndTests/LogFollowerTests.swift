import Foundation
import Subprocess
import Testing

/// `pushrelay log --follow`.
@Suite("A log that is followed", .timeLimit(.minutes(2))) struct LogFollowerTests {
  /// Follows a relay, hands over what is said once it is followed, and answers how it ended.
  private func follow(
    _ relay: RelayProcess, _ arguments: [String] = [],
    while body: (inout LineReader, (Signal) throws -> Void) async throws -> Void
  ) async throws -> TerminationStatus {
    let command = [Program.pushrelay, "log", "--follow", "--state", relay.state] + arguments
    let result = try await Subprocess.run(
      Program.executable("/bin/sh"),
      arguments: Arguments(["-c", #"exec "$0" "$@" 2>&1"#] + command),
      input: .none, output: .sequence, error: .string(limit: 1000)
    ) { execution in
      var lines = LineReader(execution.standardOutput)
      do {
        _ = try await lines.skip(to: "following")
        try await body(&lines) { try execution.send(signal: $0) }
        while try await lines.nextOrEnd() != nil {}
      } catch {
        await execution.teardown(using: [])
        throw error
      }
    }
    return result.terminationStatus
  }

  @discardableResult
  private func push(_ relay: RelayProcess, to token: String, _ more: String...) async throws -> Id {
    let sent = try await relay.command(
      "send", "-", "--to", token, "--topic", Phone.topic, "--json", options: more,
      input: Push.alert
    ).checked("send")
    return try JSONDecoder().decode(Id.self, from: Data(sent.utf8))
  }

  private struct Id: Decodable {
    var apnsUniqueId: String
  }

  @Test func whatHappensIsTold() async throws {
    try await RelayProcess.run { relay in
      let status = try await follow(relay) { lines, send in
        let phone = try await Phone(on: relay)
        let token = try await phone.register()
        while try await !lines.next("registered").contains("registered  \(Phone.topic)") {}
        let id = try await push(relay, to: token).apnsUniqueId
        let life = "Z  \(Phone.topic)  visible  \(id)  "
        let received = try await lines.next("received")
        #expect(received.contains(life + "received"), "\(received)")
        let stored = try await lines.next("stored")
        #expect(stored.contains(life + "stored"), "\(stored)")
        try send(.interrupt)
      }
      #expect(status.isSuccess, "\(status)")
    }
  }

  /// Others are passed over: the first line is of what was asked for.
  @Test func onlyWhatWasAskedForIsTold() async throws {
    let ids = ["4deb1c52-0d6e-4b34-8000-00000000002a", "4deb1c52-0d6e-4b34-8000-00000000002b"]
    try await RelayProcess.run { relay in
      let (one, other) = (try await Phone(on: relay), try await Phone(on: relay))
      let (token, foreign) = (try await one.register(), try await other.register())
      struct Line: Decodable {
        struct Facts: Decodable {
          var id: String
          var device: String
        }
        var data: Facts
      }
      for (wanted, arguments) in zip(ids, [[ids[0].uppercased()], ["--device", one.id]]) {
        let status = try await follow(relay, arguments + ["--json"]) { lines, send in
          try await push(relay, to: foreign)
          try await push(relay, to: token, "--id", wanted)
          let text = try await lines.next("life")
          let line = try JSONDecoder().decode(Line.self, from: Data(text.utf8))
          #expect(line.data.id == wanted && line.data.device == one.id, "\(text)")
          try send(.terminate)
        }
        #expect(status.isSuccess, "\(status)")
      }
      let status = try await follow(relay, ["--topic", "com.example.other"]) { lines, _ in
        try await push(relay, to: token)
        try relay.terminate()
        #expect(try await lines.next("the end") == "the relay has ended")
      }
      #expect(status.isSuccess, "\(status)")
    }
  }

  /// A reader that stands still is told how much it has missed, and goes on.
  @Test func aGapIsCounted() async throws {
    try await RelayProcess.run { relay in
      let status = try await follow(relay) { lines, send in
        try send(.suspend)
        let load = ["--devices", "10", "--rate", "1500", "--seconds", "2", "--wait", "0"]
        _ = try await relay.command("load", options: load).checked("load")
        try send(.resume)
        let text = try await lines.skip(to: "lost events: ")
        let lost = try #require(text.split(separator: " ").last.flatMap { Int($0) })
        #expect(lost > 0)
        _ = try await lines.next("what came after it")
        try send(.interrupt)
      }
      #expect(status.isSuccess, "\(status)")
    }
  }

  @Test func mistakesAreToldInOneLine() async throws {
    let scratch = try Scratch()
    for (arguments, says) in [
      (["--follow"], "no relay answers at "), (["--follow", "x"], "x is no notification id"),
      (["--follow", "--refused"], "--refused"), (["--topic", "a.b"], "goes with --follow"),
      (["--refused", "--topic", "a.b"], "goes with --follow"),
    ] {
      let log = ["log", "--state", scratch.path] + arguments
      let outcome = try await Program.run(Program.pushrelay, log)
      #expect(!outcome.succeeded && outcome.errors.contains(says), "\(outcome)")
    }
  }
}
