import DequeModule
import Primitives

/// Why held silent pushes may ride along without using a budget.
enum RideCause: Hashable, CaseIterable, Sendable {
  /// The device only answers what was sent to it.
  case none
  /// Not caused by a held silent: a visible push, another app's paid silent, a due keep-alive.
  case relay
  /// A device can cause it at will; `Shard.Configuration.rides` limits it.
  case device
}

/// Sending, storing, and sending along.
extension Shard {
  /// Whether a waiting entry may be sent now, and if not until when and why; nil while its device
  /// is away. `store` logs this and sets its timer.
  ///
  /// `mutating` but changes nothing: called from a mutating method, a non-mutating one gets a copy
  /// of the shard's 784 bytes.
  mutating func verdict(on entry: EntryNumber) -> BudgetDecision? {
    let app = entries[entry].app
    let device = apps[app].device
    guard devices[device].connection != nil else { return nil }
    let decision = decide(entry)
    let notificationClass = entries[entry].notification.notificationClass
    guard case .allowed = decision, apps[app].slots[notificationClass].exists, !isDurable(entry)
    else { return decision }
    // Only an entry in the journal may replace an older one in its slot (invariant 2).
    return switch notificationClass {
    // The older one is sent first.
    case .visible where windowHolds(2, device): .allowed
    // It would ride with its successor. One that is never stored leaves it in its slot.
    case .silent where !entries[entry].isStorable: .allowed
    case .visible, .silent: .held(until: nil, by: .inFlight)
    }
  }

  @inline(__always)
  private func isDurable(_ entry: EntryNumber) -> Bool {
    entries[entry].isStorable && !isPending(entry: entry)
  }

  @inline(__always)
  private func windowHolds(_ count: Int, _ device: DeviceNumber) -> Bool {
    Int(devices[device].inFlightCount) + count <= configuration.inFlightPerDevice
  }

  /// As `verdict`, without regard to the slot's entry: whether the device may get this one now.
  mutating func decide(_ entry: EntryNumber) -> BudgetDecision {
    let app = entries[entry].app
    let device = apps[app].device
    let condition = devices[device].condition
    guard windowHolds(1, device) else { return .held(until: nil, by: .inFlight) }
    switch entries[entry].notification.notificationClass {
    // The phone would not run it, paid or not.
    case .silent where condition.withholdsSilent: return .held(until: nil, by: .lowPowerMode)
    case .silent where entries[entry].isPaid:
      return .allowed
    // It would wake the phone; a ride finds it awake.
    case .silent
    where entries[entry].notification.priority == .powerFirst && condition.withholds(.powerFirst):
      return .held(until: nil, by: .lowPriority)
    case .silent:
      guard ownBudgets.isEmpty else {
        return budgets(of: device).decide(
          app: apps[app].budget, device: devices[device].budget, condition: condition, at: now)
      }
      return budgets.decide(
        app: apps[app].budget, device: devices[device].budget, condition: condition, at: now)
    case .visible:
      let priority = entries[entry].notification.priority
      guard priority != .immediate, condition.withholds(priority) else { return .allowed }
      guard priority == .powerAware else { return .held(until: nil, by: .lowPriority) }
      // A time from an earlier run may be ahead of this one's clock.
      let until = min(entries[entry].sentAt, now) + configuration.lowPriorityHold
      return until <= now ? .allowed : .held(until: until, by: .lowPriority)
    }
  }

  /// Sends a waiting entry, and what is held for the device along with it.
  mutating func sendDirectly(_ entry: EntryNumber, into effects: inout [Effect]) {
    let app = entries[entry].app
    let notificationClass = entries[entry].notification.notificationClass
    let older = apps[app].slots[notificationClass]
    let opener = older.exists ? makeWay(older, for: entry, into: &effects) : nil
    transmitOnItsOwn(entry, .direct, behind: opener, into: &effects)
  }

  /// Sends an entry, paying for a silent one, and others along, but no silent of the same app.
  /// `opener` was sent just before and opens a ride.
  private mutating func transmitOnItsOwn(
    _ entry: EntryNumber, _ via: Via, behind opener: Carrier? = nil, into effects: inout [Effect]
  ) {
    let app = entries[entry].app
    let isSilent = entries[entry].notification.notificationClass == .silent
    let opensRide = isSilent ? !entries[entry].isPaid : entries[entry].opensRide
    if isSilent, opensRide {
      consumeBudget(app, into: &effects)
      entries[entry].isPaid = true
    }
    let carrier = opensRide ? entries[entry].carrier : opener ?? entries[entry].carrier
    transmit(entry, via, into: &effects)
    sendHeld(
      of: apps[app].device, .piggyback, with: carrier,
      opensRide || opener != nil ? .relay : .none, except: isSilent ? app : nil, into: &effects)
  }

