import Foundation
import Subprocess
import Testing

/// The virtual clock of a cluster: whichever node is told, all move, and nobody waits.
@Suite("Virtual clock of a cluster", .timeLimit(.minutes(5))) struct ClusterClockTests {
  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  private static func run(
    _ names: [String], _ body: @Sendable @escaping ([ClusterRelay], [Admin]) async throws -> Void
  ) async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      _ = try await ClusterRelay.run(
        names, in: scratch.path, on: server, ["--clock", "virtual", "--admin", "127.0.0.1:0"]
      ) { relays in try await body(relays, try relays.map { try Admin($0.relay) }) }
    }
  }

  private static func now(_ admin: Admin) async throws -> Int {
    let clock = try await admin("GET", "/v1/clock").json
    #expect(clock["mode"] as? String == "virtual", "\(clock)")
    return try #require(clock["now"] as? Int)
  }

  /// Plays ten phones that go by the relay's time, each with one app, for as long as `body` takes;
  /// it has their ids.
  private static func withPhones(
    _ relay: RelayProcess, _ admin: Admin, _ body: ([String]) async throws -> Void
  ) async throws {
    let arguments = [
      "phones", "start", "--count", "10", "--apps", "mail", "--plaintext", "--device",
      relay.device, "--state", relay.state,
    ]
    _ = try await Subprocess.run(
      Program.executable(Program.pushrelay), arguments: Arguments(arguments), input: .none,
      output: .discarded, error: .discarded
    ) { execution in
      var ids: [String] = []
      repeat {
        try await Task.sleep(for: .milliseconds(50))
        let devices = try await admin("GET", "/v1/devices").json["devices"] as? [[String: Any]]
        ids = (devices ?? []).filter { device in
          device["connected"] as? Bool == true && (device["apps"] as? [Any])?.isEmpty == false
        }.compactMap { $0["device"] as? String }
      } while ids.count < 10
      try await body(ids)
      await execution.teardown(using: [])
    }
  }

  private static func silent(to target: String) -> String {
    #"{"to":"\#(target)","headers":{"apns-push-type":"background","apns-priority":"5"},"#
      + #""payload":{"aps":{"content-available":1}}}"#
  }

  /// How many lives have each state, as a node says for all.
  private static func states(_ admin: Admin) async throws -> [String: Int] {
    let list = try await admin("GET", "/v1/notifications?limit=200").json
    let lives = try #require(list["notifications"] as? [[String: Any]], "\(list)")
    return Dictionary(grouping: lives) { $0["state"] as? String ?? "" }.mapValues(\.count)
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func heldPushesOfAllNodesArriveInOneAdvance() async throws {
    try await Self.run(["a", "b", "c"]) { relays, nodes in
      let start = try await Self.now(nodes[0])
      for node in nodes { #expect(try await Self.now(node) == start) }
      try await Self.withPhones(relays[0].relay, nodes[0]) { ids in
        // The fourth of an app is held; each goes to another node than the one before.
        for round in 0..<4 {
          for (index, id) in ids.enumerated() {
            let node = nodes[(index + round) % 3]
            let answer = try await node("POST", "/v1/push", Self.silent(to: id))
            #expect(answer.json["status"] as? Int == 200, "\(answer)")
          }
        }
        #expect(try await nodes[2]("POST", "/v1/clock/advance", #"{"by":"0s"}"#).status == 200)
        let before = try await Self.states(nodes[1])
        #expect(before == ["delivered": 30, "stored": 10])
        let advance = try await nodes[1]("POST", "/v1/clock/advance", #"{"by":"20m"}"#)
        #expect(advance.status == 200, "\(advance)")
        // They go along with what each phone says after a quarter of an hour.
        #expect((advance.json["fired"] as? [String: Int])?["keep-alive"] == 10, "\(advance)")
        // No sleep: all of it has happened, on all nodes.
        let after = try await Self.states(nodes[2])
        #expect(after == ["delivered": 40])
        for node in nodes { #expect(try await Self.now(node) == start + 1_200_000) }
      }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func timeGoesOnWithoutANodeThatDies() async throws {
    try await Self.run(["a", "b", "c"]) { relays, nodes in
      let start = try await Self.now(nodes[0])
      #expect(try await nodes[2]("POST", "/v1/clock/advance", #"{"by":"1h"}"#).status == 200)
      try relays[2].send(.kill)
      // Nobody has its stripes until its lease has run out; the advance waits for that, on a busy
      // machine not for long enough.
      let wish = #"{"to":\#(start + 7_200_000)}"#
      var advance = try await nodes[0]("POST", "/v1/clock/advance", wish)
      while advance.reason == "NotSettled" {
        advance = try await nodes[0]("POST", "/v1/clock/advance", wish)
      }
      #expect(advance.status == 200, "\(advance)")
      for node in nodes.prefix(2) { #expect(try await Self.now(node) == start + 7_200_000) }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func eachNodesAdvanceWaitsForTheOthers() async throws {
    try await Self.run(["a", "b"]) { _, nodes in
      let start = try await Self.now(nodes[0])
      try await withThrowingTaskGroup(of: Admin.Answer.self) { group in
        for index in 0..<8 {
          group.addTask {
            try await nodes[index % 2]("POST", "/v1/clock/advance", #"{"by":"10m"}"#)
          }
        }
        for try await answer in group { #expect(answer.status == 200, "\(answer)") }
      }
      for node in nodes { #expect(try await Self.now(node) == start + 8 * 600_000) }
      // A pace that one node was told is known on the other, which may end it.
      let fast = try await nodes[0]("PATCH", "/v1/clock", #"{"rate":3600}"#)
      #expect(fast.json["rate"] as? Double == 3600, "\(fast)")
      #expect(try await nodes[1]("GET", "/v1/clock").json["rate"] as? Double == 3600)
      while try await Self.now(nodes[1]) < start + 10 * 600_000 {}
      let slow = try await nodes[1]("PATCH", "/v1/clock", #"{"rate":0}"#)
      #expect(slow.json["rate"] as? Double == 0, "\(slow)")
      #expect(try await nodes[1]("POST", "/v1/clock/advance", #"{"by":"0s"}"#).status == 200)
      let end = try await Self.now(nodes[0])
      #expect(try await Self.now(nodes[1]) == end)
      #expect(try await Self.now(nodes[0]) == end)
    }
  }

  /// A node that starts later begins at the cluster's time; one that goes by its machine's clock
  /// does not start.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aLaterNodeGoesByTheClustersTime() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let virtual = ["--clock", "virtual", "--admin", "127.0.0.1:0"]
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a"], in: scratch.path, on: server, virtual) { first in
        let a = try Admin(first[0].relay)
        #expect(try await a("POST", "/v1/clock/advance", #"{"by":"30d"}"#).status == 200)
        let now = try await Self.now(a)
        _ = try await ClusterRelay.run(["b"], in: scratch.path, on: server, virtual) { second in
          let b = try Admin(second[0].relay)
          #expect(try await Self.now(b) == now)
        }
        let refused = try await Program.run(
          Program.pushrelay,
          [
            "serve", "--state", scratch.path + "/c", "--provider", "127.0.0.1:0", "--device",
            "127.0.0.1:0", "--store", "jetstream", "--nats", server.url, "--node", "c",
            "--plaintext", "--auth", "none",
          ])
        #expect(!refused.succeeded)
        #expect(
          refused.errors.contains("clock is system here and virtual on the nodes"), "\(refused)")
      }
      // Where no node is at work, the kind of clock may change.
      _ = try await ClusterRelay.run(["c"], in: scratch.path, on: server) { third in
        let clock = try await third[0].relay.command("clock", "--json").checked("pushrelay clock")
        #expect(clock.contains(#""mode":"system""#), "\(clock)")
      }
    }
  }
}
