import Foundation
import Subprocess
import Testing

/// Relays whose journal is a real nats-server, and what is left of it when one of them dies.
@Suite("Cluster", .timeLimit(.minutes(5))) struct ClusterTests {
  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func whatIsStoredOutlivesTheRelayAndIsDelivered() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let state = scratch.path + "/a"
    try await server.run { _ in
      let own = String(repeating: "ab", count: 32)
      let (first, token, gone) = try await ClusterRelay.run("a", state: state, on: server) {
        relay in
        let phone = try await Phone(on: relay.relay)
        let token = try await phone.register()
        _ = try await phone.register(["com.example.own"], tokens: [own])
        let gone = try await phone.register("com.example.gone")
        try await phone.unregister("com.example.gone")
        #expect(try await relay.push(token, "kept").status == 200)
        try relay.send(.kill)
        return (phone, token, gone)
      }.value
      let (_, log) = try await ClusterRelay.run(
        "a", state: state, on: server, ["--nats-monitor", server.monitor]
      ) { relay in
        var phone = first
        phone.relay = relay.relay
        #expect(try await relay.push(gone, "late").status == 410)
        // The phone's own token still leads to it.
        #expect(try await relay.push(own, "own").reason == "DeviceTokenNotForTopic")
        try await phone.listen { lines in
          let line = try await lines.skip(to: #"{"type":"notification""#)
          #expect(line.contains(#""alert":"kept""#))
        }
        #expect(try await relay.push(token, "again").status == 200)
      }
      #expect(log.contains("a 200 means: on disk, synced"), "\(log)")
    }
  }

  /// The C library gives a connection up for good when its server refuses it twice.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aPasswordMayBeWrongForAWhile() async throws {
    let scratch = try Scratch()
    let first = try await NATSServer(in: scratch.path)
    func server(_ password: String) -> NATSServer {
      var server = first
      server.settings = "authorization { users: [{ user: relay, password: \(password) }] }"
      server.user = "relay:right@"
      return server
    }
    try await server("right").run { kill in
      let (_, log) = try await ClusterRelay.run(
        "a", state: scratch.path + "/a", on: server("right")
      ) { relay in
        let token = try await Phone(on: relay.relay).register()
        try kill()
        try await server("wrong").run { _ in
          // Both connections of the node, twice each.
          try await ClusterRelay.until {
            let closed = try await Program.run(
              "curl", ["-sS", first.monitor + "/connz?state=closed"])
            return try closed.checked("curl").split(separator: "Authentication Failure").count > 4
          }
        }
        try await server("right").run { _ in
          try await ClusterRelay.until { try await relay.push(token, "again").status == 200 }
        }
      }
      #expect(log.contains("the engine bars this node"), "\(log)")
    }
  }

  /// It can never write again, and who supervises it starts it anew.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aNodeThatWasForgottenEnds() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      let (_, logs) = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server) {
        relays in
        try relays[0].send(.suspend)
        try await ClusterRelay.until {
          try await Program.run(
            Program.pushrelay, ["cluster", "forget", "a", "--state", relays[1].relay.state]
          ).succeeded
        }
        try relays[0].send(.resume)
        #expect(try await relays[0].relay.endsSoon())
      }
      #expect(logs[0].contains("this node was forgotten while it was away"), "\(logs[0])")
    }
  }

  /// What a phone may have in its slot: the last push that was answered 200, or one behind it of
  /// which nobody was told.
  private typealias Kept = (accepted: String, later: Set<String>)

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func whatWasAnswered200OutlivesTheEngine() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let state = scratch.path + "/a"
    try await server.run { killServer in
      let (phones, kept) = try await ClusterRelay.run("a", state: state, on: server) { relay in
        var phones: [(phone: Phone, token: String)] = []
        for _ in 0...24 {
          let phone = try await Phone(on: relay.relay)
          phones.append((phone, try await phone.register()))
        }
        let (tokens, marker) = (phones.dropLast().map(\.token), phones[24].token)
        let kept = try await withThrowingTaskGroup(of: [String: Kept].self) { group in
          for lane in 0..<4 {
            let mine = tokens.indices.filter { $0 % 4 == lane }.map { tokens[$0] }
            group.addTask { try await push(rounds: 4, to: mine, on: relay) }
          }
          // It dies while they go on.
          for _ in 0..<8 { #expect(try await relay.push(marker, "before").status == 200) }
          try killServer()
          return try await server.run { _ in
            var kept: [String: Kept] = [:]
            for try await part in group { kept.merge(part) { $1 } }
            // It comes back by itself.
            while try await relay.push(marker, "after").status == 503 {}
            try relay.send(.kill)
            return kept
          }
        }
        return (phones, kept)
      }.value
      #expect(kept.count > phones.count / 2)
      try await server.run { _ in
        _ = try await ClusterRelay.run("a", state: state, on: server) { relay in
          for (phone, token) in phones {
            guard let kept = kept[token] else { continue }
            var phone = phone
            phone.relay = relay.relay
            let slot = try #require(try await phone.report().apps.first?.visible)
            #expect(slot.uniqueId == kept.accepted || kept.later.contains(slot.uniqueId))
          }
        }
      }
    }
  }

  private func push(
    rounds: Int, to tokens: [String], on relay: ClusterRelay
  ) async throws -> [String: Kept] {
    var kept: [String: Kept] = [:]
    for round in 0..<rounds {
      for token in tokens {
        let answer = try await relay.push(token, "round \(round)")
        guard let id = answer.fields["apns-unique-id"] else { continue }
        if answer.status == 200 {
          kept[token] = (id, [])
        } else {
          kept[token]?.later.insert(id)
        }
      }
    }
    return kept
  }

  @Test func anEngineThatIsNotThereIsSaid() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let outcome = try await Program.run(
      Program.pushrelay,
      [
        "serve", "--state", scratch.path + "/a", "--plaintext", "--auth", "none", "--store",
        "jetstream", "--nats", server.url.replacing("nats://", with: "nats://user:secret@"),
        "--node", "a", "--provider", "127.0.0.1:0", "--device", "127.0.0.1:0",
      ])
    #expect(!outcome.succeeded)
    #expect(outcome.errors.contains("no answer from 127.0.0.1:\(server.port)"), "\(outcome.errors)")
    #expect(!outcome.errors.contains("secret"))
  }
}
