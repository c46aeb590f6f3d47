import RelayCore

/// The topics that a key or certificate covers, looked up without allocating.
package struct TopicList: Sendable, Equatable {
  /// Sorted by their bytes, without duplicates.
  package let names: [String]
  /// True if a bundle ID also covers its suffixed topics (`com.example.app.voip`, …).
  package let coversSuffixes: Bool
  private let sorted: [[UInt8]]

  /// The suffixes that push types put after the bundle ID.
  private static let suffixes = PushType.allCases.map(\.topicSuffix).filter { !$0.isEmpty }
    .map { Array($0.utf8) }
  private static let locationSuffix = Array(PushType.location.topicSuffix.utf8)

  package init(_ names: some Sequence<String>, coversSuffixes: Bool) {
    sorted = Set(names).map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
    self.names = sorted.map { String(decoding: $0, as: UTF8.self) }
    self.coversSuffixes = coversSuffixes
  }

  /// Returns whether `topic`, compared byte by byte, is covered.
  package func contains(_ topic: Span<UInt8>) -> Bool {
    if containsExactly(topic) { return true }
    guard coversSuffixes else { return false }
    for suffix in Self.suffixes where Self.hasSuffix(topic, suffix) {
      if containsExactly(topic.extracting(0..<(topic.count - suffix.count))) { return true }
    }
    return false
  }

  /// Returns whether `topic` is for location pushes, which need a token (Apple, "Sending
  /// notification requests to APNs").
  package static func isLocationTopic(_ topic: Span<UInt8>) -> Bool {
    hasSuffix(topic, locationSuffix)
  }

  private func containsExactly(_ topic: Span<UInt8>) -> Bool {
    var low = 0
    var high = sorted.count
    while low < high {
      let middle = (low + high) / 2
      switch Self.order(of: sorted[middle], to: topic) {
      case 0: return true
      case ..<0: low = middle + 1
      default: high = middle
      }
    }
    return false
  }

  /// Negative, zero or positive as `name` sorts before, with or after `topic`.
  private static func order(of name: [UInt8], to topic: Span<UInt8>) -> Int {
    let shared = min(name.count, topic.count)
    var index = 0
    while index < shared {
      let difference = Int(name[index]) - Int(topic[index])
      if difference != 0 { return difference }
      index += 1
    }
    return name.count - topic.count
  }

  private static func hasSuffix(_ topic: Span<UInt8>, _ suffix: [UInt8]) -> Bool {
    guard topic.count > suffix.count else { return false }
    return suffix.span.isEqual(to: topic.extracting(last: suffix.count))
  }
}

extension Span<UInt8> {
  /// Compares all bytes without stopping at a difference: so the loop is compiled to vector
  /// instructions, and its time tells nothing about a guessed credential.
  package func isEqual(to other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    var difference: UInt8 = 0
    for index in 0..<count { difference |= self[index] ^ other[index] }
    return difference == 0
  }
}
