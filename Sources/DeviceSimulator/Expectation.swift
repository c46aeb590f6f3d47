import DeviceModel

/// What must come of a scenario, or must not.
struct Expectation: Sendable {
  enum Rule: Sendable {
    /// So often at least and at most in the window.
    case expect(Match, Window, count: ClosedRange<Int64>)
    /// One after the other.
    case order([Match])
    /// On so many of a hundred days on which an app is used, after the first days, it was fetched
    /// within that time before every use, and the fetch had come to its end.
    case fetchedBeforeUse(within: Int64, percentOfDays: Int64, Window)
  }

  /// What is looked at, in milliseconds since the start.
  struct Window: Sendable {
    var after: Int64?
    var before: Int64?
    /// Counted from `after`, or from when the push was posted that is looked for, or the start.
    var within: Int64?

    func shifted(by origin: Int64) -> Window {
      Window(
        after: after.map { $0 + origin }, before: before.map { $0 + origin }, within: within)
    }
  }

  /// Which of the things that happen.
  struct Match: Sendable {
    var kind: TraceKind?
    var phone: String?
    var app: String?
    var push: PushReference?
    /// With `*` for anything at its ends.
    var why: String?
  }

  /// A push of the scenario.
  enum PushReference: Sendable, Equatable {
    case name(String)
    /// In the order of posting, from 1.
    case number(Int)
  }

  /// As it is told to people.
  let says: String
  let rule: Rule
}

extension Expectation {
  init(
    _ reader: Reader, _ names: PlaceNames, _ pushes: PushNames
  ) throws(ScenarioProblem) {
    try reader.check(ScenarioKeys.expectation)
    let length = names.length
    let kinds = ["expect", "never", "order", "fetchedBeforeUse"].filter { reader[$0] != nil }
    guard kinds.count == 1 else {
      throw reader.problem("one of expect, never, order, fetchedBeforeUse is wanted")
    }
    for name in ["after", "before", "within", "count"] {
      guard let extra = reader[name] else { continue }
      guard kinds[0] == "expect" || kinds[0] == "never" && name != "count" else {
        throw extra.problem("\(kinds[0]) does not have it")
      }
    }
    rule =
      switch kinds[0] {
      case "order": try Self.order(try reader.required("order"), names, pushes)
      case "fetchedBeforeUse":
        try Self.fetchedBeforeUse(try reader.required("fetchedBeforeUse"), length)
      case "never":
        .expect(
          try Match(try reader.required("never"), names, pushes), try Window(reader, length),
          count: 0...0)
      default:
        .expect(
          try Match(try reader.required("expect"), names, pushes), try Window(reader, length),
          count: try Self.count(reader["count"]))
      }
    says = try reader["says"]?.text() ?? rule.words
  }

  private static func count(_ reader: Reader?) throws(ScenarioProblem) -> ClosedRange<Int64> {
    guard let reader else { return 1...Int64.max }
    if case .object = reader.tree.value {
      try reader.check(ScenarioKeys.count)
      let least = try reader["min"]?.number(0...1_000_000) ?? 0
      let most = try reader["max"]?.number(0...1_000_000) ?? .max
      guard least <= most else { throw reader.problem("min is above max") }
      return least...most
    }
    let number = try reader.number(0...1_000_000)
    return number...number
  }

  private static func order(
    _ reader: Reader, _ names: PlaceNames, _ pushes: PushNames
  ) throws(ScenarioProblem) -> Rule {
    var matches: [Match] = []
    for item in try reader.list() { matches.append(try Match(item, names, pushes)) }
    guard matches.count >= 2 else { throw reader.problem("two or more are wanted") }
    return .order(matches)
  }

  private static func fetchedBeforeUse(
    _ reader: Reader, _ length: Int64
  ) throws(ScenarioProblem) -> Rule {
    try reader.check(ScenarioKeys.fetchedBeforeUse)
    return .fetchedBeforeUse(
      within: try reader["within"]?.duration() ?? 3_600_000,
      percentOfDays: try reader.required("percentOfDays").number(0...100),
      try Window(reader, length, hasWithin: false))
  }
}

