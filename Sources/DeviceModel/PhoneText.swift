package import Primitives

extension PushOutcome: CustomStringConvertible {
  /// As in the notification's log.
  package var description: String {
    switch self {
    case .newData: "newData"
    case .noData: "noData"
    case .failed: "failed"
    case .notLaunched(let refusal): "not launched: \(refusal.rawValue)"
    case .replaced: "not launched: replaced by a newer one"
    case .shown: "shown"
    case .notShown(let refusal):
      "not shown: " + refusal.words("its app", time: \.iso8601) { _ in "a newer one" }
    }
  }
}

extension RunCause: CustomStringConvertible {
  public var description: String {
    switch self {
    case .user: "the user"
    case .push(let push): "push \(push.number)"
    case .fetch: "fetch"
    case .transfers: "transfers"
    case .authentication: "a server's question"
    case .region: "a place"
    case .document: "a document"
    case .activity: "a Live Activity"
    }
  }
}

extension ScreenContent: CustomStringConvertible {
  package var description: String {
    switch self {
    case .content(let revision, let top):
      "revision \(revision)" + (top.map { ", \($0) on top" } ?? "")
    case .hidden: "hidden content"
    }
  }
}

extension ContentFile {
  package static func words(_ files: [ContentFile]) -> String {
    let items = files.flatMap(\.items)
    return items.isEmpty ? "\(files.count)" : "\(files.count): \(items.joined(separator: ", "))"
  }
}

extension ArchiveStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .saved(let archive): "saved, \(archive.graph.objects.count) objects"
    case .kept: "kept as it was"
    case .deleted: "deleted"
    case .transformed(let old, let new): "of version \(old), made one of \(new)"
    case .encoded(let path): "\(path): encoded"
    case .row(let path, let key, let place):
      "\(path): \(key) \(place.map { "is row \($0) now" } ?? "is gone")"
    case .step(let step): "\(step)"
    }
  }
}

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
