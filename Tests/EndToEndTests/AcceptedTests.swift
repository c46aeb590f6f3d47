import Foundation
import RelayCore
import Testing

@Suite("What is just inside the limits", .timeLimit(.minutes(2))) struct AcceptedTests {
  @Test func validEdgesAreAccepted() async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let voipToken = try await phone.register("com.example.app.voip")
      let push = Push(to: token, try await relay.providerToken())
      let edges: [(String, Push)] = [
        ("4096 bytes", push.with { $0.body = RejectionTable.payload(4096) }),
        (
          "64 bytes of collapse id",
          push.with { $0.fields = ["apns-collapse-id: " + String(repeating: "c", count: 64)] }
        ),
        ("upper-case hex", push.with { $0.path = "/3/device/\(token.uppercased())" }),
        ("expiration 0", push.with { $0.fields = ["apns-expiration: 0"] }),
        ("priority 1", push.with { $0.fields = ["apns-priority: 1"] }),
        (
          "the scheme in capitals",
          push.with { $0.authorization?.replace("bearer", with: "Bearer") }
        ),
        (
          "voip with 5120 bytes",
          push.with { voip in
            voip.path = "/3/device/\(voipToken)"
            voip.topic = "com.example.app.voip"
            voip.fields = ["apns-push-type: voip"]
            voip.body = RejectionTable.payload(5120)
          }
        ),
      ]
      let answers = try await relay.send(edges.map(\.1))
      for (edge, answer) in zip(edges, answers) {
        #expect(answer.status == 200, "\(edge.0): \(answer)")
        #expect(answer.body.isEmpty, "\(edge.0)")
        #expect(answer.fields["apns-id"].flatMap { UUID(uuidString: $0) } != nil, "\(edge.0)")
      }
    }
  }

  @Test func deviceTokensOfTwoToAHundredBytesAreAccepted() async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      let lengths = Array(Limits.deviceTokenBytes)
      let tokens = lengths.map { String(repeating: "c", count: $0 * 2 - 2) + "0A" }
      let topics = lengths.map { "com.example.app\($0)" }
      let registered = try await phone.register(topics, tokens: tokens)
      #expect(registered == tokens.map { $0.lowercased() })
      let providerToken = try await relay.providerToken()
      let answers = try await relay.send(
        zip(tokens, topics).map { token, topic in
          Push(to: token, providerToken).with { $0.topic = topic }
        })
      for (length, answer) in zip(lengths, answers) {
        #expect(answer.status == 200, "\(length) bytes: \(answer)")
      }
    }
  }

  /// People see the end of an id: two loops must not give the same.
  @Test func shortNamesAreUniqueInARelay() async throws {
    try await RelayProcess.run(RelaySetup(arguments: ["--threads", "2", "--auth", "none"])) {
      relay in
      let token = try await Phone(on: relay).register()
      var names: Set<Substring> = []
      // Each over a connection of its own, so of either loop.
      for _ in 0..<16 {
        let answer = try await relay.send(Push(to: token, nil))
        names.insert(try #require(answer.fields["apns-unique-id"]).suffix(12))
      }
      #expect(names.count == 16)
    }
  }
}
