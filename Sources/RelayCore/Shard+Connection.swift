import DequeModule
import Primitives

/// Connections of devices, their lines and acknowledgements.
extension Shard {
  mutating func handle(
    _ event: StreamEvent, on connection: ConnectionID, into effects: inout [Effect]
  ) {
    guard let device = deviceNumber(of: connection) else { return }
    switch event {
    case .acked(let id, let outcome): acked(device, id, outcome, into: &effects)
    case .decided(let id, let decision): decided(device, id, decision, into: &effects)
    case .reported(let report): reported(device, report, into: &effects)
    case .keptAlive: keptAlive(device, into: &effects)
    case .heard: heard(device, into: &effects)
    case .queueChecked(let isEmpty):
      if isEmpty { resendOverdue(device, over: connection, into: &effects) }
    case .clockFollowed: clockFollowed(device, connection)
    case .disconnected: end(connection, device, into: &effects)
    }
  }

  mutating func connect(
    _ device: DeviceNumber, _ connection: ConnectionID, into effects: inout [Effect]
  ) {
    if let older = devices[device].connection {
      effects.append(.close(older, .superseded))
      doubtBroadcasts(of: device)
      end(older, device, into: &effects)
    }
    devices[device].phase = .live(connection)
    devices[device].hasDeadlines = !configuration.deadlinesNeedClock
    connectionIndex.insert(device.number, KeyedHash.hash(connection))
    counters.connections += 1
    setKeepAliveTimer(device, configuration.keepAlive)
    effects.append(.hello(connection))
    sendHeld(of: device, .connect, with: nil, .device, into: &effects)
    if devices[device].inFlightCount == 0, devices[device].storedCount == 0 {
      effects.append(.sendEmpty(connection))
    }
    sendStored(to: device, into: &effects)
  }

  private mutating func clockFollowed(_ device: DeviceNumber, _ connection: ConnectionID) {
    guard !devices[device].hasDeadlines else { return }
    devices[device].hasDeadlines = true
    // It has spoken, which answers the pending keep-alive.
    devices[device].phase = .live(connection)
    setKeepAliveTimer(device, configuration.keepAlive)
    if let due = nextAckDue(device) {
      devices[device].ackTimer = timers.set(due, .acknowledgement(device: device))
    }
  }

  /// Any line of the device.
  private mutating func heard(_ device: DeviceNumber, into effects: inout [Effect]) {
    answered(device)
    sendHeld(of: device, .piggyback, with: .line(.answer), .none, into: &effects)
  }

  /// A keep-alive's answer opens no ride: its question has.
  private mutating func keptAlive(_ device: DeviceNumber, into effects: inout [Effect]) {
    switch devices[device].phase {
    case .live: sendHeld(of: device, .piggyback, with: .line(.keepAlive), .device, into: &effects)
    case .questioned:
      answered(device)
      sendHeld(of: device, .piggyback, with: .line(.keepAlive), .none, into: &effects)
    case .away: preconditionFailure("a connection that is found has its device")
    }
  }

  private mutating func reported(
    _ device: DeviceNumber, _ report: ConditionReport, into effects: inout [Effect]
  ) {
    let before = devices[device].condition
    devices[device].condition.apply(report)
    answered(device)
    let isChange = devices[device].condition != before
    // Held pushes are judged again by the new condition.
    if isChange { cancelRefillTimers(of: device) }
    sendHeld(
      of: device, .piggyback, with: .line(isChange ? .condition : .answer),
      isChange ? .device : .none, into: &effects)
  }

  @inline(__always)
  private mutating func acked(
    _ device: DeviceNumber, _ id: UniqueID, _ outcome: DeliveryOutcome?,
    into effects: inout [Effect]
  ) {
    if let entry = inFlightEntry(of: device, id) {
      finish(entry, of: device, outcome, into: &effects)
    } else if let outcome, outcome != .later, awaitedOutcomes[id]?.device == device {
      awaitedOutcomes.remove(id)
      log(.outcome(outcome), id, into: &effects)
    }
    heard(device, into: &effects)
  }

