/// A phone's decision about a push that has not had its effect yet: a silent one whose app has not
/// run, an update of a Live Activity. The phone reports it to the relay, so that the sender learns
/// why nothing happens.
public enum PushDecision: Hashable, Sendable {
  /// Waits because of that limit, until then at the latest; nil: until the limit changes.
  case waits(PushLimit, until: Instant?)
  case runs
}

/// Why a push waits on a phone. The raw value is used in logs.
public enum PushLimit: String, CaseIterable, Hashable, Sendable {
  /// The app's own wake limit.
  case app = "app-limit"
  /// The limit for all apps together.
  case phone = "phone-limit"
  /// The phone was not unlocked since it started; the keys the work needs are missing.
  case firstUnlock = "first-unlock"
  /// Low Power Mode; `energyBudget` and `dataBudget` are the day's, and wait for the charger.
  case lowPower = "low-power"
  case energyBudget = "energy-budget"
  case dataBudget = "data-budget"
  /// An update of a Live Activity with priority 5: shown with what next wakes the phone.
  case nextWake = "next-wake"
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
