package import Primitives
package import RelayCore

/// What the relay says to a device: one JSON object a line (docs/PROTOCOL.md, "Device API").
///
/// ```
/// {"type":"hello","device":"…","keepAliveSeconds":900,"time":1790000000000,
///  "version":"0.9.0","decisions":true}
/// {"type":"notification","id":"…","uniqueId":"…","topic":"com.example.news",
///  "pushType":"background","priority":5,"class":"silent","via":"piggyback",
///  "acceptedAt":…,"sentAt":…,"expiresAt":…,"payload":{…}}
/// {"type":"empty"} {"type":"keepalive"}
/// {"type":"barrier","number":7,"time":1790000000000}
/// {"type":"bye","reason":"superseded"}
/// {"type":"error","reason":"type is ack, state, keepalive, decision or barrier"}
/// ```
///
/// Times are milliseconds since the UNIX epoch.
package enum DownLine: Equatable, Sendable {
  /// `isVirtual` says that the relay's clock moves only when told: the phone may follow it.
  case hello(device: DeviceID, keepAlive: Interval, time: Instant, isVirtual: Bool = false)
  case notification(Delivery)
  case empty
  case keepAlive
  /// It is this time now; `UpLine.barrier` with this number says that all is done that there was to
  /// do until now.
  case barrier(number: UInt64, time: Instant)
  case checkpoint(CheckpointLine)
  case bye(CloseReason)
  case error(UpLine.ParsingError)

  /// Writes the line with its line feed.
  package func write(to bytes: inout [UInt8]) {
    var object = ObjectWriter(&bytes)
    switch self {
    case .hello(let device, let keepAlive, let time, let isVirtual):
      object.member("type", "hello", to: &bytes)
      object.member("device", device.description, to: &bytes)
      object.member("keepAliveSeconds", keepAlive.milliseconds / 1000, to: &bytes)
      object.member("time", time.milliseconds, to: &bytes)
      object.member("version", Version.number, to: &bytes)
      if isVirtual { object.member("clock", "virtual", to: &bytes) }
      // So that a newer phone says nothing that an older relay does not understand.
      object.member("decisions", json: Array("true".utf8), to: &bytes)
    case .notification(let delivery):
      Self.write(delivery, &object, to: &bytes)
    case .empty:
      object.member("type", "empty", to: &bytes)
    case .keepAlive:
      object.member("type", "keepalive", to: &bytes)
    case .barrier(let number, let time):
      object.member("type", "barrier", to: &bytes)
      object.member("number", Int64(clamping: number), to: &bytes)
      object.member("time", time.milliseconds, to: &bytes)
    case .checkpoint(let line): line.write(&object, to: &bytes)
    case .bye(let reason):
      object.member("type", "bye", to: &bytes)
      object.member("reason", reason.name, to: &bytes)
    case .error(let unusable):
      object.member("type", "error", to: &bytes)
      object.member("reason", unusable.text, to: &bytes)
    }
    object.end(&bytes)
  }

  private static func write(
    _ delivery: Delivery, _ object: inout ObjectWriter, to bytes: inout [UInt8]
  ) {
    let notification = delivery.notification
    object.member("type", "notification", to: &bytes)
    object.member("id", to: &bytes) { notification.apnsID.write(to: &$0) }
    object.member("uniqueId", to: &bytes) { notification.uniqueID.write(to: &$0) }
    object.member("topic", to: &bytes) { $0.append(contentsOf: notification.topic.bytes) }
    object.member("pushType", notification.pushType.wireName, to: &bytes)
    object.member("priority", Int64(notification.priority.rawValue), to: &bytes)
    object.member("class", notification.notificationClass.name, to: &bytes)
    if notification.wakesApp { object.member("wakesApp", json: Array("true".utf8), to: &bytes) }
    object.member("via", delivery.via.name, to: &bytes)
    object.member("acceptedAt", delivery.acceptedAt.milliseconds, to: &bytes)
    object.member("sentAt", delivery.sentAt.milliseconds, to: &bytes)
    if case .at(let moment) = notification.expiration {
      object.member("expiresAt", moment.milliseconds, to: &bytes)
    }
    if !notification.collapseID.isEmpty {
      let text = String(decoding: notification.collapseID, as: UTF8.self)
      object.member("collapseId", text, to: &bytes)
    }
    object.member("payload", json: notification.payload, to: &bytes)
  }
}
