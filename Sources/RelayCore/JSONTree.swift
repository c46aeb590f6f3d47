/// A JSON value with its position in a file, for error messages.
package struct JSONTree: Sendable {
  package enum Value: Sendable {
    case object([(key: String, value: JSONTree)])
    case list([JSONTree])
    case text(String)
    case number(Double)
    case flag(Bool)
    case null
  }

  package let value: Value
  /// The line of its first character, from 1.
  package let line: Int
  package let source: [UInt8]

  package init(value: Value, line: Int, source: [UInt8]) {
    (self.value, self.line, self.source) = (value, line, source)
  }

  package subscript(key: String) -> JSONTree? {
    // The last one counts, as on the phone.
    if case .object(let members) = value { members.last { $0.key == key }?.value } else { nil }
  }

  package var kind: JSONKind {
    switch value {
    case .object: .object
    case .list: .array
    case .text: .string
    case .number: .number
    case .flag: .boolean
    case .null: .null
    }
  }

  package var text: String? {
    if case .text(let text) = value { text } else { nil }
  }

  package var number: Double? {
    if case .number(let number) = value { number } else { nil }
  }

  package var items: [JSONTree]? {
    if case .list(let items) = value { items } else { nil }
  }

  package static func read(_ bytes: [UInt8]) throws(JSONTreeError) -> JSONTree {
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

package struct JSONTreeError: Error, Equatable {
  package let line: Int
  package let text: String
}

/// Parses text known to be valid JSON.
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

  /// White space, and the colons and commas already validated.
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
    let start = position + 1
    position = start
    while position < bytes.count, next != UInt8(ascii: "\"") {
      let length = next == UInt8(ascii: "\\") ? 2 : 1
      position += length
    }
    let (bytes, inside) = (bytes, start..<min(position, bytes.count))
    position += 1
    return bytes.span.extracting(inside).unescapedText(limitBytes: bytes.count)
  }
}

extension [String] {
  /// One that stands there more than once, as no key should; nil for none.
  package var repeated: String? {
    let sorted = sorted()
    return zip(sorted, sorted.dropFirst()).first { $0 == $1 }?.0
  }
}
