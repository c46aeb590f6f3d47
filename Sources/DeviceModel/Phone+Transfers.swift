import Primitives

/// Background transfers (WWDC 2013 session 204): queued by apps, carried out by the system, whether
/// the app is there or not.
extension Phone {
  /// Takes a transfer on. Queued from the background it is always discretionary.
  @discardableResult
  mutating func queue(
    _ request: TransferRequest, of index: Int, _ effects: inout [PhoneEffect],
    fromForeground: Bool = false
  ) -> TransferID? {
    guard service.transfers.count < limits.transfers else {
      ignore(.limitReached, &effects)
      return nil
    }
    let isForeground = fromForeground || apps[index].state == .foreground
    let isDiscretionary = request.isDiscretionary || !isForeground
    accountTransfers()
    let id = service.add(request, of: AppID(index), isDiscretionary: isDiscretionary, transferMode)
    let step = TransferStep.queued(request, isDiscretionary: isDiscretionary)
    emit(.transfer(id, AppID(index), step), &effects)
    mustReviewTransfers = true
    return id
  }

  /// Brings the modelled progress up to now, and charges for it: data as it comes, the radio by
  /// the time that any transfer is active. The data of performed ones is charged as reported.
  mutating func accountTransfers() {
    guard !service.transfers.isEmpty else { return }
    let since = service.accountedUntil
    let active = service.transfers.filter { $0.phase == .active }
    service.advance(to: now, bytesPerSecond: bytesPerSecond)
    guard let first = active.first, now > since else { return }
    let (milliwatts, tail) = radioCost
    let time = radio.use(from: since, until: now, tail: tail)
    let energy = saturatingProduct(time.milliseconds, milliwatts) / 1000
    for before in active {
      let after = service[before.id]?.done ?? before.done
      let rest = before.id == first.id ? energy % Int64(active.count) : 0
      spendEnergy(energy / Int64(active.count) + rest, before.app.number)
      spendData(after - before.done, before.app.number)
    }
  }

  private var bytesPerSecond: Int64 {
    switch network {
    case .wifi: limits.wifiBytesPerSecond
    case .cellular: limits.cellularBytesPerSecond
    case .none, .airplane: 0
    }
  }

  /// Decides about every transfer: what ends, what goes on, what has to wait and for what.
  mutating func reviewTransfers(_ effects: inout [PhoneEffect]) {
    mustReviewTransfers = false
    guard !service.transfers.isEmpty else { return }
    accountTransfers()
    var active = 0
    var (isStarved, hasBroken) = (false, false)
    var ended: Set<Int> = []
    for index in service.transfers.indices {
      let transfer = service.transfers[index]
      switch transfer.phase {
      case .ended, .awaitingCredentials:
        continue
      case .active where transfer.hasReachedBreak:
        breakOff(index, &effects)
        hasBroken = true
      case .active where !transfer.isPerformed && transfer.done >= transfer.request.bytes:
        finish(index, transfer.request.isLargerThanSaid ? .tooLarge : .finished, &effects)
        ended.insert(transfer.app.number)
      case .active, .waiting:
        let hold = hold(of: transfer, active: active)
        if hold == nil { active += 1 }
        if hold == .energyBudget { isStarved = true }
        apply(hold, to: index, &effects)
      }
    }
    for index in ended.sorted() { deliverEndedTransfers(index, &effects) }
    removeDocumentTransfers()
    setTransferTimer(isStarved: isStarved, hasBroken: hasBroken)
  }

  /// One timer for whatever is next: the end of a transfer, another try of one that broke off, or
  /// enough energy for those that wait for it.
  private mutating func setTransferTimer(isStarved: Bool, hasBroken: Bool) {
    var next = service.nextEnd(bytesPerSecond: bytesPerSecond) ?? .never
    if isStarved { next = min(next, energy.moment(of: discretionaryEnergy, from: now)) }
    if hasBroken { next = min(next, now + limits.transferRetry) }
    // Even if one ends at once, time goes on by a millisecond: no loop without end.
    let due = max(next, now + .milliseconds(1))
    guard due < transferTimer else { return }
    transferTimer = due
    timers.set(.transfersDue, at: due)
  }