  /// An older visible one is sent first if the window takes both, otherwise replaced. An older
  /// silent one is always replaced, unless the newer is never stored. Returns the older one if it
  /// opens a ride.
  private mutating func makeWay(
    _ older: EntryNumber, for entry: EntryNumber, into effects: inout [Effect]
  ) -> Carrier? {
    let newer = entries[entry].notification
    if entries[older].isExpired(at: now) {
      discard(older, .expired, into: &effects)
    } else if newer.notificationClass == .visible, windowHolds(2, apps[entries[entry].app].device) {
      let opener = entries[older].opensRide ? entries[older].carrier : nil
      transmit(older, .piggyback, with: .push(newer.uniqueID), into: &effects)
      return opener
    } else if isDurable(entry) {
      discard(older, .replaced(by: newer.uniqueID), into: &effects)
    }
    return nil
  }

  /// Puts an entry held back by this verdict into its slot; the newest accepted wins.
  mutating func store(
    _ entry: EntryNumber, _ verdict: BudgetDecision?, into effects: inout [Effect]
  ) {
    let app = entries[entry].app
    let notificationClass = entries[entry].notification.notificationClass
    let other = apps[app].slots[notificationClass]
    if other.exists {
      if entries[other].order > entries[entry].order {
        return discard(entry, .replaced(by: entries[other].notification.uniqueID), into: &effects)
      }
      discard(other, .replaced(by: entries[entry].notification.uniqueID), into: &effects)
    }
    leavePhase(entry)
    entries[entry].phase = .stored
    apps[app].slots[notificationClass] = entry
    devices[apps[app].device].storedCount += 1
    counters.inSlots += 1
    counters.stored += 1
    let uniqueID = entries[entry].notification.uniqueID
    guard case .held(let until, let limit) = verdict else {
      return log(.storedOffline, uniqueID, into: &effects)
    }
    log(.storedPower(until: until, limit: limit), uniqueID, into: &effects)
    if let until { setReleaseTimer(app, notificationClass, until) }
  }

  /// Sends what is held for a device up to the window, visible before silent, oldest first within a
  /// class: all visible ones, and silents paid for by a ride, earlier or by the budget. `own` is an
  /// app whose silent was just sent; its slot stays, unless a visible one goes, too.
  mutating func sendHeld(
    of device: DeviceNumber, _ via: Via, with carrier: Carrier?, _ cause: RideCause,
    except own: AppNumber? = nil, into effects: inout [Effect]
  ) {
    guard devices[device].storedCount > 0, devices[device].connection != nil else { return }
    var held = drainScratch
    drainScratch = []
    listHeld(of: device, into: &held)
    var (isRide, own, stayed) = (cause == .relay, own, false)
    // Opened the ride, unless it was open already.
    var opener: Carrier?
    for entry in held {
      if entries[entry].isExpired(at: now) {
        discard(entry, .expired, into: &effects)
        continue
      }
      guard entries[entry].notification.notificationClass == .silent else {
        guard windowHolds(1, device) else { continue }
        if !isRide || own != nil, entries[entry].opensRide {
          (isRide, opener, own) = (true, entries[entry].carrier, nil)
        }
        transmit(entry, via, with: carrier, into: &effects)
        continue
      }
      if devices[device].condition.withholdsSilent { continue }
      let isOwn = entries[entry].app == own
      if !entries[entry].isPaid, !isOwn {
        if !isRide, cause == .device, windowHolds(1, device) { isRide = consumeRide(device) }
        if isRide { entries[entry].isPaid = true }
      }
      if entries[entry].isPaid {
        if windowHolds(1, device) { transmit(entry, via, with: opener ?? carrier, into: &effects) }
      } else if releaseFromBudget(entry, into: &effects) {
        if !isRide { (isRide, opener) = (true, entries[entry].carrier) }
      } else if !isOwn {
        stayed = true
      }
    }
    held.removeAll(keepingCapacity: true)
    drainScratch = held
    // A later one was paid from its budget; earlier ones ride with it.
    if stayed, isRide {
      sendHeld(of: device, .piggyback, with: opener ?? carrier, .relay, except: own, into: &effects)
    }
  }

