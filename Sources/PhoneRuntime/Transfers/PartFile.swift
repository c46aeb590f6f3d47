import FoundationEssentials
import NIOCore
import NIOHTTP1
import NIOPosix
import SystemPackage

/// A download in progress: `<file>.part` with the bytes so far, `<file>.part.json` with what is
/// needed to resume. Both survive the process, but not a power cut: nothing is synced.
struct PartFile: Hashable, Sendable {
  struct Note: Codable, Hashable {
    let url: String
    /// Its `ETag` or `Last-Modified`.
    let validator: String
    /// The full size, if known.
    let bytes: Int64?
  }

  let file: String

  var path: String { file + ".part" }
  private var notePath: String { path + ".json" }

  /// Nil if there is no partial download, or none that can be resumed safely.
  func rest(for url: String) -> (note: Note, bytes: Int64)? {
    guard let text = FileManager.default.contents(atPath: notePath),
      let note = try? JSONDecoder().decode(Note.self, from: text), note.url == url,
      let bytes = try? FilePath(path).stat().size, bytes > 0, bytes <= note.bytes ?? .max
    else { return nil }
    return (note, bytes)
  }

  /// Nil: the download cannot be resumed.
  func save(_ note: Note?) {
    let text = note.flatMap { try? JSONEncoder().encode($0) }
    let isWritten = text.map {
      // The address may hold a secret.
      FileManager.default.createFile(
        atPath: notePath, contents: $0, attributes: [.posixPermissions: 0o600])
    }
    // Without a note the download starts over, which is always right.
    if isWritten != true { try? FileManager.default.removeItem(atPath: notePath) }
  }

  func complete() throws(TransferError) {
    try? FileManager.default.removeItem(atPath: file)
    do {
      try FileManager.default.moveItem(atPath: path, toPath: file)
    } catch {
      throw .failed("the file cannot be put in its place: \(error)")
    }
    save(nil)
  }

  func discard() {
    try? FileManager.default.removeItem(atPath: path)
    save(nil)
  }
}

extension PartFile.Note {
  /// Nil if the answer has no strong validator (RFC 9110, section 8.8): a weak tag is none, nor is
  /// a modification time in the same second as the answer.
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

  func allows(_ headers: HTTPHeaders) -> Bool {
    guard validator.hasPrefix("\""), let tag = headers.first(name: "ETag") else { return true }
    return tag == validator
  }
}

/// The `Content-Range` field (RFC 9110, section 14.4).
enum ContentRange: Hashable {
  /// Status 206: first to last byte, inclusive, of the full size if known.
  case part(ClosedRange<Int64>, of: Int64?)
  /// Status 416: nothing in the range; the full size.
  case none(of: Int64)

  /// Nil for anything malformed.
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

  /// Digits only: `Int64` also accepts a sign.
  private static func number(_ text: Substring) -> Int64? {
    text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
  }
}

/// Writes a download to its part file in blocks, without gaps.
struct PartWriter: ~Copyable {
  private let descriptor: SystemPackage.FileDescriptor
  private var pending = ByteBuffer()
  /// Including pending bytes.
  private(set) var bytes: Int64

  /// Appends after `bytes`; 0 starts a new file.
  init(_ path: String, behind bytes: Int64) throws(TransferError) {
    do {
      descriptor = try SystemPackage.FileDescriptor.open(
        FilePath(path), .writeOnly, options: bytes == 0 ? [.create, .truncate] : [.append],
        permissions: [.ownerReadWrite])
    } catch {
      throw TransferError(error)
    }
    self.bytes = bytes
  }

  deinit { try? descriptor.close() }

  /// Full blocks are written on a thread that may block.
  mutating func append(_ chunk: ByteBuffer) async throws(TransferError) {
    pending.writeImmutableBuffer(chunk)
    bytes += Int64(chunk.readableBytes)
    guard pending.readableBytes >= TransferOptions.blockSize else { return }
    let block = pending
    pending = ByteBuffer()
    let descriptor = descriptor
    do {
      _ = try await NIOThreadPool.singleton.runIfActive {
        try descriptor.writeAll(block.readableBytesView)
      }
    } catch {
      throw TransferError(error)
    }
  }

  /// Writes the rest, less than a block, synchronously: a cancelled task cannot wait.
  mutating func finish() throws(TransferError) {
    let block = pending
    pending = ByteBuffer()
    do {
      try descriptor.writeAll(block.readableBytesView)
    } catch {
      throw TransferError(error)
    }
  }
}
