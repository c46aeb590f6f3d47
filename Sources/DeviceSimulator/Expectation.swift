import DeviceModel
import RelayCore

/// A required outcome of a scenario, or a forbidden one.
struct Expectation: Sendable {
  enum Rule: Sendable {
    case expect(Match, Window, count: ClosedRange<Int64>)
    /// In this order, with anything in between.
    case order([Match])
    /// On this percentage of the days on which an app is used, a fetch completed within that time
    /// before every use.
    case fetchedBeforeUse(within: Int64, percentOfDays: Int64, Window)

    /// The entries that it looks at.
    var matches: [Match] {
      switch self {
      case .expect(let match, _, _): [match]
      case .order(let matches): matches
      case .fetchedBeforeUse: [.began, .completed, .opened].map { Match(kind: $0) }
      }
    }
  }

  /// The time to look at, in milliseconds since the start.
  struct Window: Sendable {
    var after: Int64?
    var before: Int64?
    /// From `after`, or the posting of the push in question, or the start.
    var within: Int64?
    /// Daily, in milliseconds since midnight.
    var clocks: ClosedRange<Int64>?

    func shifted(by origin: Int64) -> Window {
      Window(
        after: after.map { $0 + origin }, before: before.map { $0 + origin }, within: within,
        clocks: clocks)
    }
  }

  struct Match: Sendable {
    var kind: TraceKind?
    var phone: String?
    var app: String?
    var push: PushReference?
    /// `*` at an end matches anything.
    var why: String?
  }

  enum PushReference: Sendable, Equatable {
    case name(String)
    /// In order of posting, from 1.
    case number(Int)
  }

  /// For display.
  let says: String
  let rule: Rule

  /// The kinds the expectations look at; nil for all.
  static func kinds(of expectations: [Expectation]) -> Set<TraceKind>? {
    let kinds = expectations.flatMap(\.rule.matches).map(\.kind)
    // A push that was refused explains what did not happen to it.
    return kinds.contains(nil) ? nil : Set(kinds.compactMap(\.self)).union([.refused])
  }
}

extension Expectation {
  static let keys = [
    "says", "expect", "never", "order", "fetchedBeforeUse", "after", "before", "within", "between",
    "count",
  ]
  static let countKeys = ["min", "max"]
  static let fetchKeys = ["within", "percentOfDays", "after", "before"]

  init(_ reader: Reader, _ names: PlaceNames, _ pushes: PushNames) throws(ScenarioError) {
    try reader.check(Self.keys)
    let kinds = Self.keys[1...4].filter { reader[$0] != nil }
    guard kinds.count == 1 else {
      throw reader.problem("one of expect, never, order, fetchedBeforeUse is wanted")
    }
    for name in Self.keys[5...] {
      guard let extra = reader[name] else { continue }
      guard kinds[0] == "expect" || kinds[0] == "never" && name != "count" else {
        throw extra.problem("\(kinds[0]) does not have it")
      }
    }
    rule =
      switch kinds[0] {
      case "order": try Self.order(try reader.required("order"), names, pushes)
      case "fetchedBeforeUse": try Self.fetchedBeforeUse(try reader.required("fetchedBeforeUse"))
      case let kind: try Self.expect(kind, reader, names, pushes)
      }
    says = try reader["says"]?.text() ?? rule.words
  }

  private static func expect(
    _ kind: String, _ reader: Reader, _ names: PlaceNames, _ pushes: PushNames
  ) throws(ScenarioError) -> Rule {
    let match = try Match(try reader.required(kind), names, pushes)
    let window = try Window(reader)
    // From when a push is posted is known only then.
    if let within = window.within, let start = window.after ?? (match.push == nil ? 0 : nil) {
      try reader.required("within").checkIsBeforeEnd(start + within)
    }
    return .expect(
      match, window, count: kind == "never" ? 0...0 : try count(reader["count"]))
  }

