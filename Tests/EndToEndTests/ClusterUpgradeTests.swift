import Foundation
import Subprocess
import Synchronization
import Testing

/// Nodes of two versions in one cluster. The next version is this build, told to be a form ahead.
@Suite("Upgrade of a cluster", .timeLimit(.minutes(3))) struct ClusterUpgradeTests {
  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  private static func ahead(_ lead: Int) -> [String: String] { ["RELAY_TEST_FORM_LEAD": "\(lead)"] }

  /// Pushes, for as long as a test takes, by way of a node that stays.
  private final class Load: Sendable {
    private struct State {
      var relay: ClusterRelay
      var isOver = false
      var isDone = false
      var last: [String: String] = [:]
      var count = 0
    }

    private let state: Mutex<State>

    init(by relay: ClusterRelay) { state = Mutex(State(relay: relay)) }

    func go(by relay: ClusterRelay) { state.withLock { $0.relay = relay } }

    func end() { state.withLock { $0.isOver = true } }

    var count: Int { state.withLock(\.count) }

    /// What a phone was sent last.
    func last(_ token: String) -> String? { state.withLock { $0.last[token] } }

    /// Nothing is sent any more.
    var isDone: Bool { state.withLock(\.isDone) }

    func run(_ tokens: [String]) async throws {
      defer { state.withLock { $0.isDone = true } }
      while !state.withLock(\.isOver) {
        for token in tokens {
          let answer = try await state.withLock(\.relay).push(token, "load")
          #expect(answer.status == 200, "\(answer)")
          state.withLock { state in
            state.last[token] = answer.fields["apns-unique-id"]
            state.count += 1
          }
        }
      }
    }
  }

  private static func status(in state: String) async throws -> String {
    try await Program.run(Program.pushrelay, ["cluster", "status", "--state", state])
      .checked("cluster status")
  }

  /// Ends the nodes one after the other and has the next version go on with their state.
  private static func upgrade(
    _ old: [(name: String, relay: ClusterRelay)], in folder: String, on server: NATSServer,
    _ load: Load, new: [ClusterRelay] = [],
    _ body: @Sendable ([ClusterRelay]) async throws -> Void
  ) async throws {
    guard let (name, relay) = old.first else { return try await body(new) }
    load.go(by: new.last ?? old[1].relay)
    try relay.relay.terminate()
    #expect(try await relay.relay.endsSoon())
    _ = try await ClusterRelay.run(
      name, state: "\(folder)/\(name)", on: server, environment: ahead(1)
    ) { next in
      let words = try await status(in: "\(folder)/\(name)")
      let left = old.dropFirst().map(\.name).joined(separator: ", ")
      if !left.isEmpty {
        #expect(words.contains("form 5 is written: form 6 has to wait for \(left)"), "\(words)")
      }
      try await upgrade(
        Array(old.dropFirst()), in: folder, on: server, load, new: new + [next], body)
    }
  }

  /// What a node says that does not start.
  private static func refusal(_ lead: Int, in folder: String, on server: NATSServer) async throws
    -> String
  {
    let outcome = try await Program.run(
      Program.pushrelay,
      [
        "serve", "--state", "\(folder)/other", "--plaintext", "--auth", "none", "--store",
        "jetstream", "--nats", server.url, "--node", "other", "--provider", "127.0.0.1:0",
        "--device", "127.0.0.1:0",
      ], environment: ahead(lead))
    #expect(!outcome.succeeded)
    return outcome.errors
  }

  /// The last message of a key in the bucket, or that there is none.
  private static func last(_ key: String, of server: NATSServer) async throws -> String {
    try await Program.run(
      "python3",
      [
        Program.client("nats.py"), "\(server.port)", "$JS.API.STREAM.MSG.GET.KV_pushrelay",
        #"{"last_by_subj":"$KV.pushrelay.\#(key)"}"#,
      ]
    ).checked("nats.py")
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func nodeAfterNodeIsOfTheNextVersion() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let folder = scratch.path
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a", "b", "c"], in: folder, on: server) { relays in
        var phones: [String: Phone] = [:]
        for index in 0..<9 {
          let phone = try await Phone(on: relays[index % 3].relay)
          phones[try await phone.register()] = phone
        }
        let (tokens, all) = (phones.keys.sorted(), phones)
        let load = Load(by: relays[0])
        async let sent: Void = load.run(tokens)
        let old = zip(["a", "b", "c"], relays).map { (name: $0, relay: $1) }
        try await Self.upgrade(old, in: folder, on: server, load) { new in
          try await ClusterRelay.until {
            try await Self.status(in: folder + "/a").contains("form 6 is written")
          }
          let count = load.count
          try await ClusterRelay.until { load.count > count + 20 }
          try await Self.checkStrangers(in: folder, on: server)
          // One of the version behind that reads what is there, and takes its share.
          _ = try await ClusterRelay.run(
            "d", state: folder + "/d", on: server, environment: Self.ahead(2)
          ) { further in
            load.go(by: further)
            try await ClusterRelay.until {
              let status = try await Self.status(in: folder + "/d")
              return status.contains("form 6 is written: form 7 has to wait for a, b, c")
                && !status.contains("stripes none")
            }
            let count = load.count
            try await ClusterRelay.until { load.count > count + 20 }
            load.end()
            try await ClusterRelay.until { load.isDone }
            for (token, registered) in all {
              var phone = registered
              phone.relay = new[1].relay
              let slot = try #require(try await phone.report().apps.first?.visible)
              #expect(slot.uniqueId == load.last(token))
            }
          }
        }
        try await sent
      }
    }
  }

  /// A node of the version before that was away for so long that it was taken off the list.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aNodeThatMissesTheUpgradeEnds() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let folder = scratch.path
    try await server.run { _ in
      let (_, log) = try await ClusterRelay.run("a", state: folder + "/a", on: server) { old in
        _ = try await ClusterRelay.run(
          "b", state: folder + "/b", on: server, environment: Self.ahead(1)
        ) { new in
          var tokens: [String] = []
          for _ in 0..<6 { tokens.append(try await Phone(on: old.relay).register()) }
          try old.send(.suspend)
          try await ClusterRelay.until {
            try await Program.run(
              Program.pushrelay, ["cluster", "forget", "a", "--state", folder + "/b"]
            ).succeeded
          }
          try await ClusterRelay.until {
            try await Self.status(in: folder + "/b").contains("form 6 is written")
          }
          try old.send(.resume)
          #expect(try await old.relay.endsSoon())
          for token in tokens { #expect(try await new.push(token, "after").status == 200) }
        }
      }
      // Whichever it hears first.
      let reasons = ["the cluster has form 6", "this node was forgotten while it was away"]
      #expect(reasons.contains { log.contains($0) }, "\(log)")
    }
  }

  /// A version that does not read what is there says so and writes nothing.
  private static func checkStrangers(in folder: String, on server: NATSServer) async throws {
    let runs = try await last("runs", of: server)
    for (lead, forms) in [(0, "forms 5 to 5"), (3, "forms 7 to 8")] {
      let words = try await refusal(lead, in: folder, on: server)
      #expect(words.contains("the cluster has form 6"), "\(words)")
      #expect(words.contains(forms) && words.contains("nothing was written"), "\(words)")
    }
    #expect(try await last("runs", of: server) == runs)
    #expect(try await last("lease.other", of: server).contains("no message found"))
  }
}
