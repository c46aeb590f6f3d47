package import RelayCore

/// Any JSON value, to stand within an answer.
package enum JSONValue: Codable, Equatable, Sendable {
  case object([String: JSONValue])
  case list([JSONValue])
  case text(String)
  case integer(Int64)
  case number(Double)
  case flag(Bool)
  case null

  package init(_ tree: JSONTree) {
    self =
      switch tree.value {
      case .object(let members):
        .object(Dictionary(members.map { ($0.key, JSONValue($0.value)) }) { $1 })
      case .list(let items): .list(items.map { JSONValue($0) })
      case .text(let text): .text(text)
      case .number(let number):
        // Not through `Double` alone, which cannot hold every whole number above 2^53.
        Int64(String(decoding: tree.source, as: UTF8.self)).map { .integer($0) } ?? .number(number)
      case .flag(let flag): .flag(flag)
      case .null: .null
      }
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let integer = try? container.decode(Int64.self) {
      self = .integer(integer)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let items = try? container.decode([JSONValue].self) {
      self = .list(items)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .object(let members): try container.encode(members)
    case .list(let items): try container.encode(items)
    case .text(let text): try container.encode(text)
    case .integer(let integer): try container.encode(integer)
    case .number(let number): try container.encode(number)
    case .flag(let flag): try container.encode(flag)
    case .null: try container.encodeNil()
    }
  }
}