  private static func count(_ reader: Reader?) throws(ScenarioError) -> ClosedRange<Int64> {
    guard let reader else { return 1...Int64.max }
    if case .object = reader.tree.value {
      try reader.check(countKeys)
      let least = try reader["min"]?.number(0...1_000_000) ?? 0
      let most = try reader["max"]?.number(0...1_000_000) ?? .max
      guard least <= most else { throw reader.problem("min is above max") }
      guard least > 0 || most < .max else {
        throw reader.problem("any number of times is no expectation: give min from 1, or max")
      }
      return least...most
    }
    let number = try reader.number(0...1_000_000)
    return number...number
  }

  private static func order(
    _ reader: Reader, _ names: PlaceNames, _ pushes: PushNames
  ) throws(ScenarioError) -> Rule {
    var matches: [Match] = []
    for item in try reader.list() { matches.append(try Match(item, names, pushes)) }
    guard matches.count >= 2 else { throw reader.problem("two or more are wanted") }
    return .order(matches)
  }

  private static func fetchedBeforeUse(_ reader: Reader) throws(ScenarioError) -> Rule {
    try reader.check(fetchKeys)
    return .fetchedBeforeUse(
      within: try reader["within"]?.duration() ?? 3_600_000,
      percentOfDays: try reader.required("percentOfDays").number(0...100),
      try Window(reader, hasWithin: false))
  }
}

extension Expectation.Window {
  /// Rejects an empty window, in which any `never` would hold.
  fileprivate init(_ reader: Reader, hasWithin: Bool = true) throws(ScenarioError) {
    after = try reader["after"]?.time()
    before = try reader["before"]?.time()
    if let after, let before, before <= after {
      throw try reader.required("before").problem("it is not later than after")
    }
    if hasWithin { within = try reader["within"]?.duration() }
    clocks = try reader["between"]?.range { one throws(ScenarioError) in try one.clock() }
    if let clocks, clocks.lowerBound == clocks.upperBound {
      throw try reader.required("between").problem("nothing is between")
    }
  }

  fileprivate var words: String {
    var words: [String] = []
    if let within { words.append("within \(TimeText.text(duration: within))") }
    if let after { words.append("after \(TimeText.text(time: after))") }
    if let before { words.append("before \(TimeText.text(time: before))") }
    if let clocks {
      words.append(
        "between \(TimeText.text(clock: clocks.lowerBound)) and "
          + TimeText.text(clock: clocks.upperBound))
    }
    return words.map { " " + $0 }.joined()
  }
}

extension Expectation.Match {
  static let keys = ["what", "phone", "app", "push", "why"]
  private static let ofRelay: Set<TraceKind> = [.crashed, .started, .journal]

  fileprivate init(
    _ reader: Reader, _ names: PlaceNames, _ pushes: PushNames
  ) throws(ScenarioError) {
    try reader.check(Self.keys)
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
    if let kind, Self.ofRelay.contains(kind), push != nil || app != nil || phone != nil {
      throw reader.problem("\(kind.rawValue) is of the relay, and has no phone, app or push")
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

private func howOften(_ count: some BinaryInteger) -> String {
  count == 1 ? "once" : "\(count) times"
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
            ? ", at least \(howOften(count.lowerBound))"
            : count.lowerBound == count.upperBound
              ? ", \(howOften(count.lowerBound))"
              : ", \(count.lowerBound) to \(count.upperBound) times")
    case .order(let matches): matches.map(\.words).joined(separator: ", then ")
    case .fetchedBeforeUse(let within, let percent, let window):
      "fetched within \(TimeText.text(duration: within)) before use on \(percent) % of days"
        + window.words
    }
  }
}

/// The pushes that expectations may name: others could never be found.
struct PushNames {
  /// Unique, in the order of the file.
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
  func push(_ reader: Reader) throws(ScenarioError) -> Expectation.PushReference {
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

/// The result of an expectation.
public struct Verdict: Hashable, Sendable {
  public let says: String
  public let isPassed: Bool
  public let found: String

  /// One JSON object with a fixed key order.
  public var json: String {
    "{\"verdict\":\(isPassed ? "\"passed\"" : "\"failed\""),\"says\":\(quoted(says)),"
      + "\"found\":\(quoted(found))}"
  }
}

extension Simulation {
  func verdict(_ expectation: Expectation) -> Verdict {
    let (isPassed, found) =
      switch expectation.rule {
      case .expect(let match, let window, let count): check(match, window, count)
      case .order(let matches): check(order: matches)
      case .fetchedBeforeUse(let within, let percent, let window):
        checkFetches(within: within, percent: percent, window)
      }
    return Verdict(says: expectation.says, isPassed: isPassed, found: found)
  }

