package import Primitives

/// A device whose silent pushes go by a policy of its own, and by clocks of its own.
package struct OwnBudgets: Hashable, Sendable {
  package var device: DeviceID
  package var budgets: SilentBudgets

  package init(device: DeviceID, budgets: SilentBudgets) {
    self.device = device
    self.budgets = budgets
  }
}

/// An app's budget belongs to its device and topic: it stays used when the app is removed.
package struct BudgetKey: Hashable, Sendable {
  package var device: DeviceID
  package var topic: Topic

  package init(device: DeviceID, topic: Topic) {
    self.device = device
    self.topic = topic
  }
}

/// What removed apps had used, by the clocks of all.
package typealias FormerBudgets = RecentTable<BudgetKey, RateLimit.State>

extension Shard {
  /// The budgets that count for a device: mostly those of all.
  func budgets(of device: Int32) -> SilentBudgets {
    ownBudgets[devices[device].id] ?? budgets
  }

  /// A policy for one device, or (nil) that of all again. What was used stays used, and what is
  /// held is looked at again. Beyond the limit nothing changes.
  mutating func change(
    to policy: SilentPolicy?, of device: Int32, at moment: Instant, into effects: inout [Effect]
  ) {
    let id = devices[device].id
    if let policy {
      guard ownBudgets[id] != nil || ownBudgets.count < Limits.ownPolicies else { return }
      var own = budgets(of: device)
      own.change(to: policy, at: moment)
      ownBudgets[id] = own
    } else {
      guard let own = ownBudgets.removeValue(forKey: id) else { return }
      let all = budgets
      for app in appNumbers(of: device, nil) {
        apps[app].budget =
          own.states(
            app: apps[app].budget, device: devices[device].budget, on: all, at: moment
          ).app
      }
      devices[device].budget =
        own.states(
          app: RateLimit.State(), device: devices[device].budget, on: all, at: moment
        ).device
    }
    for app in appNumbers(of: device, nil) { releaseHeld(app, .silent, into: &effects) }
  }

  /// What an app and its device have used, by the clocks of all: as the journal has it, which knows
  /// no others.
  func spentStates(of app: Int32) -> (app: RateLimit.State, device: RateLimit.State) {
    spentStates(apps[app].budget, of: apps[app].device)
  }

  private func spentStates(
    _ app: RateLimit.State, of device: Int32
  ) -> (app: RateLimit.State, device: RateLimit.State) {
    let states = (app: app, device: devices[device].budget)
    guard !ownBudgets.isEmpty, let own = ownBudgets[devices[device].id] else { return states }
    return own.states(app: states.app, device: states.device, on: budgets, at: now)
  }

  /// Remembers what a removed app has used until that is given back; then the journal is told.
  mutating func keepBudget(
    _ spent: RateLimit.State, of key: BudgetKey, into effects: inout [Effect]
  ) {
    let reading = budgets.appClock.reading(at: now)
    while let oldest = formerBudgets.oldest, oldest.value.full <= reading {
      formerBudgets.remove(oldest.key)
      noteFull(oldest.key, into: &effects)
    }
    if spent.full > reading {
      if let forgotten = formerBudgets.insert(spent, for: key) {
        noteFull(forgotten.key, into: &effects)
      }
    } else if spent.full > 0 {
      noteFull(key, into: &effects)
    }
  }

  mutating func takeFormerBudget(of device: Int32, _ topic: Topic) -> RateLimit.State? {
    let id = devices[device].id
    guard formerBudgets.count > 0,
      let spent = formerBudgets.remove(BudgetKey(device: id, topic: topic))
    else { return nil }
    return budgets.states(
      app: spent, device: RateLimit.State(), on: budgets(of: device), at: now
    ).app
  }

  /// Removed apps of a device have full budgets again, or need none any more.
  mutating func dropFormerBudgets(
    of device: DeviceID, _ topic: Topic?, into effects: inout [Effect]
  ) {
    for former in formerBudgets.take({
      $0.device == device && (topic == nil || $0.topic == topic)
    }) {
      noteFull(former.key, into: &effects)
    }
  }

  private mutating func noteFull(_ key: BudgetKey, into effects: inout [Effect]) {
    guard let device = deviceNumber(key.device) else { return }
    let all = spentStates(RateLimit.State(), of: device).device
    note(
      .spent(key.device, key.topic, app: RateLimit.State(), device: all),
      key: key.device.routingKey, into: &effects)
  }

  /// The devices with a policy of their own, by their ids.
  var ownBudgetsState: [OwnBudgets] {
    ownBudgets.map { OwnBudgets(device: $0.key, budgets: $0.value) }
      .sorted { $0.device.precedes($1.device) }
  }
}
