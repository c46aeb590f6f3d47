import NATS
import RelayCore

/// An answer to another node in as many messages as it needs. The last names the total length, so a
/// lost part is noticed.
enum AnswerParts {
  /// Returns the parts in order; a single empty one when the answer is too long.
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

  /// Returns the whole answer; nil when a part is missing.
  static func join(_ messages: [NATSMessage]) -> [UInt8]? {
    let answer = messages.flatMap(\.body)
    return messages.last?.tag.split(separator: ".").last.map { $0 == "\(answer.count)" } == true
      ? answer : nil
  }
}
