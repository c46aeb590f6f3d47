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
      }
    }
  }

  private mutating func expire(_ entry: Int32, into effects: inout [Effect]) {
    switch entries[entry].phase {
    case .waiting, .stored:
      discard(entry, .expired, into: &effects)
    case .inFlight:
      preconditionFailure("an entry in flight has no expiration timer (invariant 6)")
    }
  }
}
