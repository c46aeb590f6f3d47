import DequeModule

/// What may go now, what is stored, what rides along.
extension Shard {
  /// Whether a waiting entry may be sent on its own account now.
  ///
  /// Others of its app and class that wait for the journal go first, so that the order of
  /// acceptance holds; `isFirstInLine` says that this entry is the oldest of them.
  ///
  /// Changes nothing. `mutating`, because a method that is not is handed a copy of the shard's 784
  /// bytes when a mutating one calls it.
  mutating func mayGoDirectly(_ entry: Int32, isFirstInLine: Bool = false) -> Bool {
    let app = entries[entry].app
    let device = apps[app].device
    guard devices[device].connection != nil else { return false }
    let notificationClass = entries[entry].notification.notificationClass
    guard isFirstInLine || apps[app].waiting[notificationClass] == 0 else { return false }
    guard decide(entry) == .allowed else { return false }
    // An older one in the slot may only be replaced by what the journal has (invariant 2).
    return apps[app].slots[notificationClass] < 0 || isDurable(entry) || windowHolds(2, device)
  }

  /// Whether the journal has the entry.
  @inline(__always)
  private func isDurable(_ entry: Int32) -> Bool {
    entries[entry].isStorable && !isPending(entries[entry].sequence)
  }

  @inline(__always)
  private func windowHolds(_ count: Int, _ device: Int32) -> Bool {
    Int(devices[device].inFlightCount) + count <= configuration.inFlightPerDevice
  }

  /// Whether the phone may be troubled with this entry now, and if not until when and why. Changes
  /// nothing; `mutating` as `mayGoDirectly` is.
  mutating func decide(_ entry: Int32) -> BudgetDecision {
    let app = entries[entry].app
    let device = apps[app].device
    let condition = devices[device].condition
    guard windowHolds(1, device) else { return .held(until: nil, by: .inFlight) }
    switch entries[entry].notification.notificationClass {
    case .silent:
      return budgets.decide(
        app: apps[app].budget, device: devices[device].budget, condition: condition, at: now)
    case .visible:
      guard entries[entry].notification.priority != .immediate, condition.withholdsLowPriority
      else { return .allowed }
      let until = entries[entry].acceptedAt + configuration.lowPriorityHold
      return until <= now ? .allowed : .held(until: until, by: .lowPriority)
    }
  }

  /// Sends a waiting entry on its own account; what is held for the device rides along.
  mutating func sendDirectly(_ entry: Int32, into effects: inout [Effect]) {
    let app = entries[entry].app
    let notificationClass = entries[entry].notification.notificationClass
    if notificationClass == .silent { takeBudget(app, into: &effects) }
    let older = apps[app].slots[notificationClass]
    if older >= 0 { makeWay(older, for: entry, into: &effects) }
    transmit(entry, .direct, into: &effects)
    drain(apps[app].device, .piggyback, into: &effects)
  }

  /// The older one in the slot goes first while the window takes both, else it is replaced. A
  /// silent one is only sent when it must not be replaced, because the journal does not have the
  /// newer yet.
  private mutating func makeWay(
    _ older: Int32, for entry: Int32, into effects: inout [Effect]
  ) {
    let newer = entries[entry].notification
    if entries[older].isExpired(at: now) {
      discard(older, .expired, into: &effects)
    } else if windowHolds(2, apps[entries[entry].app].device),
      newer.notificationClass == .visible || !isDurable(entry)
    {
      transmit(older, .piggyback, into: &effects)
    } else {
      discard(older, .replaced(by: newer.uniqueID), into: &effects)
    }
  }

  /// Puts a waiting or returning entry into its slot: the newest by order of acceptance wins.
  mutating func store(_ entry: Int32, into effects: inout [Effect]) {
    let app = entries[entry].app
    let notificationClass = entries[entry].notification.notificationClass
    let other = apps[app].slots[notificationClass]
    if other >= 0 {
      if entries[other].order > entries[entry].order {
        return discard(
          entry, .replaced(by: entries[other].notification.uniqueID), into: &effects)
      }
      discard(other, .replaced(by: entries[entry].notification.uniqueID), into: &effects)
    }
    leavePhase(entry)
    entries[entry].phase = .stored
    apps[app].slots[notificationClass] = entry
    devices[apps[app].device].storedCount += 1
    snapshot.inSlots += 1
    snapshot.stored += 1
    let uniqueID = entries[entry].notification.uniqueID
    guard devices[apps[app].device].connection != nil else {
      return log(.storedOffline, uniqueID, into: &effects)
    }
    switch decide(entry) {
    case .allowed:
      log(.storedPower(until: nil, limit: .inFlight), uniqueID, into: &effects)
    case .held(let until, let limit):
      log(.storedPower(until: until, limit: limit), uniqueID, into: &effects)
      if let until { setReleaseTimer(app, notificationClass, until) }
    }
  }

  /// Sends everything that is held for a device, visible before silent, oldest first, as far as the
  /// window goes. The radio is awake, so it costs no budget.
  mutating func drain(_ device: Int32, _ via: Via, into effects: inout [Effect]) {
    guard devices[device].storedCount > 0, devices[device].connection != nil else { return }
    var held = drainScratch
    drainScratch = []
    var app = devices[device].firstApp
    while app >= 0 {
      if apps[app].slots.visible >= 0 { held.append(apps[app].slots.visible) }
      if apps[app].slots.silent >= 0 { held.append(apps[app].slots.silent) }
      app = apps[app].next
    }
    held.sort { left, right in
      let (first, second) = (entries[left], entries[right])
      if first.notification.notificationClass != second.notification.notificationClass {
        return first.notification.notificationClass == .visible
      }
      return first.order < second.order
    }
    for entry in held {
      if entries[entry].isExpired(at: now) {
        discard(entry, .expired, into: &effects)
      } else if Int(devices[device].inFlightCount) < configuration.inFlightPerDevice {
        transmit(entry, via, into: &effects)
      }
    }
    held.removeAll(keepingCapacity: true)
    drainScratch = held
  }

