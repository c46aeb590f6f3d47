package import Primitives

/// The id of a broadcast channel: 16 random bytes, never issued twice. Written in base64 (RFC 4648
/// section 4), read in that or its alphabet for paths (section 5), with or without padding.
package struct ChannelID: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let high: UInt64
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    (self.high, self.low) = (high, low)
  }

  package init?(_ text: some StringProtocol) {
    self.init(Array(text.utf8).span)
  }

  /// Nil for anything but the base64 of 16 bytes.
  package init?(_ text: Span<UInt8>) {
    var count = text.count
    if count == 24, text[22] == UInt8(ascii: "="), text[23] == UInt8(ascii: "=") { count = 22 }
    guard count == 22 else { return nil }
    var (high, low): (UInt64, UInt64) = (0, 0)
    for index in 0..<21 {
      guard let value = Self.value(text[index]) else { return nil }
      (high, low) = (high << 6 | low >> 58, low << 6 | value)
    }
    // The last character has two more bits, then four that must be 0.
    guard let value = Self.value(text[21]), value & 15 == 0 else { return nil }
    self.init(high: high << 2 | low >> 62, low: low << 2 | value >> 4)
  }

  package var description: String { text(Self.alphabet) + "==" }

  /// For paths: RFC 4648 section 5, without padding.
  package var pathText: String { text(Self.alphabet.dropLast(2) + Array("-_".utf8)) }

  package static func < (left: ChannelID, right: ChannelID) -> Bool {
    (left.high, left.low) < (right.high, right.low)
  }

  /// Its bytes in the place of a token: a broadcast is a notification to a channel.
  package var token: DeviceToken { DeviceToken(name: high, routingKey: low) }

  private func text(_ alphabet: [UInt8]) -> String {
    let characters = (0..<22).map { index in
      let shift = 122 - 6 * index
      let bits: UInt64
      if shift >= 64 {
        bits = high >> UInt64(shift - 64)
      } else if shift >= 0 {
        bits = high << UInt64(64 - shift) | low >> UInt64(shift)
      } else {
        bits = low << 4
      }
      return alphabet[Int(bits & 63)]
    }
    return String(decoding: characters, as: UTF8.self)
  }

  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  private static func value(_ character: UInt8) -> UInt64? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt64(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt64(character - UInt8(ascii: "a") + 26)
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(character - UInt8(ascii: "0") + 52)
    case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
    case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
    default: nil
    }
  }
}

extension Topic {
  /// The bundle id whose channels an app with this topic may subscribe to: Live Activities have a
  /// topic of their own.
  package var bundle: Topic {
    let suffix = PushType.liveactivity.topicSuffix.utf8
    guard PushType.liveactivity.fits(topic: bytes.span) else { return self }
    return Topic(bytes.span.extracting(0..<(bytes.count - suffix.count))) ?? self
  }
}

/// A channel's `message-storage-policy`, for good (Apple, "Sending channel management requests to
/// APNs").
package enum StoragePolicy: UInt8, CaseIterable, Sendable {
  /// Only phones that are connected get a broadcast.
  case nothing = 0
  /// The newest broadcast waits for phones that connect or subscribe later.
  case mostRecent = 1

  /// How many broadcasts a channel takes. Apple publishes no numbers and says only that a channel
  /// that stores nothing may have more: these are ours.
  package var publishing: RateLimit {
    switch self {
    case .nothing: RateLimit(20, per: .seconds(1), burst: 200)
    case .mostRecent: RateLimit(2, per: .seconds(1), burst: 60)
    }
  }
}

/// A broadcast: one notification for all subscribers of a channel, whose payload exists once.
package struct Broadcast: Hashable, Sendable {
  package var channel: ChannelID
  /// Rises within a relay.
  package var number: UInt64
  package var acceptedAt: Instant
  /// Its token is the channel's, its topic the bundle id; it expires at the end of its storage.
  package var notification: Notification

  package init(
    channel: ChannelID, number: UInt64, acceptedAt: Instant, notification: Notification
  ) {
    self.channel = channel
    self.number = number
    self.acceptedAt = acceptedAt
    self.notification = notification
  }

  /// Whether later phones get it, too.
  package func isStored(at now: Instant) -> Bool {
    if case .at(let end) = notification.expiration { now < end } else { false }
  }
}
