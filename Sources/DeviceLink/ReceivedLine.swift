package import RelayCore

/// A line of the relay as a device reads it: tolerant of keys and types it does not know.
package enum ReceivedLine: Equatable, Sendable {
  case hello(device: String, keepAliveSeconds: Int64)
  case notification(ReceivedNotification)
  case empty
  case keepAlive
  case bye(reason: String)
  case error(reason: String)
  /// A type of a newer relay: to be ignored.
  case unknown(type: String)

  /// Reads one line; nil when it is not a JSON object with a `type`.
  package init?(_ line: Span<UInt8>) {
    var values: [String: Range<Int>] = [:]
    do {
      var cursor = try ObjectCursor(line)
      while let member = try cursor.next(line) {
        values[line.extracting(member.key).text(limitBytes: 64)] = member.text
      }
    } catch {
      return nil
    }
    func text(_ key: String) -> String {
      values[key].map { line.extracting($0).text(limitBytes: Limits.lineBytes) } ?? ""
    }
    switch text("type") {
    case "": return nil
    case "hello":
      self = .hello(device: text("device"), keepAliveSeconds: Int64(text("keepAliveSeconds")) ?? 0)
    case "notification":
      guard let id = UniqueID(text("id")), let uniqueID = UniqueID(text("uniqueId")) else {
        return nil
      }
      self = .notification(
        ReceivedNotification(
          id: id, uniqueID: uniqueID, topic: text("topic"), pushType: text("pushType"),
          notificationClass: text("class"), via: text("via"),
          acceptedAtMilliseconds: Int64(text("acceptedAt")) ?? 0,
          sentAtMilliseconds: Int64(text("sentAt")) ?? 0, collapseID: text("collapseId"),
          payload: text("payload")))
    case "empty": self = .empty
    case "keepalive": self = .keepAlive
    case "bye": self = .bye(reason: text("reason"))
    case "error": self = .error(reason: text("reason"))
    case let type: self = .unknown(type: type)
    }
  }
}

/// A notification as it arrives on a device.
package struct ReceivedNotification: Equatable, Sendable {
  /// The provider's id (`apns-id`).
  package var id: UniqueID
  /// The relay's id; what a device drops doubles by and acknowledges with.
  package var uniqueID: UniqueID
  package var topic: String
  package var pushType: String
  /// `visible` or `silent`.
  package var notificationClass: String
  package var via: String
  package var acceptedAtMilliseconds: Int64
  package var sentAtMilliseconds: Int64
  package var collapseID: String
  /// The payload's JSON text.
  package var payload: String
}
