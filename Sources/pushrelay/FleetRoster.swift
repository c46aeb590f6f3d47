import FoundationEssentials
import RelayClient
import RelaySetup

/// A fleet's devices, kept in `STATE/fleet.json`.
struct FleetRoster: Codable, Sendable {
  struct Member: Codable, Sendable {
    var device: String
    var secret: String
    var token: String

    var identity: DeviceIdentity { DeviceIdentity(device: device, secret: secret) }
  }

  var topic: String
  var members: [Member] = []

  /// Enrolments at once.
  private static let concurrency = 64

  /// Returns the last fleet with as many more as wanted; a new one if the relay has forgotten it.
  static func enroll(_ command: DeviceCommand, count: Int) async throws -> FleetRoster {
    let roster = try await enroll(
      count: count, topic: command.topic.first ?? "com.example.app", at: command.device,
      by: command.connection, key: command.enrolmentKey)
    try roster.writeTokens(to: command.tokens)
    return roster
  }

  static func enroll(
    count: Int, topic: String, at device: RelayConfiguration.Endpoint?,
    by connection: ConnectionOptions, key: String?
  ) async throws -> FleetRoster {
    let path = "\(connection.files.state)/fleet.json"
    var roster = FleetRoster(topic: topic)
    if let bytes = PrivateFile.read(path) {
      guard let known = try? JSONDecoder().decode(FleetRoster.self, from: Data(bytes)) else {
        throw CommandError(
          "\(path) is not a fleet's file: move it away, and --count makes a new one")
      }
      if known.topic == topic { roster = known }
    }
    let client = try await connection.connect(device: device)
    let api = DeviceAPI(client)
    if let first = roster.members.first, try await isForgotten(first, api) {
      Console.log("this relay does not know the fleet of last time; enrolling anew")
      roster.members = []
    }
    let missing = count - roster.members.count
    if missing > 0 {
      roster.members += try await fresh(missing, topic, api, key: key)
      try PrivateFile.write(Array(try JSONEncoder().encode(roster)), to: path)
    }
    await client.close()
    roster.members.removeLast(max(0, roster.members.count - count))
    return roster
  }

  private static func fresh(
    _ missing: Int, _ topic: String, _ api: DeviceAPI, key: String?
  ) async throws -> [Member] {
    try await withThrowingTaskGroup(of: Member.self) { group in
      var fresh: [Member] = []
      for number in 0..<missing {
        if number >= concurrency, let member = try await group.next() { fresh.append(member) }
        group.addTask {
          let identity = try await patiently { try await api.enroll(enrolmentKey: key) }
          let token = try await patiently { try await api.register(topic: topic, of: identity) }
          return Member(device: identity.device, secret: identity.secret, token: token)
        }
        if number % 1000 == 999 { Console.log("enrolled \(number + 1) of \(missing)") }
      }
      for try await member in group { fresh.append(member) }
      return fresh
    }
  }

  private static func isForgotten(_ member: Member, _ api: DeviceAPI) async throws -> Bool {
    do {
      _ = try await patiently { try await api.status(of: member.identity) }
      return false
    } catch ClientError.refused(let refusal) where refusal.status < 500 {
      return true
    }
  }

  /// Asks again for six seconds where the relay cannot do it now (503), as while a node takes a
  /// stripe over.
  private static func patiently<Value>(_ ask: () async throws -> Value) async throws -> Value {
    for milliseconds in [100, 200, 400, 800, 1600, 3200] {
      do {
        return try await ask()
      } catch ClientError.refused(let refusal) where refusal.status == 503 {
        try await Task.sleep(for: .milliseconds(milliseconds))
      }
    }
    return try await ask()
  }

  private func writeTokens(to path: String?) throws {
    guard let path else { return }
    let lines = members.map { $0.token + "\n" }.joined()
    try PrivateFile.write(Array(lines.utf8), to: path, mode: 0o644)
  }
}
