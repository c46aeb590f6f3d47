import DeviceModel
import RelayCore

/// A line that somebody types to act on a phone: a verb of the scenarios and what it needs.
///
/// ```
/// open com.example.news        lock            network airplane
/// swipe away com.example.news  unlock          charger on
/// open banner com.example.news refresh off     low power on
/// ```
struct LiveCommand {
  let action: Scenario.Action

  init(_ text: String, in scenario: Scenario) throws(LiveCommandError) {
    var words = text.split(whereSeparator: \.isWhitespace).map(String.init)
    var phone = scenario.phones[0].name
    if let first = words.first, first.hasSuffix(":") {
      phone = String(first.dropLast())
      words.removeFirst()
    } else if scenario.phones.count > 1 {
      throw LiveCommandError(text: "name the phone first, as in \"\(phone): lock\"")
    }
    try self.init(words, to: phone, in: scenario)
  }

  /// An order as JSON: an event of a scenario without times and phone, or all words in `do`.
  ///
  /// ```
  /// {"do":"network","to":"airplane"}   {"do":"network airplane"}
  /// {"do":"use","app":"com.example.news","for":"10m"}
  /// ```
  init(order: [UInt8], to phone: String, in scenario: Scenario) throws(LiveCommandError) {
    let tree: JSONTree
    do { tree = try JSONTree.read(order) } catch { throw LiveCommandError(text: error.text) }
    guard case .object(let members) = tree.value, let words = tree["do"]?.text else {
      throw LiveCommandError(text: #"say what to do, as in {"do":"lock"}"#)
    }
    guard members.count > 1 else {
      let words = words.split(whereSeparator: \.isWhitespace).map(String.init)
      try self.init(words, to: phone, in: scenario)
      return
    }
    guard let verb = Self.verbs.first(where: { $0.name == words }) else {
      throw LiveCommandError(text: Self.unknown(words))
    }
    do {
      try Reader(file: "", tree: tree, key: "")
        .check(["do"] + verb.allKeys.filter { $0 != "phone" })
    } catch {
      throw LiveCommandError(error)
    }
    let whole = Array("{\"phone\":\(quoted(phone)),".utf8) + tree.source.dropFirst()
    try self.init(json: whole, in: scenario)
  }

  private init(json: [UInt8], in scenario: Scenario) throws(LiveCommandError) {
    do {
      let reader = Reader(file: "", tree: try JSONTree.read(json), key: "")
      action = try PlaceNames(phones: scenario.phones).action(reader)
    } catch let problem as ScenarioError {
      throw LiveCommandError(problem)
    } catch {
      throw LiveCommandError(text: "it cannot be read")
    }
  }

  private static func unknown(_ words: String) -> String {
    "there is no \"\(words)\"; 'help' lists what there is"
  }

  private init(
    _ words: [String], to phone: String, in scenario: Scenario
  ) throws(LiveCommandError) {
    // The longest verb wins: "open banner" before "open".
    let verbs = Self.verbs.filter {
      words.starts(with: $0.name.split(separator: " ").map(String.init))
    }
    guard let verb = verbs.max(by: { $0.name.count < $1.name.count }) else {
      let what = words.first.map(Self.unknown) ?? "what is to be done? 'help' lists what there is"
      throw LiveCommandError(text: what)
    }
    var members = ["\"do\":\(quoted(verb.name))", "\"phone\":\(quoted(phone))"]
    var arguments = Array(words.dropFirst(verb.name.split(separator: " ").count))
    let apps = scenario.phones.first { $0.name == phone }?.apps.map(\.name) ?? []
    if let app = try Self.app(of: verb, &arguments, among: apps, of: phone) {
      members.append("\"app\":\(quoted(app))")
    }
    guard arguments.count >= verb.words.count(where: { !$0.isOptional }) else {
      throw LiveCommandError(text: "\(verb.name) needs more: \(verb.usage)")
    }
    for word in verb.words where !arguments.isEmpty {
      let argument = arguments.removeFirst()
      let isPlain = word.isPlain && (Int64(argument) != nil || Bool(argument) != nil)
      members.append("\"\(word.name)\":\(isPlain ? argument : quoted(argument))")
    }
    guard arguments.isEmpty else { throw LiveCommandError(text: "\"\(arguments[0])\" is too much") }
    try self.init(json: Array("{\(members.joined(separator: ","))}".utf8), in: scenario)
  }

  static let verbs = Verb.all.filter(\.isCommand)

  /// Takes the app's name from the words; nil means the phone.
  private static func app(
    of verb: Verb, _ words: inout [String], among apps: [String], of phone: String
  ) throws(LiveCommandError) -> String? {
    let isNamed = words.first.map(apps.contains) ?? false
    switch verb.scope {
    case .phone, .relay: return nil
    case .appOrPhone: return isNamed ? words.removeFirst() : nil
    case .app: break
    }
    // A single app need not be named.
    guard !isNamed, apps.count == 1 else {
      guard !words.isEmpty else {
        throw LiveCommandError(text: "\(verb.name) needs the name of an app: \(verb.usage)")
      }
      return words.removeFirst()
    }
    guard words.count <= verb.words.count else {
      throw LiveCommandError(text: "\(phone) has no app \"\(words[0])\", only \(apps[0])")
    }
    return apps[0]
  }
}

/// The help text for typed commands.
package enum LiveCommandHelp {
  /// One verb per line; words in brackets are optional.
  package static var lines: [String] {
    LiveCommand.verbs.map(\.usage) + [
      "help", "quit",
      "APP may be left out when there is only one; TIME is such as 30s or 1h30m; of several phones "
        + "one is named first, as in \"anna: lock\"",
    ]
  }
}

/// Why a command could not be performed.
package struct LiveCommandError: Error, Hashable, Sendable, CustomStringConvertible {
  let text: String

  init(text: String) { self.text = text }

  fileprivate init(_ problem: ScenarioError) {
    let key = problem.key.isEmpty || problem.key == "do" ? "" : "\(problem.key): "
    text = key + problem.text
  }

  package var description: String { text }
}
