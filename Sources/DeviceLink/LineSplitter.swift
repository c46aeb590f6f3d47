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

  package init(limitBytes: Int = Limits.lineBytes) {
    self.limitBytes = limitBytes
  }

  /// Whether nothing is kept for the bytes that come next.
  package var isIdle: Bool { rest.isEmpty && !isSkipping }

  /// Passes each complete line to `body`, in order.
  package mutating func receive(_ bytes: Span<UInt8>, _ body: (Piece) -> Void) {
    var start = 0
    while start < bytes.count {
      var end = start
      while end < bytes.count, bytes[end] != UInt8(ascii: "\n") { end += 1 }
      keep(bytes.extracting(start..<end), body)
      if end < bytes.count { finish(body) }
      start = end + 1
    }
  }

  private mutating func keep(_ part: Span<UInt8>, _ body: (Piece) -> Void) {
    guard !isSkipping, !part.isEmpty else { return }
    let count = rest.count + part.count
    // One byte more may be the carriage return of the line's end.
    let isEnd = count == limitBytes + 1 && part[part.count - 1] == UInt8(ascii: "\r")
    guard count <= limitBytes || isEnd else {
      rest = []
      isSkipping = true
      return body(.tooLong)
    }
    rest.append(addingCapacity: part.count) { output in
      for index in part.indices { output.append(part[index]) }
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
    // No buffer is kept: a stream may be idle for days.
    body(.line(exchange(&rest, with: [])))
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
