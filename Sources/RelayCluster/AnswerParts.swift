import NATS
import RelayCore

/// An answer of one node to another that may be longer than a message: in parts, of which the last
/// says how long all of it is, so that one with a part missing is none.
enum AnswerParts {
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

  /// All of it; nil when something is missing.
  static func join(_ messages: [NATSMessage]) -> [UInt8]? {
    let answer = messages.flatMap(\.body)
    return messages.last?.tag.split(separator: ".").last.map { $0 == "\(answer.count)" } == true
      ? answer : nil
  }
}