  /// What discretionary transfers leave untouched on battery.
  private var discretionaryEnergy: Int64 {
    min(energy.perDay, saturatingProduct(energy.perDay / 100, limits.discretionaryPercent))
  }

  /// Why a transfer may not go on.
  private func hold(of transfer: Transfer, active: Int) -> TransferHold? {
    if !network.isConnected { return .noNetwork }
    if transfer.isDiscretionary {
      if network != .wifi { return .needsWiFi }
      if isLowPower { return .lowPower }
      if !isCharging, energy.level(at: now) < discretionaryEnergy { return .energyBudget }
    }
    return active < limits.transfersAtOnce ? nil : .queue
  }

  private mutating func apply(
    _ hold: TransferHold?, to index: Int, _ effects: inout [PhoneEffect]
  ) {
    let transfer = service.transfers[index]
    if let hold {
      guard transfer.phase != .waiting(hold) else { return }
      interrupt(index)
      service.transfers[index].phase = .waiting(hold)
      emit(.transfer(transfer.id, transfer.app, .held(hold)), &effects)
    } else if transfer.request.demandsCredentials, !transfer.isPerformed,
      !transfer.hasCredentials
    {
      demandCredentials(index, &effects)
    } else if transfer.phase != .active {
      service.transfers[index].phase = .active
      emit(.transfer(transfer.id, transfer.app, .started(offset: transfer.done)), &effects)
    }
  }

  /// The connection is gone; in a moment it is tried again.
  private mutating func breakOff(_ index: Int, _ effects: inout [PhoneEffect]) {
    let transfer = service.transfers[index]
    interrupt(index)
    service.transfers[index].phase = .waiting(.queue)
    service.transfers[index].hasBrokenOff = true
    emit(.transfer(transfer.id, transfer.app, .brokeOff(offset: transfer.done)), &effects)
  }

  /// What was under way and cannot be resumed starts over.
  private mutating func interrupt(_ index: Int) {
    let transfer = service.transfers[index]
    if transfer.phase == .active, !transfer.keepsProgress { service.transfers[index].done = 0 }
  }

  private mutating func demandCredentials(_ index: Int, _ effects: inout [PhoneEffect]) {
    interrupt(index)
    service.transfers[index].phase = .awaitingCredentials
    let transfer = service.transfers[index]
    emit(.transfer(transfer.id, transfer.app, .credentialsDemanded), &effects)
    ask(transfer, &effects)
  }

  private mutating func finish(
    _ index: Int, _ result: TransferResult, _ effects: inout [PhoneEffect]
  ) {
    let transfer = service.transfers[index]
    service.transfers[index].phase = .ended(result)
    emit(.transfer(transfer.id, transfer.app, .ended(result)), &effects)
    switch (transfer.request.document, transfer.request.direction) {
    case (let document?, .download): contentArrived(for: document, transfer, result, &effects)
    case (_?, .upload): documentSent(service.transfers[index], &effects)
    case (nil, _): break
    }
  }

  // MARK: Waking the app

  /// Whether the system may run the app for its transfers: they need no declared mode, but nothing
  /// starts what its user swiped away, nor before the first unlock.
  private func mayWakeForTransfers(_ index: Int) -> Bool {
    apps[index].state.mayBeLaunched && lock != .beforeFirstUnlock
      && apps[index].callbackCount < limits.callbacksPerApp
  }

  /// Tells an app about its sessions that have ended, now or when it may run again.
  mutating func deliverEndedTransfers(_ index: Int, _ effects: inout [PhoneEffect]) {
    guard !service.transfers.isEmpty else { return }
    for session in service.endedSessions(of: AppID(index)) where mayWakeForTransfers(index) {
      // An app that crashes on the way is told next time.
      if startCallback(index, .transfers(session: session), &effects) {
        service.forget(session: session, of: AppID(index))
      }
    }
    for transfer in service.transfers
    where transfer.app.number == index && transfer.phase == .awaitingCredentials {
      ask(transfer, &effects)
    }
  }

