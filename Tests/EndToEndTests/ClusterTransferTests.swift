import Foundation
import Subprocess
import Testing

/// From a relay on its own to a cluster, and back: `pushrelay cluster import` and `export`.
@Suite("Cluster transfer", .timeLimit(.minutes(5))) struct ClusterTransferTests {
  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  /// What was counted of a journal.
  private struct Report: Decodable, Equatable {
    var stripes: Int
    var devices: Int
    var apps: Int
    var ownTokens: Int
    var notifications: Int
    var unregisteredTokens: Int

    init(_ outcome: Outcome) throws {
      self = try JSONDecoder().decode(
        Report.self, from: Data(outcome.checked("pushrelay cluster").utf8))
    }
  }

  private static func cluster(
    _ verb: String, _ what: String, _ server: NATSServer, _ more: [String] = []
  ) async throws -> Outcome {
    try await Program.run(
      Program.pushrelay, ["cluster", verb, what, "--nats", server.url, "--json"] + more)
  }

  /// Runs a relay on its own, and ends it.
  private static func alone<Value: Sendable>(
    in state: String, _ body: (RelayProcess) async throws -> Value
  ) async throws -> Value {
    let arguments = [
      "serve", "--state", state, "--provider", "127.0.0.1:0", "--device", "127.0.0.1:0",
      "--plaintext", "--auth", "none", "--policy", "strict",
    ]
    return try await Background.run(Program.pushrelay, arguments, environment: [:]) {
      lines, process in
      let relay = try RelayProcess(
        ready: try await lines.skip(to: "ready"), state: state, plaintext: true,
        processID: process.id, terminate: { try process.send(.terminate) })
      let value = try await body(relay)
      try relay.terminate()
      #expect(try await relay.endsSoon())
      return value
    }.value
  }

  private static func nodes<Value: Sendable>(
    in folder: String, on server: NATSServer, _ body: ([RelayProcess]) async throws -> Value
  ) async throws -> Value {
    try await ClusterRelay.run("a", state: folder + "/a", on: server, ["--policy", "strict"]) {
      first in
      try await ClusterRelay.run("b", state: folder + "/b", on: server, ["--policy", "strict"]) {
        second in try await body([first.relay, second.relay])
      }.value
    }.value
  }

  // MARK: What is carried

  /// Phones and what each has, which has to be the same wherever they are.
  private struct Scene: Sendable {
    static let ownTopic = "com.example.own"
    static let own = String(repeating: "5c", count: 32)
    static let left = String(repeating: "6d", count: 32)

    var phones: [Phone] = []
    var tokens: [String] = []
    /// The last push for each, in its slot.
    var slots: [String] = []
    var gone: [String] = [left]
    /// Until when the first phone's next silent push has to wait.
    var heldUntil: Int64 = 0
    var ownSlot = ""

    /// Twelve phones, of which the first has one of everything.
    init(on relay: RelayProcess) async throws {
      for index in 0..<12 {
        phones.append(try await Phone(on: relay))
        tokens.append(try await phones[index].register())
      }
      let first = phones[0]
      try await first.listen { lines in
        _ = try await lines.skip(to: #"{"type":"empty""#)
        _ = try await Self.push(relay, tokens[0], #"{"aps":{"content-available":1}}"#, "background")
        #expect(try await lines.skip(to: #"{"type":"notification""#).contains("direct"))
      }
      while try await first.report().connected {}
      // One at a time: curl 7.88 does not send a second body on a connection.
      _ = try await first.register([Self.ownTopic], tokens: [Self.own])
      _ = try await first.register(["com.example.left"], tokens: [Self.left])
      try await first.unregister("com.example.left")
      gone.append(try await first.register("com.example.gone"))
      try await first.unregister("com.example.gone")
      for index in phones.indices { slots.append(try await Self.push(relay, tokens[index])) }
      ownSlot = try await Self.push(relay, Self.own, topic: Self.ownTopic)
      heldUntil =
        try #require(try await first.report().apps.first { $0.topic == Phone.topic })
        .budget.heldUntil ?? 0
      #expect(heldUntil > 0)
    }

    static func answer(
      _ relay: RelayProcess, _ token: String, _ payload: String = #"{"aps":{"alert":"x"}}"#,
      _ type: String = "alert", topic: String = Phone.topic
    ) async throws -> CurlAnswer {
      try await relay.curl(
        relay.providerURL + "/3/device/\(token)",
        [
          "-H", "apns-topic: \(topic)", "-H", "apns-push-type: \(type)", "-H", "apns-priority: 5",
          "--data-binary", payload,
        ])
    }

    /// Pushes something that is stored; its unique id.
    static func push(
      _ relay: RelayProcess, _ token: String, _ payload: String = #"{"aps":{"alert":"x"}}"#,
      _ type: String = "alert", topic: String = Phone.topic
    ) async throws -> String {
      let answer = try await answer(relay, token, payload, type, topic: topic)
      try #require(answer.status == 200, "\(answer)")
      return try #require(answer.fields["apns-unique-id"])
    }

    /// Looks for all of it, at one relay or at several in turn.
    func check(_ relays: [RelayProcess]) async throws {
      for (index, phone) in phones.enumerated() {
        let apps = try await phone.on(relays[index % relays.count]).report().apps
        let app = try #require(apps.first { $0.topic == Phone.topic })
        #expect(app.visible?.uniqueId == slots[index])
        #expect(app.budget.allowed == (index != 0))
        guard index == 0 else { continue }
        #expect(app.budget.heldUntil == heldUntil)
        #expect(app.silent == nil)
        #expect(apps.first { $0.topic == Self.ownTopic }?.visible?.uniqueId == ownSlot)
        #expect(apps.count == 2)
      }
      for relay in relays {
        for token in gone {
          let answer = try await relay.curl(
            relay.providerURL + "/3/device/\(token)",
            ["-H", "apns-topic: \(Phone.topic)", "--data-binary", #"{"aps":{"alert":"x"}}"#])
          #expect(answer.status == 410, "\(token) \(answer)")
        }
        var listing = try await relay.curl(relay.providerURL + "/v1/feedback")
        // While stripes are on their way nobody can say.
        while listing.status == 503 {
          listing = try await relay.curl(relay.providerURL + "/v1/feedback")
        }
        for token in gone { #expect(listing.body.contains(token), "\(listing)") }
        #expect(!listing.body.contains(Self.own))
      }
    }

    /// Something of each kind happens, by way of one relay or several.
    mutating func goOn(_ relays: [RelayProcess]) async throws {
      guard let last = relays.last else { return }
      for index in 0..<6 {
        slots[index] = try await Self.push(relays[index % relays.count], tokens[index])
      }
      ownSlot = try await Self.push(last, Self.own, topic: Self.ownTopic)
      let phone = try await Phone(on: last)
      tokens.append(try await phone.register())
      slots.append(try await Self.push(relays[0], tokens[tokens.count - 1]))
      phones.append(phone)
      let other = phones[3].on(last)
      gone.append(try await other.register("com.example.gone"))
      try await other.unregister("com.example.gone")
    }
  }

  // MARK: Tests

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aRelayBecomesAClusterAndThatARelayAgain() async throws {
    let scratch = try Scratch()
    let (journal, copy) = (scratch.path + "/one/relay.sqlite", scratch.path + "/two/relay.sqlite")
    let keep = ["--keep", scratch.path + "/kept.sqlite"]
    try FileManager.default.createDirectory(
      atPath: scratch.path + "/two", withIntermediateDirectories: true)
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      var scene = try await Self.alone(in: scratch.path + "/one") { relay in
        let running = try await Self.cluster("import", journal, server)
        #expect(!running.succeeded && running.errors.contains("stop it"), "\(running.errors)")
        return try await Scene(on: relay)
      }
      let nobody = try await Self.cluster("export", copy, server)
      #expect(!nobody.succeeded && nobody.errors.contains("no relay keeps a journal"), "\(nobody)")
      let brought = try Report(try await Self.cluster("import", journal, server))
      #expect(brought.devices == 12 && brought.apps == 13 && brought.ownTokens == 1)
      #expect(brought.notifications == 13 && brought.unregisteredTokens == 2)
      scene = try await Self.nodes(in: scratch.path, on: server) { [scene] relays in
        var scene = scene
        try await scene.check(relays)
        try await scene.goOn(relays)
        try await scene.check(relays)
        let pushing = Task { [token = scene.tokens[11]] in
          while !Task.isCancelled {
            let answer = try await Scene.answer(relays[0], token)
            // The last one is cut off.
            #expect(answer.status == 200 || Task.isCancelled, "\(answer)")
          }
        }
        let copied = try Report(try await Self.cluster("export", copy, server))
        pushing.cancel()
        try? await pushing.value
        #expect(copied.devices == 13 && copied.apps == 14 && copied.ownTokens == 1)
        #expect(copied.unregisteredTokens == 3 && copied.stripes == brought.stripes)
        let early = try await Self.cluster("restripe", "24", server, keep)
        #expect(!early.succeeded && early.errors.contains("is at work"), "\(early)")
        let phone = scene.phones[11].on(relays[0])
        scene.slots[11] = try #require(try await phone.report().apps[0].visible).uniqueId
        return scene
      }
      let check = try await Program.run(
        Program.pushrelay, ["store", "check", "--file", copy, "--json"])
      #expect(try check.checked("store check").contains(#""problems":[]"#))
      let occupied = try await Self.cluster("import", journal, server)
      #expect(occupied.errors.contains("has a cluster's journal already"), "\(occupied)")
      let exists = try await Self.cluster("export", copy, server)
      #expect(!exists.succeeded && exists.errors.contains("exists already"), "\(exists)")
      let clustered = scene
      try await Self.alone(in: scratch.path + "/two") { relay in
        // Which of the last pushes the copy has is anybody's guess.
        let phone = scene.phones[11].on(relay)
        scene.slots[11] = try #require(try await phone.report().apps[0].visible).uniqueId
        try await scene.check([relay])
        try await scene.goOn([relay])
        try await scene.check([relay])
      }
      let restriped = try Report(try await Self.cluster("restripe", "24", server, keep))
      #expect(restriped.stripes == 24 && restriped.devices == 13 && restriped.apps == 14)
      try await Self.nodes(in: scratch.path, on: server) { relays in
        var scene = clustered
        try await scene.check(relays)
        try await scene.goOn(relays)
        try await scene.check(relays)
      }
    }
  }

  /// It would take the next journal for its own with messages missing, write on stripes that nobody
  /// reads, and answer 200.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aNodeThatStoodStillDuringARestripeEnds() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      let (_, log) = try await ClusterRelay.run("a", state: scratch.path + "/a", on: server) {
        relay in
        let token = try await Phone(on: relay.relay).register()
        #expect(try await relay.push(token, "x").status == 200)
        try relay.send(.suspend)
        let keep = ["--keep", scratch.path + "/kept.sqlite"]
        let report = try Report(try await Self.cluster("restripe", "3", server, keep))
        #expect(report.stripes == 3 && report.notifications == 1)
        try relay.send(.resume)
        #expect(try await relay.relay.endsSoon())
      }
      #expect(log.contains("journal was made anew while this node was away"), "\(log)")
      _ = try await ClusterRelay.run("a", state: scratch.path + "/a", on: server) { relay in
        let token = try await Phone(on: relay.relay).register()
        #expect(try await relay.push(token, "x").status == 200)
      }
    }
  }

  /// A bucket that was deleted under running nodes: once a node that starts has made it again they
  /// end, instead of a cluster each, with the same numbers.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aBucketMadeAnewEndsThoseOfTheOld() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      let (_, log) = try await ClusterRelay.run("a", state: scratch.path + "/a", on: server) {
        first in
        let token = try await Phone(on: first.relay).register()
        #expect(try await first.push(token, "x").status == 200)
        let deletion = ["\(server.port)", "$JS.API.STREAM.DELETE.KV_pushrelay", ""]
        _ = try await Program.run("python3", [Program.client("nats.py")] + deletion)
          .checked("nats.py")
        _ = try await ClusterRelay.run("b", state: scratch.path + "/b", on: server) { second in
          #expect(try await first.relay.endsSoon())
          while try await second.push(token, "x").status != 200 {}
        }
      }
      #expect(log.contains("journal was made anew while this node was away"), "\(log)")
    }
  }

  /// A refused import makes no stream, whose replicas and stripes would be anybody's.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aRefusedImportMakesNothing() async throws {
    let scratch = try Scratch()
    let journal = scratch.path + "/one/relay.sqlite"
    try await Self.alone(in: scratch.path + "/one") { _ in }
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      // A long lease: its first key is there at once all the same.
      let long = ["PUSHRELAY_LEASE": "30"]
      _ = try await ClusterRelay.run(
        "a", state: scratch.path + "/a", on: server, environment: long
      ) { _ in
        let deletion = ["\(server.port)", "$JS.API.STREAM.DELETE.pushrelay", ""]
        _ = try await Program.run("python3", [Program.client("nats.py")] + deletion)
          .checked("nats.py")
        let refused = try await Self.cluster("import", journal, server)
        #expect(!refused.succeeded && refused.errors.contains("node a is at work"), "\(refused)")
        let export = try await Self.cluster("export", scratch.path + "/x.sqlite", server)
        #expect(export.errors.contains("no relay keeps a journal"), "\(export)")
      }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aHalfImportIsServedByNobodyAndBegunAgain() async throws {
    let scratch = try Scratch()
    let (state, copy) = (scratch.path + "/many", scratch.path + "/copy.sqlite")
    let fill = ["store", "fill", "--state", state, "--devices", "20000", "--notifications", "1"]
    _ = try await Program.run(Program.pushrelay, fill).checked("store fill")
    let journal = state + "/relay.sqlite"
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      let missing = try await Self.cluster("import", journal + ".none", server)
      #expect(!missing.succeeded && missing.errors.contains("there is no journal"), "\(missing)")
      let fresh = try await Self.cluster("import", journal, server)
      #expect(!fresh.succeeded && fresh.errors.contains("start one on it"), "\(fresh)")
      try await Self.alone(in: state) { _ in }
      // It is killed as soon as the engine has something of it.
      _ = try await Background.run(
        Program.pushrelay, ["cluster", "import", journal, "--nats", server.url], environment: [:]
      ) { _, _ in while try await Self.messages(on: server) == 0 {} }
      let half = try await Self.messages(on: server)
      let node = try await Program.run(
        Program.pushrelay,
        [
          "serve", "--state", scratch.path + "/a", "--plaintext", "--auth", "none", "--store",
          "jetstream", "--nats", server.url, "--node", "a", "--provider", "127.0.0.1:0",
          "--device", "127.0.0.1:0",
        ])
      #expect(!node.succeeded && node.errors.contains("an import is at work"), "\(node)")
      let exported = try await Self.cluster("export", copy, server)
      #expect(exported.errors.contains("an import is at work"), "\(exported)")
      #expect(!FileManager.default.fileExists(atPath: copy))
      let brought = try Report(try await Self.cluster("import", journal, server))
      #expect(brought.devices == 20_000 && brought.notifications == 20_000)
      #expect(try await Self.messages(on: server) > half)
      #expect(try Report(try await Self.cluster("export", copy, server)) == brought)
      _ = try await ClusterRelay.run("a", state: scratch.path + "/a", on: server) { relay in
        let phone = try await Phone(on: relay.relay)
        #expect(try await relay.push(try await phone.register(), "x").status == 200)
      }
    }
  }

  /// How many messages the stream of stripes has.
  private static func messages(on server: NATSServer) async throws -> Int {
    struct Answer: Decodable {
      struct Account: Decodable { var stream_detail: [Stream]? }
      struct Stream: Decodable {
        struct State: Decodable { var messages: Int }
        var name: String
        var state: State
      }
      var account_details: [Account]?
    }
    let answer = try await Program.run("curl", ["-sS", server.monitor + "/jsz?streams=true"])
    let decoded = try JSONDecoder().decode(Answer.self, from: Data(answer.output.utf8))
    let streams = (decoded.account_details ?? []).flatMap { $0.stream_detail ?? [] }
    return streams.first { $0.name == "pushrelay" }?.state.messages ?? 0
  }
}

extension Phone {
  /// The same phone elsewhere.
  func on(_ relay: RelayProcess) -> Phone {
    var phone = self
    phone.relay = relay
    return phone
  }
}
