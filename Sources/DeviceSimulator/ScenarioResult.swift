import DeviceModel

/// What came of a scenario.
public struct ScenarioResult: Sendable {
  /// Of the scenario.
  public let title: String
  public let file: String
  /// As it was at the end.
  public let simulation: Simulation
  /// One for each expectation, in their order.
  public let verdicts: [Verdict]

  public var isPassed: Bool { verdicts.allSatisfy(\.isPassed) }

  /// One JSON object a line: which scenario with which seed, everything that happened, the
  /// verdicts. The same scenario and seed give the same bytes.
  public var json: [String] {
    let head =
      "{\"scenario\":\(quoted(title)),\"file\":\(quoted(file)),\"seed\":\(simulation.seed)}"
    return [head] + simulation.trace().map(\.json) + verdicts.map(\.json)
  }
}

/// Whether an expectation held.
public struct Verdict: Hashable, Sendable {
  public let says: String
  public let isPassed: Bool
  /// What was found.
  public let found: String

  /// One JSON object, its keys always in the same order.
  public var json: String {
    "{\"verdict\":\(isPassed ? "\"passed\"" : "\"failed\""),\"says\":\(quoted(says)),"
      + "\"found\":\(quoted(found))}"
  }
}

extension Scenario {
  /// Plays it. The same seed gives the same result, to the byte.
  public func run(seed: UInt64? = nil) -> ScenarioResult {
    var player = ScenarioPlayer(self, seed: seed ?? self.seed)
    player.play()
    let simulation = player.simulation
    return ScenarioResult(
      title: title, file: file, simulation: simulation,
      verdicts: expectations.map { simulation.verdict($0) })
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
    let start = window.after ?? match.push.flatMap { posted($0) } ?? origin
    var end = window.before ?? .max
    if let within = window.within { end = min(end, start + within) }
    let from = window.after ?? (window.within == nil ? 0 : start)
    let times = from...max(from, end)
    let all = entries.indices.filter { matches(match, $0) }
    let inside = all.filter { times.contains(entries[$0].at) }
    let isPassed = count.contains(Int64(inside.count))
    // `time` is when the scenario ended.
    let isCut = window.within != nil && end > time && (count.lowerBound == 0 || !isPassed)
    let cut = "; the scenario ended \(TimeText.text(duration: end - time)) before that time did"
    return (isPassed, found(inside, all, match, count) + (isCut ? cut : ""))
  }

  /// What there was of what was looked for.
  private func found(
    _ inside: [Int], _ all: [Int], _ match: Expectation.Match, _ count: ClosedRange<Int64>
  ) -> String {
    let (isPassed, times) = (count.contains(Int64(inside.count)), Self.times(inside.count))
    if let first = inside.first {
      guard isPassed else { return "\(times): \(list(inside))" }
      return describe(first) + (inside.count > 1 ? ", \(times)" : "")
    }
    if let first = all.first {
      return (isPassed ? "not then" : "it did not happen then") + ", but \(describe(first))"
    }
    return "it did not happen" + others(than: match, isPassed: isPassed)
  }

  private static func times(_ count: Int) -> String { count == 1 ? "once" : "\(count) times" }

  /// What else happened that may have been meant: of this kind, and nearest to what was wanted.
  private func others(than match: Expectation.Match, isPassed: Bool) -> String {
    var near = match
    near.why = nil
    var found = match.why == nil ? [] : entries.indices.filter { matches(near, $0) }
    if found.isEmpty, let kind = match.kind {
      found = entries.indices.filter { entries[$0].kind == kind }
    }
    guard !found.isEmpty else { return "" }
    guard isPassed else { return "; what did: \(list(found))" }
    return found.count == 1 ? ", another did" : ", \(found.count) others did"
  }

  /// The first of them.
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

  /// When the first push of that name, or the one with that number, was posted.
  private func posted(_ push: Expectation.PushReference) -> Int64? {
    pushes.indices.first { isPush($0, push) }.map { pushes[$0].postedAt }
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
    return match.why.map { Self.fits(entry.why(since: start), $0) } ?? true
  }

  /// Whether a text is what is wanted, `*` at an end standing for anything.
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
      switch entry.fact {
      case .fetchBegan(let id, _): running.insert(Call(phone: entry.phone, id: id))
      case .phone(.callback(let id, _, .completed(let outcome))):
        // What failed, or still runs when the user looks, is of no use to them.
        guard running.remove(Call(phone: entry.phone, id: id)) != nil, outcome != .failed
        else { continue }
        lastFetch[entry.app] = entry.at
      case .phone(.app(_, .opened)) where times.contains(entry.at):
        let day = AppDay(app: entry.app, day: entry.at / TimeText.day)
        let isHit = lastFetch[entry.app].map { entry.at - $0 <= within } ?? false
        wasHit[day] = (wasHit[day] ?? true) && isHit
      default: break
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
