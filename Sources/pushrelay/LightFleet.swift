import DeviceLink
import HTTP2
import PhoneRuntime
import RelayClient
import RelayCore
import Synchronization

/// Many devices that listen, acknowledge and count, to put load on a relay. Each has a stream;
/// some share a connection, in a cluster one to each node that has some of them.
struct LightFleet: Sendable {
  /// Unless told otherwise, and at most.
  static let phonesPerConnection = 2000
  /// Streams of a connection opened at once.
  private static let concurrency = 64

  let command: DeviceCommand
  let count: Int
  private let tls = SharedTLS()

  init(command: DeviceCommand, count: Int) {
    self.command = command
    self.count = count
  }

  private final class Counters: Sendable {
    let listening = Atomic(0)
    let notifications = Atomic(0)
    let reconnects = Atomic(0)
  }

  func run() async throws {
    let counters = Counters()
    let shared = command.perConnection ?? Self.phonesPerConnection
    let needed = (count + shared - 1) / shared + Limits.reservedDescriptors.upperBound
    if let limit = SystemResources.raiseOpenFiles(), needed > limit {
      throw CommandError(
        "\(needed) files and sockets are needed, and this process may open \(limit) (ulimit -Hn): "
          + "raise that, or have more phones share a connection, with --per-connection")
    }
    let roster = try await FleetRoster.enroll(command, count: count)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for start in stride(from: 0, to: count, by: shared) {
        let members = Array(roster.members[start..<min(count, start + shared)])
        group.addTask { try await listen(members, counters) }
      }
      group.addTask { try await report(counters) }
      for try await _ in group {}
    }
  }

  // MARK: Listening

  /// Runs one shared connection, reconnecting when it is lost.
  private func listen(_ members: [FleetRoster.Member], _ counters: Counters) async throws {
    let pool = LinkPool(phonesPerConnection: members.count) { [command, tls] owner in
      try await command.connection.connect(device: command.device, owner: owner, over: tls)
    }
    try await Reconnection.keep { connection in
      await pool.closeAll()
      do {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for (number, member) in members.enumerated() {
            // Not all streams of a thousand phones at one moment.
            if number % Self.concurrency == Self.concurrency - 1 { await Task.yield() }
            group.addTask {
              try await pool.keepOpen(for: number, of: member.identity) {
                try await listen(to: $0, counters)
              }
            }
          }
          for try await _ in group {}
        }
        connection.stands()
        return "the relay ended the streams"
      } catch {
        if Task.isCancelled { return nil }
        if members.count > 1 || command.verbose { Console.log("connection lost: \(error)") }
        return "\(error)"
      }
    } isLost: { _, _ in
      counters.reconnects.add(1, ordering: .relaxed)
      return true
    }
  }

  /// Returns why the relay has ended the stream, and where the phone is to go.
  private func listen(
    to stream: ClientStream, _ counters: Counters
  ) async throws -> (reason: String, owner: String?)? {
    counters.listening.add(1, ordering: .relaxed)
    defer { counters.listening.subtract(1, ordering: .relaxed) }
    var listener = DeviceListener(stream, .init(followsClock: true, acknowledges: !command.noAck))
    var bye: (reason: String, owner: String?)?
    while let line = try await listener.next() {
      if case .notification = line { counters.notifications.add(1, ordering: .relaxed) }
      if case .bye(let reason, let owner) = line { bye = (reason, owner) }
    }
    return bye
  }

  /// Prints a line a second while something changes.
  private func report(_ counters: Counters) async throws {
    var last = (listening: -1, notifications: 0)
    while !Task.isCancelled {
      let listening = counters.listening.load(ordering: .relaxed)
      let notifications = counters.notifications.load(ordering: .relaxed)
      if listening != last.listening || notifications != last.notifications {
        let reconnects = counters.reconnects.load(ordering: .relaxed)
        if command.json {
          try Console.say(object: [
            "phones": count, "listening": listening, "pushes": notifications,
            "reconnects": reconnects,
          ])
        } else {
          Console.say(
            "listening \(listening) of \(count), notifications \(notifications) "
              + "(\(notifications - last.notifications)/s), "
              + "reconnects \(reconnects)")
        }
      }
      last = (listening, notifications)
      try await Task.sleep(for: .seconds(1))
    }
  }
}
