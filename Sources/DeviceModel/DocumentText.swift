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

  /// The same with a difference made; nil if it does not fit.
  public func applying(_ difference: CollectionDifference<String>) -> DocumentText? {
    lines.applying(difference).map { DocumentText(lines: $0) }
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

  init(bytes: Int64) { self.bytes = max(0, bytes) }

  init(text: DocumentText) {
    bytes = text.bytes
    self.text = text
  }

  /// A small picture of it, one dot for four characters of a line: a bitmap of 16 by 16 dots in two
  /// colours, 126 bytes as every program reads them.
  package var thumbnail: [UInt8] {
    let side = 16
    func number(_ value: UInt32) -> [UInt8] {
      (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) }
    }
    var file = Array("BM".utf8) + number(126) + number(0) + number(62)
    file += number(40) + number(UInt32(side)) + number(UInt32(side)) + [1, 0, 1, 0]
    file += number(0) + number(64) + number(0) + number(0) + number(2) + number(2)
    file += [255, 255, 255, 0] + [0, 0, 0, 0]
    // The lowest row comes first, each in four bytes.
    for row in (0..<side).reversed() {
      let line = text.flatMap { row < $0.lines.count ? $0.lines[row] : nil } ?? ""
      let dots = min(side, (line.count + 3) / 4)
      let bits = dots == 0 ? UInt16(0) : ~UInt16(0) << UInt16(side - dots)
      file += [UInt8(bits >> 8), UInt8(truncatingIfNeeded: bits), 0, 0]
    }
    return file
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
