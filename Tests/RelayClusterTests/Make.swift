import Primitives
import RelayCore
import RelayRecording
import RelayStore

@testable import RelayCluster

/// Values for tests.
enum Make {
  static let topic = Topic(Array("com.example.app".utf8).span)!

  static func token(_ number: UInt64) -> DeviceToken {
    DeviceToken(random: (1, 2, number), routingKey: number)
  }

  static func device(_ number: UInt64) -> DeviceID { DeviceID(UniqueID(high: number, low: 7)) }

  static let secret = SecretHash(words: (1, 2, 3, 4))

  static func notification(_ number: UInt64, token: UInt64) -> Notification {
    Notification(
      uniqueID: UniqueID(high: 1, low: number), apnsID: UniqueID(high: 2, low: number),
      token: Make.token(token), topic: topic, notificationClass: .visible, pushType: .alert,
      priority: .immediate, wakesApp: false, collapseID: [],
      expiration: .at(Instant(milliseconds: 1_000_000)),
      payload: Array(#"{"aps":{"alert":"\#(number)"}}"#.utf8))
  }

  static let channel = ChannelID(high: 5, low: 6)

  /// A channel with the newest broadcast of this number, 0 for none.
  static func stored(_ id: ChannelID = channel, newest number: UInt64 = 0) -> StoredChannel {
    StoredChannel(
      channel: .init(
        id: id, bundle: topic, policy: .mostRecent, createdAt: Instant(milliseconds: 3)),
      newest: number == 0 ? nil : broadcast(number, on: id))
  }

  static func broadcast(_ number: UInt64, on id: ChannelID = channel) -> Broadcast {
    Broadcast(
      channel: id, number: number, acceptedAt: Instant(milliseconds: 4),
      notification: notification(number, token: 1))
  }

  static func forwarded(
    _ sequence: UInt64, token: UInt64, to device: UInt64, mayLinger: Bool = false, at now: Instant
  ) -> JournalRecord {
    JournalRecord(
      sequence: sequence,
      content: .forwarded(
        notification(sequence, token: token), to: Make.device(device), at: now),
      mayLinger: mayLinger)
  }

  static func accepted(
    _ sequence: UInt64, token: UInt64, mayLinger: Bool = false, at now: Instant
  ) -> JournalRecord {
    JournalRecord(
      sequence: sequence, content: .accepted(notification(sequence, token: token), at: now),
      mayLinger: mayLinger)
  }
}
