import Foundation
import Subprocess
import Testing

/// The admin API of a cluster: whichever node is asked, it answers for all.
@Suite("Admin API of a cluster", .timeLimit(.minutes(5))) struct ClusterAdminTests {
  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  /// Two nodes with eight phones between them, each with one app.
  private struct Scene: Sendable {
    var relays: [ClusterRelay]
    var nodes: [Admin]
    var phones: [Phone] = []
    var tokens: [String] = []

    init(_ relays: [ClusterRelay]) async throws {
      self.relays = relays
      nodes = try relays.map { try Admin($0.relay) }
      for index in 0..<8 {
        let phone = try await Phone(on: relays[index % 2].relay)
        tokens.append(try await phone.register())
        phones.append(phone)
      }
    }
  }

  private static func run(_ body: @Sendable @escaping (Scene) async throws -> Void) async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      _ = try await ClusterRelay.run(
        ["a", "b"], in: scratch.path, on: server, ["--admin", "127.0.0.1:0"]
      ) { try await body(try await Scene($0)) }
    }
  }

  private static func silent(to target: String) -> String {
    #"{"to":"\#(target)","headers":{"apns-push-type":"background","apns-priority":"5"},"#
      + #""payload":{"aps":{"content-available":1}}}"#
  }

  /// Asks both nodes, which must say the same.
  private static func same(_ path: String, _ scene: Scene) async throws -> [String: Any] {
    let (one, other) = (
      try await scene.nodes[0]("GET", path), try await scene.nodes[1]("GET", path)
    )
    #expect(one.status == 200 && one.body == other.body, "\(path): \(one) \(other)")
    return one.json
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aNameIsKnownOnEveryNode() async throws {
    try await Self.run { scene in
      let (a, b) = (scene.nodes[0], scene.nodes[1])
      let made = try await a("POST", "/v1/devices", #"{"name":"anna"}"#)
      #expect(made.json["name"] as? String == "anna", "\(made)")
      let id = made.json["device"] as? String ?? ""
      // Nodes look at what they share about once a second.
      while try await b("GET", "/v1/devices/anna").json["device"] as? String != id {
        try await Task.sleep(for: .milliseconds(50))
      }
      let found = try await b("GET", "/v1/devices?search=ann").json["devices"] as? [[String: Any]]
      #expect(found?.map { $0["name"] as? String } == ["anna"])
      #expect(try await b("DELETE", "/v1/devices/anna").status == 204)
      // 404 while the name is still known there, then 400: it is nobody's.
      while try await a("GET", "/v1/devices/anna").status == 200 {
        try await Task.sleep(for: .milliseconds(50))
      }
      // The name is free again on all nodes.
      let next = try await b("POST", "/v1/devices", #"{"name":"anna"}"#).json["device"] as? String
      while try await a("GET", "/v1/devices/anna").json["device"] as? String != next {
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aPhonesOwnPolicyOutlivesItsNode() async throws {
    try await Self.run { scene in
      let a = scene.nodes[0]
      func policy(of phone: Phone) async throws -> String? {
        let status = try await a("GET", "/v1/devices/\(phone.id)").json
        return (status["budget"] as? [String: Any])?["policy"] as? String
      }
      for phone in scene.phones.dropFirst() {
        let path = "/v1/devices/\(phone.id)/policy"
        #expect(try await a("PUT", path, #"{"policy":"strict"}"#).status == 200)
      }
      let back = "/v1/devices/\(scene.phones[1].id)/policy"
      #expect(try await scene.nodes[1]("DELETE", back).status == 200)
      try scene.relays[1].send(.kill)
      for (index, phone) in scene.phones.enumerated() {
        var found = try await policy(of: phone)
        // Its stripe is on the way from the node that is gone.
        while found == nil {
          try await Task.sleep(for: .milliseconds(50))
          found = try await policy(of: phone)
        }
        #expect(found == (index < 2 ? "documented" : "strict"), "\(index)")
      }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func theDoctorNamesASettingThatDiffers() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a"], in: scratch.path, on: server) { first in
        _ = try await ClusterRelay.run(
          ["b"], in: scratch.path, on: server, ["--keep-alive", "120"]
        ) { second in
          for relay in first + second {
            var text = ""
            // The nodes hear of each other within a lease.
            repeat {
              let outcome = try await Subprocess.run(
                Program.executable(Program.pushrelay),
                arguments: ["cluster", "doctor", "--state", relay.relay.state],
                output: .string(limit: 1 << 20), error: .discarded)
              #expect(outcome.terminationStatus == .exited(1))
              text = outcome.standardOutput
            } while !text.contains("keepAlive differs")
            #expect(text.contains("900.0 s on a") && text.contains("120.0 s on b"), "\(text)")
            #expect(text.contains("ok       each stripe has a recent snapshot"), "\(text)")
          }
        }
      }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aPhoneIsToldOnAnyNodeWhatToDo() async throws {
    try await Self.run { scene in
      let (relay, b) = (scene.relays[0].relay, scene.nodes[1])
      let arguments = [
        "device", "anna", "--plaintext", "--device", relay.device, "--state", relay.state,
      ]
      let outcome = try await Subprocess.run(
        Program.executable(Program.pushrelay), arguments: Arguments(arguments), input: .none,
        output: .string(limit: 1_000_000), error: .string(limit: 1_000_000)
      ) { execution in
        var told = try await b("POST", "/v1/devices/anna/do", #"{"do":"open"}"#)
        for _ in 0..<200 where told.status != 200 {
          try await Task.sleep(for: .milliseconds(50))
          told = try await b("POST", "/v1/devices/anna/do", #"{"do":"open"}"#)
        }
        #expect(told.status == 200 && told.body.contains("opened"), "\(told)")
        let refused = try await b("POST", "/v1/devices/anna/do", #"{"do":"fly"}"#)
        #expect(refused.status == 400 && refused.body.contains("BadOrder"), "\(refused)")
        let state = try await b("GET", "/v1/devices/anna/phone")
        #expect(state.status == 200 && state.body.contains(Phone.topic), "\(state)")
        await execution.teardown(using: [])
      }
      #expect(outcome.standardError == "", "\(outcome.standardOutput)")
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aNodeIsDrainedTakenBackAndForgotten() async throws {
    try await Self.run { scene in
      let a = scene.nodes[0]
      func node(_ name: String) async throws -> [String: Any]? {
        let nodes = try await a("GET", "/v1/cluster").json["nodes"] as? [[String: Any]]
        return nodes?.first { $0["name"] as? String == name }
      }
      func wait(for state: String, stripes isMeant: (Int) -> Bool) async throws {
        while true {
          let b = try await node("b")
          let count = (b?["stripes"] as? [Int])?.count ?? 0
          if b?["state"] as? String == state, isMeant(count) { return }
          try await Task.sleep(for: .milliseconds(50))
        }
      }
      #expect(
        try await a("DELETE", "/v1/cluster/nodes/b").json["reason"] as? String == "NodeAtWork")
      #expect(try await a("POST", "/v1/cluster/nodes/b/drain", "{}").status == 200)
      try await wait(for: "draining") { $0 == 0 }
      let undone = try await scene.relays[0].relay.command("cluster", "drain", "b", "--undo")
      #expect(undone.succeeded, "\(undone)")
      try await wait(for: "active") { $0 > 0 }
      try scene.relays[1].send(.kill)
      try await wait(for: "gone") { $0 == 0 }
      let late = try await scene.relays[0].relay.command("cluster", "drain", "b")
      #expect(!late.succeeded && late.errors.contains("NodeGone: b has given no sign"), "\(late)")
      #expect(try await a("DELETE", "/v1/cluster/nodes/b").status == 200)
      #expect(try await node("b") == nil)
      #expect(try await a("DELETE", "/v1/cluster/nodes/b").status == 404)
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aDeviceIsTheSameOnEveryNode() async throws {
    try await Self.run { scene in
      let (a, b) = (scene.nodes[0], scene.nodes[1])
      for phone in scene.phones {
        let path = "/v1/devices/\(phone.id)"
        #expect(try await Self.same(path, scene)["device"] as? String == phone.id)
        let json = "{\"policy\":\"strict\"}"
        #expect(try await a("PUT", path + "/policy", json).status == 200)
        let budget = try await Self.same(path, scene)["budget"] as? [String: Any]
        #expect(budget?["policy"] as? String == "strict")
        #expect(try await b("DELETE", path + "/policy").status == 200)
        let pushed = try await a("POST", "/v1/push", Self.silent(to: phone.id))
        #expect(pushed.json["status"] as? Int == 200, "\(pushed)")
        let life = try await Self.same(
          "/v1/notifications/\(pushed.json["uniqueId"] as? String ?? "")", scene)
        #expect(life["state"] as? String == "stored" && life["token"] as? String != "")
        #expect(try await b("DELETE", path + "/slots").status == 204)
        #expect(try await a("DELETE", path + "/budget").status == 204)
        let app = try #require(try await phone.report().apps.first)
        #expect(app.visible == nil)
        let events = try await Self.same(path + "/events", scene)["events"] as? [[String: Any]]
        let told = Set(events?.compactMap { $0["what"] as? String } ?? [])
        #expect(told.isSuperset(of: ["enrolled", "registered", "policy", "emptied"]), "\(told)")
      }
      try await Self.checkPhone(over: a, b, scene)
    }
  }

  /// A phone over HTTP/1.1 may use any node for anything.
  private static func checkPhone(over a: Admin, _ b: Admin, _ scene: Scene) async throws {
    for number in 0..<4 {
      let made = try await a("POST", "/v1/devices", "{}")
      let id = try #require(made.json["device"] as? String)
      let app = "/v1/devices/\(id)/apps/com.example.\(number)"
      #expect(try await b("PUT", app, "{}").status == 200)
      let apps = try await same("/v1/devices/\(id)", scene)["apps"] as? [[String: Any]]
      #expect(apps?.count == 1)
      #expect(try await a("DELETE", app).status == 204)
      #expect(try await b("DELETE", "/v1/devices/\(id)").status == 204)
      #expect(try await a("GET", "/v1/devices/\(id)").reason == "UnknownDevice")
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func listsAreThoseOfAllNodes() async throws {
    try await Self.run { scene in
      for (index, phone) in scene.phones.enumerated() {
        let node = scene.nodes[index / 2 % 2]
        #expect(try await node("POST", "/v1/push", Self.silent(to: phone.id)).status == 200)
        let refused = try await scene.relays[index / 2 % 2].push("beef", "refused")
        #expect(refused.reason == "BadDeviceToken")
      }
      for node in scene.nodes {
        #expect(try await Self.devices(of: node) == scene.phones.map(\.id).sorted())
        let lives = try await node("GET", "/v1/notifications?limit=100").json
        let found = lives["notifications"] as? [[String: Any]] ?? []
        #expect(Set(found.compactMap { $0["device"] as? String }) == Set(scene.phones.map(\.id)))
        let times = found.compactMap { ($0["steps"] as? [[String: Any]])?.first?["time"] as? Int }
        #expect(times == times.sorted(by: >) && times.count == 8)
        // A cursor is good on any node.
        let cursor = try #require(lives["cursor"] as? String)
        for other in scene.nodes {
          let later = try await other("GET", "/v1/notifications?since=\(cursor)")
          #expect(later.status == 200, "\(later)")
        }
        let refusals = try await node("GET", "/v1/refusals").json["refusals"] as? [Any]
        #expect(refusals?.count == 8)
        let overview = try await node("GET", "/v1/overview").json
        let counters = overview["counters"] as? [String: Any]
        #expect(overview["devices"] as? Int == 8 && counters?["received"] as? Int == 8)
        #expect(overview["addsUp"] as? Bool == true)
      }
      #expect(try await scene.nodes[1]("POST", "/v1/reset", #"{"all":true}"#).status == 204)
      for phone in scene.phones { #expect(try await phone.report().apps.first?.silent == nil) }
    }
  }

  /// All devices, page by page.
  private static func devices(of node: Admin) async throws -> [String] {
    var (found, cursor): ([String], String) = ([], "")
    repeat {
      let page = try await node("GET", "/v1/devices?limit=3&after=\(cursor)")
      #expect(page.status == 200, "\(page)")
      let devices = page.json["devices"] as? [[String: Any]] ?? []
      found += devices.compactMap { $0["device"] as? String }
      cursor = page.json["cursor"] as? String ?? ""
    } while !cursor.isEmpty
    return found.sorted()
  }

  /// What a node that does not answer would know is not passed over in silence.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aNodeThatDoesNotAnswerIsNamed() async throws {
    try await Self.run { scene in
      try scene.relays[1].send(.suspend)
      let overview = try await scene.nodes[0]("GET", "/v1/overview").json
      let nodes = overview["missingNodes"] as? [String] ?? []
      let stripes = overview["missingStripes"] as? [Int] ?? []
      // On a slow machine its lease has run out by then, and its stripes are on their way.
      let isWhole = overview["devices"] as? Int == 8
      #expect(nodes == ["b"] || !stripes.isEmpty || isWhole, "\(overview)")
      // Its phones have another node after a moment.
      for phone in scene.phones {
        var answer = try await scene.nodes[0]("GET", "/v1/devices/\(phone.id)")
        while answer.status == 503 {
          #expect(answer.reason == "NodeAway", "\(answer)")
          answer = try await scene.nodes[0]("GET", "/v1/devices/\(phone.id)")
        }
        #expect(answer.status == 200, "\(answer)")
      }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aWaitOnOneNodeIsMetByWhatHappensOnAnother() async throws {
    try await Self.run { scene in
      let waiter = scene.nodes[0]
      for phone in scene.phones {
        let waits = ["connected", "delivered"].map { what in
          Task {
            try await waiter(
              "POST", "/v1/wait",
              #"{"expect":{"what":"\#(what)","device":"\#(phone.id)"},"timeout":"30s"}"#)
          }
        }
        var other = phone
        other.relay = scene.relays[1].relay
        try await other.listen { lines in
          _ = try await lines.skip(to: #"{"type":"hello""#)
          #expect(try await waits[0].value.status == 200)
          let pushed = try await scene.nodes[1]("POST", "/v1/push", Self.silent(to: phone.id))
          #expect(pushed.json["status"] as? Int == 200, "\(pushed)")
          #expect(try await waits[1].value.status == 200)
        }
      }
      let never = try await waiter(
        "POST", "/v1/wait", #"{"expect":{"what":"expired","never":true},"timeout":"0s"}"#)
      #expect(never.status == 200, "\(never)")
      let unmet = try await waiter(
        "POST", "/v1/wait", #"{"expect":{"what":"expired"},"timeout":"0s"}"#)
      #expect(unmet.reason == "NotYet", "\(unmet)")
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func eventsAreThoseOfAllNodesAndSayWhere() async throws {
    try await Self.run { scene in
      let (node, phones) = (scene.nodes[0], scene.phones)
      let arguments = [
        "-sSN", "-H", "authorization: bearer \(node.token)", "-H", "accept: application/x-ndjson",
        "http://\(node.relay.admin)/v1/events",
      ]
      _ = try await Subprocess.run(
        .name("curl"), arguments: Arguments(arguments), input: .none, output: .sequence,
        error: .string(limit: 1_000_000)
      ) { execution in
        var lines = LineReader(execution.standardOutput)
        while let line = try await lines.nextOrEnd(), !line.contains(#""event":"stats""#) {}
        var seen: Set<String> = []
        var number = 0
        while seen.count < 2 {
          let pushed = try await scene.nodes[1](
            "POST", "/v1/push", Self.silent(to: phones[number % phones.count].id))
          number += 1
          #expect(pushed.json["status"] as? Int == 200, "\(pushed)")
          while let line = try await lines.nextOrEnd(), !line.contains(#""event":"stats""#) {
            guard line.contains(#""event":"life""#) else { continue }
            for name in ["a", "b"] where line.contains(#""node":"\#(name)""#) { seen.insert(name) }
          }
        }
        await execution.teardown(using: [])
      }
    }
  }

  /// Reads events at a node until one has a text; returns that and those before it.
  private static func events(
    _ node: Admin, since cursor: String, until text: String, _ act: () async throws -> Void = {}
  ) async throws -> [String] {
    let arguments = [
      "-sSN", "-H", "authorization: bearer \(node.token)", "-H", "accept: application/x-ndjson",
      "http://\(node.relay.admin)/v1/events" + (cursor.isEmpty ? "" : "?since=\(cursor)"),
    ]
    return try await Subprocess.run(
      .name("curl"), arguments: Arguments(arguments), input: .none, output: .sequence,
      error: .string(limit: 1_000_000)
    ) { execution in
      var lines = LineReader(execution.standardOutput)
      var seen: [String] = []
      while let line = try await lines.nextOrEnd() {
        if seen.isEmpty { try await act() }
        seen.append(line)
        if line.contains(text) { break }
      }
      await execution.teardown(using: [])
      return seen
    }.closureResult
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aCursorOfEventsOutlivesItsNode() async throws {
    try await Self.run { scene in
      let (a, b) = (scene.nodes[0], scene.nodes[1])
      func push(_ phone: Phone) async throws -> String {
        let pushed = try await b("POST", "/v1/push", Self.silent(to: phone.id))
        return try #require(pushed.json["uniqueId"] as? String, "\(pushed)")
      }
      // A phone that node b has: node a reads of its pushes there.
      let status = try await b("GET", "/v1/cluster").json["nodes"] as? [[String: Any]]
      #expect(status?.count == 2)
      var seen: [String] = []
      var mine: Phone?
      for phone in scene.phones where mine == nil {
        seen = try await Self.events(a, since: "", until: #""event":"life""#) {
          _ = try await push(phone)
        }
        if seen.last?.contains(#""node":"b""#) == true { mine = phone }
      }
      let phone = try #require(mine)
      let id = try #require(seen.last?.firstMatch(of: /"id":"([^"]+)"/)?.1)
      let missed = try await push(phone)
      try scene.relays[0].send(.kill)
      let rest = try await Self.events(b, since: String(id), until: missed)
      #expect(rest.first?.contains(#""event":"gap""#) == true, "\(rest)")
      #expect(rest.last?.contains(#""event":"life""#) == true, "\(rest)")
      let old = try await b("GET", "/v1/events?since=e0-7")
      #expect(old.status == 410 && old.reason == "CursorExpired", "\(old)")
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func metricsSayWhoseTheStripesAre() async throws {
    try await Self.run { scene in
      var own = 0
      for node in scene.nodes {
        let text = try await node("GET", "/metrics").body
        func value(_ name: String) -> Double? {
          let line = text.split(separator: "\n").first { $0.hasPrefix("pushrelay_\(name) ") }
          return line.flatMap { Double($0.split(separator: " ")[1]) }
        }
        let mine = try #require(value(#"cluster_stripes{state="own"}"#))
        own += Int(mine)
        #expect(value(#"cluster_stripes{state="elsewhere"}"#) == 8 - mine)
        #expect(value(#"cluster_stripes{state="unowned"}"#) == 0)
        #expect(value(#"cluster_partitions{state="own"}"#) == mine * 32)
        #expect(value(#"cluster_nodes{state="active"}"#) == 2)
        #expect(value("cluster_lease_left_seconds") ?? 0 > 0)
        #expect(value(#"hops_total{fate="sent"}"#) ?? 0 > 0)
        #expect(value("hop_bytes") != nil)
        #expect(
          text.split(separator: "\n").count { $0.hasPrefix("pushrelay_stripe_waiting_records{") }
            == Int(mine))
      }
      #expect(own == 8)
      let cluster = try await scene.nodes[0]("GET", "/v1/cluster").json
      for node in cluster["nodes"] as? [[String: Any]] ?? [] {
        #expect(node["leaseSeconds"] as? Double ?? 0 > 0 && node["waiting"] != nil, "\(node)")
      }
    }
  }
}
