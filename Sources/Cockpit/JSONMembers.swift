import AdminAPI
import RelayCore

/// A JSON object whose members must all be known.
struct JSONMembers {
  private let tree: JSONTree
  /// The prefix of field names in refusals.
  private let prefix: String

  init(_ bytes: [UInt8], known: Set<String>) throws {
    do {
      tree = try JSONTree.read(bytes.isEmpty ? Array("{}".utf8) : bytes)
    } catch {
      throw Refusal.body(Self.problem(with: bytes))
    }
    prefix = ""
    try check(known)
  }

  private init(_ tree: JSONTree, known: Set<String>, under parent: String) throws {
    self.tree = tree
    prefix = "\(parent)."
    try check(known)
  }

  private func check(_ known: Set<String>) throws {
    if let twice = names.repeated {
      throw Refusal.body("\(prefix + twice) stands there twice", field: prefix + twice)
    }
    guard let stranger = names.first(where: { !known.contains($0) }) else { return }
    throw Refusal.body(
      "there is no \(stranger): known are \(known.sorted().joined(separator: ", "))",
      field: prefix + stranger)
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

  var names: [String] {
    guard case .object(let members) = tree.value else { return [] }
    return members.map(\.key).sorted()
  }

  /// The members of a member that is an object itself.
  func object(_ key: String, known: Set<String>) throws -> JSONMembers? {
    guard let value = tree[key] else { return nil }
    guard case .object = value.value else {
      throw Refusal.body("\(prefix + key) is an object", field: prefix + key)
    }
    return try JSONMembers(value, known: known, under: prefix + key)
  }

  /// The members of a member that is an object of any names; none when it is absent.
  func members(of key: String) throws -> [(key: String, value: JSONTree)] {
    guard let value = tree[key] else { return [] }
    guard case .object(let members) = value.value else {
      throw Refusal.body("\(key) is an object", field: prefix + key)
    }
    return members
  }

  func value(_ key: String) -> JSONTree? { tree[key] }

  func text(_ key: String) throws -> String? {
    guard let value = tree[key] else { return nil }
    guard let text = value.text else { throw Refusal.body("\(key) is a text", field: prefix + key) }
    return text
  }

  func number(_ key: String) throws -> Double? {
    guard let value = tree[key] else { return nil }
    guard case .number(let number) = value.value, number.isFinite else {
      throw Refusal.body("\(key) is a number", field: prefix + key)
    }
    return number
  }

  func integer(_ key: String) throws -> Int64? {
    guard let value = tree[key] else { return nil }
    // Not through `Double` alone, which cannot hold every whole number above 2^53.
    let source = String(decoding: value.source, as: UTF8.self)
    let isPlain = source.allSatisfy { $0.isNumber || $0 == "-" }
    guard case .number(let number) = value.value,
      let integer = Int64(source) ?? (isPlain ? nil : Int64(exactly: number))
    else { throw Refusal.body("\(key) is a whole number below 2^63", field: prefix + key) }
    return integer
  }

  func flag(_ key: String) throws -> Bool? {
    guard let value = tree[key] else { return nil }
    guard case .flag(let flag) = value.value else {
      throw Refusal.body("\(key) is true or false", field: prefix + key)
    }
    return flag
  }
}
