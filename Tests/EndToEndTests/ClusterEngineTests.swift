import Foundation
import Testing

/// What relays make of things in the engine that they did not write.
@Suite("What the engine has", .timeLimit(.minutes(5))) struct ClusterEngineTests {
  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  private struct Stored: Decodable {
    var seq: UInt64
  }

  private struct Last: Decodable {
    var message: Stored
  }

  private struct Status: Decodable {
    struct Node: Decodable {
      var name: String
      var stripes: [Int]
    }

    struct Stripe: Decodable {
      var stripe: Int
      var state: String
    }

    var nodes: [Node]
    var stripes: [Stripe]
  }

  private static func tell(
    _ server: NATSServer, _ subject: String, _ body: String
  ) async throws -> Data {
    let outcome = try await Program.run(
      "python3", [Program.client("nats.py"), "\(server.port)", subject, body])
    return Data(try outcome.checked("nats.py").utf8)
  }

  private static func last(on stripe: Int, of server: NATSServer) async throws -> UInt64 {
    let answer = try await tell(
      server, "$JS.API.STREAM.MSG.GET.pushrelay",
      #"{"last_by_subj":"pushrelay.stripe.\#(stripe)"}"#)
    return try JSONDecoder().decode(Last.self, from: answer).message.seq
  }

  private static func isReady(_ relay: ClusterRelay) async throws -> Bool {
    try await relay.relay.curl("http://\(relay.relay.admin)/health/ready").status == 200
  }

  private static func status(of relay: ClusterRelay) async throws -> Status {
    let answer = try await Admin(relay.relay)("GET", "/v1/cluster")
    return try JSONDecoder().decode(Status.self, from: Data(answer.body.utf8))
  }

  private static func until(_ condition: () async throws -> Bool) async throws {
    while try await !condition() { try await Task.sleep(for: .milliseconds(50)) }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aStripeThatCannotBeReadIsLeftAloneAndTheOthersGoOn() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let options = ["--admin", "127.0.0.1:0"]
    try await server.run { _ in
      let (_, logs) = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server, options) {
        relays in
        var tokens: [String] = []
        for _ in 0..<24 { tokens.append(try await Phone(on: relays[0].relay).register()) }
        let garbage = try await Self.tell(server, "pushrelay.stripe.3", "no relay has written this")
        let sequence = try JSONDecoder().decode(Stored.self, from: garbage).seq
        // Whoever has it learns so when it writes.
        try await Self.until {
          for token in tokens { _ = try await relays[1].push(token, "found") }
          for relay in relays where try await !Self.isReady(relay) { return true }
          return false
        }
        // One that comes gets its share all the same, and nobody writes behind what is there.
        let state = scratch.path + "/c"
        _ = try await ClusterRelay.run("c", state: state, on: server, options) { third in
          try await Self.until {
            let status = try await Self.status(of: third)
            return status.stripes[3].state == "unreadable"
              && status.nodes.count == 3 && status.nodes.allSatisfy { $0.stripes.count >= 2 }
          }
          var statuses: [Int: Int] = [:]
          for token in tokens {
            statuses[try await third.push(token, "beside it").status, default: 0] += 1
          }
          #expect(statuses[503, default: 0] > 0 && statuses[200, default: 0] > 12, "\(statuses)")
          #expect(try await Self.last(on: 3, of: server) == sequence)
          _ = try await Self.tell(
            server, "$JS.API.STREAM.MSG.DELETE.pushrelay", #"{"seq":\#(sequence)}"#)
          for token in tokens {
            try await Self.until { try await third.push(token, "again").status == 200 }
          }
          for relay in relays + [third] { try await Self.until { try await Self.isReady(relay) } }
        }
      }
      let complaints = logs.reduce(0) {
        $0 + $1.components(separatedBy: "a stripe cannot be read").count - 1
      }
      #expect((1...20).contains(complaints), "\(logs)")
      #expect(logs.joined().contains("nats stream rmm pushrelay"))
    }
  }

  /// What another version of the relay has made is not used, and not written over.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func whatHasAnotherFormIsLeftAsItIs() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    @Sendable func refusal() async throws -> String {
      let outcome = try await Program.run(
        Program.pushrelay,
        [
          "serve", "--state", scratch.path + "/a", "--plaintext", "--auth", "none", "--store",
          "jetstream", "--nats", server.url, "--node", "a", "--provider", "127.0.0.1:0",
          "--device", "127.0.0.1:0",
        ])
      #expect(!outcome.succeeded)
      return outcome.errors
    }
    try await server.run { _ in
      _ = try await Self.tell(
        server, "$JS.API.STREAM.CREATE.pushrelay",
        """
        {"name":"pushrelay","subjects":["pushrelay.stripe.*"],"discard":"new","allow_direct":true,
        "metadata":{"pushrelay.partitions":"256","pushrelay.stripes":"8","pushrelay.form":"77"}}
        """)
      let words = try await refusal()
      #expect(words.contains("has form 77") && words.contains("cluster export"), "\(words)")
      _ = try await Self.tell(server, "$JS.API.STREAM.DELETE.pushrelay", "")
      _ = try await ClusterRelay.run("b", state: scratch.path + "/b", on: server) { _ in }
      // How many runs there have been: whoever takes this for none gives out numbers again.
      let key = try await Self.tell(server, "$KV.pushrelay.runs", "77")
      let sequence = try JSONDecoder().decode(Stored.self, from: key).seq
      #expect(try await refusal().contains("$KV.pushrelay.runs has form"))
      let last = try await Self.tell(
        server, "$JS.API.STREAM.MSG.GET.KV_pushrelay", #"{"last_by_subj":"$KV.pushrelay.runs"}"#)
      #expect(try JSONDecoder().decode(Last.self, from: last).message.seq == sequence)
    }
  }
}