  /// In sending order.
  private func listHeld(of device: DeviceNumber, into held: inout [EntryNumber]) {
    var app = devices[device].firstApp
    while app.exists {
      if apps[app].slots.visible.exists { held.append(apps[app].slots.visible) }
      if apps[app].slots.silent.exists { held.append(apps[app].slots.silent) }
      app = apps[app].next
    }
    held.sort { left, right in
      let (first, second) = (entries[left], entries[right])
      if first.notification.notificationClass != second.notification.notificationClass {
        return first.notification.notificationClass == .visible
      }
      return first.order < second.order
    }
  }

  /// Uses one of the device's own rides, if allowed.
  private mutating func consumeRide(_ device: DeviceNumber) -> Bool {
    guard configuration.rides.allows(devices[device].rides, at: now) else { return false }
    configuration.rides.consume(&devices[device].rides, at: now)
    return true
  }

  /// Sends a held silent if the budget allows, or sets its timer. A set timer needs no check.
  private mutating func releaseFromBudget(
    _ entry: EntryNumber, into effects: inout [Effect]
  ) -> Bool {
    let app = entries[entry].app
    guard !apps[app].refillTimer.exists else { return false }
    switch decide(entry) {
    case .allowed:
      consumeBudget(app, into: &effects)
      entries[entry].isPaid = true
      transmit(entry, .refill, into: &effects)
      return true
    case .held(let until, let limit):
      guard let until else { return false }
      // It was stored while the device was away: its time is known only now.
      log(
        .storedPower(until: until, limit: limit), entries[entry].notification.uniqueID,
        into: &effects)
      setReleaseTimer(app, .silent, until)
      return false
    }
  }

  /// Sends an entry from any phase.
  mutating func transmit(
    _ entry: EntryNumber, _ via: Via, with carrier: Carrier? = nil, into effects: inout [Effect]
  ) {
    let device = apps[entries[entry].app].device
    guard let connection = devices[device].connection else {
      preconditionFailure("only a connected device is sent anything")
    }
    leavePhase(entry)
    entries[entry].phase = .inFlight(next: devices[device].firstInFlight)
    entries[entry].sentAt = now
    entries[entry].frameCount = 1
    entries[entry].wasSent = true
    devices[device].firstInFlight = entry
    devices[device].inFlightCount += 1
    counters.inFlight += 1
    counters.sent[Int(via.rawValue)] += 1
    if !devices[device].ackTimer.exists, devices[device].hasDeadlines {
      devices[device].ackTimer = timers.set(
        now + configuration.ackTimeout, .acknowledgement(device: device))
    }
    let delivery = delivery(of: entry, via)
    effects.append(.send(connection, delivery))
    log(.sent(via, with: carrier), delivery.notification.uniqueID, into: &effects)
  }

  /// A frame sent now.
  @inline(__always)
  func delivery(of entry: EntryNumber, _ via: Via) -> Delivery {
    Delivery(
      notification: entries[entry].notification, via: via, acceptedAt: entries[entry].acceptedAt,
      sentAt: now)
  }

  /// Ends a life without delivery.
  mutating func discard(_ entry: EntryNumber, _ reason: DiscardReason, into effects: inout [Effect])
  {
    let uniqueID = entries[entry].notification.uniqueID
    leavePhase(entry)
    counters.count(reason)
    log(.discarded(reason), uniqueID, into: &effects)
    release(entry, into: &effects)
  }

  /// Removes an entry from its place and that place's counter.
  mutating func leavePhase(_ entry: EntryNumber) {
    let app = entries[entry].app
    let notificationClass = entries[entry].notification.notificationClass
    switch entries[entry].phase {
    case .waiting:
      counters.waiting -= 1
      if entries[entry].isStorable { apps[app].waiting[notificationClass] -= 1 }
    case .stored:
      counters.inSlots -= 1
      apps[app].slots[notificationClass] = .none
      devices[apps[app].device].storedCount -= 1
      cancelReleaseTimer(app, notificationClass)
    case .inFlight: leaveFlight(entry)
    }
  }

