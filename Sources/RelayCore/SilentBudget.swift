package import Primitives

/// How many silent pushes may wake a device.
///
/// The rule is ours, not Apple's: theirs is unpublished beyond "two or three per hour" (Apple,
/// "Pushing background updates to your App"). Policies are named, so that a log line can say which
/// one held a push back.
package struct SilentPolicy: Hashable, Sendable {
  package let name: String
  /// Per app on a device; nil is no limit.
  package let perApp: RateLimit?
  /// Per device, over all its apps; nil is no limit.
  package let perDevice: RateLimit?

  package init(name: String, perApp: RateLimit?, perDevice: RateLimit?) {
    self.name = name
    self.perApp = perApp
    self.perDevice = perDevice
  }

  /// 3 at once per app, then one every 20 minutes; 12 at once per device, then one every 5.
  package static let documented = SilentPolicy(
    name: "documented", perApp: RateLimit(3, per: .hours(1), burst: 3),
    perDevice: RateLimit(12, per: .hours(1), burst: 12))
  /// One at once per app, then one an hour; 2 at once per device, then one every 30 minutes.
  package static let strict = SilentPolicy(
    name: "strict", perApp: RateLimit(1, per: .hours(1), burst: 1),
    perDevice: RateLimit(2, per: .hours(1), burst: 2))
  /// Everything goes through.
  package static let unlimited = SilentPolicy(name: "unlimited", perApp: nil, perDevice: nil)

  /// The shipped policies.
  package static let named: [SilentPolicy] = [.documented, .strict, .unlimited]
}

/// What stands in the way of a silent push.
package enum BudgetLimit: UInt8, CaseIterable, Sendable {
  case perApp
  case perDevice
  case lowPowerMode
  /// Not a budget: too many frames wait for an acknowledgement.
  case inFlight
  /// Not a budget: a visible push of low priority waits for a sleeping phone in Low Power Mode.
  case lowPriority

  /// The name in logs and answers.
  package var name: String {
    switch self {
    case .perApp: "app-budget"
    case .perDevice: "device-budget"
    case .lowPowerMode: "low-power-mode"
    case .inFlight: "in-flight"
    case .lowPriority: "low-priority"
    }
  }
}

/// A decision always explains itself: allowed, or held until when because of what.
package enum BudgetDecision: Hashable, Sendable {
  case allowed
  /// `until` is nil when no time but only a change (of the phone's state) will free it.
  case held(until: Instant?, by: BudgetLimit)
}

/// The silent policy in force, and the clocks that its budgets are kept by.
package struct SilentBudgets: Hashable, Sendable {
  package private(set) var policy: SilentPolicy
  package private(set) var appClock: RefillClock
  package private(set) var deviceClock: RefillClock

  /// Budgets of which nothing was used before `now`. Where the policy has no limit, the clock goes
  /// by the documented one, which nothing asks for until there is a limit.
  package init(_ policy: SilentPolicy, at now: Instant) {
    let app = policy.perApp ?? SilentPolicy.documented.perApp
    let device = policy.perDevice ?? SilentPolicy.documented.perDevice
    self.init(
      policy, appClock: RefillClock(interval: app?.interval ?? .hours(1), since: now),
      deviceClock: RefillClock(interval: device?.interval ?? .hours(1), since: now))
  }

  package init(_ policy: SilentPolicy, appClock: RefillClock, deviceClock: RefillClock) {
    self.policy = policy
    self.appClock = appClock
    self.deviceClock = deviceClock
  }

  /// Another policy from now on. What was used stays used, and comes back at the new rates.
  package mutating func change(to policy: SilentPolicy, at now: Instant) {
    self.policy = policy
    appClock = appClock.changed(to: policy.perApp, at: now)
    deviceClock = deviceClock.changed(to: policy.perDevice, at: now)
  }

  /// The machine's clock was set: what was used stays used, and comes back when it would have.
  package mutating func stepClock(by interval: Interval) {
    appClock = appClock.moved(by: interval)
    deviceClock = deviceClock.moved(by: interval)
  }

  /// What the journal says that an app, or a device, has used: at most as much as this policy or
  /// the documented one gives at once.
  func restored(app state: RateLimit.State, at now: Instant) -> RateLimit.State {
    appClock.bounded(state, policy.perApp, SilentPolicy.documented.perApp, at: now)
  }

  func restored(device state: RateLimit.State, at now: Instant) -> RateLimit.State {
    deviceClock.bounded(state, policy.perDevice, SilentPolicy.documented.perDevice, at: now)
  }

  /// Decides about one silent push; both budgets must allow it. Nothing is taken yet.
  package func decide(
    app: RateLimit.State, device: RateLimit.State, condition: DeviceCondition, at now: Instant
  ) -> BudgetDecision {
    if condition.withholdsSilent { return .held(until: nil, by: .lowPowerMode) }
    if condition.liftsBudget { return .allowed }
    let appTime = appClock.nextAllowed(app, policy.perApp, at: now)
    let deviceTime = deviceClock.nextAllowed(device, policy.perDevice, at: now)
    if appTime <= now && deviceTime <= now { return .allowed }
    return appTime >= deviceTime
      ? .held(until: appTime, by: .perApp) : .held(until: deviceTime, by: .perDevice)
  }

  /// Takes one silent push from both budgets. When the condition lifts the budget nothing is taken.
  package func take(
    app: inout RateLimit.State, device: inout RateLimit.State, condition: DeviceCondition,
    at now: Instant
  ) {
    guard !condition.liftsBudget else { return }
    policy.perApp?.byRefillClock.take(&app, at: appClock.reading(at: now))
    policy.perDevice?.byRefillClock.take(&device, at: deviceClock.reading(at: now))
  }

  /// Silent pushes that an app may still get at once; nil for no limit.
  package func remaining(app: RateLimit.State, at now: Instant) -> Int64? {
    policy.perApp?.byRefillClock.remaining(app, at: appClock.reading(at: now))
  }

  /// Silent pushes that a device may still get at once; nil for no limit.
  package func remaining(device: RateLimit.State, at now: Instant) -> Int64? {
    policy.perDevice?.byRefillClock.remaining(device, at: deviceClock.reading(at: now))
  }
}

extension RefillClock {
  /// When the next event is allowed, `now` for at once: most are, and that costs one reading.
  fileprivate func nextAllowed(
    _ state: RateLimit.State, _ limit: RateLimit?, at now: Instant
  ) -> Instant {
    guard let limit = limit?.byRefillClock, !limit.allows(state, at: reading(at: now)) else {
      return now
    }
    return moment(of: limit.nextAllowed(state))
  }
}
