import DeviceModel
import Primitives
import RelayCore

/// A value of a scenario file with its position, for error messages.
struct Reader: Sendable {
  let file: String
  let tree: JSONTree
  let key: String
  /// The end of the scenario: later times are rejected.
  var end = Int64.max

  private func member(_ name: String, _ value: JSONTree) -> Reader {
    Reader(file: file, tree: value, key: key.isEmpty ? name : "\(key).\(name)", end: end)
  }

  func problem(_ text: String) -> ScenarioError {
    ScenarioError(file: file, line: tree.line, key: key, text: text)
  }

  /// Nil when missing or null.
  subscript(name: String) -> Reader? {
    guard let member = tree[name] else { return nil }
    if case .null = member.value { return nil }
    return self.member(name, member)
  }

  func required(_ name: String) throws(ScenarioError) -> Reader {
    guard let member = self[name] else { throw problem("\(name) is missing") }
    return member
  }

  /// Requires an object with only these keys, each at most once.
  func check(_ keys: [String]) throws(ScenarioError) {
    guard case .object(let members) = tree.value else { throw problem("an object is wanted") }
    var seen: Set<String> = []
    for (name, value) in members {
      guard keys.contains(name) else {
        throw member(name, value)
          .problem("there is no such key; there are \(keys.joined(separator: ", "))")
      }
      guard seen.insert(name).inserted else {
        throw member(name, value).problem("the key stands there twice")
      }
    }
  }

  /// Rejects those of `keys` that are not allowed for `what`.
  func refuse(_ keys: [String], but allowed: [String], of what: String) throws(ScenarioError) {
    for name in keys where !allowed.contains(name) {
      if let extra = self[name] { throw extra.problem("\(what) does not have it") }
    }
  }

  /// Any keys, in order, each at most once.
  func members() throws(ScenarioError) -> [(key: String, value: Reader)] {
    guard case .object(let members) = tree.value else { throw problem("an object is wanted") }
    try check(members.map(\.key))
    return members.map { name, value in (name, member(name, value)) }
  }

  func list() throws(ScenarioError) -> [Reader] {
    guard case .list(let values) = tree.value else { throw problem("a list is wanted") }
    return values.enumerated().map { index, value in
      Reader(file: file, tree: value, key: "\(key)[\(index)]", end: end)
    }
  }

  func text() throws(ScenarioError) -> String {
    guard case .text(let text) = tree.value else { throw problem("a text is wanted") }
    return text
  }

  func flag() throws(ScenarioError) -> Bool {
    guard case .flag(let flag) = tree.value else { throw problem("true or false is wanted") }
    return flag
  }

  func number(_ range: ClosedRange<Int64>) throws(ScenarioError) -> Int64 {
    guard case .number(let number) = tree.value, let whole = Int64(exactly: number),
      range.contains(whole)
    else {
      throw problem("a whole number from \(range.lowerBound) to \(range.upperBound) is wanted")
    }
    return whole
  }

  func choice<Value>(_ choices: [(String, Value)]) throws(ScenarioError) -> Value {
    let text = try text()
    guard let found = choices.first(where: { $0.0 == text }) else {
      throw problem("\"\(text)\" is none of \(choices.map(\.0).joined(separator: ", "))")
    }
    return found.1
  }

  func choice<Value: RawRepresentable & CaseIterable>(
    _ type: Value.Type
  ) throws(ScenarioError) -> Value where Value.RawValue == String {
    try choice(type.allCases.map { ($0.rawValue, $0) })
  }

  func duration() throws(ScenarioError) -> Int64 {
    let text = try text()
    guard let duration = TimeText.duration(text) else {
      throw problem("\"\(text)\" is no length of time such as 500ms, 20m, 1h30m or 2d")
    }
    return duration
  }

  /// Milliseconds since the start.
  func time() throws(ScenarioError) -> Int64 {
    let text = try text()
    guard let time = TimeText.time(text) else {
      throw problem("\"\(text)\" is no time such as 20m after the start, or day 3 08:15")
    }
    try checkIsBeforeEnd(time)
    return time
  }

  func checkIsBeforeEnd(_ time: Int64) throws(ScenarioError) {
    guard time <= end else {
      throw problem("the scenario is over after \(TimeText.text(duration: end))")
    }
  }

  /// Milliseconds since midnight.
  func clock() throws(ScenarioError) -> Int64 {
    let text = try text()
    guard let clock = TimeText.clock(text) else {
      throw problem("\"\(text)\" is no time of day such as 08:15")
    }
    return clock
  }

  /// A list of two ascending values, or one value for both.
  func range(
    _ read: (Reader) throws(ScenarioError) -> Int64
  ) throws(ScenarioError) -> ClosedRange<Int64> {
    guard case .list = tree.value else {
      let value = try read(self)
      return value...value
    }
    let values = try list()
    guard values.count == 2 else { throw problem("two values are wanted") }
    let (least, most) = (try read(values[0]), try read(values[1]))
    guard least <= most else { throw problem("the first is above the second") }
    return least...most
  }
}
