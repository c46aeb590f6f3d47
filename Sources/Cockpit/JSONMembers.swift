import FoundationEssentials
import RelayCore

/// A JSON object of which every member is known.
struct JSONMembers {
  private let values: [String: JSONScalar]
  /// What the names of fields begin with in refusals.
  private let prefix: String

  init(_ bytes: [UInt8], known: Set<String>) throws {
    try self.init(bytes.isEmpty ? [:] : Self.read(bytes), known: known, under: nil)
  }

  private init(
    _ values: [String: JSONScalar], known: Set<String>, under parent: String?
  ) throws {
    self.values = values
    prefix = parent.map { "\($0)." } ?? ""
    if let stranger = values.keys.sorted().first(where: { !known.contains($0) }) {
      throw Refusal.body(
        "there is no \(stranger): known are \(known.sorted().joined(separator: ", "))",
        field: prefix + stranger)
    }
  }

  private static func read(_ bytes: [UInt8]) throws -> [String: JSONScalar] {
    do {
      return try JSONDecoder().decode([String: JSONScalar].self, from: Data(bytes))
    } catch {
      throw Refusal.body(Self.problem(with: bytes))
    }
  }

  private static func problem(with bytes: [UInt8]) -> String {
    do throws(PayloadError) {
      _ = try scanPayload(bytes.span)
    } catch {
      if let (line, column) = error.place(in: bytes) {
        return "the body is not JSON, from line \(line), column \(column) on"
      }
    }
    return "the body is one JSON object"
  }

  /// The names of all members.
  var names: [String] { values.keys.sorted() }

  /// The members of a member that is an object itself.
  func object(_ key: String, known: Set<String>) throws -> JSONMembers? {
    guard let value = values[key] else { return nil }
    guard case .object(let members) = value else {
      throw Refusal.body("\(prefix + key) is an object", field: prefix + key)
    }
    return try JSONMembers(members, known: known, under: key)
  }

  func text(_ key: String) throws -> String? {
    guard let value = values[key] else { return nil }
    guard case .text(let text) = value else {
      throw Refusal.body("\(key) is a text", field: prefix + key)
    }
    return text
  }

  func number(_ key: String) throws -> Double? {
    guard let value = values[key] else { return nil }
    switch value {
    case .integer(let integer): return Double(integer)
    case .number(let number): return number
    case .object, .text, .flag: throw Refusal.body("\(key) is a number", field: prefix + key)
    }
  }

  func integer(_ key: String) throws -> Int64? {
    guard let value = values[key] else { return nil }
    guard case .integer(let integer) = value else {
      throw Refusal.body("\(key) is a whole number below 2^63", field: prefix + key)
    }
    return integer
  }

  func flag(_ key: String) throws -> Bool? {
    guard let value = values[key] else { return nil }
    guard case .flag(let flag) = value else {
      throw Refusal.body("\(key) is true or false", field: prefix + key)
    }
    return flag
  }
}

/// A value of a JSON object.
enum JSONScalar: Decodable {
  case object([String: JSONScalar])
  case text(String)
  /// Not by way of a `Double`, which has no whole numbers beyond 2^53 one by one.
  case integer(Int64)
  case number(Double)
  case flag(Bool)

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let members = try? container.decode([String: JSONScalar].self) {
      self = .object(members)
    } else if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let integer = try? container.decode(Int64.self) {
      self = .integer(integer)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else {
      self = .text(try container.decode(String.self))
    }
  }
}
