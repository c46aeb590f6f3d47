import Foundation
import RelayCore
import RelayRecording
import Subprocess
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

  private static func isOnStripe(_ stripe: UInt16, _ token: String) -> Bool {
    DeviceToken(hexadecimal: token).map {
      PartitionID(routingKey: $0.routingKey, count: 256).number % 8 == stripe
    } ?? false
  }

  private static func isReady(_ relay: ClusterRelay) async throws -> Bool {
    try await Admin(relay.relay)("GET", "/health/ready").status == 200
  }

  private static func status(of relay: ClusterRelay) async throws -> Status {
    let answer = try await Admin(relay.relay)("GET", "/v1/cluster")
    return try JSONDecoder().decode(Status.self, from: Data(answer.body.utf8))
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aStripeThatCannotBeReadIsLeftAloneAndTheOthersGoOn() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let options = ["--admin", "127.0.0.1:0"]
    try await server.run { _ in
      let (_, logs) = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server, options)
      {
        relays in
        var tokens: [String] = []
        // Of 24 at random none is on a given stripe once in 25 runs.
        while tokens.count < 24 || !tokens.contains(where: { Self.isOnStripe(3, $0) }) {
          tokens.append(try await Phone(on: relays[0].relay).register())
        }
        let garbage = try await Self.tell(server, "pushrelay.stripe.3", "no relay has written this")
        let sequence = try JSONDecoder().decode(Stored.self, from: garbage).seq
        // Whoever has it learns so when it writes.
        try await ClusterRelay.until {
          for token in tokens { _ = try await relays[1].push(token, "found") }
          for relay in relays where try await !Self.isReady(relay) { return true }
          return false
        }
        // One that comes gets its share all the same, and nobody writes behind what is there.
        let state = scratch.path + "/c"
        _ = try await ClusterRelay.run("c", state: state, on: server, options) { third in
          try await ClusterRelay.until {
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
            try await ClusterRelay.until { try await third.push(token, "again").status == 200 }
          }
          for relay in relays + [third] {
            try await ClusterRelay.until { try await Self.isReady(relay) }
          }
        }
      }
      let complaints = logs.reduce(0) {
        $0 + $1.components(separatedBy: "a stripe cannot be read").count - 1
      }
      // Each node tries again, after ten seconds at last.
      #expect((1...100).contains(complaints), "\(logs)")
      #expect(logs.joined().contains("nats stream rmm pushrelay"))
    }
  }

  /// Flips a bit in the middle of what a server that does not run has of the stripes.
  private static func damage(_ server: NATSServer) throws {
    let file = URL(
      filePath: server.folder + "/nats/jetstream/$G/streams/pushrelay/msgs/1.blk")
    var bytes = try Data(contentsOf: file)
    bytes[bytes.count / 2] ^= 1
    try bytes.write(to: file)
  }

  /// A relay that is at work has all of it in memory.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func whatAnEngineHasLostIsWrittenAgain() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let options = ["--admin", "127.0.0.1:0"]
    try await server.run { kill in
      let (_, logs) = try await ClusterRelay.run(["a"], in: scratch.path, on: server, options) {
        relays in
        var phones: [(phone: Phone, token: String)] = []
        for _ in 0..<20 {
          let phone = try await Phone(on: relays[0].relay)
          phones.append((phone, try await phone.register()))
        }
        try kill()
        try Self.damage(server)
        let all = phones
        try await server.run { [phones = all] _ in
          // First it has to be sure that no more is there.
          for (_, token) in phones {
            try await ClusterRelay.until { try await relays[0].push(token, "again").status == 200 }
          }
          try await ClusterRelay.until { try await Self.isReady(relays[0]) }
          try relays[0].send(.kill)
          _ = try await ClusterRelay.run(["b"], in: scratch.path, on: server, options) { others in
            try await ClusterRelay.until { try await Self.isReady(others[0]) }
            for (phone, token) in phones {
              var moved = phone
              moved.relay = others[0].relay
              #expect(try await moved.report().apps.first?.visible != nil, "\(token)")
            }
          }
        }
      }
      #expect(logs.joined().contains("the engine had lost"), "\(logs)")
    }
  }

  /// A single server with one flipped bit starts without all that is behind it, and says nothing.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func whatAnEngineHasLostIsSaid() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let options = ["--admin", "127.0.0.1:0"]
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a"], in: scratch.path, on: server, options) { relays in
        for _ in 0..<20 { _ = try await Phone(on: relays[0].relay).register() }
        // Its last word is how far its stripes reach.
        try relays[0].send(.terminate)
        try await ClusterRelay.until { (try? await Self.isReady(relays[0])) == nil }
      }
    }
    try Self.damage(server)
    try await server.run { _ in
      let (_, logs) = try await ClusterRelay.run(["a"], in: scratch.path, on: server, options) {
        relays in
        try await ClusterRelay.until {
          try await Self.status(of: relays[0]).stripes.contains { $0.state == "unreadable" }
        }
        #expect(try await !Self.isReady(relays[0]))
        // As the log says, for who has no better files.
        _ = try await Self.tell(server, "$KV.pushrelay.reach.a", "")
        try await ClusterRelay.until { try await Self.isReady(relays[0]) }
        let states = try await Self.status(of: relays[0]).stripes.map(\.state)
        #expect(!states.contains("unreadable"), "\(states)")
      }
      #expect(logs.joined().contains("it has lost what it had stored: node a knows of"), "\(logs)")
      #expect(logs.joined().contains("'nats kv del pushrelay reach.a'"), "\(logs)")
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

  /// A node with options; what it says when it does not start.
  private static func refusal(
    _ node: String, in folder: String, on server: NATSServer, _ options: [String]
  ) async throws -> String {
    let outcome = try await Program.run(
      Program.pushrelay,
      [
        "serve", "--state", "\(folder)/\(node)", "--plaintext", "--auth", "none", "--store",
        "jetstream", "--nats", server.url, "--node", node, "--provider", "127.0.0.1:0",
        "--device", "127.0.0.1:0",
      ] + options)
    #expect(!outcome.succeeded)
    return outcome.errors
  }

  private static func configuration(_ json: String, in folder: String) throws -> [String] {
    let path = "\(folder)/\(UUID().uuidString).json"
    try json.write(toFile: path, atomically: true, encoding: .utf8)
    return ["--config", path]
  }

  /// Two nodes with different leases would take each other's stripes for ever.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func allNodesHaveOneLease() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let other = try Self.configuration(#"{"lease": 4}"#, in: scratch.path)
    try await server.run { _ in
      _ = try await ClusterRelay.run("a", state: scratch.path + "/a", on: server) { _ in
        let words = try await Self.refusal("b", in: scratch.path, on: server, other)
        #expect(words.contains("lease is 4000 ms here and 3000 ms on the nodes"), "\(words)")
      }
      // Nobody is at work any more, though the killed one's key is there.
      _ = try await ClusterRelay.run("b", state: scratch.path + "/b", on: server, other) { _ in
        let words = try await Self.refusal("a", in: scratch.path, on: server, [])
        #expect(words.contains("3000 ms here"), "\(words)")
      }
    }
  }

  /// The last one to start has nothing to say about what all have decided.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func thePolicyOfTheClusterStands() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    func policy(_ name: String) throws -> [String] {
      try Self.configuration(#"{"policy": "\#(name)"}"#, in: scratch.path)
        + ["--admin", "127.0.0.1:0"]
    }
    @Sendable func policy(of relay: ClusterRelay) async throws -> String? {
      try await Admin(relay.relay)("GET", "/v1/policy").json["policy"] as? String
    }
    let (first, second) = (try policy("strict"), try policy("unlimited"))
    try await server.run { _ in
      _ = try await ClusterRelay.run("a", state: scratch.path + "/a", on: server, first) { a in
        let (_, log) = try await ClusterRelay.run(
          "b", state: scratch.path + "/b", on: server, second
        ) { b in
          for relay in [a, b] {
            let name = try await policy(of: relay)
            #expect(name == "strict")
          }
          try b.send(.kill)
        }
        #expect(log.contains("the cluster's silent policy is in force"), "\(log)")
        _ = try await ClusterRelay.run("b", state: scratch.path + "/b", on: server, second) { b in
          for relay in [a, b] {
            let name = try await policy(of: relay)
            #expect(name == "strict")
          }
        }
      }
    }
  }

  /// A start that comes to nothing is none, and there is no last one.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func startsAreCountedWhenTheyCanCountForSomething() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    func runs() async throws -> Data {
      let answer = try await Self.tell(
        server, "$JS.API.STREAM.MSG.GET.KV_pushrelay", #"{"last_by_subj":"$KV.pushrelay.runs"}"#)
      struct Answer: Decodable {
        struct Message: Decodable { var data: Data }
        var message: Message
      }
      return try JSONDecoder().decode(Answer.self, from: answer).message.data
    }
    try await server.run { _ in
      let (phone, token) = try await ClusterRelay.run(
        "a", state: scratch.path + "/a", on: server
      ) { relay in
        let before = try await runs()
        for _ in 0..<2 {
          let words = try await Self.refusal(
            "b", in: scratch.path, on: server, ["--device", relay.relay.device])
          #expect(words.contains("the port is in use"), "\(words)")
        }
        #expect(try await runs() == before)
        let phone = try await Phone(on: relay.relay)
        let token = try await phone.register()
        #expect(try await relay.push(token, "kept").status == 200)
        return (phone, token)
      }.value
      // After 65,535 starts the numbers begin again: the first one's are on a stripe still.
      var writer = ByteWriter()
      writer.put(byte: 1)
      writer.put(UInt64(UInt16.max))
      let bytes = writer.bytes.map { String(Int($0) + 256, radix: 16).dropFirst() }.joined()
      _ = try await Self.tell(server, "$KV.pushrelay.runs", "hex:" + bytes)
      let (_, log) = try await ClusterRelay.run("b", state: scratch.path + "/b", on: server) {
        relay in
        var phone = phone
        phone.relay = relay.relay
        let slot = try await phone.report().apps.first?.visible
        let answer = try await relay.push(token, "newer")
        #expect(slot != nil && answer.status == 200, "\(answer)")
      }
      #expect(log.contains("number=2") || log.contains("number: 2"), "\(log)")
    }
  }

  /// What waits for phones may be more than there is room for; never so much that nothing goes on.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aStreamWithLittleRoomComesBack() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      _ = try await Self.tell(
        server, "$JS.API.STREAM.CREATE.pushrelay",
        """
        {"name":"pushrelay","subjects":["pushrelay.stripe.*"],"discard":"new","allow_direct":true,
        "max_bytes":4000000,
        "metadata":{"pushrelay.partitions":"256","pushrelay.stripes":"8","pushrelay.form":"4"}}
        """)
      let (_, log) = try await ClusterRelay.run("a", state: scratch.path + "/a", on: server) {
        relay in
        let phone = try await Phone(on: relay.relay)
        let topics = (0..<120).map { "com.example.app\($0)" }
        // One by one: in the clear, curl 7.88 does not use a connection again.
        var registered: [String] = []
        for topic in topics { registered.append(try await phone.register(topic)) }
        let tokens = registered
        // Equal payloads are stored once.
        @Sendable func text() -> Substring {
          (0..<400).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined()
            .prefix(3500)
        }
        @Sendable func push(_ index: Int) async throws -> Int {
          try await relay.relay.curl(
            relay.relay.providerURL + "/3/device/\(tokens[index])",
            [
              "-H", "apns-topic: \(topics[index])", "-H", "apns-push-type: alert",
              "--data-binary", #"{"aps":{"alert":"\#(text())"}}"#,
            ]
          ).status
        }
        var statuses: [Int: Int] = [:]
        for index in tokens.indices { statuses[try await push(index), default: 0] += 1 }
        #expect(statuses[503, default: 0] > 0 && statuses[200, default: 0] > 5, "\(statuses)")
        // The phone takes what is its own, and then there is room again.
        try await phone.talk(["--ack"]) { lines, _ in
          try await lines.expect("hello")
          for _ in 0..<statuses[200, default: 0] { _ = try await lines.next("a notification") }
        }
        try await ClusterRelay.until { try await push(0) == 200 }
      }
      #expect(log.contains("max_bytes") && log.contains("the journal writes again"), "\(log)")
    }
  }

  /// What waits for a budget is due when the node goes on; by then another one has it, and
  /// something newer.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aNodeThatStoodStillLooksBeforeItSends() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    // Each next one after four seconds.
    let options = try Self.configuration(
      #"{"policy": "custom", "appSilentsPerHour": 900, "appSilentBurst": 1}"#, in: scratch.path)
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server, options) { relays in
        // Some are on stripes of the node that stands still.
        for _ in 0..<4 {
          let phone = try await Phone(on: relays[0].relay, patiently: true)
          let token = try await phone.register()
          try await phone.talk(["--ack"]) { lines, _ in
            try await lines.expect("hello", "empty")
            try await ClusterRelay.until { try await relays[0].push(token, nil).status == 200 }
            _ = try await lines.next("the first")
            try await ClusterRelay.until { try await relays[0].push(token, nil).status == 200 }
            try relays[0].send(.suspend)
            let newest = try await Self.acceptedSilent(token, on: relays[1])
            try relays[0].send(.resume)
            // Its connection ends, or it brings what is newest.
            while let line = try await lines.nextOrEnd(), !line.contains("bye") {
              #expect(!line.contains("notification") || line.contains(newest), "\(line)")
              if line.contains(newest) { break }
            }
          }
        }
      }
    }
  }

  private static func acceptedSilent(
    _ token: String, on relay: ClusterRelay
  ) async throws -> String {
    while true {
      let answer = try await relay.push(token, nil)
      if answer.status == 200 { return try #require(answer.fields["apns-unique-id"]) }
    }
  }
}
