package import Primitives

/// What is in a document that consists of lines: a value. So what an edit has changed is the
/// difference of two values, to take it back is to take the earlier one, and both versions of a
/// conflict are simply there (WWDC 2016 session 419 on value types).
public struct DocumentText: Hashable, Codable, Sendable {
  public var lines: [String]

  public init(lines: [String] = []) { self.lines = lines }

  /// Every line ends with a line feed.
  public var bytes: Int64 { lines.reduce(0) { $0 + Int64($1.utf8.count) + 1 } }

  /// What has to be done to `old` to make this of it.
  public func difference(from old: DocumentText) -> CollectionDifference<String> {
    lines.difference(from: old.lines)
  }

  /// Puts words in the place of a line, counted from 1, or behind the last; nil removes it. False
  /// if there is no such line.
  mutating func set(line number: Int, to words: String?) -> Bool {
    let place = number - 1
    guard place >= 0, place < lines.count || place == lines.count && words != nil else {
      return false
    }
    lines.replaceSubrange(place..<min(place + 1, lines.count), with: words.map { [$0] } ?? [])
    return true
  }
}

/// All of a document at one time.
package struct DocumentBody: Hashable, Codable, Sendable {
  package var bytes: Int64
  /// Nil where nothing but the size is known.
  package var text: DocumentText?
  /// Two have written at once.
  package var isCorrupt: Bool?

  package init(bytes: Int64, text: DocumentText? = nil, isCorrupt: Bool? = nil) {
    self.bytes = max(0, bytes)
    self.text = text
    self.isCorrupt = isCorrupt
  }

  package init(text: DocumentText) { self.init(bytes: text.bytes, text: text) }

  /// What stands here for a small picture (ours): eight bytes that differ when what it shows does.
  package var thumbnail: [UInt8] {
    let shown = Array("\(bytes)|".utf8) + (text?.lines ?? []).flatMap { Array("\($0)\n".utf8) }
    // FNV-1a, 64 bits (RFC 9923 has the constants).
    let checksum = shown.reduce(0xCBF2_9CE4_8422_2325 as UInt64) {
      ($0 ^ UInt64($1)) &* 0x100_0000_01B3
    }
    return (0..<8).map { UInt8(truncatingIfNeeded: checksum >> (8 * UInt64($0))) }
  }
}

/// One of the versions of a document that was changed in two places.
package struct DocumentVersion: Hashable, Codable, Sendable {
  package let revision: Int
  package let body: DocumentBody
  package let modifiedAt: Instant
  /// Written on this phone, else elsewhere.
  package let isFromHere: Bool
}

/// What its user makes of a conflict.
public enum VersionChoice: Hashable, Codable, Sendable {
  /// The version with that number is to be the newest; the others go.
  case revision(Int)
  /// Each of the others becomes a document of its own.
  case all
}

extension CollectionDifference<String> {
  /// `-2 "milk", +2 "bread"`: lines counted from 1.
  package var words: String {
    let changes = map { change in
      switch change {
      case .remove(let offset, let line, _): "-\(offset + 1) \"\(line)\""
      case .insert(let offset, let line, _): "+\(offset + 1) \"\(line)\""
      }
    }
    return changes.isEmpty ? "nothing" : changes.joined(separator: ", ")
  }
}
