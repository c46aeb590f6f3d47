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
    // The longest verb wins: "open banner" before "open".
    let verbs = Self.verbs.filter {
      words.starts(with: $0.name.split(separator: " ").map(String.init))
    }
    guard let verb = verbs.max(by: { $0.name.count < $1.name.count }) else {
      let what = words.first.map { "there is no \"\($0)\"" } ?? "what is to be done?"
      throw LiveCommandError(text: "\(what); 'help' lists what there is")
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
    guard arguments.isEmpty else {
      throw LiveCommandError(text: "\"\(arguments[0])\" is too much")
    }
    do {
      let members = members.joined(separator: ",")
      let reader = Reader(file: "", tree: try JSONTree.read(Array("{\(members)}".utf8)), key: "")
      let names = PlaceNames(phones: scenario.phones)
      action = try names.action(reader)
    } catch let problem as ScenarioError {
      let key = problem.key.isEmpty || problem.key == "do" ? "" : "\(problem.key): "
      throw LiveCommandError(text: key + problem.text)
    } catch {
      throw LiveCommandError(text: "\"\(text)\" cannot be read")
    }
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

  package var description: String { text }
}
