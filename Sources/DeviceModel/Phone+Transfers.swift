import Primitives

/// Background transfers (WWDC 2013 session 204), carried out by the system even without the app.
extension Phone {
  /// Discretionary if queued from the background.
  @discardableResult
  mutating func queue(
    _ request: TransferRequest, of index: Int, fromForeground: Bool = false
  ) -> TransferID? {
    guard service.transfers.count < limits.transfers else {
      ignore(.limitReached)
      return nil
    }
    let isForeground = fromForeground || apps[index].state == .foreground
    let isDiscretionary = request.isDiscretionary || !isForeground
    accountTransfers()
    let id = service.add(request, of: AppID(index), isDiscretionary: isDiscretionary, transferMode)
    let step = TransferStep.queued(request, isDiscretionary: isDiscretionary)
    emit(.transfer(id, AppID(index), step))
    mustReviewTransfers = true
    return id
  }

  /// Advances modelled transfers to now and charges for all: data as it comes, the radio by the
  /// time that any transfer is active. Data of performed transfers is charged as reported.
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

  mutating func reviewTransfers() {
    mustReviewTransfers = false
    guard !service.transfers.isEmpty else { return }
    accountTransfers()
    var active = 0
    var (isStarved, hasBroken) = (false, false)
    var ended: Set<Int> = []
    for index in service.transfers.indices {
      let transfer = service.transfers[index]
      switch transfer.phase {
      case .ended, .awaitingCredentials: continue
      case .active where transfer.hasReachedBreak:
        breakOff(index)
        hasBroken = true
      case .active where !transfer.isPerformed && transfer.done >= transfer.request.bytes:
        finish(index, transfer.request.isLargerThanSaid ? .tooLarge : .finished)
        ended.insert(transfer.app.number)
      case .active, .waiting:
        let hold = hold(of: transfer, active: active)
        if hold == nil { active += 1 }
        if hold == .energyBudget { isStarved = true }
        apply(hold, to: index)
      }
    }
    for index in ended.sorted() { deliverEndedTransfers(index) }
    service.forgetTold()
    setTransferTimer(isStarved: isStarved, hasBroken: hasBroken)
  }

  /// Sets one timer for the next end, retry, or end or refill of the energy budget.
  private mutating func setTransferTimer(isStarved: Bool, hasBroken: Bool) {
    var next = service.nextEnd(bytesPerSecond: bytesPerSecond) ?? .never
    if isStarved { next = min(next, energy.moment(of: discretionaryEnergy, from: now)) }
    if hasBroken { next = min(next, now + limits.transferRetry) }
    for case let moment? in service.transfers.map(\.asksAgainAt) where moment > now {
      next = min(next, moment)
    }
    if service.transfers.contains(where: { $0.phase == .active && $0.isDiscretionary }),
      !isCharging
    {
      next = min(next, energy.end(spending: radioCost.milliwatts, from: now))
    }
    // At least a millisecond ahead, so that time advances: no endless loop.
    timers.set(.transfers, at: max(next, now + .milliseconds(1)))
  }

  /// Energy with which discretionary transfers begin on battery; they go on while there is any.
  private var discretionaryEnergy: Int64 {
    let share = saturatingProduct(energy.perDay / 100, limits.discretionaryPercent)
    return max(1, min(energy.perDay, share))
  }

  private func hold(of transfer: Transfer, active: Int) -> TransferHold? {
    if !network.isConnected { return .noNetwork }
    if let moment = transfer.asksAgainAt, moment > now { return .queue }
    if transfer.isDiscretionary {
      if network != .wifi { return .needsWiFi }
      if isLowPower { return .lowPower }
      let need = transfer.phase == .active ? 1 : discretionaryEnergy
      if !isCharging, energy.level(at: now) < need { return .energyBudget }
    }
    return active < limits.transfersAtOnce ? nil : .queue
  }

  private mutating func apply(_ hold: TransferHold?, to index: Int) {
    let transfer = service.transfers[index]
    if let hold {
      guard transfer.phase != .waiting(hold) else { return }
      interrupt(index)
      service.transfers[index].phase = .waiting(hold)
      emit(.transfer(transfer.id, transfer.app, .held(hold)))
    } else if transfer.request.demandsCredentials, !transfer.isPerformed, !transfer.hasCredentials {
      demandCredentials(index)
    } else if transfer.phase != .active {
      service.transfers[index].phase = .active
      emit(.transfer(transfer.id, transfer.app, .started(offset: transfer.done)))
    }
  }

  /// Tried again shortly after.
  private mutating func breakOff(_ index: Int) {
    let transfer = service.transfers[index]
    interrupt(index)
    service.transfers[index].phase = .waiting(.queue)
    service.transfers[index].hasBrokenOff = true
    emit(.transfer(transfer.id, transfer.app, .brokeOff(offset: transfer.done)))
  }

  /// Restarts a transfer that cannot resume.
  private mutating func interrupt(_ index: Int) {
    let transfer = service.transfers[index]
    if transfer.phase == .active, !transfer.keepsProgress { service.transfers[index].done = 0 }
  }

  private mutating func demandCredentials(_ index: Int) {
    interrupt(index)
    service.transfers[index].phase = .awaitingCredentials
    let transfer = service.transfers[index]
    emit(.transfer(transfer.id, transfer.app, .credentialsDemanded))
    ask(transfer)
  }

