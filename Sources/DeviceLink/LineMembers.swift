import Primitives
import RelayCore

/// A line's members as ranges. The last of a name counts; null means absent.
struct LineMembers {
  private var found: [ObjectCursor.Member] = []

  init(_ line: Span<UInt8>) throws(PayloadError) {
    found.reserveCapacity(16)
    var cursor = try ObjectCursor(line)
    while let member = try cursor.next(line) {
      if !member.isNull { found.append(member) }
    }
  }

  func member(_ key: String, _ line: Span<UInt8>) -> ObjectCursor.Member? {
    found.last { line.extracting($0.key).says(key) }
  }

  func text(_ key: String, _ line: Span<UInt8>) -> String? {
    guard let member = member(key, line), member.isString else { return nil }
    return line.extracting(member.text).unescapedText(limitBytes: Limits.lineBytes)
  }

  func number(_ key: String, _ line: Span<UInt8>) -> Int64? {
    member(key, line).flatMap { Int64(line.extracting($0.value).plainText) }
  }

  func time(_ key: String, _ line: Span<UInt8>) -> Instant? {
    number(key, line).map { Instant(milliseconds: $0) }
  }

  func isTrue(_ key: String, _ line: Span<UInt8>) -> Bool {
    member(key, line).map { line.extracting($0.value).says("true") } ?? false
  }

  func id(_ key: String, _ line: Span<UInt8>) -> UniqueID? {
    guard let member = member(key, line), member.isString else { return nil }
    return UniqueID(parsing: line.extracting(member.text))
  }
}
