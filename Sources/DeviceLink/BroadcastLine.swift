import Primitives
import RelayCore

/// A broadcast in a line to a device: one for all, as nothing in it is a phone's own.
extension Broadcast {
  init?(_ members: LineMembers, _ line: Span<UInt8>) {
    guard let channel = members.text("channel", line).flatMap({ ChannelID($0) }),
      let uniqueID = members.id("uniqueId", line)
    else { return nil }
    let priority = members.number("priority", line).flatMap { UInt8(exactly: $0) }
    self.init(
      channel: channel,
      number: members.number("number", line).flatMap { UInt64(exactly: $0) } ?? 0,
      acceptedAt: members.time("acceptedAt", line) ?? Instant(milliseconds: 0),
      notification: Notification(
        uniqueID: uniqueID, apnsID: uniqueID, token: channel.token,
        topic: members.text("topic", line).flatMap { Topic($0) } ?? .vacant,
        notificationClass: .visible, pushType: .liveactivity,
        priority: priority.flatMap { Priority(rawValue: $0) } ?? .immediate, wakesApp: false,
        collapseID: [], expiration: members.time("expiresAt", line).map { .at($0) } ?? .once,
        payload: members.member("payload", line).map { line.extracting($0.value).array } ?? []))
  }

  func write(sentAt: Instant, _ object: inout ObjectWriter, to bytes: inout [UInt8]) {
    object.member(.type, "broadcast", to: &bytes)
    object.member(.channel, channel.description, to: &bytes)
    object.member(.uniqueID, to: &bytes) { notification.uniqueID.write(to: &$0) }
    object.member(.topic, to: &bytes) { $0.append(contentsOf: notification.topic.bytes) }
    object.member(.priority, Int64(notification.priority.rawValue), to: &bytes)
    object.member(.number, Int64(clamping: number), to: &bytes)
    object.member(.acceptedAt, acceptedAt.milliseconds, to: &bytes)
    object.member(.sentAt, sentAt.milliseconds, to: &bytes)
    if case .at(let moment) = notification.expiration {
      object.member(.expiresAt, moment.milliseconds, to: &bytes)
    }
    object.member(.payload, json: notification.payload, to: &bytes)
  }
}
