import Foundation
import Primitives

@testable import DeviceLink
@testable import RelayCore

/// Lines of the device link, both ways: cut the same whatever pieces they come in, never trapping,
/// and what was read can be written and read again. The members of a line are those that Foundation
/// finds.
enum DeviceLines {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    guard let first = input.first else { return }
    let limitBytes = first & 0x80 == 0 ? Limits.lineBytes : 64
    let bytes = [UInt8](input.dropFirst())
    let whole = pieces(bytes, of: max(1, bytes.count), limitBytes)
    guard whole == pieces(bytes, of: Int(first & 0x7F) + 1, limitBytes) else {
      throw Finding("in pieces the lines are others")
    }
    guard whole == reference(bytes, limitBytes) else {
      throw Finding("expected \(reference(bytes, limitBytes)), found \(whole)")
    }
    for case .line(let line) in whole {
      try checkUp(line)
      try checkDown(line)
    }
  }

  private static func pieces(
    _ bytes: [UInt8], of count: Int, _ limitBytes: Int
  ) -> [LineSplitter.Piece] {
    var splitter = LineSplitter(limitBytes: limitBytes)
    var found: [LineSplitter.Piece] = []
    for start in stride(from: 0, to: bytes.count, by: count) {
      let piece = Array(bytes[start..<min(bytes.count, start + count)])
      splitter.receive(piece.span) { found.append($0) }
    }
    splitter.finish { found.append($0) }
    return found
  }

  private static func reference(_ bytes: [UInt8], _ limitBytes: Int) -> [LineSplitter.Piece] {
    bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).compactMap {
      let line = $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0
      return line.count > limitBytes ? .tooLong : line.isEmpty ? nil : .line(Array(line))
    }
  }

  private static func checkUp(_ line: [UInt8]) throws(Finding) {
    let read: UpLine
    do throws(UpLine.ParsingError) {
      read = try UpLine(line.span)
    } catch {
      guard error == .notJSONObject || members(line) != nil || hasNumber(line) else {
        throw Finding("\(error), but Foundation has no object")
      }
      return
    }
    guard let members = members(line) ?? (hasNumber(line) ? [:] : nil) else {
      throw Finding("\(read), but Foundation has no object")
    }
    if let type = members["type"] as? String {
      let isRight =
        switch read {
        case .ack: type == "ack"
        case .state: type == "state"
        case .keepAlive: type == "keepalive"
        case .barrier: type == "barrier"
        case .decision: type == "decision"
        }
      guard isRight else { throw Finding("\(read), but Foundation has the type \(type)") }
    }
    var bytes: [UInt8] = []
    read.write(to: &bytes)
    guard bytes.last == UInt8(ascii: "\n"), !bytes.dropLast().contains(UInt8(ascii: "\n")) else {
      throw Finding("written, \(read) is not one line")
    }
    let again = try? UpLine(Array(bytes.dropLast()).span)
    guard again == read else { throw Finding("written and read again, \(read) is another") }
  }

  private static func checkDown(_ line: [UInt8]) throws(Finding) {
    // Of two members with one name the last counts, for us the last that is not null.
    guard let read = DownLine(line.span), !line.contains(UInt8(ascii: "n")) else { return }
    guard let members = members(line) else {
      guard hasNumber(line) else { throw Finding("\(read), but Foundation has no object") }
      return
    }
    switch read {
    case .hello(let device, _, _, _, _, let owner):
      let expected = (members["device"] as? String).flatMap { DeviceID($0) }
      guard device == expected ?? DeviceID(UniqueID(high: 0, low: 0)) else {
        throw Finding("the device is \(String(describing: expected)), found \(device)")
      }
      try compare(owner ?? "", members, "owner", optional: true)
    case .notification(let delivery):
      let notification = delivery.notification
      let topic = (members["topic"] as? String).flatMap { Topic($0) } ?? .vacant
      try compare(topic.description, ["topic": notification.topic.description], "topic")
      let collapseID = String(decoding: notification.collapseID, as: UTF8.self)
      try compare(collapseID, members, "collapseId", optional: true)
      _ = notification.compactPayload
    case .broadcast: try compare("broadcast", members, "type")
    case .empty: try compare("empty", members, "type")
    case .keepAlive: try compare("keepalive", members, "type")
    case .barrier: try compare("barrier", members, "type")
    case .checkpoint(.saved): try compare("checkpoint", members, "type")
    case .checkpoint(.rewound): try compare("rewound", members, "type")
    case .checkpoint(.dropped): try compare("checkpoint-dropped", members, "type")
    case .bye(let reason, let owner):
      try compare(reason, members, "reason", optional: true)
      try compare(owner ?? "", members, "owner", optional: true)
    case .error(let reason): try compare(reason, members, "reason", optional: true)
    case .unknown(let type): try compare(type, members, "type")
    }
  }

  private static func compare(
    _ text: String, _ members: [String: Any], _ key: String, optional: Bool = false
  ) throws(Finding) {
    let expected = members[key] as? String ?? (optional ? "" : nil)
    guard expected.map({ Array($0.utf8) }) == Array(text.utf8) else {
      throw Finding("\(key) is \(expected ?? "nothing"), found \(text)")
    }
  }

  private static func members(_ line: [UInt8]) -> [String: Any]? {
    try? JSONSerialization.jsonObject(with: Data(line)) as? [String: Any]
  }

  /// Foundation has no place for 1e999, which is JSON.
  private static func hasNumber(_ line: [UInt8]) -> Bool {
    line.contains(UInt8(ascii: "e")) || line.contains(UInt8(ascii: "E")) || line.count > 300
  }
}
