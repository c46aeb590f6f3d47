import RelayCore

/// A JSON value that knows where it stands in its file, so that an error can say so.
///
/// Whether the text is JSON at all is decided by RelayCore's strict scanner, which every payload
/// goes through; here a text that is known to be right becomes a tree.
struct JSONTree: Sendable {
  enum Value: Sendable {
    case object([(key: String, value: JSONTree)])
    case list([JSONTree])
    case text(String)
    case number(Double)
    case flag(Bool)
    case null
  }

  let value: Value
  /// The line it begins on, from 1.
  let line: Int
  /// The bytes it is written in.
  let source: [UInt8]

  subscript(key: String) -> JSONTree? {
    // The last one counts, as it does on the phone.
    if case .object(let members) = value { members.last { $0.key == key }?.value } else { nil }
  }

  /// What it says, if it is a text.
  var text: String? {
    if case .text(let text) = value { text } else { nil }
  }

  /// Reads one JSON object.
  static func read(_ bytes: [UInt8]) throws(JSONTreeError) -> JSONTree {
    do {
      _ = try scanPayload(bytes.span)
    } catch {
      switch error {
      case .empty: throw JSONTreeError(line: 1, text: "the file is empty")
      case .notJSON:
        let (line, column) = error.place(in: bytes) ?? (1, 1)
        throw JSONTreeError(line: line, text: "this is not JSON, from column \(column) on")
      case .notObject: throw JSONTreeError(line: 1, text: "this is not a JSON object")
      case .tooDeep: throw JSONTreeError(line: 1, text: "objects and lists lie too deep")
      }
    }
    var builder = TreeBuilder(bytes: bytes)
    return builder.value()
  }
}

/// Why a text is no JSON object, and where.
struct JSONTreeError: Error, Equatable {
  let line: Int
  let text: String
}

/// Walks over text that is known to be valid JSON.
private struct TreeBuilder {
  let bytes: [UInt8]
  var position = 0
  var line = 1

  init(bytes: [UInt8]) { self.bytes = bytes }

  private var next: UInt8 { position < bytes.count ? bytes[position] : 0 }

  private mutating func skip(_ characters: Set<UInt8>) {
    while position < bytes.count, characters.contains(bytes[position]) {
      if bytes[position] == UInt8(ascii: "\n") { line += 1 }
      position += 1
    }
  }

  /// White space, and the colons and commas that the scanner has seen to.
  private static let between = Set(" \t\r\n:,".utf8)

  mutating func value() -> JSONTree {
    skip(Self.between)
    let (start, startLine) = (position, line)
    let value: JSONTree.Value =
      switch next {
      case UInt8(ascii: "{"): object()
      case UInt8(ascii: "["): list()
      case UInt8(ascii: "\""): .text(string())
      default: scalar()
      }
    return JSONTree(value: value, line: startLine, source: Array(bytes[start..<position]))
  }

  private mutating func object() -> JSONTree.Value {
    var members: [(key: String, value: JSONTree)] = []
    position += 1
    skip(Self.between)
    while position < bytes.count, next != UInt8(ascii: "}") {
      let key = string()
      members.append((key, value()))
      skip(Self.between)
    }
    position += 1
    return .object(members)
  }

  private mutating func list() -> JSONTree.Value {
    var values: [JSONTree] = []
    position += 1
    skip(Self.between)
    while position < bytes.count, next != UInt8(ascii: "]") {
      values.append(value())
      skip(Self.between)
    }
    position += 1
    return .list(values)
  }

  private mutating func scalar() -> JSONTree.Value {
    let start = position
    while position < bytes.count, !Self.between.contains(next), next != UInt8(ascii: "}"),
      next != UInt8(ascii: "]")
    {
      position += 1
    }
    switch String(decoding: bytes[start..<position], as: UTF8.self) {
    case "true": return .flag(true)
    case "false": return .flag(false)
    case "null": return .null
    case let text: return .number(Double(text) ?? 0)
    }
  }

  private mutating func string() -> String {
    var units: [UInt16] = []
    var plain: [UInt8] = []
    var text = ""
    func flushed(_ units: [UInt16]) -> String { String(decoding: units, as: UTF16.self) }
    position += 1
    while position < bytes.count, next != UInt8(ascii: "\"") {
      guard next == UInt8(ascii: "\\") else {
        if !units.isEmpty { text += flushed(units) }
        units = []
        plain.append(next)
        position += 1
        continue
      }
      text += String(decoding: plain, as: UTF8.self)
      plain = []
      units.append(escape())
    }
    position += 1
    return text + flushed(units) + String(decoding: plain, as: UTF8.self)
  }

  /// One escape, a UTF-16 code unit.
  private mutating func escape() -> UInt16 {
    position += 1
    let character = next
    position += 1
    switch character {
    case UInt8(ascii: "n"): return 0x0A
    case UInt8(ascii: "t"): return 0x09
    case UInt8(ascii: "r"): return 0x0D
    case UInt8(ascii: "b"): return 0x08
    case UInt8(ascii: "f"): return 0x0C
    case UInt8(ascii: "u"):
      let end = min(position + 4, bytes.count)
      let digits = String(decoding: bytes[position..<end], as: UTF8.self)
      position = end
      return UInt16(digits, radix: 16) ?? 0xFFFD
    default: return UInt16(character)
    }
  }
}