  private func check(
    _ match: Expectation.Match, _ window: Expectation.Window, _ count: ClosedRange<Int64>
  ) -> (Bool, String) {
    let window = window.shifted(by: origin)
    let push = match.push.flatMap { push in pushes.indices.first { isPush($0, push) } }
    let start = window.after ?? push.map { pushes[$0].postedAt } ?? origin
    var end = window.before ?? .max
    if let within = window.within { end = min(end, start + within) }
    let from = window.after ?? (window.within == nil ? 0 : start)
    let times = from...max(from, end)
    let all = entries.indices.filter { matches(match, $0) }
    let inside = all.filter { place in
      let at = entries[place].at
      return times.contains(at) && window.clocks?.contains(at % TimeText.day) ?? true
    }
    if let clocks = window.clocks, !isReached(clocks) {
      return (false, "it was never that time of day")
    }
    let isPassed = count.contains(Int64(inside.count))
    let found = found(inside, all, match, count)
    // `time` is when the scenario ended: what was too often by then stays so, no more is known.
    let isCut = window.within != nil && end > time && inside.count <= count.upperBound
    guard isCut, !isPassed || count.upperBound < .max else { return (isPassed, found) }
    let left = TimeText.text(duration: end - time)
    return (false, found + "; the scenario ended \(left) before that time did")
  }

  /// Whether it was that time of day between the beginning and now.
  private func isReached(_ clocks: ClosedRange<Int64>) -> Bool {
    let first = origin % TimeText.day
    let last = first + time - origin
    return first <= clocks.upperBound && last >= clocks.lowerBound
      || last >= clocks.lowerBound + TimeText.day
  }

  private func found(
    _ inside: [Int], _ all: [Int], _ match: Expectation.Match, _ count: ClosedRange<Int64>
  ) -> String {
    let (isPassed, times) = (count.contains(Int64(inside.count)), howOften(inside.count))
    if let first = inside.first {
      guard isPassed else { return "\(times): \(list(inside))" }
      return describe(first) + (inside.count > 1 ? ", \(times)" : "")
    }
    if let first = all.first {
      return (isPassed ? "not then" : "it did not happen then") + ", but \(describe(first))"
    }
    return "it did not happen" + others(than: match, isPassed: isPassed)
  }

  /// Events the author may have meant: the same except for `why`, or else of the same kind.
  private func others(than match: Expectation.Match, isPassed: Bool) -> String {
    var near = match
    near.why = nil
    var found = match.why == nil ? [] : entries.indices.filter { matches(near, $0) }
    if found.isEmpty, let kind = match.kind {
      found = entries.indices.filter { entries[$0].kind == kind }
    }
    guard isPassed else {
      return refusals(of: match) + (found.isEmpty ? "" : "; what did: \(list(found))")
    }
    // A push with a mistake would pass for one of which nothing came.
    let refused = match.push == nil ? "" : refusals(of: match)
    guard !found.isEmpty else { return refused }
    return refused + (found.count == 1 ? ", another did" : ", \(found.count) others did")
  }

  /// Of the push or the place in question.
  private func refusals(of match: Expectation.Match) -> String {
    var refused = match
    (refused.kind, refused.why) = (.refused, nil)
    let found = entries.indices.filter { matches(refused, $0) }
    return found.isEmpty ? "" : "; \(list(found))"
  }

  private func list(_ indices: [Int]) -> String {
    let shown = 5
    let rest = indices.count > shown ? "; and \(indices.count - shown) more" : ""
    return indices.prefix(shown).map(describe).joined(separator: "; ") + rest
  }

