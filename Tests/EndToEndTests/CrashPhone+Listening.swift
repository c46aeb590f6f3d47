import DeviceLink
import Primitives
import RelayClient
import RelayCore
import Synchronization

/// Whether the end of a stream is this side's doing.
private final class Hangup: Sendable {
  private let isExpected = Mutex(false)
  var hasCome: Bool { isExpected.withLock { $0 } }
  func come() { isExpected.withLock { $0 = true } }
}

/// A phone's stream.
extension CrashPhone {
  /// Listens for a while, then hangs up in one way or another.
  func listen(
    _ life: CrashLife, on api: DeviceAPI, _ habit: Habit, _ stay: Stay
  ) async throws {
    guard let identity else { return }
    acknowledged = []
    unacknowledged = []
    wasEmpty = false
    let since = ledger.moment()
    let stream = try await api.openStream(of: identity)
    let hangup = Hangup()
    // It ends with the stream, and every way out of here ends that.
    let reading = Task { try await read(stream, habit, life, hangup, since: since) }
    do {
      if random.chance(10) { try await report(stream) }
      try await remain(life, stay, stream, on: api)
    } catch {
      hangup.come()
      stream.cancel()
      try await reading.value
      throw error
    }
    hangup.come()
    if random.chance(30) { stream.finish() } else { stream.cancel() }
    try await reading.value
  }

  private func remain(
    _ life: CrashLife, _ stay: Stay, _ stream: ClientStream, on api: DeviceAPI
  ) async throws {
    switch stay {
    case .pause(let duration):
      try await Task.sleep(for: duration)
      // A relay that has lost its place and does not know it yet may say anything.
      guard life.weather != .rough else { return }
      _ = try await confirm(stream, on: api)
    case .untilEmpty:
      // In Low Power Mode what is silent is kept for it.
      try await stream.write(Self.line(.state(ConditionReport(power: .battery))))
      for _ in 0..<2000 {
        if try await confirm(stream, on: api) { return }
      }
    }
  }

  private func report(_ stream: ClientStream) async throws {
    try await stream.write(
      Self.line(
        .state(
          ConditionReport(
            power: random.chance(50) ? .low : .battery, network: random.chance(50) ? .wifi : nil,
            screen: random.chance(50) ? .on : .off))))
  }

  private func read(
    _ stream: ClientStream, _ habit: Habit, _ life: CrashLife, _ hangup: Hangup, since: Int
  ) async throws {
    do throws(ClientError) {
      for try await bytes in stream.lines {
        guard let line = DownLine(bytes.span) else {
          ledger.violated("no line: \(String(decoding: bytes, as: UTF8.self))")
          continue
        }
        try await take(line, stream, habit, life, since: since)
      }
    } catch {
      if hangup.hasCome || life.mayBreak { return }
      throw error
    }
    if !hangup.hasCome, !life.mayBreak {
      ledger.violated("the relay ended the stream of device \(number)")
    }
  }

  private func take(
    _ line: DownLine, _ stream: ClientStream, _ habit: Habit, _ life: CrashLife, since: Int
  ) async throws(ClientError) {
    switch line {
    case .hello, .broadcast, .barrier, .checkpoint, .unknown:
      break
    case .empty:
      wasEmpty = true
      if life.weather != .rough { ledger.checkpoint(device: number, since: since) }
    case .keepAlive:
      try await stream.write(Self.line(.keepAlive))
    case .notification(let delivery):
      ledger.received(delivery, device: number)
      let notification = delivery.notification
      let acknowledges =
        switch habit {
        case .acknowledgeAll: true
        case .acknowledgeSome: random.chance(60)
        case .acknowledgeNone: false
        }
      guard acknowledges else {
        unacknowledged.insert(notification.uniqueID)
        return
      }
      acknowledged.insert(notification.uniqueID)
      let id = random.chance(90) ? notification.uniqueID : notification.apnsID
      try await stream.write(Self.line(.ack(id: id, outcome: random.chance(50) ? .newData : nil)))
    case .bye(let reason, _):
      if !life.mayBreak { ledger.violated("bye to device \(number): \(reason)") }
    case .error(let reason):
      ledger.violated("error to device \(number): \(reason)")
    }
  }
}