  private mutating func leaveFlight(_ entry: EntryNumber) {
    let device = apps[entries[entry].app].device
    guard case .inFlight(let next) = entries[entry].phase else { return }
    counters.inFlight -= 1
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

  /// Frees the place of an entry whose life has ended.
  mutating func release(_ entry: EntryNumber, into effects: inout [Effect]) {
    let app = entries[entry].app
    unstore(entry, into: &effects)
    refuseUnanswered(entry, into: &effects)
    timers.cancel(&entries[entry].expirationTimer)
    entries.remove(at: entry)
    apps[app].entryCount -= 1
    if !apps[app].isRegistered, apps[app].entryCount == 0 { apps.remove(at: app) }
  }

  /// The entry will not be stored again: the journal may forget it.
  mutating func unstore(_ entry: EntryNumber, into effects: inout [Effect]) {
    let sequence = entries[entry].sequence
    guard sequence != 0 else { return }
    if isPending(entry: entry) {
      let index = pendingIndex(of: sequence)
      if case .submission(let request, let uniqueID, _) = pending[index] {
        pending[index] = .submission(request, uniqueID: uniqueID, entry: .none)
      }
    }
    effects.append(.forget(sequence))
    entries[entry].sequence = 0
  }

  /// Answers 503 for an entry that is neither in the journal nor acknowledged in time.
  mutating func refuseUnanswered(_ entry: EntryNumber, into effects: inout [Effect]) {
    guard !unanswered.isEmpty, let request = unanswered.removeValue(forKey: entry) else { return }
    refuse(.serviceUnavailable, request, into: &effects)
  }

  private mutating func consumeBudget(_ app: AppNumber, into effects: inout [Effect]) {
    let device = apps[app].device
    let (before, deviceBefore) = (apps[app].budget, devices[device].budget)
    let condition = devices[device].condition
    if ownBudgets.isEmpty {
      budgets.consume(
        app: &apps[app].budget, device: &devices[device].budget, condition: condition, at: now)
    } else {
      budgets(of: device).consume(
        app: &apps[app].budget, device: &devices[device].budget, condition: condition, at: now)
    }
    guard apps[app].budget != before || devices[device].budget != deviceBefore else { return }
    recordBudget(of: app, into: &effects)
  }

  /// Writes the current budgets to the journal.
  mutating func recordBudget(of app: AppNumber, into effects: inout [Effect]) {
    let id = devices[apps[app].device].id
    let states = spentStates(apps[app].budget, of: apps[app].device)
    record(
      .spent(id, apps[app].topic, app: states.app, device: states.device), key: id.routingKey,
      into: &effects)
  }

  private mutating func setReleaseTimer(
    _ app: AppNumber, _ notificationClass: NotificationClass, _ moment: Instant
  ) {
    cancelReleaseTimer(app, notificationClass)
    switch notificationClass {
    case .silent: apps[app].refillTimer = timers.set(moment, .refill(app: app))
    case .visible: apps[app].holdTimer = timers.set(moment, .hold(app: app))
    }
  }

  /// For when their moments no longer apply.
  mutating func cancelRefillTimers(of device: DeviceNumber) {
    var app = devices[device].firstApp
    while app.exists {
      cancelReleaseTimer(app, .silent)
      app = apps[app].next
    }
  }

  private mutating func cancelReleaseTimer(_ app: AppNumber, _ notificationClass: NotificationClass)
  {
    // Mostly there is none, and reading costs less than write access.
    switch notificationClass {
    case .silent where apps[app].refillTimer.exists: timers.cancel(&apps[app].refillTimer)
    case .visible where apps[app].holdTimer.exists: timers.cancel(&apps[app].holdTimer)
    case .silent, .visible: break
    }
  }

  /// A refill or hold timer fired: sends the slot's entry or sets the next timer.
  mutating func releaseHeld(
    _ app: AppNumber, _ notificationClass: NotificationClass, into effects: inout [Effect]
  ) {
    let entry = apps[app].slots[notificationClass]
    guard entry.exists, devices[apps[app].device].connection != nil else { return }
    // The tick may be late, and both moments past.
    guard !entries[entry].isExpired(at: now) else {
      return discard(entry, .expired, into: &effects)
    }
    // A fired hold is over, however the clock was set meanwhile.
    guard notificationClass == .silent else {
      if windowHolds(1, apps[app].device) { transmitOnItsOwn(entry, .hold, into: &effects) }
      return
    }
    switch decide(entry) {
    case .allowed: transmitOnItsOwn(entry, .refill, into: &effects)
    case .held(let until, _):
      if let until { setReleaseTimer(app, .silent, until) }
    }
  }
}
