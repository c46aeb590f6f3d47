package import RelayCore

/// A place in a JSON payload: names of members and places in lists, such as `aps.alert.title` or
/// `aps.alert.loc-args.0`. A dot inside a name is written `\.`; the empty path is the whole.
package struct PayloadPath: Hashable, Sendable, CustomStringConvertible {
  package let names: [String]
  package let description: String

  package init(_ text: String) {
    var names: [String] = text.isEmpty ? [] : [""]
    var isEscaped = false
    for character in text {
      if isEscaped || character != "." && character != "\\" {
        names[names.count - 1].append(character)
        isEscaped = false
      } else if character == "\\" {
        isEscaped = true
      } else {
        names.append("")
      }
    }
    self.names = names
    description = text
  }

  /// Whether one place is within the other, or both are one.
  package func overlaps(_ other: PayloadPath) -> Bool {
    // A place in a list may be spelled in several ways.
    zip(names, other.names).allSatisfy { one, other in
      one == other || Int(one) != nil && Int(one) == Int(other)
    }
  }

  /// nil when there is nothing at this place.
  func find(in tree: JSONTree) -> JSONTree? {
    names.reduce(tree) { found, name in
      guard let found else { return nil }
      if case .list(let items) = found.value {
        return Int(name).flatMap { items.indices.contains($0) ? items[$0] : nil }
      }
      return found[name]
    }
  }
}

/// A condition on a JSON payload.
package struct PayloadCondition: Sendable {
  package enum Test: Sendable {
    case isThere
    case equals(JSONTree)
    /// A text or, at the empty path, anything within; capitals are as small letters.
    case contains(String)
  }

  package let path: PayloadPath
  package let test: Test

  package init(_ path: PayloadPath, _ test: Test) { (self.path, self.test) = (path, test) }

  /// Reads `aps.badge=3`, `aps.alert.title~hello`, `aps.alert` or `~hello`. After the equals sign
  /// comes JSON; anything else is a text.
  package init(_ text: String) {
    var isEscaped = false
    let sign = text.indices.first { place in
      defer { isEscaped = !isEscaped && text[place] == "\\" }
      return !isEscaped && (text[place] == "=" || text[place] == "~")
    }
    guard let sign else {
      self.init(PayloadPath(text), .isThere)
      return
    }
    let value = String(text[text.index(after: sign)...])
    let path = PayloadPath(String(text[..<sign]))
    if text[sign] == "~" {
      self.init(path, .contains(value))
    } else {
      self.init(path, .equals(JSONTree.reading(value: value) ?? JSONTree(text: value)))
    }
  }

  /// The text that reads as this condition.
  package var text: String {
    let place = path.names.map { name in
      String(name.flatMap { "\\.=~".contains($0) ? ["\\", $0] : [$0] })
    }.joined(separator: ".")
    return switch test {
    case .isThere: place
    case .equals(let tree): place + "=" + String(decoding: tree.source, as: UTF8.self)
    case .contains(let part): place + "~" + part
    }
  }

  /// Returns how the payload differs from the wanted, such as "aps.badge is 2, not 3"; nil if it
  /// does not.
  package func difference(in payload: JSONTree?) -> String? {
    guard let payload else { return "its body is not JSON" }
    guard let found = path.find(in: payload) else { return "there is no \(path)" }
    switch test {
    case .isThere: return nil
    case .equals(let wanted):
      return found.isEqual(to: wanted) ? nil : "\(path) is \(found.brief), not \(wanted.brief)"
    case .contains(let part):
      // One pass over bytes: a search by characters would take quadratic time.
      let wanted = Array(part.lowercased().utf8)
      if found.texts.contains(where: { Array($0.lowercased().utf8).contains(wanted) }) {
        return nil
      }
      let text = JSONTree(text: part).brief
      return path.names.isEmpty
        ? "nothing in it contains \(text)" : "\(path) is \(found.brief), without \(text)"
    }
  }
}

extension JSONTree {
  private static let longestBrief = 80

  /// Reads any JSON value; nil when it is none.
  package static func reading(value text: String) -> JSONTree? {
    guard let tree = try? read(Array("{\"\":\(text)}".utf8)),
      case .object(let members) = tree.value,
      members.count == 1
    else { return nil }
    return members[0].value
  }

  package init(text: String) {
    var source = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": source += "\\\(scalar)"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        source += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: source.unicodeScalars.append(scalar)
      }
    }
    self.init(value: .text(text), line: 1, source: Array((source + "\"").utf8))
  }

  /// Returns whether both have the same value, however written.
  package func isEqual(to other: JSONTree) -> Bool {
    switch (value, other.value) {
    case (.object(let members), .object(let others)):
      let names = Set(members.map(\.key))
      return names == Set(others.map(\.key))
        && names.allSatisfy { self[$0]!.isEqual(to: other[$0]!) }
    case (.list(let items), .list(let others)):
      return items.count == others.count && zip(items, others).allSatisfy { $0.isEqual(to: $1) }
    case (.text(let text), .text(let other)): return text == other
    case (.number(let number), .number(let another)):
      // The digits decide for whole numbers that `Double` cannot hold.
      return number == another
        && (abs(number) < 0x1p53 || source == other.source)
    case (.flag(let flag), .flag(let other)): return flag == other
    case (.null, .null): return true
    case (.object, _), (.list, _), (.text, _), (.number, _), (.flag, _), (.null, _): return false
    }
  }

  /// As written, but not long.
  fileprivate var brief: String {
    let text = String(decoding: source, as: UTF8.self)
    return text.count > Self.longestBrief ? text.prefix(Self.longestBrief) + "…" : text
  }

  /// All texts and names in it, and numbers as written.
  fileprivate var texts: [String] {
    switch value {
    case .object(let members): members.flatMap { [$0.key] + $0.value.texts }
    case .list(let items): items.flatMap(\.texts)
    case .text(let text): [text]
    case .number, .flag, .null: [String(decoding: source, as: UTF8.self)]
    }
  }
}
