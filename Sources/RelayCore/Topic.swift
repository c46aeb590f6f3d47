/// An `apns-topic`: a bundle identifier, with a suffix for some push types. Only characters of
/// Apple's identifiers are accepted: letters, digits, hyphen, dot, and underscore, which some older
/// clients use.
package struct Topic: Hashable, Sendable, CustomStringConvertible {
  package let bytes: [UInt8]

  /// A placeholder: free slab places and queries.
  package static let vacant = Topic()

  private init() { bytes = [] }

  /// Nil if the bytes are no topic.
  package init?(_ text: Span<UInt8>) {
    guard Limits.topicBytes.contains(text.count) else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    for index in 0..<text.count {
      guard Self.isAllowed(text[index]) else { return nil }
      bytes.append(text[index])
    }
    self.bytes = bytes
  }

  package init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    self.init(bytes.span)
  }

  package var description: String { String(decoding: bytes, as: UTF8.self) }

  /// Compares without an allocation, for the hot path.
  package func equals(_ text: Span<UInt8>) -> Bool { areEqual(bytes.span, text) }

  package static func == (left: Topic, right: Topic) -> Bool {
    let (one, other) = (left.bytes.span, right.bytes.span)
    return one.isIdentical(to: other) || areEqual(one, other)
  }

  private static func isAllowed(_ character: UInt8) -> Bool {
    switch character {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
      UInt8(ascii: "_"):
      true
    default:
      false
    }
  }
}

/// Shares storage between equal topics: they are few, for a million notifications.
package struct TopicCache: Sendable {
  private var places: [Topic?] = []

  package init() {}

  package mutating func topic(_ bytes: Span<UInt8>) -> Topic? {
    guard !bytes.isEmpty else { return nil }
    if places.isEmpty { places = [Topic?](repeating: nil, count: 256) }
    // One provider's bundle identifiers differ at their ends.
    let size = UInt8(truncatingIfNeeded: bytes.count)
    let place = Int(bytes[bytes.count - 1] &* 31 ^ bytes[bytes.count / 2] ^ size)
    if let known = places[place], known.equals(bytes) { return known }
    guard let topic = Topic(bytes) else { return nil }
    places[place] = topic
    return topic
  }
}