  /// Logged only for notifications with a promised outcome.
  private mutating func decided(
    _ device: DeviceNumber, _ id: UniqueID, _ decision: PushDecision, into effects: inout [Effect]
  ) {
    if let awaited = awaitedOutcomes[id], awaited.device == device,
      awaited.decisions < Limits.decisionsPerPush
    {
      awaitedOutcomes.change(id) { $0.decisions += 1 }
      log(.decided(decision), id, into: &effects)
    }
    heard(device, into: &effects)
  }

  mutating func shutDown(into effects: inout [Effect]) {
    for device in devices.indices {
      guard let connection = devices[device].connection else { continue }
      effects.append(.close(connection, .shutdown))
      end(connection, device, into: &effects)
    }
  }

  /// A keep-alive is due, or its answer overdue.
  mutating func keepAliveFired(_ device: DeviceNumber, into effects: inout [Effect]) {
    devices[device].keepAliveTimer = .none
    switch devices[device].phase {
    case .away: break
    case .live(let connection):
      devices[device].phase = .questioned(connection)
      effects.append(.sendKeepAlive(connection))
      setKeepAliveTimer(device, configuration.keepAliveTimeout)
      sendHeld(of: device, .piggyback, with: .line(.keepAlive), .relay, into: &effects)
    case .questioned(let connection):
      effects.append(.close(connection, .keepAliveTimeout))
      doubtBroadcasts(of: device)
      end(connection, device, into: &effects)
    }
  }

  /// Those that are connected now are not questioned.
  package mutating func dropKeepAlives() {
    for device in devices.indices { timers.cancel(&devices[device].keepAliveTimer) }
  }

  // MARK: Missing acknowledgements

  /// An acknowledgement may be overdue; only the connection knows whether the frame has left.
  mutating func ackTimerFired(_ device: DeviceNumber, into effects: inout [Effect]) {
    devices[device].ackTimer = .none
    guard let connection = devices[device].connection, let due = nextAckDue(device) else { return }
    if due > now {
      devices[device].ackTimer = timers.set(due, .acknowledgement(device: device))
    } else {
      effects.append(.checkQueue(connection))
      devices[device].ackTimer = timers.set(
        now + configuration.ackTimeout, .acknowledgement(device: device))
    }
  }

  /// Resends what is overdue, in order, or closes a connection that ignored several frames.
  private mutating func resendOverdue(
    _ device: DeviceNumber, over connection: ConnectionID, into effects: inout [Effect]
  ) {
    var overdue: [EntryNumber] = []
    var entry = devices[device].firstInFlight
    while entry.exists, case .inFlight(let next) = entries[entry].phase {
      if entries[entry].sentAt + configuration.ackTimeout <= now { overdue.append(entry) }
      entry = next
    }
    if overdue.contains(where: { entries[$0].frameCount >= Limits.framesPerConnection }) {
      effects.append(.close(connection, .ackTimeout))
      return end(connection, device, into: &effects)
    }
    for entry in overdue.reversed() { resend(entry, over: connection, into: &effects) }
    timers.cancel(&devices[device].ackTimer)
    if let due = nextAckDue(device) {
      devices[device].ackTimer = timers.set(due, .acknowledgement(device: device))
    }
  }

  private mutating func resend(
    _ entry: EntryNumber, over connection: ConnectionID, into effects: inout [Effect]
  ) {
    refuseUnanswered(entry, into: &effects)
    entries[entry].frameCount += 1
    entries[entry].sentAt = now
    counters.sent[Int(Via.resend.rawValue)] += 1
    effects.append(.send(connection, delivery(of: entry, .resend)))
    log(.sent(.resend), entries[entry].notification.uniqueID, into: &effects)
  }

