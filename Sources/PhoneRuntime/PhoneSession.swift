import DeviceLink
import DeviceSimulator
import RelayClient
import RelayCore

/// A phone's stream, opened again whenever it is lost, until it is no longer wanted.
struct PhoneSession: Sendable {
  let phone: Int
  let number: Int
  let driver: PhoneDriver
  let configuration: PhoneDriver.Configuration
  let pool: LinkPool
  let link: LinkModel

  /// Beyond this the newest lines are dropped; the relay sends unacknowledged pushes again.
  private static let unsentLines = 10_000
  /// The most that a clean end of a stream may take.
  private static let farewell = Duration.seconds(2)

  func run() async {
    // Cancelled during a pause, there is nothing left to do.
    try? await Reconnection.keep { connection in
      guard await driver.isWanted(self) else { return nil }
      do {
        return try await attempt(&connection)
      } catch {
        guard !Task.isCancelled, await driver.mayTryAgain(self, after: error) else { return nil }
        return "\(error)"
      }
    } isLost: { reason, _ in
      await driver.lost(self, reason)
    }
  }

  private func attempt(_ connection: inout Reconnection) async throws -> String {
    var client = try await pool.client(for: phone)
    do {
      return try await listen(&client, &connection)
    } catch {
      // An unwanted session says nothing about the connection.
      if await driver.isWanted(self) { await pool.discard(client, of: phone) }
      throw error
    }
  }

  /// Returns why the stream ended. `client` becomes the connection that has it.
  private func listen(
    _ client: inout RelayClient, _ connection: inout Reconnection
  ) async throws -> String {
    let api = DeviceAPI(client)
    let identity = try await driver.identity(of: phone, api)
    let stream = try await pool.openStream(for: phone, of: identity)
    client = stream.connection
    let (lines, feed) = AsyncStream.makeStream(
      of: SentLine.self, bufferingPolicy: .bufferingOldest(Self.unsentLines))
    defer { feed.finish() }
    guard await driver.opened(self, as: identity, feed) else { return "not wanted any more" }
    connection.stands()
    let (heard, ear) = AsyncStream.makeStream(
      of: Heard.self, bufferingPolicy: .bufferingOldest(Self.unsentLines))
    return try await withThrowingTaskGroup(of: String?.self) { group in
      group.addTask {
        defer { ear.finish() }
        return try await read(stream, ear)
      }
      if link.isBad {
        group.addTask {
          try await handOn(heard)
          return nil
        }
      }
      group.addTask {
        try await write(lines, to: stream)
        // The phone is done: the relay ends its side when it has read ours.
        stream.finish()
        try await Task.sleep(for: Self.farewell)
        stream.cancel()
        return nil
      }
      while let reason = try await group.next() {
        guard let reason else { continue }
        group.cancelAll()
        return reason
      }
      return "the stream ended"
    }
  }

  struct SentLine: Sendable {
    let bytes: [UInt8]
    let sent = ContinuousClock.now

    init(_ line: UpLine) {
      var bytes: [UInt8] = []
      line.write(to: &bytes)
      self.bytes = bytes
    }

    init(_ line: DoneLine) {
      var bytes: [UInt8] = []
      line.write(to: &bytes)
      self.bytes = bytes
    }
  }

  private func write(_ lines: AsyncStream<SentLine>, to stream: ClientStream) async throws {
    guard link.isBad else {
      for await line in lines { try await stream.write(line.bytes) }
      return
    }
    var chance = chance(1)
    for await line in lines {
      try await Task.sleep(until: chance.arrival(sentAt: line.sent), clock: .continuous)
      // A relay whose clock moves only when told waits for these.
      let isBarrier = line.bytes.starts(with: Self.barrier)
      if isBarrier || !chance.loses() { try await stream.write(line.bytes) }
    }
  }

  private static let barrier = Array(#"{"type":"barrier""#.utf8)

  private func chance(_ direction: UInt64) -> LinkChance {
    LinkChance(
      link,
      seed: configuration.seed &+ UInt64(phone) &* 1_000_003 &+ UInt64(number) &* 31 &+ direction)
  }

  private struct Heard: Sendable {
    let lines: [DownLine]
    let sent = ContinuousClock.now
  }

  /// Delays and drops lines of a bad link.
  private func handOn(_ heard: AsyncStream<Heard>) async throws {
    var chance = chance(0)
    for await one in heard {
      try await Task.sleep(until: chance.arrival(sentAt: one.sent), clock: .continuous)
      let left = one.lines.filter { !($0.mayBeLost && chance.loses()) }
      if !left.isEmpty { await driver.heard(left, by: self) }
    }
  }

  private func read(
    _ stream: ClientStream, _ ear: AsyncStream<Heard>.Continuation
  ) async throws -> String {
    var listener = DeviceListener(stream, nil)
    var reason = "the relay ended the stream"
    var lines: [DownLine] = []
    while let line = try await listener.next() {
      switch line {
      case .bye(let why, let owner):
        reason = why
        if let owner { await pool.lead(phone, to: owner) }
      case .error(let why): reason = "the relay says: \(why)"
      case .hello, .notification, .broadcast, .empty, .keepAlive, .barrier, .checkpoint, .unknown:
        lines.append(line)
      }
      if listener.hasMore || lines.isEmpty { continue }
      if link.isBad { ear.yield(Heard(lines: lines)) } else { await driver.heard(lines, by: self) }
      lines = []
    }
    return reason
  }
}

extension DownLine {
  /// A bad link never loses greetings and lines that control a clock.
  fileprivate var mayBeLost: Bool {
    switch self {
    case .notification, .broadcast, .keepAlive: true
    case .hello, .empty, .barrier, .checkpoint, .bye, .error, .unknown: false
    }
  }
}
