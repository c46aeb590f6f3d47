import FoundationEssentials
import NIOHTTP1
import SystemPackage

/// A download on its way: `<file>.part` with the bytes so far, and `<file>.part.json` with what is
/// needed to go on. Both outlive the process, not a power cut: nothing is forced onto the disk.
struct PartFile: Hashable, Sendable {
  /// What is known of the file at the server, beside the bytes.
  struct Note: Codable, Hashable {
    let url: String
    /// The server's name for this version of the file, by `ETag` or `Last-Modified`.
    let validator: String
    /// How long the whole is, if the server said so.
    let bytes: Int64?
  }

  /// Where the whole goes in the end.
  let file: String

  var path: String { file + ".part" }
  private var notePath: String { path + ".json" }

  /// What a download of that address can go on from: the note, and how many bytes are there. Nil if
  /// there is nothing, or nobody could tell that it is the same file.
  func rest(for url: String) -> (note: Note, bytes: Int64)? {
    guard let text = FileManager.default.contents(atPath: notePath),
      let note = try? JSONDecoder().decode(Note.self, from: text), note.url == url,
      let bytes = try? FilePath(path).stat().size, bytes > 0, bytes <= note.bytes ?? .max
    else { return nil }
    return (note, bytes)
  }

  /// Notes what the first byte is a part of, or that it could not be continued.
  func note(_ note: Note?) {
    let text = note.flatMap { try? JSONEncoder().encode($0) }
    let isWritten = text.map {
      // The address may hold a secret.
      FileManager.default.createFile(
        atPath: notePath, contents: $0, attributes: [.posixPermissions: 0o600])
    }
    // Without it the download starts over, which is always right.
    if isWritten != true { try? FileManager.default.removeItem(atPath: notePath) }
  }

  /// Everything is there.
  func complete() throws(TransferError) {
    try? FileManager.default.removeItem(atPath: file)
    do {
      try FileManager.default.moveItem(atPath: path, toPath: file)
    } catch {
      throw .failed("the file cannot be put in its place: \(error)")
    }
    note(nil)
  }

  /// It is of no use any more.
  func discard() {
    try? FileManager.default.removeItem(atPath: path)
    note(nil)
  }
}

extension PartFile.Note {
  /// From the head of an answer with the whole file; nil if its version has no name that is safe
  /// to go on by (RFC 9110, section 8.8): a weak tag is none, nor is a time of change within the
  /// second in which the answer was made.
  init?(_ url: String, _ headers: HTTPHeaders, bytes: Int64?) {
    let tag = headers.first(name: "ETag").flatMap {
      $0.hasPrefix("\"") && $0.hasSuffix("\"") && $0.utf8.count > 1 ? $0 : nil
    }
    let date = headers.first(name: "Date")
    let time = headers.first(name: "Last-Modified").flatMap { date == nil || $0 == date ? nil : $0 }
    guard let validator = tag ?? time, validator.utf8.count <= 1000,
      validator.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
    else { return nil }
    self.init(url: url, validator: validator, bytes: bytes)
  }

  /// Whether an answer may be a part of the same version.
  func allows(_ headers: HTTPHeaders) -> Bool {
    guard validator.hasPrefix("\""), let tag = headers.first(name: "ETag") else { return true }
    return tag == validator
  }
}

/// The field `Content-Range` (RFC 9110, section 14.4).
enum ContentRange: Hashable {
  /// Of status 206: from the first to the last byte, both included, of so many, if that is known.
  case part(ClosedRange<Int64>, of: Int64?)
  /// Of status 416: there is nothing in the range, the whole has so many.
  case none(of: Int64)

  /// Nil for anything that does not follow the grammar, or makes no sense.
  init?(_ text: String) {
    let words = text.split(separator: " ", maxSplits: 1)
    guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
    let halves = words[1].split(separator: "/", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    let whole = Self.number(halves[1])
    guard whole != nil || halves[1] == "*" else { return nil }
    if halves[0] == "*" {
      guard let whole else { return nil }
      self = .none(of: whole)
      return
    }
    let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]),
      first <= last, last < whole ?? .max
    else { return nil }
    self = .part(first...last, of: whole)
  }

  /// Digits only: `Int64` would take a sign too.
  private static func number(_ text: Substring) -> Int64? {
    text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
  }
}
