import Primitives

/// Background fetch (WWDC 2013 session 204): when which app may look for news.
extension Phone {
  /// The schedule: what is planned for each app, and why.
  package var fetchSchedule: [FetchPlan] { apps.map(\.plan) }

  /// Plans one app's next fetch anew.
  mutating func replan(_ index: Int, _ effects: inout [PhoneEffect]) {
    let plan = makePlan(index)
    guard plan != apps[index].plan else { return }
    apps[index].plan = plan
    emit(.fetch(plan), &effects)
  }

  mutating func replanAll(_ effects: inout [PhoneEffect]) {
    for index in apps.indices { replan(index, &effects) }
  }

  private mutating func makePlan(_ index: Int) -> FetchPlan {
    let id = AppID(index)
    let earliest = earliestFetch(index)
    if let reason = fetchObstacle(index) {
      return FetchPlan(app: id, when: .onChange, earliest: earliest, reason: reason)
    }
    if let shortage = shortage(index) {
      return FetchPlan(
        app: id, when: .reconsider(shortage.until), earliest: earliest,
        reason: shortage.isEnergy ? .energyBudget : .dataBudget)
    }
    let localTime = now + limits.timeZone
    apps[index].usage.roll(to: localTime)
    usage.roll(to: localTime)
    let next = FetchPlanner(limits: limits, phone: usage).next(
      apps[index].usage, earliest: max(earliest, now), settledUntil: apps[index].usedUntil,
      lastActivity: apps[index].lastActivity)
    return FetchPlan(app: id, when: .fetch(next.at), earliest: earliest, reason: next.reason)
  }

  /// The app's interval and the phone's spacing, counted from the last activity; after a fetch that
  /// nobody has used yet, as long as it is fresh.
  private func earliestFetch(_ index: Int) -> Instant {
    let app = apps[index]
    let last = app.lastActivity
    // At least a second, so that time goes on whatever the limits say.
    var spacing = max(app.behaviour.stretched(limits.fetchFloor), .seconds(1))
    if case .seconds(let seconds) = app.fetchInterval { spacing = max(spacing, .seconds(seconds)) }
    if app.lastFetch == last { spacing = max(spacing, limits.fetchFreshness) }
    return last + spacing
  }

  /// What rules a fetch out until it changes.
  private func fetchObstacle(_ index: Int) -> FetchReason? {
    let app = apps[index]
    if !app.definition.modes.contains(.fetch) { return .modeMissing }
    if app.fetchInterval == .never { return .intervalNever }
    if app.state == .forceQuit { return .forceQuit }
    if !isRefreshOn { return .refreshOffForAll }
    if !app.isRefreshOn { return .refreshOff }
    if lock == .beforeFirstUnlock { return .beforeFirstUnlock }
    if isLowPower { return .lowPower }
    if !network.isConnected { return .offline }
    if app.callbackCount > 0, isFetching(index) { return .running }
    return nil
  }

  private func isFetching(_ index: Int) -> Bool {
    callbacks.contains { $0.app.number == index && $0.kind == .fetch }
  }

  /// Plans that are due: fetches begin, the others are looked at again.
  mutating func fetchesDue(_ effects: inout [PhoneEffect]) {
    for index in apps.indices where apps[index].plan.dueAt <= now {
      switch apps[index].plan.when {
      case .fetch: startFetch(index, &effects)
      case .reconsider, .onChange: replan(index, &effects)
      }
    }
  }

  /// Awake anyway, the phone also does the fetches that would be due soon.
  mutating func coalesceFetches(_ effects: inout [PhoneEffect]) {
    mustCoalesce = false
    let soon = now + limits.fetchCoalescing
    for index in apps.indices {
      guard case .fetch(let moment) = apps[index].plan.when, moment <= soon,
        apps[index].plan.earliest <= now
      else { continue }
      startFetch(index, &effects)
    }
  }

  private mutating func startFetch(_ index: Int, _ effects: inout [PhoneEffect]) {
    // In the foreground an app looks for news itself; so there is nothing to fetch for it.
    if apps[index].state == .foreground {
      apps[index].lastActivity = now
      return replan(index, &effects)
    }
    // What has changed without notice, a budget for instance, may have moved the fetch.
    let checked = makePlan(index)
    guard case .fetch = checked.when, checked.earliest <= now,
      apps[index].callbackCount < limits.callbacksPerApp
    else {
      if case .fetch = checked.when {
        // Too busy: after the next fresh interval.
        apps[index].lastActivity = now
      }
      return replan(index, &effects)
    }
    guard startCallback(index, .fetch, &effects) else {
      apps[index].lastActivity = now
      return replan(index, &effects)
    }
    replan(index, &effects)
  }

  /// One timer for the earliest plan.
  mutating func setFetchTimer() {
    var earliest = Instant.never
    for index in apps.indices { earliest = min(earliest, apps[index].plan.dueAt) }
    guard earliest < fetchTimer else { return }
    fetchTimer = earliest
    timers.set(.fetchesDue, at: max(earliest, now))
  }

  /// The user opens an app: learned for next time; and the use that was expected has happened.
  mutating func recordUse(_ index: Int) {
    let localTime = now + limits.timeZone
    apps[index].usage.record(at: localTime)
    var bin = UsagePattern.bin(localTime)
    var count: Int64 = 0
    while count < 4, apps[index].usage.isUsed(bin) {
      count += 1
      bin = (bin + 1) % UsagePattern.binCount
    }
    let binStart = floorQuotient(localTime.milliseconds, UsagePattern.binMilliseconds)
    let end = (binStart + count) * UsagePattern.binMilliseconds
    apps[index].usedUntil = max(now, Instant(milliseconds: end) - limits.timeZone)
  }
}
