package import Primitives

/// The scheduler's plan for one app, with its reason.
package struct FetchPlan: Hashable, Codable, Sendable {
  package enum When: Hashable, Codable, Sendable {
    case fetch(Instant)
    /// Nothing can be fetched now; check again then.
    case reconsider(Instant)
    /// Not before something changes.
    case onChange
  }

  package let app: AppID
  package let when: When
  /// By the app's interval and the phone's own spacing.
  package let earliest: Instant
  package let reason: FetchReason

  var dueAt: Instant {
    switch when {
    case .fetch(let moment), .reconsider(let moment): moment
    case .onChange: .never
    }
  }
}

/// The reason for a plan.
package enum FetchReason: Hashable, Codable, Sendable {
  // Fetching.
  /// Shortly before the use expected from that minute of the day on (local time).
  case beforeUse(minuteOfDay: Int)
  case exploring
  case rarely
  /// Moved from an hour in which the phone is idle.
  case afterIdle
  // Not fetching.
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

/// Computes fetch times from learned usage. Pure arithmetic.
struct FetchPlanner {
  let limits: PhoneLimits
  let phone: UsagePattern

  /// The next fetch at `earliest` or later. `settledUntil` is the end of an expected use that has
  /// already happened.
  func next(
    _ usage: UsagePattern, _ behaviour: Behaviour, earliest: Instant, settledUntil: Instant?,
    lastActivity: Instant
  ) -> (at: Instant, reason: FetchReason) {
    if usage.days >= limits.fetchLearningDays {
      if let found = beforeUse(usage, from: max(earliest, settledUntil ?? earliest)) {
        return (max(found.at, earliest), .beforeUse(minuteOfDay: found.bin * 15))
      }
      // That there is always news makes no user.
      let rarely = max(behaviour.stretched(limits.fetchRarely), limits.fetchRarely)
      return whenActive(lastActivity + rarely, earliest, .rarely)
    }
    return whenActive(
      lastActivity + behaviour.stretched(limits.fetchExploring), earliest, .exploring)
  }

  /// The first quarter hour of the coming week that begins an hour with an expected use, minus the
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

  /// Start of a quarter hour counted from 1970, in local time. Saturates: an app can request any
  /// interval.
  private func moment(ofBin number: Int64) -> Instant {
    Instant(milliseconds: saturatingProduct(number, UsagePattern.binMilliseconds))
  }

  /// Moves a fetch without a learned reason out of idle hours.
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
