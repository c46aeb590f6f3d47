import Primitives
import RelayCore

/// Splits a byte stream into lines. A line ends with a line feed; a carriage return before it and
/// empty lines are dropped. A line above `Limits.lineBytes` is reported once and skipped.
package struct LineSplitter: Sendable {
  package enum Piece: Equatable, Sendable {
    /// A line without its end; never empty.
    case line([UInt8])
    case tooLong
  }

  private var rest: [UInt8] = []
  private var isSkipping = false
  private let limitBytes: Int
  private static let keptBytes = 256

  package init(limitBytes: Int = Limits.lineBytes) {
    self.limitBytes = limitBytes
  }

  /// Passes each complete line to `body`, in order.
  package mutating func receive(_ bytes: Span<UInt8>, _ body: (Piece) -> Void) {
    var index = 0
    while index < bytes.count {
      let byte = bytes[index]
      index += 1
      if byte == UInt8(ascii: "\n") {
        finish(body)
      } else if !isSkipping {
        rest.append(byte)
        // One byte more may be the carriage return of the line's end.
        let isEnd = rest.count == limitBytes + 1 && byte == UInt8(ascii: "\r")
        if rest.count > limitBytes, !isEnd {
          rest.removeAll(keepingCapacity: false)
          isSkipping = true
          body(.tooLong)
        }
      }
    }
  }

  /// Ends a line; at the end of the stream, bytes after the last line feed are one.
  package mutating func finish(_ body: (Piece) -> Void) {
    if isSkipping {
      isSkipping = false
      return
    }
    if rest.last == UInt8(ascii: "\r") { rest.removeLast() }
    guard !rest.isEmpty else { return }
    body(.line(rest))
    // Reuses the buffer for lines of ordinary size, unless `body` kept it. A large one is freed: a
    // stream may be idle for days.
    if rest.capacity > Self.keptBytes {
      rest = []
    } else {
      rest.removeAll(keepingCapacity: true)
    }
  }
}

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