  private func check(order matches: [Expectation.Match]) -> (Bool, String) {
    var index = 0
    var last: Int?
    var times: [String] = []
    for (place, match) in matches.enumerated() {
      while index < entries.count, !self.matches(match, index) { index += 1 }
      guard index < entries.count else {
        var found = "number \(place + 1) did not happen"
        let earlier = entries.indices.first { self.matches(match, $0) }
        if let last { found += " after \(describe(last))" }
        if let earlier { return (false, found + ", but \(describe(earlier))") }
        return (false, found + others(than: match, isPassed: false))
      }
      times.append(TimeText.text(time: entries[index].at))
      last = index
      index += 1
    }
    return (true, times.joined(separator: ", "))
  }

  private func describe(_ index: Int) -> String {
    TimeText.text(time: entries[index].at) + " " + line(index).what
  }

  private func isPush(_ index: Int, _ push: Expectation.PushReference) -> Bool {
    switch push {
    case .name(let name): pushes[index].name == name
    case .number(let number): index + 1 == number
    }
  }

  private func matches(_ match: Expectation.Match, _ index: Int) -> Bool {
    let entry = entries[index]
    if let kind = match.kind, entry.kind != kind { return false }
    if let push = match.push {
      guard entry.push >= 0, isPush(Int(entry.push), push) else { return false }
    }
    if let phone = match.phone {
      guard entry.phone >= 0, phones[Int(entry.phone)].name == phone else { return false }
    }
    if let app = match.app {
      guard entry.app >= 0, apps[Int(entry.app)].name == app else { return false }
    }
    return match.why.map { Self.fits(entry.why(by: clock), $0) } ?? true
  }

  /// Matches a text; `*` at an end stands for anything.
  static func fits(_ text: String, _ wanted: String) -> Bool {
    let (opens, closes) = (wanted.hasPrefix("*"), wanted.hasSuffix("*") && wanted.count > 1)
    let core = String(wanted.dropFirst(opens ? 1 : 0).dropLast(closes ? 1 : 0))
    switch (opens, closes) {
    case (true, true): return core.isEmpty || text.contains(core)
    case (true, false): return text.hasSuffix(core)
    case (false, true): return text.hasPrefix(core)
    case (false, false): return text == core
    }
  }

  private func checkFetches(
    within: Int64, percent: Int64, _ window: Expectation.Window
  ) -> (Bool, String) {
    struct Call: Hashable {
      let phone: Int32
      let id: CallbackID
    }
    struct AppDay: Hashable {
      let app: Int32
      let day: Int64
    }
    var lastFetch: [Int32: Int64] = [:]
    var running: Set<Call> = []
    var wasHit: [AppDay: Bool] = [:]
    let window = window.shifted(by: origin)
    let times = (window.after ?? 0)...max(window.after ?? 0, window.before ?? .max)
    for entry in entries {
      if case .fetchBegan(let id, _) = entry.fact {
        running.insert(Call(phone: entry.phone, id: id))
      } else if case .phone(.callback(let id, _, .completed(let outcome))) = entry.fact {
        // A fetch that failed, or is still running at the use, does not count.
        guard running.remove(Call(phone: entry.phone, id: id)) != nil, outcome != .failed
        else { continue }
        lastFetch[entry.app] = entry.at
      } else if case .phone(.app(_, .opened)) = entry.fact, times.contains(entry.at) {
        let day = AppDay(app: entry.app, day: entry.at / TimeText.day)
        let isHit = lastFetch[entry.app].map { entry.at - $0 <= within } ?? false
        wasHit[day] = (wasHit[day] ?? true) && isHit
      }
    }
    let hits = wasHit.values.count { $0 }
    guard !wasHit.isEmpty else { return (false, "no app was used in that time") }
    let isPassed = hits * 100 >= Int(percent) * wasHit.count
    var found = "\(hits) of \(wasHit.count) days of an app, \(hits * 100 / wasHit.count) %"
    if !isPassed {
      let missed = wasHit.filter { !$0.value }.keys.min { ($0.day, $0.app) < ($1.day, $1.app) }
      if let missed {
        found += "; the first without: \(apps[Int(missed.app)].name), day \(missed.day + 1)"
      }
    }
    return (isPassed, found)
  }
}
