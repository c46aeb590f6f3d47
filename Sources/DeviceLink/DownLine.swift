package import Primitives
package import RelayCore

/// A line from the relay to a device: one JSON object (docs/PROTOCOL.md, "Device API"). Times are
/// UNIX milliseconds. The device ignores unknown keys and uses defaults for missing ones.
///
/// ```
/// {"type":"hello","device":"…","keepAliveSeconds":900,"time":1790000000000,
///  "version":"0.9.0","decisions":true,"owner":"10.0.0.2:5223"}
/// {"type":"notification","id":"…","uniqueId":"…","topic":"com.example.news",
///  "pushType":"background","priority":5,"class":"silent","via":"piggyback",
///  "acceptedAt":…,"sentAt":…,"expiresAt":…,"payload":{…}}
/// {"type":"broadcast","channel":"…","uniqueId":"…","topic":"com.example.news","priority":10,
///  "number":7,"acceptedAt":…,"sentAt":…,"expiresAt":…,"payload":{…}}
/// {"type":"empty"} {"type":"keepalive","time":…}
/// {"type":"barrier","number":7,"time":1790000000000}
/// {"type":"bye","reason":"moved","owner":"10.0.0.2:5223"}
/// {"type":"error","reason":"type is ack, state, keepalive, decision or barrier"}
/// ```
package enum DownLine: Equatable, Sendable {
  /// `isVirtual`: the relay's clock moves only when told, and the phone may follow it.
  /// `takesDecisions`: the relay wants `UpLine.decision`. `owner`: `HOST:PORT` of the node of a
  /// cluster that has the phone, if it is another one.
  case hello(
    device: DeviceID, keepAlive: Interval, time: Instant, isVirtual: Bool = false,
    takesDecisions: Bool = true, owner: String? = nil)
  /// The device does not read the token.
  case notification(Delivery)
  /// Of a channel that an app subscribes to. Not acknowledged.
  case broadcast(Broadcast, sentAt: Instant)
  /// `at`: of a clock that moves only when told, as in a `barrier`.
  case empty(at: Instant? = nil)
  case keepAlive(at: Instant? = nil)
  /// It is this time now; the phone answers with `UpLine.barrier` of this number when all work
  /// until now is done.
  case barrier(number: UInt64, time: Instant)
  case checkpoint(CheckpointLine)
  /// The name of a `CloseReason`, or one of a newer relay; `owner` as in `hello`.
  case bye(reason: String, owner: String? = nil)
  case error(reason: String)
  /// A newer relay's type: ignored.
  case unknown(type: String)

  /// Reads one line; nil when it is not a JSON object with a `type`.
  package init?(_ line: Span<UInt8>) {
    guard let members = try? LineMembers(line), let type = members.text("type", line) else {
      return nil
    }
    switch type {
    case "": return nil
    case "hello":
      self = .hello(
        device: DeviceID(members.id("device", line) ?? UniqueID(high: 0, low: 0)),
        keepAlive: .seconds(members.number("keepAliveSeconds", line) ?? 0),
        time: members.time("time", line) ?? Instant(milliseconds: 0),
        isVirtual: members.text("clock", line) == "virtual",
        takesDecisions: members.isTrue("decisions", line), owner: members.text("owner", line))
    case "notification":
      guard let delivery = Delivery(members, line) else { return nil }
      self = .notification(delivery)
    case "broadcast":
      guard let broadcast = Broadcast(members, line) else { return nil }
      self = .broadcast(broadcast, sentAt: members.time("sentAt", line) ?? Instant(milliseconds: 0))
    case "empty": self = .empty(at: members.time("time", line))
    case "keepalive": self = .keepAlive(at: members.time("time", line))
    case "barrier":
      guard let number = members.number("number", line), let time = members.time("time", line),
        number >= 0
      else { return nil }
      self = .barrier(number: UInt64(number), time: time)
    case "checkpoint", "rewound", "checkpoint-dropped":
      guard let checkpoint = CheckpointLine(type, members, line) else { return nil }
      self = .checkpoint(checkpoint)
    case "bye":
      self = .bye(
        reason: members.text("reason", line) ?? "", owner: members.text("owner", line))
    case "error": self = .error(reason: members.text("reason", line) ?? "")
    default: self = .unknown(type: type)
    }
  }

  package func write(to bytes: inout [UInt8]) {
    var object = ObjectWriter()
    switch self {
    case .hello(let device, let keepAlive, let time, let isVirtual, let takesDecisions, let owner):
      object.member(.type, "hello", to: &bytes)
      object.member(.device, device.description, to: &bytes)
      object.member(.keepAliveSeconds, keepAlive.milliseconds / 1000, to: &bytes)
      object.member(.time, time.milliseconds, to: &bytes)
      object.member(.version, Version.number, to: &bytes)
      if isVirtual { object.member(.clock, "virtual", to: &bytes) }
      // Older relays do not understand decisions: newer phones send none without this.
      if takesDecisions { object.member(.decisions, json: Array("true".utf8), to: &bytes) }
      if let owner { object.member(.owner, owner, to: &bytes) }
    case .notification(let delivery): Self.write(delivery, &object, to: &bytes)
    case .broadcast(let broadcast, let sentAt): broadcast.write(sentAt: sentAt, &object, to: &bytes)
    case .empty(let time), .keepAlive(let time):
      let type = if case .empty = self { "empty" } else { "keepalive" }
      object.member(.type, type, to: &bytes)
      if let time { object.member(.time, time.milliseconds, to: &bytes) }
    case .barrier(let number, let time):
      object.member(.type, "barrier", to: &bytes)
      object.member(.number, Int64(clamping: number), to: &bytes)
      object.member(.time, time.milliseconds, to: &bytes)
    case .checkpoint(let line): line.write(&object, to: &bytes)
    case .bye(let reason, let owner):
      object.member(.type, "bye", to: &bytes)
      object.member(.reason, reason, to: &bytes)
      if let owner { object.member(.owner, owner, to: &bytes) }
    case .error(let reason):
      object.member(.type, "error", to: &bytes)
      object.member(.reason, reason, to: &bytes)
    case .unknown(let type): object.member(.type, type, to: &bytes)
    }
    object.end(&bytes)
  }

  // Members of which there are few, by the values' numbers.
  private static let notificationType = LineKey("type", is: "notification")
  private static let pushTypes = PushType.allCases.map { LineKey("pushType", is: $0.wireName) }
  private static let classes = NotificationClass.allCases.map { LineKey("class", is: $0.name) }
  private static let ways = Via.allCases.map { LineKey("via", is: $0.name) }

  private static func write(
    _ delivery: Delivery, _ object: inout ObjectWriter, to bytes: inout [UInt8]
  ) {
    let notification = delivery.notification
    object.member(notificationType, to: &bytes)
    object.member(.id, to: &bytes) { notification.apnsID.write(to: &$0) }
    object.member(.uniqueID, to: &bytes) { notification.uniqueID.write(to: &$0) }
    object.member(.topic, to: &bytes) { $0.append(contentsOf: notification.topic.bytes) }
    object.member(pushTypes[Int(notification.pushType.rawValue)], to: &bytes)
    object.member(.priority, Int64(notification.priority.rawValue), to: &bytes)
    object.member(classes[Int(notification.notificationClass.rawValue)], to: &bytes)
    if notification.wakesApp { object.member(.wakesApp, json: Array("true".utf8), to: &bytes) }
    object.member(ways[Int(delivery.via.rawValue)], to: &bytes)
    object.member(.acceptedAt, delivery.acceptedAt.milliseconds, to: &bytes)
    object.member(.sentAt, delivery.sentAt.milliseconds, to: &bytes)
    if case .at(let moment) = notification.expiration {
      object.member(.expiresAt, moment.milliseconds, to: &bytes)
    }
    if !notification.collapseID.isEmpty {
      let text = String(decoding: notification.collapseID, as: UTF8.self)
      object.member(.collapseID, text, to: &bytes)
    }
    object.member(.payload, json: notification.payload, to: &bytes)
  }
}

