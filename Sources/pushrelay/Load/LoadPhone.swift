import DeviceLink
import RelayClient
import RelayCore

/// A phone that listens, acknowledges, and measures each push's latency.
struct LoadPhone {
  /// The payload's member with the push's due time, in microseconds. One of each run, so that what
  /// was stored in an earlier one is not measured.
  static let member = "sentMicroseconds-\(UInt32.random(in: .min ... .max))"

  private let start: ContinuousClock.Instant
  private let tally: LoadTally

  init(since start: ContinuousClock.Instant, _ tally: LoadTally) {
    self.start = start
    self.tally = tally
  }

  /// Returns why the relay has ended the stream, and where the phone is to go.
  func listen(to stream: ClientStream) async throws -> (reason: String, owner: String?)? {
    var bye: (reason: String, owner: String?)?
    var listener = DeviceListener(stream, DeviceListener.Habits())
    var delays: [Int] = []
    while let line = try await listener.next() {
      if case .notification(let delivery) = line,
        let delay = Self.delay(of: delivery.notification, since: start)
      {
        delays.append(delay)
      }
      // One that did not come in a frame of its own, or the connection would have counted it.
      if case .broadcast(let broadcast, _) = line,
        let delay = Self.delay(of: broadcast.notification, since: start)
      {
        await tally.delivered(broadcast.number, to: 1, after: delay)
      }
      if case .bye(let reason, let owner) = line { bye = (reason, owner) }
      if listener.hasMore || delays.isEmpty { continue }
      await tally.delivered(delays)
      delays = []
    }
    return bye
  }

  /// How many microseconds ago a push was due; nil for one of an earlier run.
  static func delay(of notification: Notification, since start: ContinuousClock.Instant) -> Int? {
    let now = Int((ContinuousClock.now - start) / .microseconds(1))
    return sent(notification.payload).map { now - $0 }
  }

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
