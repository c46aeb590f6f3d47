import DeviceLink
import RelayClient
import RelayCore

/// A phone that listens, acknowledges, and tells how long each push was on its way.
struct LoadPhone {
  /// The member of the payload that says when the push was due, in microseconds.
  static let member = "sentMicroseconds"

  private let start: ContinuousClock.Instant
  private let tally: LoadTally

  init(since start: ContinuousClock.Instant, _ tally: LoadTally) {
    self.start = start
    self.tally = tally
  }

  func listen(to stream: ClientStream) async throws {
    var splitter = LineSplitter()
    var answer: [UInt8] = []
    for try await bytes in stream.chunks {
      answer.removeAll(keepingCapacity: true)
      let now = Int((ContinuousClock.now - start) / .microseconds(1))
      var delays: [Int] = []
      splitter.take(bytes.span) { piece in
        guard case .line(let line) = piece else { return }
        switch ReceivedLine(line.span) {
        case .notification(let notification):
          UpLine.ack(id: notification.uniqueID, outcome: nil).write(to: &answer)
          delays.append(now - (Self.sent(notification.payload) ?? now))
        case .keepAlive: UpLine.keepAlive.write(to: &answer)
        case .hello, .empty, .barrier, .checkpoint, .bye, .error, .unknown, nil: break
        }
      }
      if !delays.isEmpty { await tally.delivered(delays) }
      if !answer.isEmpty { try await stream.write(answer) }
    }
  }

  /// When a push was due.
  private static func sent(_ text: String) -> Int? {
    let payload = Array(text.utf8)
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
