/// Time passes.
extension Shard {
  mutating func tick(into effects: inout [Effect]) {
    while let subject = timers.popDue(at: now) {
      switch subject {
      case .expiration(let entry):
        entries[entry].expirationTimer = TimerWheel.none
        expire(entry, into: &effects)
      case .refill(let app):
        apps[app].refillTimer = TimerWheel.none
        releaseHeld(app, .silent, into: &effects)
      case .hold(let app):
        apps[app].holdTimer = TimerWheel.none
        releaseHeld(app, .visible, into: &effects)
      case .keepAlive(let device):
        keepAliveFired(device, into: &effects)
      case .acknowledgement(let device):
        ackTimerFired(device, into: &effects)
      }
    }
    reviewHeld(into: &effects)
  }

  /// The policy has changed: what is held is sent, or waits until another moment. So many apps with
  /// one tick; `nextWake` asks for the next one at once, and events are handled in between.
  private mutating func reviewHeld(into effects: inout [Effect]) {
    guard let first = nextToReview else { return }
    let end = min(Int(first) + Limits.reviewedApps, apps.placeCount)
    nextToReview = end < apps.placeCount ? Int32(end) : nil
    for app in first..<max(first, Int32(end)) where apps.isTaken(app) {
      if apps[app].slots.silent >= 0 { releaseHeld(app, .silent, into: &effects) }
    }
  }

  /// What is in flight is not awaited any longer; whatever its place in the window kept back may
  /// go.
  private mutating func expire(_ entry: Int32, into effects: inout [Effect]) {
    let device = apps[entries[entry].app].device
    let wasInFlight = if case .inFlight = entries[entry].phase { true } else { false }
    discard(entry, .expired, into: &effects)
    if wasInFlight { sendHeld(of: device, .piggyback, .none, into: &effects) }
  }
}
