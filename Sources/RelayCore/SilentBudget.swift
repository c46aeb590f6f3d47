package import Primitives

/// Rate limits for silent pushes that wake a device. Ours: Apple's are unpublished beyond "two or
/// three per hour" (Apple, "Pushing background updates to your App"). Named, so that a log line can
/// say which one held a push.
package struct SilentPolicy: Hashable, Sendable {
  package let name: String
  /// nil is no limit.
  package let perApp: RateLimit?
  /// Over all its apps; nil is no limit.
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
  package static let unlimited = SilentPolicy(name: "unlimited", perApp: nil, perDevice: nil)

  package static let named: [SilentPolicy] = [.documented, .strict, .unlimited]
}

/// Reasons to hold a push back.
package enum BudgetLimit: UInt8, CaseIterable, Sendable {
  case perApp
  case perDevice
  case lowPowerMode
  /// Not a budget: too many unacknowledged frames.
  case inFlight
  /// Not a budget: a push of low priority for a sleeping phone (`DeviceCondition.withholds`).
  case lowPriority

  package var isBudget: Bool {
    switch self {
    case .perApp, .perDevice, .lowPowerMode: true
    case .inFlight, .lowPriority: false
    }
  }

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

extension DeviceCondition {
  /// Whether pushes of this priority wait (docs/PROTOCOL.md, "Priorities").
  package func withholds(_ priority: Priority) -> Bool {
    switch priority {
    case .immediate: false
    case .powerAware: power == .low && screen == .off
    case .powerFirst: screen == .off
    }
  }
}

package enum BudgetDecision: Hashable, Sendable {
  case allowed
  /// `until` is nil when only a change of the phone's state releases it.
  case held(until: Instant?, by: BudgetLimit)
}

/// The silent policy in force, and its budgets' clocks.
package struct SilentBudgets: Hashable, Sendable {
  package private(set) var policy: SilentPolicy
  package private(set) var appClock: RefillClock
  package private(set) var deviceClock: RefillClock

  /// Full budgets. Without a limit the clock runs unused, at the documented rate.
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

  /// Changes the policy. Used amounts stay, and refill at the new rates.
  package mutating func change(to policy: SilentPolicy, at now: Instant) {
    self.policy = policy
    appClock = appClock.changed(to: policy.perApp, at: now)
    deviceClock = deviceClock.changed(to: policy.perDevice, at: now)
  }

  /// Moves the clocks after the machine's was set, so that budgets refill as before.
  package mutating func stepClock(by interval: Interval) {
    appClock = appClock.moved(by: interval)
    deviceClock = deviceClock.moved(by: interval)
  }

  /// A used amount from the journal, at most the burst of this policy or the documented one.
  func restored(app state: RateLimit.State, at now: Instant) -> RateLimit.State {
    appClock.bounded(state, policy.perApp, SilentPolicy.documented.perApp, at: now)
  }

  func restored(device state: RateLimit.State, at now: Instant) -> RateLimit.State {
    deviceClock.bounded(state, policy.perDevice, SilentPolicy.documented.perDevice, at: now)
  }

  /// Decides about one silent push, without using the budgets; both must allow it.
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

  /// Uses both budgets for one silent push, unless the condition lifts them.
  package func consume(
    app: inout RateLimit.State, device: inout RateLimit.State, condition: DeviceCondition,
    at now: Instant
  ) {
    guard !condition.liftsBudget else { return }
    policy.perApp?.byRefillClock.consume(&app, at: appClock.reading(at: now))
    policy.perDevice?.byRefillClock.consume(&device, at: deviceClock.reading(at: now))
  }

  /// Silent pushes allowed at once; nil for no limit.
  package func remaining(app: RateLimit.State, at now: Instant) -> Int64? {
    policy.perApp?.byRefillClock.remaining(app, at: appClock.reading(at: now))
  }

  /// nil for no limit.
  func allowance(app: RateLimit.State, at now: Instant) -> Allowance? {
    policy.perApp.map { Allowance($0, app, by: appClock, at: now) }
  }

  func allowance(device: RateLimit.State, at now: Instant) -> Allowance? {
    policy.perDevice.map { Allowance($0, device, by: deviceClock, at: now) }
  }
}

/// The rest of a limit, and how more of it comes back.
package struct Allowance: Hashable, Sendable {
  /// Allowed at once.
  package var remaining: Int64
  package var limit: RateLimit
  /// When one more is allowed; nil when nothing is used.
  package var next: Instant?

  package init(remaining: Int64, limit: RateLimit, next: Instant?) {
    self.remaining = remaining
    self.limit = limit
    self.next = next
  }

  init(_ limit: RateLimit, _ state: RateLimit.State, at now: Instant) {
    self.init(
      remaining: limit.remaining(state, at: now), limit: limit,
      next: limit.nextMore(state, at: now))
  }

  fileprivate init(
    _ limit: RateLimit, _ state: RateLimit.State, by clock: RefillClock, at now: Instant
  ) {
    self.init(limit.byRefillClock, state, at: clock.reading(at: now))
    self.limit = limit
    next = next.map(clock.moment)
  }
}

extension RefillClock {
  /// `now` means at once, the usual case, which costs one reading.
  fileprivate func nextAllowed(
    _ state: RateLimit.State, _ limit: RateLimit?, at now: Instant
  ) -> Instant {
    guard let limit = limit?.byRefillClock, !limit.allows(state, at: reading(at: now)) else {
      return now
    }
    return moment(of: limit.nextAllowed(state))
  }
}
