/// A line that somebody types to act on a phone: a verb of the scenarios and what it needs.
///
/// ```
/// open com.example.news        lock            network airplane
/// swipe away com.example.news  unlock          charger on
/// open banner com.example.news refresh off     low power on
/// ```
struct LiveCommand {
  let action: Scenario.Action

  init(_ text: String, in scenario: Scenario) throws(LiveCommandProblem) {
    var words = text.split(whereSeparator: \.isWhitespace).map(String.init)
    var phone = scenario.phones[0].name
    if let first = words.first, first.hasSuffix(":") {
      phone = String(first.dropLast())
      words.removeFirst()
    } else if scenario.phones.count > 1 {
      throw LiveCommandProblem(text: "name the phone first, as in \"\(phone): lock\"")
    }
    // The longest verb counts: "open banner" before "open".
    let verbs = Self.verbs.filter { words.starts(with: $0.split(separator: " ").map(String.init)) }
    guard let verb = verbs.max(by: { $0.count < $1.count }) else {
      let what = words.first.map { "there is no \"\($0)\"" } ?? "what is to be done?"
      throw LiveCommandProblem(text: "\(what); 'help' lists what there is")
    }
    var members = ["\"do\":\(quoted(verb))", "\"phone\":\(quoted(phone))"]
    var arguments = Array(words.dropFirst(verb.split(separator: " ").count))
    let plan = scenario.phones.first { $0.name == phone }
    if Self.needsApp(verb, arguments, plan) {
      // With one app there is no doubt which is meant.
      let isNamed = plan?.apps.contains { $0.name == arguments.first } ?? false
      if isNamed || plan?.apps.count != 1 {
        guard !arguments.isEmpty else {
          throw LiveCommandProblem(
            text: "\(verb) needs the name of an app: \(Self.usage(of: verb))")
        }
        members.append("\"app\":\(quoted(arguments.removeFirst()))")
      } else if let app = plan?.apps.first {
        guard arguments.count <= Self.arguments(of: verb).count else {
          let text = "\(phone) has no app \"\(arguments[0])\", only \(app.name)"
          throw LiveCommandProblem(text: text)
        }
        members.append("\"app\":\(quoted(app.name))")
      }
    }
    if verb != "use", arguments.count < Self.arguments(of: verb).count {
      throw LiveCommandProblem(text: "\(verb) needs more: \(Self.usage(of: verb))")
    }
    for key in Self.arguments(of: verb) where !arguments.isEmpty {
      let argument = arguments.removeFirst()
      // Numbers and truth may be remembered as what they are.
      let isPlain = key == "value" && (Int64(argument) != nil || Bool(argument) != nil)
      members.append("\"\(key)\":\(isPlain ? argument : quoted(argument))")
    }
    guard arguments.isEmpty else {
      throw LiveCommandProblem(text: "\"\(arguments[0])\" is too much")
    }
    do {
      let json = "{\(members.joined(separator: ","))}"
      let reader = Reader(
        file: "", tree: try JSONTree.read(Array(json.utf8)), key: "")
      let names = PlaceNames(phones: scenario.phones, length: scenario.length)
      action = try names.action(reader)
    } catch let problem as ScenarioProblem {
      let key = problem.key.isEmpty || problem.key == "do" ? "" : "\(problem.key): "
      throw LiveCommandProblem(text: key + problem.text)
    } catch {
      throw LiveCommandProblem(text: "\"\(text)\" cannot be read")
    }
  }

  /// Those that a line can say: the others need more than a word.
  static let verbs = [
    "open", "open banner", "swipe away", "use", "crash", "set fetch", "remember", "show",
    "unlock", "lock", "leave", "reboot", "exhaust memory", "network", "charger", "low power",
    "refresh",
  ]

  /// How a verb is said.
  static func usage(of verb: String) -> String {
    let rest: String =
      switch verb {
      case "open", "open banner", "swipe away", "crash": " [APP]"
      case "use": " [APP] [TIME]"
      case "set fetch": " [APP] never|minimum|TIME"
      case "remember": " [APP] PATH KEY VALUE"
      case "show": " [APP] PATH"
      case "network": " " + NetworkKind.allCases.map(\.rawValue).joined(separator: "|")
      case "charger", "low power": " on|off"
      case "refresh": " [APP] on|off"
      default: ""
      }
    return verb + rest
  }

  /// Under which keys the words after the verb, and its app, stand in a scenario.
  private static func arguments(of verb: String) -> [String] {
    switch verb {
    case "use": ["for"]
    case "set fetch", "network", "charger", "low power", "refresh": ["to"]
    case "remember": ["path", "key", "value"]
    case "show": ["path"]
    default: []
    }
  }

  private static func needsApp(
    _ verb: String, _ arguments: [String], _ phone: Scenario.PhonePlan?
  ) -> Bool {
    switch verb {
    case "open", "open banner", "swipe away", "use", "crash", "set fetch", "remember", "show": true
    case "refresh": phone?.apps.contains { $0.name == arguments.first } ?? false
    default: false
    }
  }
}

/// What can be typed.
package enum LiveCommandHelp {
  /// One verb a line, with what it needs; what is in brackets may be left out.
  package static var lines: [String] {
    LiveCommand.verbs.map { LiveCommand.usage(of: $0) } + [
      "help", "quit",
      "APP may be left out when there is only one; TIME is such as 30s or 1h30m; of several phones "
        + "one is named first, as in \"anna: lock\"",
    ]
  }
}

/// Why a line could not be done.
package struct LiveCommandProblem: Error, Hashable, Sendable, CustomStringConvertible {
  let text: String

  package var description: String { text }
}
