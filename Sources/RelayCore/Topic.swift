import Primitives

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

  /// Whether this is the name of one of several registrations for that topic: a device has tokens
  /// to start Live Activities, and one for each activity, under the topic and `.PART`
  /// (docs/PROTOCOL.md, "Live Activities"). Providers push to the topic.
  package func isPart(of topic: Topic) -> Bool {
    let (whole, own) = (topic.bytes, bytes)
    return own.count > whole.count + 1 && own[whole.count] == UInt8(ascii: ".")
      && PushType.liveactivity.fits(topic: whole.span)
      && areEqual(own.span.extracting(first: whole.count), whole.span)
  }

  /// The topic that providers push to: itself, unless it is a part.
  package var whole: Topic {
    let marker = Self.marker
    guard bytes.count > marker.count,
      let start = (0..<bytes.count - marker.count).first(where: { start in
        bytes[start] == marker[0] && bytes[start..<start + marker.count].elementsEqual(marker)
      })
    else { return self }
    return Topic(bytes.span.extracting(first: start + marker.count - 1)) ?? self
  }

  private static let marker = Array("\(PushType.liveactivity.topicSuffix).".utf8)

  package static func == (left: Topic, right: Topic) -> Bool {
    let (one, other) = (left.bytes.span, right.bytes.span)
    return one.isIdentical(to: other) || areEqual(one, other)
  }

  private static func isAllowed(_ character: UInt8) -> Bool {
    character.isLetterOrDigit || character == UInt8(ascii: ".") || character == UInt8(ascii: "-")
      || character == UInt8(ascii: "_")
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