  /// Sends one entry from whatever phase it is in.
  mutating func transmit(_ entry: Int32, _ via: Via, into effects: inout [Effect]) {
    let device = apps[entries[entry].app].device
    guard let connection = devices[device].connection else {
      preconditionFailure("only a connected device is sent anything")
    }
    leavePhase(entry)
    timers.cancel(&entries[entry].expirationTimer)
    entries[entry].phase = .inFlight(next: devices[device].firstInFlight)
    devices[device].firstInFlight = entry
    devices[device].inFlightCount += 1
    snapshot.inFlight += 1
    snapshot.sent[Int(via.rawValue)] += 1
    let delivery = Delivery(
      notification: entries[entry].notification, via: via, acceptedAt: entries[entry].acceptedAt,
      sentAt: now)
    effects.append(.send(connection, delivery))
    log(.sent(via), delivery.notification.uniqueID, into: &effects)
  }

  /// Ends a life without delivery.
  mutating func discard(_ entry: Int32, _ reason: DiscardReason, into effects: inout [Effect]) {
    let uniqueID = entries[entry].notification.uniqueID
    leavePhase(entry)
    snapshot.count(reason)
    log(.discarded(reason), uniqueID, into: &effects)
    release(entry, into: &effects)
  }

  /// Takes an entry out of the place it is in, and out of that place's counter.
  mutating func leavePhase(_ entry: Int32) {
    let app = entries[entry].app
    let notificationClass = entries[entry].notification.notificationClass
    switch entries[entry].phase {
    case .waiting:
      snapshot.waiting -= 1
      if entries[entry].isStorable { apps[app].waiting[notificationClass] -= 1 }
    case .stored:
      snapshot.inSlots -= 1
      apps[app].slots[notificationClass] = -1
      devices[apps[app].device].storedCount -= 1
      cancelReleaseTimer(app, notificationClass)
    case .inFlight:
      leaveFlight(entry)
    }
  }

  private mutating func leaveFlight(_ entry: Int32) {
    let device = apps[entries[entry].app].device
    guard case .inFlight(let next) = entries[entry].phase else { return }
    snapshot.inFlight -= 1
    devices[device].inFlightCount -= 1
    if devices[device].firstInFlight == entry {
      devices[device].firstInFlight = next
      return
    }
    var current = devices[device].firstInFlight
    while case .inFlight(let following) = entries[current].phase {
      if following == entry {
        entries[current].phase = .inFlight(next: next)
        return
      }
      current = following
    }
  }

  /// Frees the entry's place after its life has ended and it has left its phase.
  mutating func release(_ entry: Int32, into effects: inout [Effect]) {
    let app = entries[entry].app
    let sequence = entries[entry].sequence
    if sequence != 0 {
      if isPending(sequence) {
        let index = pendingIndex(of: sequence)
        if case .submission(let request, let uniqueID, _) = pending[index] {
          pending[index] = .submission(request, uniqueID: uniqueID, entry: -1)
        }
      }
      effects.append(.forget(sequence))
    }
    timers.cancel(&entries[entry].expirationTimer)
    entries.remove(at: entry)
    apps[app].entryCount -= 1
    if !apps[app].isRegistered, apps[app].entryCount == 0 { apps.remove(at: app) }
  }

  private mutating func takeBudget(_ app: Int32, into effects: inout [Effect]) {
    let device = apps[app].device
    let (before, deviceBefore) = (apps[app].budget, devices[device].budget)
    budgets.take(
      app: &apps[app].budget, device: &devices[device].budget,
      condition: devices[device].condition, at: now)
    guard apps[app].budget != before || devices[device].budget != deviceBefore else { return }
    note(
      .spent(
        devices[device].id, apps[app].topic, app: apps[app].budget, device: devices[device].budget),
      into: &effects)
  }

  private mutating func setReleaseTimer(
    _ app: Int32, _ notificationClass: NotificationClass, _ moment: Instant
  ) {
    cancelReleaseTimer(app, notificationClass)
    switch notificationClass {
    case .silent: apps[app].refillTimer = timers.set(moment, .refill(app: app))
    case .visible: apps[app].holdTimer = timers.set(moment, .hold(app: app))
    }
  }

  private mutating func cancelReleaseTimer(_ app: Int32, _ notificationClass: NotificationClass) {
    // Mostly there is none: a look costs less than the right to change.
    switch notificationClass {
    case .silent where apps[app].refillTimer >= 0: timers.cancel(&apps[app].refillTimer)
    case .visible where apps[app].holdTimer >= 0: timers.cancel(&apps[app].holdTimer)
    case .silent, .visible: break
    }
  }

  /// The budget may have refilled, or a wait is over: send the slot's entry, or wait on.
  mutating func releaseHeld(
    _ app: Int32, _ notificationClass: NotificationClass, into effects: inout [Effect]
  ) {
    let entry = apps[app].slots[notificationClass]
    guard entry >= 0, devices[apps[app].device].connection != nil else { return }
    // The tick may be late, and both moments past.
    guard !entries[entry].isExpired(at: now) else {
      return discard(entry, .expired, into: &effects)
    }
    switch decide(entry) {
    case .allowed:
      if notificationClass == .silent { takeBudget(app, into: &effects) }
      transmit(entry, notificationClass == .silent ? .refill : .hold, into: &effects)
      drain(apps[app].device, .piggyback, into: &effects)
    case .held(let until, _):
      if let until { setReleaseTimer(app, notificationClass, until) }
    }
  }
}
