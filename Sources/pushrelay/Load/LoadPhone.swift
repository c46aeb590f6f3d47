import DeviceLink
import RelayClient
import RelayCore

/// A phone that listens, acknowledges, and measures each push's latency.
struct LoadPhone {
  /// The payload's member with the push's due time, in microseconds.
  static let member = "sentMicroseconds"

  private let start: ContinuousClock.Instant
  private let tally: LoadTally

  init(since start: ContinuousClock.Instant, _ tally: LoadTally) {
    self.start = start
    self.tally = tally
  }

  func listen(to stream: ClientStream) async throws {
    var listener = DeviceListener(stream, DeviceListener.Habits())
    var delays: [Int] = []
    while let line = try await listener.next() {
      if case .notification(let delivery) = line {
        let now = Int((ContinuousClock.now - start) / .microseconds(1))
        delays.append(now - (Self.sent(delivery.notification.payload) ?? now))
      }
      if case .broadcast(let broadcast, _) = line {
        let now = Int((ContinuousClock.now - start) / .microseconds(1))
        let sent = Self.sent(broadcast.notification.payload) ?? now
        await tally.delivered(broadcast.number, after: now - sent)
      }
      if listener.hasMore || delays.isEmpty { continue }
      await tally.delivered(delays)
      delays = []
    }
  }

  /// When a push was due.
  private static func sent(_ payload: [UInt8]) -> Int? {
    do {
      var cursor = try ObjectCursor(payload.span)
      while let part = try cursor.next(payload.span) {
        guard String(decoding: payload[part.key], as: UTF8.self) == member else { continue }
        return Int(String(decoding: payload[part.value], as: UTF8.self))
      }
    } catch {
      return nil
    }
    return nil
  }
}
