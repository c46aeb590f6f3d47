import Foundation
import Testing

/// Phones of ours come to one node of a cluster and are led to those that have their stripes.
@Suite("Led phones", .timeLimit(.minutes(5))) struct ClusterLeadTests {
  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  /// A phone, and the node that has it.
  private struct Placed: Sendable {
    var phone: Phone
    var token: String
    var owner: ClusterRelay
  }

  private struct Hello: Decodable {
    var type: String
    var owner: String?
  }

  /// Phones that have enrolled at the first node, and where it would lead them.
  private static func phones(_ count: Int, on relays: [ClusterRelay]) async throws -> [Placed] {
    var placed: [Placed] = []
    for _ in 0..<count {
      let phone = try await Phone(on: relays[0].relay)
      let token = try await phone.register()
      let owner = try await phone.listen { lines in
        let line = try await lines.next("hello")
        return try JSONDecoder().decode(Hello.self, from: Data(line.utf8)).owner
      }
      let relay = owner == nil ? relays[0] : relays.first { $0.relay.device == owner }
      placed.append(Placed(phone: phone, token: token, owner: try #require(relay)))
    }
    return placed
  }

  /// As the last run of a fleet with these phones would have left it.
  private static func writeFleet(_ phones: [Placed], to state: String) throws {
    let members = phones.map {
      ["device": $0.phone.id, "secret": $0.phone.secret, "token": $0.token]
    }
    let fleet: [String: Any] = ["topic": Phone.topic, "members": members]
    try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
    try JSONSerialization.data(withJSONObject: fleet)
      .write(to: URL(filePath: state + "/fleet.json"))
  }

  /// Messages to loops of other nodes so far, of all nodes.
  private static func hops(_ relays: [ClusterRelay]) async throws -> Int {
    var sum = 0
    for relay in relays {
      let metrics = try await Program.run(
        "curl",
        ["-sS", "--unix-socket", relay.relay.state + "/admin.sock", "http://relay/metrics"]
      ).checked("curl")
      let name = #"pushrelay_hops_total{fate="sent"} "#
      let line = metrics.split(separator: "\n").first { $0.hasPrefix(name) }
      sum += try #require(line.flatMap { Int($0.dropFirst(name.count)) })
    }
    return sum
  }

  private struct Counts: Decodable {
    var listening: Int
    var pushes: Int
  }

  /// Reads on until the fleet's counts are as wanted.
  private static func until(
    _ lines: inout LineReader, _ isWanted: (Counts) -> Bool
  ) async throws -> Counts {
    while true {
      let line = try await lines.next("counts")
      let counts = try JSONDecoder().decode(Counts.self, from: Data(line.utf8))
      if isWanted(counts) { return counts }
    }
  }

  private static func push(_ phones: [Placed], at node: ClusterRelay? = nil) async throws {
    for placed in phones {
      let answer = try await (node ?? placed.owner).push(placed.token, "led")
      #expect(answer.status == 200, "\(answer)")
    }
  }

  /// Pushes to each phone until a push needed no hop, and returns how many pushes that took. What
  /// closed when the phones were led may still be on its way before, and on a busy machine stripes
  /// move on: after the owner that a phone was told of, the other nodes have their turn. Without a
  /// lead every node needs a hop, to the stripe or to the phone's connection.
  private static func pushWithoutHops(
    _ phones: [Placed], _ relays: [ClusterRelay], _ lines: inout LineReader
  ) async throws -> Int {
    var pushes = 0
    var before = try await hops(relays)
    for placed in phones {
      let first = try #require(relays.firstIndex { $0.relay.device == placed.owner.relay.device })
      var isDirect = false
      for attempt in 0..<(10 * relays.count) where !isDirect {
        try await push([placed], at: relays[(first + attempt) % relays.count])
        pushes += 1
        _ = try await until(&lines) { [pushes] in $0.pushes >= pushes }
        let after = try await hops(relays)
        (isDirect, before) = (after == before, after)
      }
      #expect(isDirect, "every push to \(placed.phone.id) had hops")
    }
    return pushes
  }

  @Test(
    .enabled("nats-server cannot be had from PyPI", hasServer),
    arguments: [["--light"], []])
  func whatIsPushedAtTheOwnerDoesNotHop(options: [String]) async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let fleet = scratch.path + "/fleet"
    try await server.run { _ in
      _ = try await ClusterRelay.run(["a", "b", "c"], in: scratch.path, on: server) { relays in
        let phones = try await Self.phones(9, on: relays)
        try #require(Set(phones.map(\.owner.relay.device)).count > 1)
        try Self.writeFleet(phones, to: fleet)
        let arguments =
          ["device", "--count", "9", "--json", "--plaintext", "--state", fleet, "--device"]
          + [relays[0].relay.device] + options
        _ = try await Background.run(Program.pushrelay, arguments, environment: [:]) {
          lines, _ in
          _ = try await Self.until(&lines) { $0.listening == 9 }
          let pushes = try await Self.pushWithoutHops(phones, relays, &lines)
          // A node that ends leads its phones on.
          try relays[1].relay.terminate()
          #expect(try await relays[1].relay.endsSoon())
          try await Self.push(phones, at: relays[0])
          _ = try await Self.until(&lines) { $0.listening == 9 && $0.pushes >= pushes + 9 }
        }
      }
    }
  }

  /// Waits until each of two nodes has half of the stripes. One that moves later ends the streams
  /// of its phones, and what is pushed to one meanwhile replaces what waits for it.
  private static func eachHasHalf(_ relays: [ClusterRelay]) async throws {
    struct Cluster: Decodable {
      struct Node: Decodable { var stripes: [Int] }
      var nodes: [Node]
    }
    for relay in relays {
      var counts: [Int] = []
      while counts != [4, 4] {
        let answer = try await Program.run(
          "curl",
          ["-sS", "--unix-socket", relay.relay.state + "/admin.sock", "http://relay/v1/cluster"]
        ).checked("curl")
        let cluster = try JSONDecoder().decode(Cluster.self, from: Data(answer.utf8))
        counts = cluster.nodes.map(\.stripes.count)
      }
    }
  }

  /// Nobody listens where the nodes say that their phones are to come.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func whoCannotBeLedStays() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let closed = "127.0.0.1:\(await FreePort.take())"
    try await server.run { _ in
      let (_, logs) = try await ClusterRelay.run(
        ["a", "b"], in: scratch.path, on: server, ["--advertise-device", closed]
      ) { relays in
        try await Self.eachHasHalf(relays)
        let outcome = try await Program.run(
          Program.pushrelay,
          [
            "load", "--plaintext", "--no-token", "--devices", "20", "--rate", "100", "--seconds",
            "1", "--json", "--state", scratch.path + "/load", "--device", relays[0].relay.device,
            "--provider", relays[1].relay.provider,
          ])
        let output = outcome.output
        #expect(outcome.succeeded && output.contains(#""delivered":100"#), "\(outcome)")
        let status = try await relays[0].relay.command("cluster", "status")
        #expect(status.output.contains("device \(closed)"), "\(status)")
      }
      #expect(!logs[0].contains("phones are not led"))
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aWildcardIsNoPlaceToLeadTo() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    try await server.run { _ in
      let (_, log) = try await ClusterRelay.run(
        "a", state: scratch.path + "/a", on: server, ["--device", "0.0.0.0:0"]
      ) { relay in
        let status = try await relay.relay.command("cluster", "status")
        #expect(status.output.contains("no phone is led there: advertiseDevice"), "\(status)")
      }
      #expect(log.contains("phones are not led to this node"), "\(log)")
    }
  }
}
