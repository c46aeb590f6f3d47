import Primitives
package import RelayCore

/// A line of the relay as a device reads it: tolerant of keys and types it does not know.
package enum ReceivedLine: Equatable, Sendable {
  /// `time` is the relay's, in UNIX milliseconds; `isVirtual` says that it moves only when told,
  /// `takesDecisions` that it wants to hear of what the phone decides (`UpLine.decision`).
  case hello(
    device: String, keepAliveSeconds: Int64, time: Int64, isVirtual: Bool,
    takesDecisions: Bool = false)
  case notification(ReceivedNotification)
  case empty
  case keepAlive
  /// Asks for `UpLine.barrier` with this number, once all is done until this time.
  case barrier(number: UInt64, time: Int64)
  case checkpoint(CheckpointLine)
  case bye(reason: String)
  case error(reason: String)
  /// A type of a newer relay: to be ignored.
  case unknown(type: String)

  /// Reads one line; nil when it is not a JSON object with a `type`.
  package init?(_ line: Span<UInt8>) {
    var members = Members()
    do {
      var cursor = try ObjectCursor(line)
      while let member = try cursor.next(line) { members.take(member, in: line) }
    } catch {
      return nil
    }
    switch members.text(.type, line) {
    case "": return nil
    case "hello":
      self = .hello(
        device: members.text(.device, line),
        keepAliveSeconds: members.number(.keepAliveSeconds, line) ?? 0,
        time: members.number(.time, line) ?? 0, isVirtual: members.text(.clock, line) == "virtual",
        takesDecisions: members.value(.decisions, line) == "true")
    case "notification":
      guard let notification = ReceivedNotification(members, line) else { return nil }
      self = .notification(notification)
    case "empty": self = .empty
    case "keepalive": self = .keepAlive
    case "barrier":
      guard let number = members.number(.number, line), let time = members.number(.time, line),
        number >= 0
      else { return nil }
      self = .barrier(number: UInt64(number), time: time)
    case "checkpoint", "rewound", "checkpoint-dropped":
      guard let checkpoint = CheckpointLine(members, line) else { return nil }
      self = .checkpoint(checkpoint)
    case "bye": self = .bye(reason: members.text(.reason, line))
    case "error": self = .error(reason: members.text(.reason, line))
    case let type: self = .unknown(type: type)
    }
  }
}

/// A notification as it arrives on a device. Times are milliseconds since the UNIX epoch.
package struct ReceivedNotification: Equatable, Sendable {
  /// The provider's id (`apns-id`).
  package var id: UniqueID
  /// The relay's id; what a device drops doubles by and acknowledges with.
  package var uniqueID: UniqueID
  package var topic: String
  package var pushType: String
  /// 10, 5 or 1.
  package var priority: Int64
  /// `visible` or `silent`.
  package var notificationClass: String
  /// Visible, and asks that the app be woken before the user sees it.
  package var wakesApp: Bool
  package var via: String
  package var acceptedAtMilliseconds: Int64
  package var sentAtMilliseconds: Int64
  /// Nil when it was not to be stored.
  package var expiresAtMilliseconds: Int64?
  /// Empty when there is none.
  package var collapseID: String
  /// The payload's JSON text.
  package var payload: String

  /// The payload without the white space between its tokens.
  package var compactPayload: String {
    var bytes: [UInt8] = []
    var isInString = false
    var isEscaped = false
    for byte in payload.utf8 {
      if isInString {
        if !isEscaped, byte == UInt8(ascii: "\"") { isInString = false }
        isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
      } else if byte <= 0x20 {
        continue
      } else if byte == UInt8(ascii: "\"") {
        isInString = true
      }
      bytes.append(byte)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  fileprivate init?(_ members: Members, _ line: Span<UInt8>) {
    guard let id = members.id(.id, line), let uniqueID = members.id(.uniqueId, line) else {
      return nil
    }
    self.id = id
    self.uniqueID = uniqueID
    topic = members.text(.topic, line)
    pushType = members.text(.pushType, line)
    priority = members.number(.priority, line) ?? 10
    notificationClass = members.text(.class, line)
    wakesApp = members.value(.wakesApp, line) == "true"
    via = members.text(.via, line)
    acceptedAtMilliseconds = members.number(.acceptedAt, line) ?? 0
    sentAtMilliseconds = members.number(.sentAt, line) ?? 0
    expiresAtMilliseconds = members.number(.expiresAt, line)
    collapseID = members.text(.collapseId, line)
    payload = members.value(.payload, line)
  }
}

extension CheckpointLine {
  fileprivate init?(_ members: Members, _ line: Span<UInt8>) {
    guard let number = members.number(.number, line).flatMap({ UInt32(exactly: $0) }) else {
      return nil
    }
    switch members.text(.type, line) {
    case "checkpoint": self = .saved(number: number)
    case "rewound":
      guard let epoch = members.number(.epoch, line).flatMap({ UInt32(exactly: $0) }),
        let time = members.number(.time, line)
      else { return nil }
      self = .rewound(number: number, epoch: epoch, time: Instant(milliseconds: time))
    case "checkpoint-dropped": self = .dropped(number: number)
    default: return nil
    }
  }
}

/// The members of a line that mean something, as ranges of it. The last of a name counts.
private struct Members {
  enum Key: String, CaseIterable {
    case type, id, uniqueId, topic, pushType, priority, `class`, wakesApp, via, acceptedAt, sentAt
    case expiresAt, collapseId, payload, device, keepAliveSeconds, reason
    case time, clock, number, epoch, decisions
  }

  private struct Found {
    var key: Key
    var member: ObjectCursor.Member
  }

  private var found: [Found] = []

  init() { found.reserveCapacity(Key.allCases.count) }

  mutating func take(_ member: ObjectCursor.Member, in line: Span<UInt8>) {
    guard !member.isNull, let key = Self.key(line.extracting(member.key)) else { return }
    found.append(Found(key: key, member: member))
  }

  private static func key(_ name: Span<UInt8>) -> Key? {
    Key(rawValue: name.unescapedText(limitBytes: 32))
  }

  private func member(_ key: Key) -> ObjectCursor.Member? {
    found.last { $0.key == key }?.member
  }

  /// What a string says; empty for anything else.
  func text(_ key: Key, _ line: Span<UInt8>) -> String {
    guard let member = member(key), member.isString else { return "" }
    return line.extracting(member.text).unescapedText(limitBytes: Limits.lineBytes)
  }

  /// The JSON text of a value; empty when there is none.
  func value(_ key: Key, _ line: Span<UInt8>) -> String {
    member(key).map { line.extracting($0.value).plainText } ?? ""
  }

  func number(_ key: Key, _ line: Span<UInt8>) -> Int64? { Int64(value(key, line)) }

  func id(_ key: Key, _ line: Span<UInt8>) -> UniqueID? {
    guard let member = member(key), member.isString else { return nil }
    return UniqueID(parsing: line.extracting(member.text))
  }
}
