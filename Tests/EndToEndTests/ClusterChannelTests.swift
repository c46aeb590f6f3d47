import Foundation
import Subprocess
import Testing

/// Broadcast channels of a cluster: whichever node is asked.
@Suite("Channels of a cluster", .timeLimit(.minutes(5))) struct ClusterChannelTests {
  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  private struct Broadcast: Decodable, Equatable {
    var number: UInt64
    var uniqueId: String
  }

  private static func manage(
    _ relay: RelayProcess, _ method: String, _ channel: String? = nil, body: String? = nil
  ) async throws -> CurlAnswer {
    let path = method == "LIST" ? "all-channels" : "channels"
    return try await relay.curl(
      "\(relay.channelsURL)/1/apps/\(Phone.topic)/\(path)",
      ["-X", method == "LIST" ? "GET" : method]
        + (channel.map { ["-H", "apns-channel-id: \($0)"] } ?? [])
        + (body.map { ["--data-binary", $0] } ?? []))
  }

  /// A new channel with storage.
  private static func create(on relay: RelayProcess) async throws -> String {
    let body = #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#
    let made = try await manage(relay, "POST", body: body)
    return try #require(made.fields["apns-channel-id"], "\(made)")
  }

  private static func broadcast(
    _ relay: RelayProcess, on channel: String, stored: Bool
  ) async throws -> CurlAnswer {
    let end = stored ? Int(Date().timeIntervalSince1970) + 600 : 0
    return try await relay.curl(
      "\(relay.providerURL)/4/broadcasts/apps/\(Phone.topic)",
      [
        "-X", "POST", "-H", "apns-channel-id: \(channel)", "-H", "apns-push-type: liveactivity",
        "-H", "apns-expiration: \(end)", "--data-binary", #"{"aps":{"event":"update"}}"#,
      ])
  }

  /// Four stored ones by each relay, all at the same place in the bucket.
  private static func broadcastAtOnce(
    _ relays: [RelayProcess], on channel: String
  ) async throws {
    try await withThrowingTaskGroup(of: CurlAnswer.self) { group in
      for relay in relays + relays + relays + relays {
        group.addTask { try await broadcast(relay, on: channel, stored: true) }
      }
      for try await answer in group { #expect(answer.status == 200, "\(answer)") }
    }
  }

  private static func subscriber(
    on relay: RelayProcess, to channel: String
  ) async throws -> Phone {
    let phone = try await Phone(on: relay)
    _ = try await phone.register()
    let path = channel.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    let answer = try await relay.curl(
      "\(phone.url)/apps/\(Phone.topic)/channels/\(path)",
      ["-X", "PUT", "-H", "authorization: bearer \(phone.secret)"])
    try #require(answer.status == 204, "\(answer)")
    return phone
  }

  private static func next(_ lines: inout LineReader) async throws -> Broadcast {
    let line = try await lines.skip(to: #"{"type":"broadcast""#)
    return try JSONDecoder().decode(Broadcast.self, from: Data(line.utf8))
  }

  /// Waits until a node says that two have all stripes.
  private static func twoHaveAll(_ admin: Admin) async throws {
    while true {
      let nodes = try await admin("GET", "/v1/cluster").json["nodes"] as? [[String: Any]] ?? []
      let counts = nodes.filter { $0["state"] as? String != "gone" }
        .map { ($0["stripes"] as? [Int])?.count ?? 0 }
      if counts.count == 2, counts.reduce(0, +) == 8 { return }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aChannelIsTheSameOnEveryNode() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let options = ["--channels", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--threads", "2"]
    try await server.run { _ in
      let (channel, last, phones) = try await ClusterRelay.run(
        ["a", "b", "c"], in: scratch.path, on: server, options
      ) { nodes in
        let (a, b, c) = (nodes[0].relay, nodes[1].relay, nodes[2].relay)
        let channel = try await Self.create(on: a)
        for relay in [a, b, c] {
          #expect(try await Self.manage(relay, "LIST").body == #"{"channels":["\#(channel)"]}"#)
        }
        // Devices of all stripes, one at a node with its stream at another.
        var phones: [Phone] = []
        for index in 0..<6 {
          phones.append(try await Self.subscriber(on: nodes[index % 3].relay, to: channel))
        }
        let stored = try await phones[0].on(b).listen { lines in
          _ = try await lines.skip(to: #"{"type":"empty""#)
          let passing = try await Self.broadcast(c, on: channel, stored: false)
          #expect(passing.status == 200, "\(passing)")
          let first = try await Self.next(&lines)
          #expect(first.uniqueId == passing.fields["apns-unique-id"])
          try await Self.broadcastAtOnce([a, b, c], on: channel)
          let answer = try await Self.broadcast(a, on: channel, stored: true)
          #expect(answer.status == 200, "\(answer)")
          var last = first
          while last.uniqueId != answer.fields["apns-unique-id"] {
            let next = try await Self.next(&lines)
            #expect(next.number > last.number)
            last = next
          }
          return last
        }
        let counted = try await Admin(c)("GET", "/v1/channels").json["channels"] as? [[String: Any]]
        #expect(counted?.first?["subscribers"] as? Int == 6, "\(counted ?? [])")
        #expect(counted?.first?["published"] as? Int == 14, "\(counted ?? [])")
        #expect((2...14).contains(counted?.first?["delivered"] as? Int ?? 0), "\(counted ?? [])")

        try nodes[0].send(.kill)
        try await Self.twoHaveAll(try Admin(b))
        phones.append(try await Self.subscriber(on: c, to: channel))
        // The first has had it: whether it gets it again depends on where its stripe is.
        for (index, phone) in phones.dropFirst().enumerated() {
          let got = try await phone.on(nodes[1 + index % 2].relay).listen {
            try await Self.next(&$0)
          }
          #expect(got == stored, "\(index)")
        }
        return (channel, stored, phones)
      }.value
      // After all have ended.
      let (_, logs) = try await ClusterRelay.run(["b", "c"], in: scratch.path, on: server, options)
      {
        nodes in
        let (b, c) = (nodes[0].relay, nodes[1].relay)
        let got = try await phones[1].on(c).listen { try await Self.next(&$0) }
        #expect(got == last)
        #expect(try await Self.manage(b, "DELETE", channel).status == 204)
        for stored in [false, true] {
          let gone = try await Self.broadcast(c, on: channel, stored: stored)
          #expect(gone.status == 400 && gone.reason == "ChannelNotRegistered", "\(gone)")
        }
        #expect(try await Self.manage(c, "LIST").body == #"{"channels":[]}"#)
        #expect(try await Self.manage(c, "GET", channel).reason == "ChannelNotRegistered")
      }
      for log in logs { #expect(!log.contains("error"), "\(log)") }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func channelsGoIntoAClusterAndOutOfIt() async throws {
    let scratch = try Scratch()
    let (one, two) = (scratch.path + "/one", scratch.path + "/two")
    let server = try await NATSServer(in: scratch.path)
    func cluster(_ verb: String, _ state: String) async throws {
      let report = try await Program.run(
        Program.pushrelay,
        ["cluster", verb, state + "/relay.sqlite", "--nats", server.url, "--json"]
      ).checked("cluster \(verb)")
      #expect(report.contains(#""channels":2"#), "\(report)")
    }
    try FileManager.default.createDirectory(atPath: two, withIntermediateDirectories: true)
    var setup = RelaySetup(arguments: ["--channels", "127.0.0.1:0", "--state", one])
    (setup.plaintext, setup.keys) = (true, [])
    setup.arguments += ["--auth", "none"]
    try await server.run { [setup] _ in
      let (channel, phone, id) = try await RelayProcess.run(setup) { relay in
        _ = try await Self.create(on: relay)
        let channel = try await Self.create(on: relay)
        let answer = try await Self.broadcast(relay, on: channel, stored: true)
        let id = try #require(answer.fields["apns-unique-id"], "\(answer)")
        return (channel, try await Self.subscriber(on: relay, to: channel), id)
      }
      try await cluster("import", one)
      _ = try await ClusterRelay.run("a", state: scratch.path + "/a", on: server) { node in
        let got = try await phone.on(node.relay).listen { try await Self.next(&$0) }
        #expect(got.uniqueId == id)
        #expect(try await Self.broadcast(node.relay, on: channel, stored: false).status == 200)
      }
      try await cluster("export", two)
      var back = setup
      back.arguments += ["--state", two]
      try await RelayProcess.run(back) { relay in
        let got = try await phone.on(relay).listen { try await Self.next(&$0) }
        #expect(got.uniqueId == id)
      }
    }
  }
}
