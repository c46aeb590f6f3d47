import Foundation
import Testing

/// Debian's HTTP/2 tools as peers.
@Suite("nghttp, h2load", .timeLimit(.minutes(3))) struct PeerTests {
  private static let count = 5000

  @Test(arguments: [false, true])
  func aThousandStreamsOnOneConnection(plaintext: Bool) async throws {
    try await RelayProcess.run(RelaySetup(plaintext: plaintext)) { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let load = try await Self.load(
        relay, token, count: Self.count, streams: 1000, body: Push.alert)
      #expect(load.contains("\(Self.count) succeeded, 0 failed, 0 errored, 0 timeout"), "\(load)")
      #expect(load.contains("status codes: \(Self.count) 2xx, 0 3xx, 0 4xx, 0 5xx"), "\(load)")
    }
  }

  /// Runs h2load with one connection; returns what it says.
  static func load(
    _ relay: RelayProcess, _ token: String, count: Int, streams: Int, body: String
  ) async throws -> String {
    let scratch = try Scratch()
    let file = scratch.path + "/body.json"
    try body.write(toFile: file, atomically: true, encoding: .utf8)
    let providerToken = try await relay.providerToken()
    return try await Program.run(
      "h2load",
      [
        "-n", "\(count)", "-c", "1", "-m", "\(streams)", "-d", file,
        "-H", "authorization: bearer \(providerToken)", "-H", "apns-topic: \(Phone.topic)",
        "\(relay.providerURL)/3/device/\(token)",
      ]
    ).checked("h2load")
  }

  @Test(arguments: [false, true])
  func nghttpPushes(plaintext: Bool) async throws {
    try await RelayProcess.run(RelaySetup(plaintext: plaintext)) { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let providerToken = try await relay.providerToken()
      let scratch = try Scratch()
      let file = scratch.path + "/body.json"
      try Push.alert.write(toFile: file, atomically: true, encoding: .utf8)
      func push(_ topic: String) async throws -> String {
        try await Program.run(
          "nghttp",
          [
            "-v", "--no-verify-peer", "-d", file, "-H", ":method: POST",
            "-H", "authorization: bearer \(providerToken)", "-H", "apns-topic: \(topic)",
            "\(relay.providerURL)/3/device/\(token)",
          ]
        ).checked("nghttp")
      }
      let accepted = try await push(Phone.topic)
      #expect(accepted.contains(":status: 200"), "\(accepted)")
      // A success ends in HEADERS: the answer has no DATA frame, not even an empty one.
      #expect(!accepted.contains("recv DATA frame"), "\(accepted)")
      let refused = try await push("com.example.nobody")
      #expect(refused.contains(":status: 400"), "\(refused)")
      #expect(refused.contains(#"{"reason":"DeviceTokenNotForTopic"}"#), "\(refused)")
      #expect(refused.components(separatedBy: "recv DATA frame").count == 2, "\(refused)")
    }
  }
}

/// Phones that hold their streams open and read nothing.
@Suite("Phones that never read", .timeLimit(.minutes(3))) struct SilentPeerTests {
  private static let phones = 4
  /// What may come on top, in bytes: their windows of frames, the sockets' share, the allocator's.
  private static let growthLimit = 12_000_000

  @Test func theyCostBoundedMemoryAndNobodyElseIsHeldUp() async throws {
    // The journal of requests has a bound of its own.
    try await RelayProcess.run(RelaySetup(arguments: ["--keep-requests", "0"])) { relay in
      let reader = try await Phone(on: relay)
      let readersToken = try await reader.register()
      var tokens: [String] = []
      var deaf: [Phone] = []
      for _ in 0..<Self.phones {
        let phone = try await Phone(on: relay)
        tokens.append(try await phone.register())
        deaf.append(phone)
      }
      // The relay has seen a load like the one to come, so that what it keeps for reuse is there.
      _ = try await PeerTests.load(
        relay, readersToken, count: 1000, streams: 100, body: RejectionTable.payload(4096))
      try await Self.withDeaf(deaf[...]) {
        let before = try relay.residentBytes()
        for token in tokens {
          let said = try await PeerTests.load(
            relay, token, count: 1500, streams: 100, body: RejectionTable.payload(4096))
          #expect(said.contains("1500 succeeded"), "\(said)")
        }
        let after = try relay.residentBytes()
        #expect(after - before < Self.growthLimit, "from \(before) to \(after) bytes")
        for phone in deaf {
          #expect(try await phone.report().inFlight <= 32)
        }
        let push = Push(to: readersToken, try await relay.providerToken())
        try await reader.talk(["--ack"]) { lines, _ in
          try await lines.expect("hello")
          // The one that the load left in the slot.
          try await lines.expect("visible 0 via connect")
          for number in 1...20 {
            let answer = try await relay.send(
              push.with { $0.body = #"{"aps":{"alert":"Hello"},"n":\#(number)}"# })
            #expect(answer.status == 200)
            try await lines.expect("visible \(number) via direct")
          }
        }
      }
    }
  }

  /// Runs `body` while all of them hold their streams.
  private static func withDeaf(
    _ phones: ArraySlice<Phone>, _ body: () async throws -> Void
  ) async throws {
    guard let first = phones.first else { return try await body() }
    try await first.talk(["--never-read"]) { lines, _ in
      #expect(try await lines.next("not reading") == "not reading")
      try await withDeaf(phones.dropFirst(), body)
    }
  }
}
