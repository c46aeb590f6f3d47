import Primitives

/// A device whose silent pushes go by a policy of its own, and by clocks of its own.
package struct OwnBudgets: Hashable, Sendable {
  package var device: DeviceID
  package var budgets: SilentBudgets

  package init(device: DeviceID, budgets: SilentBudgets) {
    self.device = device
    self.budgets = budgets
  }
}

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
    let device = apps[app].device
    let states = (app: apps[app].budget, device: devices[device].budget)
    guard !ownBudgets.isEmpty, let own = ownBudgets[devices[device].id] else { return states }
    return own.states(app: states.app, device: states.device, on: budgets, at: now)
  }

  /// The devices with a policy of their own, by their ids.
  var ownBudgetsState: [OwnBudgets] {
    ownBudgets.map { OwnBudgets(device: $0.key, budgets: $0.value) }
      .sorted { $0.device.precedes($1.device) }
  }
}
