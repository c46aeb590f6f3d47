/// What a phone decides about a silent push that has reached it and whose app has not run for it
/// yet. It tells the relay, so that whoever sent the push learns why nothing happens.
public enum PushDecision: Hashable, Sendable {
  /// It waits, because of that, until then at the latest; nil: until that changes.
  case waits(PushLimit, until: Instant?)
  /// The wait is over: its app runs.
  case runs
}

/// What makes a silent push wait on a phone. The raw value is the word in logs.
public enum PushLimit: String, CaseIterable, Hashable, Sendable {
  /// The app has been woken as often as the phone lets it.
  case app = "app-limit"
  /// All apps together have.
  case phone = "phone-limit"
  /// The phone has not been unlocked since it started: the keys that the work needs are not there.
  case firstUnlock = "first-unlock"
  /// Low Power Mode, or what the day's energy or data allow is used up: it waits for the power.
  case lowPower = "low-power"
  case energyBudget = "energy-budget"
  case dataBudget = "data-budget"
}

extension PushDecision: CustomStringConvertible {
  public var description: String {
    switch self {
    case .waits(let limit, nil): "waits, \(limit.rawValue)"
    case .waits(let limit, let until?): "waits until \(until.iso8601), \(limit.rawValue)"
    case .runs: "its app runs"
    }
  }
}