  /// When the oldest frame in flight becomes overdue.
  private func nextAckDue(_ device: DeviceNumber) -> Instant? {
    var oldest: Instant?
    var entry = devices[device].firstInFlight
    while entry.exists, case .inFlight(let next) = entries[entry].phase {
      oldest = min(oldest ?? entries[entry].sentAt, entries[entry].sentAt)
      entry = next
    }
    return oldest.map { $0 + configuration.ackTimeout }
  }

  private mutating func answered(_ device: DeviceNumber) {
    if case .questioned(let connection) = devices[device].phase {
      devices[device].phase = .live(connection)
      setKeepAliveTimer(device, configuration.keepAlive)
    }
  }

  private mutating func setKeepAliveTimer(_ device: DeviceNumber, _ interval: Interval) {
    timers.cancel(&devices[device].keepAliveTimer)
    guard devices[device].hasDeadlines else { return }
    devices[device].keepAliveTimer = timers.set(now + interval, .keepAlive(device: device))
  }

  /// By unique id, otherwise the oldest with this provider's id.
  @inline(__always)
  private func inFlightEntry(of device: DeviceNumber, _ id: UniqueID) -> EntryNumber? {
    var byProviderID: EntryNumber?
    var entry = devices[device].firstInFlight
    while entry.exists, case .inFlight(let next) = entries[entry].phase {
      if entries[entry].notification.uniqueID == id { return entry }
      if entries[entry].notification.apnsID == id { byProviderID = entry }
      entry = next
    }
    return byProviderID
  }

  /// The device has it: ends its life, and answers the provider if the journal was slower.
  private mutating func finish(
    _ entry: EntryNumber, of device: DeviceNumber, _ outcome: DeliveryOutcome?,
    into effects: inout [Effect]
  ) {
    let uniqueID = entries[entry].notification.uniqueID
    if isPending(entry: entry) {
      let index = pendingIndex(of: entries[entry].sequence)
      if case .submission(let request, _, _) = pending[index] {
        effects.append(.respond(request, .accepted(uniqueID: uniqueID)))
        pending[index] = .nothing
      }
    } else if !entries[entry].isStorable, let request = unanswered.removeValue(forKey: entry) {
      effects.append(.respond(request, .accepted(uniqueID: uniqueID)))
    }
    if entries[entry].notification.isNamed { rememberTaken(entry, by: device) }
    counters.delivered += 1
    log(.delivered, uniqueID, into: &effects)
    switch outcome {
    case nil: break
    case .later: _ = awaitedOutcomes.insert(AwaitedOutcome(device: device), for: uniqueID)
    case .some(let outcome): log(.outcome(outcome), uniqueID, into: &effects)
    }
    leavePhase(entry)
    release(entry, into: &effects)
  }

  /// Ends a connection and returns what was in flight.
  mutating func end(
    _ connection: ConnectionID, _ device: DeviceNumber, into effects: inout [Effect]
  ) {
    connectionIndex.remove(device.number, KeyedHash.hash(connection))
    devices[device].phase = .away
    counters.connections -= 1
    timers.cancel(&devices[device].keepAliveTimer)
    timers.cancel(&devices[device].ackTimer)
    // Newest first, so that the newest of an app and class gets the slot.
    while devices[device].firstInFlight.exists {
      giveBack(devices[device].firstInFlight, into: &effects)
    }
  }

  private mutating func giveBack(_ entry: EntryNumber, into effects: inout [Effect]) {
    let app = entries[entry].app
    guard apps[app].isRegistered else { return discard(entry, .unregistered, into: &effects) }
    guard entries[entry].isStorable else { return discard(entry, .notStored, into: &effects) }
    guard !entries[entry].isExpired(at: now) else {
      return discard(entry, .expired, into: &effects)
    }
    if isPending(entry: entry) {
      leavePhase(entry)
      entries[entry].phase = .waiting
      apps[app].waiting[entries[entry].notification.notificationClass] += 1
      counters.waiting += 1
    } else {
      store(entry, nil, into: &effects)
    }
  }
}
