import DeviceLink
import PhoneRuntime
import Primitives
import RelayClient
import RelayCore

/// One listening device: enrols, registers its apps, prints and acknowledges pushes, and
/// reconnects.
struct LightDevice: Sendable {
  let name: String
  let command: DeviceCommand

  private var account: DeviceAccount {
    DeviceAccount(
      name: name, state: command.connection.files.state, topics: command.topic,
      channels: command.channel,
      token: command.token, enrolmentKey: command.enrolmentKey,
      environment: { [wanted = command.environment] _ in wanted?.rawValue }, say: say)
  }

  /// State across connections.
  private struct Memory {
    var remaining: Int?
    /// The last notifications, to detect duplicates.
    var seen = Self.nothingSeen
    var hasListened = false
    var checkpoints: [UInt32: RecentTable<UniqueID, Bool>] = [:]
    /// The node that the last stream's end has named.
    var owner: String?
    private static let nothingSeen = RecentTable<UniqueID, Bool>(limit: 4096)

    mutating func apply(_ line: CheckpointLine) {
      switch line {
      case .saved(let number): checkpoints[number] = seen
      case .rewound(let number, _, _): seen = checkpoints[number] ?? Self.nothingSeen
      case .dropped(let number): checkpoints[number] = nil
      }
    }
  }

  /// Listens until `--notifications` is reached or the task is cancelled. Throws when the first
  /// connection fails, when the relay refuses, or when another connection takes over.
  func run() async throws {
    var memory = Memory(remaining: command.notifications)
    let pool = LinkPool(phonesPerConnection: 1) { [command, shared = SharedTLS()] owner in
      try await command.connection.connect(device: command.device, owner: owner, over: shared)
    }
    try await Reconnection.keep { connection in
      await pool.closeAll()
      if let owner = exchange(&memory.owner, with: nil) { await pool.lead(0, to: owner) }
      do {
        return try await listen(pool, &memory, &connection)
      } catch let error as ClientError where memory.hasListened {
        // With a status from 500 it is not about this device: the relay cannot do it now.
        if case .refused(let refusal) = error, refusal.status < 500 { throw error }
        return error.description
      }
    } isLost: { problem, pause in
      let milliseconds = Int64(pause / .milliseconds(1))
      Console.log("\(name): \(problem) (trying again in \(milliseconds) ms)")
      return true
    }
  }

  // MARK: One connection

  /// Returns why the stream ended; nil when everything waited for has arrived.
  private func listen(
    _ pool: LinkPool, _ memory: inout Memory, _ connection: inout Reconnection
  ) async throws -> String? {
    let api = DeviceAPI(try await pool.client(for: 0))
    let identity = try await account.register(api, isFirst: !memory.hasListened)
    let stream = try await pool.openStream(for: 0, of: identity)
    let report = ConditionReport(
      power: command.power, network: command.network, screen: command.screen)
    if report != ConditionReport() { try await stream.write(.state(report)) }
    var listener = DeviceListener(
      stream, .init(followsClock: true, acknowledges: !command.noAck, outcome: .newData))
    var reason: String?
    while let line = try await listener.next() {
      if command.json { Console.say(bytes: listener.bytes) }
      switch line {
      case .hello(_, let keepAlive, _, _, _, _):
        memory.hasListened = true
        connection.stands()
        say("listening, keep-alive every \(keepAlive.milliseconds / 1000) s")
      case .notification(let delivery):
        arrived(delivery, &memory)
        guard memory.remaining == 0 else { continue }
        await listener.writeAnswers()
        try await finish(stream, pool)
        return nil
      case .broadcast(let broadcast, _):
        arrived(broadcast, &memory)
        guard memory.remaining == 0 else { continue }
        try await finish(stream, pool)
        return nil
      case .empty: say("nothing waits")
      case .checkpoint(let line):
        memory.apply(line)
        if case .rewound(_, _, let time) = line { say("taken back to \(time.iso8601)") }
      case .keepAlive: say("keep-alive")
      case .bye(let why, let owner):
        say("bye (\(why))")
        (reason, memory.owner) = (why, owner)
      case .error(let why): Console.log("\(name): the relay says: \(why)")
      case .unknown(type: ""):
        Console.log("\(name): not a line: \(String(decoding: listener.bytes, as: UTF8.self))")
      case .unknown(let type): say("a line of an unknown type, \(type)")
      case .barrier: break
      }
    }
    await pool.closeAll()
    guard reason != CloseReason.superseded.name else {
      throw CommandError(
        "\(name): another connection of this device has taken over; give it another name")
    }
    return reason.map { "bye: \($0)" } ?? "the stream ended"
  }

  private func arrived(_ delivery: Delivery, _ memory: inout Memory) {
    let notification = delivery.notification
    // Delivery is at least once: a duplicate is acknowledged again, silently.
    guard memory.seen[notification.uniqueID] == nil else {
      return say("the same again, dropped: \(notification.uniqueID)")
    }
    _ = memory.seen.insert(true, for: notification.uniqueID)
    memory.remaining? -= 1
    say(
      "\(notification.notificationClass.name) notification via \(delivery.via.name) for "
        + "\(notification.topic): \(String(decoding: notification.compactPayload, as: UTF8.self))")
  }

  private func arrived(_ broadcast: Broadcast, _ memory: inout Memory) {
    let notification = broadcast.notification
    guard memory.seen[notification.uniqueID] == nil else { return }
    _ = memory.seen.insert(true, for: notification.uniqueID)
    memory.remaining? -= 1
    say(
      "broadcast on \(broadcast.channel) for \(notification.topic): "
        + String(decoding: notification.compactPayload, as: UTF8.self))
  }

  /// Ends our side first, so that the last acknowledgement arrives: the relay then ends its own.
  private func finish(_ stream: ClientStream, _ pool: LinkPool) async throws {
    stream.finish()
    let patience = Task {
      try await Task.sleep(for: .seconds(2))
      stream.cancel()
    }
    while (try? await stream.read()) != nil {}
    patience.cancel()
    await pool.closeAll()
  }

  /// In JSON mode the relay's own lines say it all.
  private func say(_ text: String) {
    guard !command.json else { return }
    Console.say("\(WallClock.now.timeOfDay) \(name)  \(text)")
  }
}