  private mutating func finish(_ index: Int, _ result: TransferResult) {
    let transfer = service.transfers[index]
    service.transfers[index].phase = .ended(result)
    emit(.transfer(transfer.id, transfer.app, .ended(result)))
    switch (transfer.request.document, transfer.request.direction) {
    case (let document?, .download): contentArrived(for: document, transfer, result)
    case (_?, .upload): documentSent(service.transfers[index])
    case (nil, _): break
    }
  }

  // MARK: Waking the app

  /// Tells an app about sessions that have ended, now or when it may run again.
  mutating func deliverEndedTransfers(_ index: Int) {
    guard !service.transfers.isEmpty else { return }
    for session in service.endedSessions(of: AppID(index)) where runRefusal(AppID(index)) == nil {
      // An app that crashes while launching, or while it is told, is told next time.
      if startCallback(index, .transfers(session: session)) {
        guard let call = callbacks.last?.id else { continue }
        service.tell(session: session, of: AppID(index), by: call)
      }
    }
    for transfer in service.transfers
    where transfer.app.number == index && transfer.phase == .awaitingCredentials {
      ask(transfer)
    }
  }

  private mutating func ask(_ transfer: Transfer) {
    let index = transfer.app.number
    let isAsked = callbacks.contains { $0.kind == .authentication(transfer.id) }
    guard runRefusal(transfer.app) == nil, !isAsked else { return }
    startCallback(index, .authentication(transfer.id))
  }

  mutating func answer(_ id: TransferID, _ answer: AuthenticationScript) {
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
        // The server rejected the answer and asks again.
        let transfer = service.transfers[index]
        emit(.transfer(transfer.id, transfer.app, .credentialsDemanded))
      }
      finish(index, .notAuthenticated)
      mustReviewTransfers = true
      deliverEndedTransfers(app)
    }
  }

  /// The app has ended while it was asked: the server asks again when the transfer is tried again,
  /// each time after twice as long, or when its user opens it.
  mutating func leftUnanswered(_ id: TransferID) {
    guard let index = service.index(of: id),
      service.transfers[index].phase == .awaitingCredentials
    else { return }
    let count = min(30, max(0, service.transfers[index].unansweredCount ?? 0))
    let pause = saturatingProduct(max(1, limits.transferRetry.milliseconds), 1 << Int64(count))
    service.transfers[index].unansweredCount = count + 1
    service.transfers[index].asksAgainAt = now + .milliseconds(pause)
    service.transfers[index].phase = .waiting(.queue)
    timers.set(.transfers, at: now + .milliseconds(pause))
  }

  /// An app in front can answer.
  mutating func askAgain(_ index: Int) {
    for place in service.transfers.indices
    where service.transfers[place].app.number == index
      && service.transfers[place].asksAgainAt != nil
    {
      service.transfers[place].asksAgainAt = nil
      mustReviewTransfers = true
    }
  }

  // MARK: Interruptions and the driver's reports

  /// Transfers under way resume or restart when there is a network.
  mutating func interruptTransfers() {
    accountTransfers()
    for index in service.transfers.indices where service.transfers[index].phase == .active {
      interrupt(index)
      service.transfers[index].phase = .waiting(.queue)
    }
    mustReviewTransfers = true
  }

  /// The performed transfer of a report; nil if the phone has stopped it since.
  private func performed(_ id: TransferID) -> Int? {
    service.index(of: id).flatMap {
      service.transfers[$0].isPerformed && service.transfers[$0].phase == .active ? $0 : nil
    }
  }

  mutating func progressed(_ id: TransferID, _ bytes: Int64) {
    guard let index = performed(id) else { return ignore(.unknownTransfer) }
    let before = service.transfers[index].done
    let after = max(0, bytes)
    service.transfers[index].done = after
    spendData(after - before, service.transfers[index].app.number)
  }

  /// Wakes the app to answer, then the transfer restarts. A second challenge means a wrong answer.
  mutating func challenged(_ id: TransferID) {
    guard let index = performed(id) else { return ignore(.unknownTransfer) }
    guard !service.transfers[index].hasCredentials else { return ended(id, .notAuthenticated) }
    accountTransfers()
    demandCredentials(index)
    mustReviewTransfers = true
  }

  mutating func ended(_ id: TransferID, _ result: TransferResult) {
    guard let index = performed(id) else { return ignore(.unknownTransfer) }
    accountTransfers()
    let app = service.transfers[index].app.number
    finish(index, result)
    mustReviewTransfers = true
    deliverEndedTransfers(app)
  }

  /// A swipe cancels an app's transfers (Apple, "Downloading files in the background"); the app is
  /// told when the user opens it.
  mutating func cancelTransfers(of index: Int) {
    cancelTransfers { $0.app.number == index && !$0.isForDocumentOnly }
  }

  mutating func cancelTransfers(where isMeant: (Transfer) -> Bool) {
    accountTransfers()
    for place in service.transfers.indices
    where !service.transfers[place].phase.hasEnded && isMeant(service.transfers[place]) {
      finish(place, .cancelled)
    }
    mustReviewTransfers = true
  }
}
