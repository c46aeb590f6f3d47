package import Primitives

/// What the scheduler means to do for one app, and why: the schedule as a value.
package struct FetchPlan: Hashable, Codable, Sendable {
  /// When.
  package enum When: Hashable, Codable, Sendable {
    case fetch(Instant)
    /// Nothing can be fetched now; look again then.
    case reconsider(Instant)
    /// Not before something changes.
    case onChange
  }

  package let app: AppID
  package let when: When
  /// No fetch before this: the app's interval and the phone's own spacing.
  package let earliest: Instant
  package let reason: FetchReason

  /// When there is something to do, `never` if not.
  var dueAt: Instant {
    switch when {
    case .fetch(let moment), .reconsider(let moment): moment
    case .onChange: .never
    }
  }
}

/// Why the scheduler decided so.
package enum FetchReason: Hashable, Codable, Sendable {
  // Fetching.
  /// Shortly before the use that is expected from that minute of the day on (local time).
  case beforeUse(minuteOfDay: Int)
  /// Nothing is learned yet.
  case exploring
  /// Hardly ever used.
  case rarely
  /// The phone is not used at that time of the day, so it was moved.
  case afterIdle
  /// Not fetching.
  case running
  case modeMissing
  case intervalNever
  case notInstalled
  case forceQuit
  case refreshOff
  case refreshOffForAll
  case beforeFirstUnlock
  case lowPower
  case offline
  case energyBudget
  case dataBudget
}

extension FetchReason: CustomStringConvertible {
  package var description: String {
    switch self {
    case .beforeUse(let minute):
      "before the use expected from \(minute / 60):\(minute % 60 < 10 ? "0" : "")\(minute % 60)"
    case .exploring: "nothing learned yet"
    case .rarely: "hardly ever used"
    case .afterIdle: "moved out of a time when the phone is idle"
    case .running: "fetching now"
    case .modeMissing: "no fetch mode declared"
    case .intervalNever: "interval never"
    case .notInstalled: "not installed"
    case .forceQuit: "force-quit"
    case .refreshOff: "refresh off"
    case .refreshOffForAll: "refresh off for all"
    case .beforeFirstUnlock: "before the first unlock"
    case .lowPower: "low power"
    case .offline: "offline"
    case .energyBudget: "energy budget"
    case .dataBudget: "data budget"
    }
  }
}

extension FetchPlan: CustomStringConvertible {
  package var description: String { "app \(app.number): \(phrase)" }

  /// When and why.
  package var phrase: String {
    switch when {
    case .fetch(let moment): "\(moment.iso8601), \(reason)"
    case .reconsider(let moment): "not before \(moment.iso8601), \(reason)"
    case .onChange: "none, \(reason)"
    }
  }
}

/// Finds the time of a fetch from what is learned. Pure arithmetic on patterns.
struct FetchPlanner {
  let limits: PhoneLimits
  /// When the whole phone is used.
  let phone: UsagePattern

  /// The next fetch of an app that may be fetched at `earliest` or later. `settledUntil` is the end
  /// of an expected use that has happened already.
  func next(
    _ usage: UsagePattern, _ behaviour: Behaviour, earliest: Instant, settledUntil: Instant?,
    lastActivity: Instant
  ) -> (at: Instant, reason: FetchReason) {
    if usage.days >= limits.fetchLearningDays {
      if let found = beforeUse(usage, from: max(earliest, settledUntil ?? earliest)) {
        return (max(found.at, earliest), .beforeUse(minuteOfDay: found.bin * 15))
      }
      return whenActive(
        lastActivity + behaviour.stretched(limits.fetchRarely), earliest, .rarely)
    }
    return whenActive(
      lastActivity + behaviour.stretched(limits.fetchExploring), earliest, .exploring)
  }

  /// The first quarter hour of the coming week that begins an hour with an expected use, less the
  /// lead.
  private func beforeUse(_ usage: UsagePattern, from: Instant) -> (at: Instant, bin: Int)? {
    let local = from + limits.timeZone
    let binStart = floorQuotient(local.milliseconds, UsagePattern.binMilliseconds)
    let first = UsagePattern.bin(local)
    for step in 0..<7 * UsagePattern.binCount {
      let bin = (first + step) % UsagePattern.binCount
      let start = moment(ofBin: binStart + Int64(step))
      let habits = usage.habits(at: start, after: limits.fetchLearningDays)
      guard habits.isUsed(bin), habits.percentInHour(from: bin) >= limits.fetchExpectedPercent
      else { continue }
      return (max(from, start - limits.timeZone - limits.fetchLead), bin)
    }
    return nil
  }

  /// When a quarter hour begins, counted from 1970, in local time. It may be a far one: an app can
  /// ask for any interval.
  private func moment(ofBin number: Int64) -> Instant {
    Instant(milliseconds: saturatingProduct(number, UsagePattern.binMilliseconds))
  }

  /// Moves a fetch without a learned reason out of hours in which the phone is idle.
  private func whenActive(
    _ wanted: Instant, _ earliest: Instant, _ reason: FetchReason
  ) -> (at: Instant, reason: FetchReason) {
    let at = max(wanted, earliest)
    guard phone.days >= limits.fetchLearningDays else { return (at, reason) }
    let local = at + limits.timeZone
    let binStart = floorQuotient(local.milliseconds, UsagePattern.binMilliseconds)
    let first = UsagePattern.bin(local)
    for step in 0..<UsagePattern.binCount {
      let bin = (first + step) % UsagePattern.binCount
      let start = moment(ofBin: binStart + Int64(step))
      let habits = phone.habits(at: start, after: limits.fetchLearningDays)
      guard habits.percentInHour(from: bin) >= limits.fetchIdlePercent else { continue }
      guard step > 0 else { return (at, reason) }
      return (start - limits.timeZone, .afterIdle)
    }
    return (at, reason)
  }
}
