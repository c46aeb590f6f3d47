import Primitives
import RelayCore
import RelayRecording

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
