package import Primitives

/// The lines of a text document, as a value: an edit is a difference of two values, and undo
/// restores the earlier one (WWDC 2016 session 419 on value types).
public struct DocumentText: Hashable, Codable, Sendable {
  public var lines: [String]

  public init(lines: [String] = []) { self.lines = lines }

  /// Every line ends with a line feed.
  public var bytes: Int64 { lines.reduce(0) { $0 + Int64($1.utf8.count) + 1 } }

  public func difference(from old: DocumentText) -> CollectionDifference<String> {
    lines.difference(from: old.lines)
  }

  /// Replaces a line, counted from 1, or appends after the last; nil removes it. Returns false if
  /// there is no such line.
  mutating func set(line number: Int, to words: String?) -> Bool {
    let place = number - 1
    guard place >= 0, place < lines.count || place == lines.count && words != nil else {
      return false
    }
    lines.replaceSubrange(place..<min(place + 1, lines.count), with: words.map { [$0] } ?? [])
    return true
  }
}

/// The whole content of a document at one time.
package struct DocumentBody: Hashable, Codable, Sendable {
  package var bytes: Int64
  package var text: DocumentText?
  package var isCorrupt: Bool?

  package init(bytes: Int64, text: DocumentText? = nil, isCorrupt: Bool? = nil) {
    self.bytes = max(0, bytes)
    self.text = text
    self.isCorrupt = isCorrupt
  }

  package init(text: DocumentText) { self.init(bytes: text.bytes, text: text) }

  /// Stands for a small picture (ours): eight bytes that change with the content.
  package var thumbnail: [UInt8] {
    let shown = Array("\(bytes)|".utf8) + (text?.lines ?? []).flatMap { Array("\($0)\n".utf8) }
    // FNV-1a, 64 bits (RFC 9923 has the constants).
    let checksum = shown.reduce(0xCBF2_9CE4_8422_2325 as UInt64) {
      ($0 ^ UInt64($1)) &* 0x100_0000_01B3
    }
    return (0..<8).map { UInt8(truncatingIfNeeded: checksum >> (8 * UInt64($0))) }
  }
}

/// One version of a document in conflict.
package struct DocumentVersion: Hashable, Codable, Sendable {
  package let revision: Int
  package let body: DocumentBody
  package let modifiedAt: Instant
  package let isFromHere: Bool
}

/// How the user resolves a conflict.
public enum VersionChoice: Hashable, Codable, Sendable {
  /// This version becomes the newest; the others are removed.
  case revision(Int)
  /// Each other version becomes a document of its own.
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