extension Expectation.Window {
  /// A time in which nothing can happen would make a `never` hold that means nothing.
  fileprivate init(
    _ reader: Reader, _ length: Int64, hasWithin: Bool = true
  ) throws(ScenarioProblem) {
    after = try reader["after"]?.time(upTo: length)
    before = try reader["before"]?.time(upTo: length)
    if let after, let before, before <= after {
      throw try reader.required("before").problem("it is not later than after")
    }
    if hasWithin { within = try reader["within"]?.duration() }
  }

  fileprivate var words: String {
    var words: [String] = []
    if let within { words.append("within \(TimeText.text(duration: within))") }
    if let after { words.append("after \(TimeText.text(time: after))") }
    if let before { words.append("before \(TimeText.text(time: before))") }
    return words.map { " " + $0 }.joined()
  }
}

extension Expectation.Match {
  fileprivate init(
    _ reader: Reader, _ names: PlaceNames, _ pushes: PushNames
  ) throws(ScenarioProblem) {
    try reader.check(ScenarioKeys.match)
    kind = try reader["what"]?.choice(TraceKind.self)
    if let phone = reader["phone"] {
      self.phone = names.phones[try names.phone(phone)].name
    }
    app = try reader["app"]?.text()
    if let app = reader["app"] {
      let places = names.phones.filter { phone == nil || $0.name == phone }
      let known = places.contains { $0.apps.contains { $0.name == self.app } }
      guard known else {
        let who = phone.map { "\($0) has no" } ?? "no phone has an"
        throw app.problem("\(who) app \"\(self.app ?? "")\"")
      }
    }
    if let push = reader["push"] { self.push = try pushes.push(push) }
    why = try reader["why"]?.text()
    guard kind != nil || why != nil || push != nil || app != nil || phone != nil else {
      throw reader.problem("what is missing")
    }
  }

  fileprivate var words: String {
    var words: [String] = []
    switch push {
    case .name(let name): words.append("push \(name)")
    case .number(let number): words.append("push \(number)")
    case nil: break
    }
    let place = [phone, app].compactMap(\.self).joined(separator: "/")
    if !place.isEmpty { words.append(place) }
    if let kind { words.append(kind.rawValue) }
    if let why { words.append("\"\(why)\"") }
    return words.joined(separator: " ")
  }
}

extension Expectation.Rule {
  fileprivate var words: String {
    switch self {
    case .expect(let match, let window, count: 0...0): "never \(match.words)\(window.words)"
    case .expect(let match, let window, let count):
      match.words + window.words
        + (count == 1...Int64.max
          ? ""
          : count.upperBound == .max
            ? ", at least \(count.lowerBound) times"
            : count.lowerBound == count.upperBound
              ? ", \(count.lowerBound) times"
              : ", \(count.lowerBound) to \(count.upperBound) times")
    case .order(let matches): matches.map(\.words).joined(separator: ", then ")
    case .fetchedBeforeUse(let within, let percent, let window):
      "fetched within \(TimeText.text(duration: within)) before use on \(percent) % of days"
        + window.words
    }
  }
}

/// Which pushes there are to be named: an expectation about another one would look at nothing.
struct PushNames {
  /// Each once, in the order of the file.
  private var names: [String] = []
  /// The most that can be posted.
  private var count: Int64 = 0

  init(_ events: [Scenario.EventPlan], length: Int64) {
    for event in events {
      guard case .push(_, _, let options) = event.action else { continue }
      count += event.times.count(within: length)
      if let name = options.name, !names.contains(name) { names.append(name) }
    }
  }

  /// A text is a name, a number counts the pushes.
  func push(_ reader: Reader) throws(ScenarioProblem) -> Expectation.PushReference {
    if case .number = reader.tree.value {
      let number = try reader.number(1...1_000_000_000)
      guard number <= count else {
        throw reader.problem("there is no push \(number); at most \(count) are posted")
      }
      return .number(Int(number))
    }
    let name = try reader.text()
    guard names.contains(name) else {
      let known = names.isEmpty ? "none has one" : "there are \(names.joined(separator: ", "))"
      let hint = Int(name) == nil ? "" : "; a number is written without quotation marks"
      throw reader.problem("no push has the name \"\(name)\"; \(known)\(hint)")
    }
    return .name(name)
  }
}