extension Delivery {
  /// Unknown names of a newer relay become the nearest known one.
  fileprivate init?(_ members: LineMembers, _ line: Span<UInt8>) {
    guard let id = members.id("id", line), let uniqueID = members.id("uniqueId", line) else {
      return nil
    }
    let isSilent = members.text("class", line) == NotificationClass.silent.name
    let via = members.text("via", line)
    let priority = members.number("priority", line).flatMap { UInt8(exactly: $0) }
    let notification = Notification(
      uniqueID: uniqueID, apnsID: id, token: .vacant,
      topic: members.text("topic", line).flatMap { Topic($0) } ?? .vacant,
      notificationClass: isSilent ? .silent : .visible,
      pushType: members.text("pushType", line).flatMap { PushType(wireName: Array($0.utf8).span) }
        ?? (isSilent ? .background : .alert),
      priority: priority.flatMap { Priority(rawValue: $0) } ?? .immediate,
      wakesApp: members.isTrue("wakesApp", line),
      collapseID: Array((members.text("collapseId", line) ?? "").utf8),
      expiration: members.time("expiresAt", line).map { .at($0) } ?? .once,
      payload: members.member("payload", line).map { line.extracting($0.value).array } ?? [])
    self.init(
      notification: notification, via: Via.allCases.first { $0.name == via } ?? .direct,
      acceptedAt: members.time("acceptedAt", line) ?? Instant(milliseconds: 0),
      sentAt: members.time("sentAt", line) ?? Instant(milliseconds: 0))
  }
}

/// A line about checkpoints to phones that follow a virtual clock (docs/CLOCK.md, "Back to where it
/// was"), such as `{"type":"rewound","number":3,"epoch":7,"time":1790000000000}`.
package enum CheckpointLine: Hashable, Sendable {
  /// The phone keeps its current state.
  case saved(number: UInt32)
  /// The phone returns to the kept state and time; the epoch identifies this return.
  case rewound(number: UInt32, epoch: UInt32, time: Instant)
  case dropped(number: UInt32)

  init?(_ type: String, _ members: LineMembers, _ line: Span<UInt8>) {
    guard let number = members.number("number", line).flatMap({ UInt32(exactly: $0) }) else {
      return nil
    }
    switch type {
    case "checkpoint": self = .saved(number: number)
    case "rewound":
      guard let epoch = members.number("epoch", line).flatMap({ UInt32(exactly: $0) }),
        let time = members.time("time", line)
      else { return nil }
      self = .rewound(number: number, epoch: epoch, time: time)
    case "checkpoint-dropped": self = .dropped(number: number)
    default: return nil
    }
  }

  func write(_ object: inout ObjectWriter, to bytes: inout [UInt8]) {
    let (type, number) =
      switch self {
      case .saved(let number): ("checkpoint", number)
      case .rewound(let number, _, _): ("rewound", number)
      case .dropped(let number): ("checkpoint-dropped", number)
      }
    object.member(.type, type, to: &bytes)
    object.member(.number, Int64(number), to: &bytes)
    guard case .rewound(_, let epoch, let time) = self else { return }
    object.member(.epoch, Int64(epoch), to: &bytes)
    object.member(.time, time.milliseconds, to: &bytes)
  }
}
