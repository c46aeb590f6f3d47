import Primitives

/// Tokens of activities, and how many pushes a phone shows (policy `live-activities`, ours).
extension Phone {
  /// The app tells its server, unless the activity is updated by broadcast.
  mutating func handToken(of id: ActivityID, _ index: Int) {
    guard let activity = apps[index].live[id], !activity.hasToken, activity.channel == nil,
      activity.state != .ended
    else { return }
    apps[index].live[id]?.tokenSince = now
    tell(.address(.update(id), isValid: true), index)
  }

  /// The old one is not valid any more; the app hands on the next, as soon as it runs.
  mutating func renewToken(of id: ActivityID, _ index: Int) {
    guard apps[index].live[id] != nil else { return }
    apps[index].live[id]?.tokenSince = nil
    tell(.address(.update(id), isValid: false), index)
    if isRunning(index), apps[index].process.readyAt <= now { return handToken(of: id, index) }
    // One run reads all tokens.
    let isRun = callbacks.contains { $0.app == AppID(index) && $0.kind == .activity }
    if !isRun { runForToken(of: id, index) }
  }

  /// By an app that runs: all that it had no time for yet.
  mutating func handTokens(_ index: Int) {
    for activity in apps[index].live.activities { handToken(of: activity.id, index) }
  }

  // MARK: Budgets

  var startLimit: RateLimit {
    RateLimit(interval: limits.activityStartInterval, burst: limits.activityStarts)
  }

  /// Frequent updates are declared by the app and allowed by the user.
  func updateLimit(_ index: Int) -> RateLimit {
    let isFrequent =
      apps[index].definition.activities?.isFrequent == true && apps[index].live.allowsFrequent
    return isFrequent
      ? RateLimit(interval: limits.frequentUpdateInterval, burst: limits.frequentUpdates)
      : RateLimit(interval: limits.activityUpdateInterval, burst: limits.activityUpdates)
  }

  /// After a change of the limit. What was used stays used, in pushes.
  mutating func keepUsed(_ before: RateLimit, _ index: Int) {
    let limit = updateLimit(index)
    guard limit != before, let state = apps[index].book?.updates else { return }
    let used = before.burst - before.remaining(state, at: now)
    apps[index].live.updates.full = now + limit.interval * min(used, limit.burst)
  }

  /// How many pushes of an app would be shown at once now: starts, and updates of priority 10.
  package func activityBudgets(of app: AppID) -> (starts: Int64, updates: Int64) {
    let (live, index) = (apps[app.number].live, app.number)
    return (
      startLimit.remaining(live.starts, at: now),
      updateLimit(index).remaining(live.updates, at: now)
    )
  }
}