  private mutating func ask(_ transfer: Transfer, _ effects: inout [PhoneEffect]) {
    let index = transfer.app.number
    let isAsked = callbacks.contains { $0.kind == .authentication(transfer.id) }
    guard mayWakeForTransfers(index), !isAsked else { return }
    startCallback(index, .authentication(transfer.id), &effects)
  }

  /// The app's answer to a server that wants to know who it is.
  mutating func answer(
    _ id: TransferID, _ answer: AuthenticationScript, _ effects: inout [PhoneEffect]
  ) {
    guard let index = service.index(of: id),
      service.transfers[index].phase == .awaitingCredentials
    else { return }
    let app = service.transfers[index].app.number
    switch answer {
    case .provides:
      service.transfers[index].hasCredentials = true
      service.transfers[index].phase = .waiting(.queue)
      mustReviewTransfers = true
    case .wrong, .cancels:
      if case .wrong = answer {
        // The server asks again, so the answer was not taken.
        let transfer = service.transfers[index]
        emit(.transfer(transfer.id, transfer.app, .credentialsDemanded), &effects)
      }
      finish(index, .notAuthenticated, &effects)
      mustReviewTransfers = true
      deliverEndedTransfers(app, &effects)
    }
  }

  // MARK: Interruptions and the driver's reports

  /// The phone starts anew: what was under way resumes, or starts over, when the network is there.
  mutating func interruptTransfers(_ effects: inout [PhoneEffect]) {
    accountTransfers()
    for index in service.transfers.indices where service.transfers[index].phase == .active {
      interrupt(index)
      service.transfers[index].phase = .waiting(.queue)
    }
    mustReviewTransfers = true
  }

  /// Where the performed transfer is that a report is about. A report that comes after the phone
  /// has stopped the transfer is about none.
  private func performed(_ id: TransferID) -> Int? {
    service.index(of: id).flatMap {
      service.transfers[$0].isPerformed && service.transfers[$0].phase == .active ? $0 : nil
    }
  }

  mutating func progressed(
    _ id: TransferID, _ bytes: Int64, _ effects: inout [PhoneEffect]
  ) {
    guard let index = performed(id) else { return ignore(.unknownTransfer, &effects) }
    let before = service.transfers[index].done
    let after = max(0, bytes)
    service.transfers[index].done = after
    spendData(after - before, service.transfers[index].app.number)
  }

  /// A server asked who the app is: the app is woken to answer, and then the transfer starts again.
  /// If the server asks again, the answer was wrong.
  mutating func challenged(_ id: TransferID, _ effects: inout [PhoneEffect]) {
    guard let index = performed(id) else { return ignore(.unknownTransfer, &effects) }
    guard !service.transfers[index].hasCredentials else {
      return ended(id, .notAuthenticated, &effects)
    }
    accountTransfers()
    demandCredentials(index, &effects)
    mustReviewTransfers = true
  }

  mutating func ended(
    _ id: TransferID, _ result: TransferResult, _ effects: inout [PhoneEffect]
  ) {
    guard let index = performed(id) else { return ignore(.unknownTransfer, &effects) }
    accountTransfers()
    let app = service.transfers[index].app.number
    finish(index, result, &effects)
    mustReviewTransfers = true
    deliverEndedTransfers(app, &effects)
    removeDocumentTransfers()
  }

  /// A swipe cancels what an app has queued (Apple, "Downloading files in the background"); it
  /// hears of that when its user opens it.
  mutating func cancelTransfers(of index: Int, _ effects: inout [PhoneEffect]) {
    accountTransfers()
    for place in service.transfers.indices
    where service.transfers[place].app.number == index && !service.transfers[place].phase.hasEnded
      && !service.transfers[place].isForDocumentOnly
    {
      finish(place, .cancelled, &effects)
    }
    mustReviewTransfers = true
  }

  private mutating func removeDocumentTransfers() {
    service.transfers.removeAll { $0.isForDocumentOnly && $0.phase.hasEnded }
  }
}
