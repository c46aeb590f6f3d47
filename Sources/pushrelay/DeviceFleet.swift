import DeviceLink
import FoundationEssentials
import RelayClient
import RelayCore
import Synchronization

/// Many devices that only listen, acknowledge and count: for load, and for seeing that a relay
/// holds them. Each has a stream of its own; `devicesPerConnection` share a connection.
struct DeviceFleet: Sendable {
  private static let devicesPerConnection = 2000
  /// Enrolments and streams of one connection that are under way at once.
  private static let concurrency = 64

  let command: DeviceCommand
  let count: Int

  /// What the devices of a fleet are called, from one start to the next.
  private struct Roster: Codable {
    struct Member: Codable {
      var device: String
      var secret: String
      var token: String
    }

    var topic: String
    var members: [Member] = []
  }

  private final class Counters: Sendable {
    let listening = Atomic(0)
    let notifications = Atomic(0)
    let reconnects = Atomic(0)
  }

  private var path: String { "\(command.connection.files.state)/devices/fleet.json" }

  func run() async throws {
    let counters = Counters()
    let roster = try await enroll()
    try writeTokens(roster)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for start in stride(from: 0, to: count, by: Self.devicesPerConnection) {
        let members = Array(roster.members[start..<min(count, start + Self.devicesPerConnection)])
        group.addTask { try await listen(members, counters) }
      }
      group.addTask { try await report(counters) }
      for try await _ in group {}
    }
  }

  // MARK: Who they are

  private func enroll() async throws -> Roster {
    let topic = command.topic.first ?? "com.example.app"
    var roster = Roster(topic: topic)
    if let bytes = PrivateFile.read(path),
      let known = try? JSONDecoder().decode(Roster.self, from: Data(bytes)), known.topic == topic
    {
      roster = known
    }
    let api = DeviceAPI(try await command.connection.connect(to: command.device))
    if let first = roster.members.first, try await isForgotten(first, api) {
      Console.note("this relay does not know the fleet of last time; enrolling anew")
      roster.members = []
    }
    let missing = count - roster.members.count
    guard missing > 0 else { return roster }
    let fresh = try await withThrowingTaskGroup(of: Roster.Member.self) { group in
      var fresh: [Roster.Member] = []
      for number in 0..<missing {
        if number >= Self.concurrency, let member = try await group.next() { fresh.append(member) }
        group.addTask {
          let identity = try await api.enroll(enrolmentKey: command.enrolmentKey)
          let token = try await api.register(topic: topic, of: identity)
          return Roster.Member(device: identity.device, secret: identity.secret, token: token)
        }
        if number % 1000 == 999 { Console.note("enrolled \(number + 1) of \(missing)") }
      }
      for try await member in group { fresh.append(member) }
      return fresh
    }
    roster.members += fresh
    try PrivateFile.write(Array(try JSONEncoder().encode(roster)), to: path)
    return roster
  }

  private func isForgotten(_ member: Roster.Member, _ api: DeviceAPI) async throws -> Bool {
    do {
      _ = try await api.status(of: DeviceIdentity(device: member.device, secret: member.secret))
      return false
    } catch .refused {
      return true
    }
  }

  private func writeTokens(_ roster: Roster) throws {
    guard let path = command.tokens else { return }
    let lines = roster.members.prefix(count).map { $0.token + "\n" }.joined()
    try PrivateFile.write(Array(lines.utf8), to: path, mode: 0o644)
  }

  // MARK: Listening

  /// One shared connection, made anew whenever it is lost.
  private func listen(_ members: [Roster.Member], _ counters: Counters) async throws {
    var failures = 0
    while !Task.isCancelled {
      do {
        let api = DeviceAPI(try await command.connection.connect(to: command.device))
        try await withThrowingTaskGroup(of: Void.self) { group in
          for (number, member) in members.enumerated() {
            // The streams of a thousand phones must not all be opened in one moment.
            if number % Self.concurrency == Self.concurrency - 1 { await Task.yield() }
            group.addTask { try await listen(member, api, counters) }
          }
          for try await _ in group {}
        }
        failures = 0
      } catch {
        if Task.isCancelled { return }
        Console.note("connection lost: \(error)")
      }
      counters.reconnects.add(1, ordering: .relaxed)
      let milliseconds = DeviceListener.pauseMilliseconds(failures: failures)
      failures += 1
      try await Task.sleep(for: .milliseconds(milliseconds))
    }
  }

  private func listen(
    _ member: Roster.Member, _ api: DeviceAPI, _ counters: Counters
  ) async throws {
    let stream = try await api.openStream(
      of: DeviceIdentity(device: member.device, secret: member.secret))
    counters.listening.add(1, ordering: .relaxed)
    defer { counters.listening.subtract(1, ordering: .relaxed) }
    var splitter = LineSplitter()
    var answer: [UInt8] = []
    for try await bytes in stream.chunks {
      answer.removeAll(keepingCapacity: true)
      var received = 0
      splitter.take(bytes.span) { piece in
        guard case .line(let line) = piece else { return }
        switch ReceivedLine(line.span) {
        case .notification(let notification):
          received += 1
          if !command.noAck {
            UpLine.ack(id: notification.uniqueID, outcome: nil).write(to: &answer)
          }
        case .keepAlive: UpLine.keepAlive.write(to: &answer)
        case .hello, .empty, .bye, .error, .unknown, nil: break
        }
      }
      counters.notifications.add(received, ordering: .relaxed)
      if !answer.isEmpty { try await stream.write(answer) }
    }
  }

  /// A line a second as long as something changes.
  private func report(_ counters: Counters) async throws {
    var last = (listening: -1, notifications: 0)
    while !Task.isCancelled {
      let listening = counters.listening.load(ordering: .relaxed)
      let notifications = counters.notifications.load(ordering: .relaxed)
      if listening != last.listening || notifications != last.notifications {
        Console.say(
          "listening \(listening) of \(count), notifications \(notifications) "
            + "(\(notifications - last.notifications)/s), "
            + "reconnects \(counters.reconnects.load(ordering: .relaxed))")
      }
      last = (listening, notifications)
      try await Task.sleep(for: .seconds(1))
    }
  }
}
