package import Primitives

/// An app's budget belongs to its device and topic: it stays used when the app is removed.
package struct BudgetKey: Hashable, Sendable {
  package var device: DeviceID
  package var topic: Topic

  package init(device: DeviceID, topic: Topic) {
    self.device = device
    self.topic = topic
  }
}

/// The used budget of a removed app, by its device's clocks: it refills as if the app were there.
package struct FormerBudget: Hashable, Sendable {
  package var key: BudgetKey
  package var spent: RateLimit.State

  package init(key: BudgetKey, spent: RateLimit.State) {
    self.key = key
    self.spent = spent
  }
}

package struct FormerBudgets: Sendable {
  private var budgets: [DeviceID: [FormerBudget]] = [:]
  private(set) var count = 0

  mutating func add(_ budget: FormerBudget) {
    budgets[budget.key.device, default: []].append(budget)
    count += 1
  }

  /// Removes and returns a device's budgets that match, oldest first.
  mutating func remove(of device: DeviceID, where isIt: (FormerBudget) -> Bool) -> [FormerBudget] {
    guard let all = budgets[device] else { return [] }
    let taken = all.filter(isIt)
    budgets[device] = taken.count < all.count ? all.filter { !isIt($0) } : nil
    count -= taken.count
    return taken
  }

  mutating func removeAll(where isIt: (FormerBudget) -> Bool) -> [FormerBudget] {
    budgets.keys.sorted().flatMap { remove(of: $0, where: isIt) }
  }

  /// All, by device, oldest first within each.
  package var state: [FormerBudget] {
    get { budgets.keys.sorted().flatMap { budgets[$0] ?? [] } }
    set {
      self = Self()
      for budget in newValue { add(budget) }
    }
  }
}

extension Shard {
  /// The device's own budgets or, mostly, the shared ones.
  func budgets(of device: DeviceNumber) -> SilentBudgets {
    ownBudgets[devices[device].id] ?? budgets
  }

  /// Sets a device's policy; nil returns to the shared one. Used amounts stay, and held pushes are
  /// reviewed. No effect beyond `Limits.ownPolicies`.
  mutating func change(
    to policy: SilentPolicy?, of device: DeviceNumber, at moment: Instant,
    into effects: inout [Effect]
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
      func shared(_ app: RateLimit.State) -> RateLimit.State {
        own.appClock.state(app, on: all.appClock, at: moment)
      }
      for app in appNumbers(of: device, nil) { apps[app].budget = shared(apps[app].budget) }
      for former in formerBudgets.remove(of: id, where: { _ in true }) {
        formerBudgets.add(FormerBudget(key: former.key, spent: shared(former.spent)))
      }
      devices[device].budget = own.deviceClock.state(
        devices[device].budget, on: all.deviceClock, at: moment)
    }
    for app in appNumbers(of: device, nil) { releaseHeld(app, .silent, into: &effects) }
  }

  /// The amounts used by an app and its device, by the shared clocks, the only ones in the journal.
  func spentStates(
    _ app: RateLimit.State, of device: DeviceNumber
  ) -> (app: RateLimit.State, device: RateLimit.State) {
    let states = (app: app, device: devices[device].budget)
    guard !ownBudgets.isEmpty, let own = ownBudgets[devices[device].id] else { return states }
    return (
      own.appClock.state(states.app, on: budgets.appClock, at: now),
      own.deviceClock.state(states.device, on: budgets.deviceClock, at: now)
    )
  }

  /// Remembers a removed app's budget until it is full again; then the journal is told.
  mutating func keepBudget(
    _ spent: RateLimit.State, of key: BudgetKey, into effects: inout [Effect]
  ) {
    let (budgets, own, now) = (budgets, ownBudgets, now)
    func isFull(_ former: FormerBudget) -> Bool {
      former.spent.full <= (own[former.key.device] ?? budgets).appClock.reading(at: now)
    }
    var full = formerBudgets.remove(of: key.device, where: isFull)
    if formerBudgets.count >= Limits.formerBudgets {
      full += formerBudgets.removeAll(where: isFull)
    }
    for former in full { recordFull(former.key, into: &effects) }
    let budget = FormerBudget(key: key, spent: spent)
    if !isFull(budget), formerBudgets.count < Limits.formerBudgets {
      formerBudgets.add(budget)
    } else if spent != RateLimit.State() {
      recordFull(key, into: &effects)
    }
  }

  mutating func removeFormerBudget(of device: DeviceNumber, _ topic: Topic) -> RateLimit.State? {
    let former = formerBudgets.remove(of: devices[device].id) { $0.key.topic == topic }
    return former.first?.spent
  }

  /// Drops budgets of removed apps that are full again or no longer needed.
  mutating func dropFormerBudgets(
    of device: DeviceID, _ topic: Topic?, into effects: inout [Effect]
  ) {
    let dropped = formerBudgets.remove(of: device) { topic == nil || $0.key.topic == topic }
    for former in dropped { recordFull(former.key, into: &effects) }
  }

  private mutating func recordFull(_ key: BudgetKey, into effects: inout [Effect]) {
    guard let device = deviceNumber(key.device) else { return }
    let all = spentStates(RateLimit.State(), of: device).device
    record(
      .spent(key.device, key.topic, app: RateLimit.State(), device: all),
      key: key.device.routingKey, into: &effects)
  }
}
