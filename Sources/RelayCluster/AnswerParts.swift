import RelayCore

/// An answer of one node to another that may be longer than a message: in parts, of which the last
/// says how long all of it is, so that one with a part missing is none. A value.
struct AnswerParts: Hashable, Sendable {
  private var bytes: [UInt8] = []

  /// The messages of an answer, in order; one that is too long is empty.
  static func split(_ answer: [UInt8]) -> [[UInt8]] {
    guard answer.count <= Limits.nodeAnswerBytes else { return [[]] }
    var parts: [[UInt8]] = []
    var rest = answer[...]
    repeat {
      parts.append(Array(rest.prefix(Limits.hopMessageBytes)))
      rest = rest.dropFirst(Limits.hopMessageBytes)
    } while !rest.isEmpty
    return parts
  }

  /// Takes in a part that is not the last one. No more is kept than an answer may have.
  mutating func add(_ part: [UInt8]) {
    guard bytes.count + part.count <= Limits.nodeAnswerBytes else { return }
    bytes += part
  }

  /// All of it; nil when something is missing.
  func whole(with last: [UInt8], totalBytes: Int) -> [UInt8]? {
    guard bytes.count + last.count == totalBytes else { return nil }
    return bytes + last
  }
}
