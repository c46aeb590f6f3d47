import Primitives

@testable import RelayCore

/// What the shard asks for.
extension Checker {
  mutating func check(_ effects: [Effect]) {
    (spentSequence, fullSequence) = (nil, nil)
    forgottenEarly = []
    for effect in effects { check(effect) }
    for id in forgottenEarly where registrations[lives[id]!.registration].isAlive {
      expect(false, "forgotten before its end: \(id)")
    }
    checkCarriers(effects)
    expect(spentSequence == nil, "a budget was noted that nothing was sent for")
    if case .clock(.tick) = eventAtHand { checkNothingIsOverdue() }
  }

  private mutating func check(_ effect: Effect) {
    switch effect {
    case .respond(let request, let answer):
      expect(openRequests.remove(request) != nil, "answered twice or unasked: \(effect)")
      check(answer, to: request)
    case .answer(let request, let answer):
      expect(openRequests.remove(request) != nil, "answered twice or unasked: \(effect)")
      checkChannels(answer, to: request)
      check(answer, to: request)
    case .hello(let connection), .sendEmpty(let connection), .checkQueue(let connection):
      expect(live[connection] != nil, "to a connection that is closed: \(effect)")
    case .sendKeepAlive(let connection):
      expect(live[connection] != nil, "to a connection that is closed: \(effect)")
      checkKeepAlive(connection)
    case .send(let connection, let delivery) where delivery.via == .resend:
      checkResend(connection, delivery)
    case .close(let connection, let reason):
      expect(live[connection] != nil, "closed twice: \(effect)")
      if reason == .superseded || reason == .keepAliveTimeout { doubtBroadcasts(on: connection) }
      lose(connection)
    case .send(let connection, let delivery): send(connection, delivery)
    case .persist(let record): persist(record)
    case .forget(let sequence): forget(sequence)
    case .sendBroadcast(let broadcast, let connections): checkBroadcast(broadcast, to: connections)
    case .tell: break
    case .log(let event): log(event)
    }
  }

  private mutating func persist(_ record: JournalRecord) {
    expect(
      record.sequence == sequences.sequence(count(through: lastSequence)),
      "not the next sequence: \(record.sequence)")
    lastSequence = record.sequence
    switch record.content {
    case .accepted(let notification, let moment):
      accept(notification, record.sequence, at: moment)
    case .forwarded(let notification, let device, let moment):
      accept(notification, record.sequence, at: moment)
      let app = registrations[lives[notification.uniqueID]!.registration].app
      expect(app.phone.credential.device == device, "remembered with another device")
      expect(
        device.routingKey != notification.token.routingKey, "remembered with a device for nothing")
    case .enrolled, .registered, .unregistered, .granted, .released, .forgotten, .subscribed,
      .unsubscribed, .spent:
      askedContents[record.sequence] = record.content
      note(record.content, record.sequence)
    }
  }

  private mutating func accept(
    _ notification: Notification, _ sequence: UInt64, at moment: Instant
  ) {
    journal[sequence] = notification.uniqueID
    lives[notification.uniqueID]!.sequence = sequence
    expect(moment == now, "the time of acceptance")
  }

  private mutating func send(_ connection: ConnectionID, _ delivery: Delivery) {
    let id = delivery.notification.uniqueID
    guard var life = lives[id] else { return expect(false, "sent, but never submitted: \(id)") }
    let registration = registrations[life.registration]
    let device = registration.app.phone.credential.device
    expect(delivery.notification == life.notification, "what is sent is what was posted")
    expect(delivery.acceptedAt == life.acceptedAt, "the time of acceptance")
    expect(delivery.sentAt == now, "the time of sending")
    expect(live[connection] == device, "sent to a closed or another connection")
    expect(isThere(life.registration), "sent after the app was removed")
    expect(life.end == nil, "sent after the end")
    expect(life.flight == nil, "in flight twice")
    if case .at(let moment) = life.notification.expiration {
      expect(moment > now, "sent after it expired, via \(delivery.via)")
    } else {
      expect(delivery.via == .direct, "what is tried once goes directly")
    }
    let isConnecting = if case .asked(.connected, _, _) = eventAtHand { true } else { false }
    expect(delivery.via != .connect || isConnecting, "via \(delivery.via)")
    expect(
      delivery.via == .direct || life.isInSlot, "only what was in a slot goes via \(delivery.via)")
    let slot = Slot(
      registration: life.registration, notificationClass: life.notification.notificationClass)
    checkOrder(life, slot)
    checkPayment(life, delivery.via, device: device)
    if life.isInSlot { slots[slot] = nil }
    life.isInSlot = false
    life.flight = connection
    lives[id] = life
    inFlight.insert(id)
    expect(flights(on: connection).count <= inFlightLimit, "the window is exceeded")
  }

  /// First sendings come in the order of acceptance; what has been sent before may come again, as
  /// may what ended before a crash that the journal did not hear of, and what is tried once may go
  /// ahead.
  private mutating func checkOrder(_ life: Life, _ slot: Slot) {
    guard life.notification.expiration != .once else { return }
    let last = lastSent[slot, default: 0]
    let wasSent = life.order <= last && sentBefore.contains(life.notification.uniqueID)
    expect(wasSent || life.cameBack || life.order > last, "sent out of order")
    lastSent[slot] = max(last, life.order)
    sentBefore.insert(life.notification.uniqueID)
  }

  private mutating func forget(_ sequence: UInt64) {
    guard let id = journal[sequence] else { return expect(false, "forgot what is no push") }
    expect(!lives[id]!.isForgotten, "forgotten twice")
    lives[id]!.isForgotten = true
    if lives[id]!.end == nil { forgottenEarly.append(id) }
  }

  // MARK: Providers

  private mutating func check(_ answer: ProviderAnswer, to request: RequestID) {
    switch answer {
    case .accepted(let id):
      guard let life = lives[id] else { return expect(false, "200 for nothing") }
      guard life.request == request else { return checkRepetition(of: life, request) }
      let isAcknowledged =
        if case .stream(_, .acked) = eventAtHand { life.flight != nil } else { false }
      expect(
        life.isPersisted || isAcknowledged || life.sequence == nil,
        "200 before the journal or the device has it")
      lives[id]!.isAccepted = true
      if let (notification, posted) = submissionAtHand, posted == request {
        expect(registrationOf[notification.token] != nil, "200 for a token of no app")
      }
    case .rejected(let reason):
      guard let (notification, posted) = submissionAtHand, posted == request else { return }
      // Refused at once: it was never accepted.
      lives[notification.uniqueID] = nil
      let isKnown = registrationOf[notification.token] != nil
      // One whose app is about to get it: `serviceUnavailable`.
      expect(
        isKnown || reason == .badDeviceToken || reason == .serviceUnavailable,
        "\(reason) for a token of no app")
      guard reason == .badDeviceToken else { return }
      expect(!isKnown, "BadDeviceToken for the token of an app")
      expect(goneTokens[notification.token] == nil, "BadDeviceToken for a token that is gone")
    case .gone(let since):
      guard let (notification, posted) = submissionAtHand, posted == request else {
        return expect(false, "410, but late")
      }
      expect(registrationOf[notification.token] == nil, "410 for the token of an app")
      expect(goneTokens[notification.token]?.since == since, "410 with another time")
    }
  }

  // MARK: Lives

  private mutating func log(_ event: DeliveryEvent) {
    guard var life = lives[event.uniqueID] else {
      return expect(false, "a log line of nothing: \(event)")
    }
    if case .received = event.step {
      expect(event.at == life.acceptedAt, "the time of acceptance in the log")
    } else {
      expect(event.at == now, "the time of the log")
    }
    let slot = Slot(
      registration: life.registration, notificationClass: life.notification.notificationClass)
    switch event.step {
    case .outcome, .decided:
      return expect(life.end == .delivered, "\(event.step) belongs to a delivery")
    case .received, .restored, .sent, .storedOffline, .storedPower, .discarded, .delivered,
      .faulted:
      break
    }
    expect(life.end == nil, "a step after the end: \(event)")
    switch event.step {
    case .received:
      expect(!life.isReceived, "received twice")
      life.isReceived = true
    case .restored:
      let isAlive = registrations[life.registration].isAlive
      expect(eventAtHand == nil && life.isReceived == isAlive, "restored without a restart")
      // Where nobody has the app, nobody knows the device that belongs into the first step.
      life.isReceived = true
      restoredCount += 1
    case .storedOffline, .storedPower:
      expect(life.isPersisted, "stored before the journal has it")
      // What was stored while the phone was away is told later until when it waits.
      var isToldAgain = false
      if case .storedPower(.some, _) = event.step { isToldAgain = slots[slot] == event.uniqueID }
      expect(isToldAgain || slots[slot] == nil, "two in one slot")
      expect(isThere(life.registration), "stored after the app was removed")
      slots[slot] = event.uniqueID
      life.isInSlot = true
      life.flight = nil
    case .delivered:
      expect(life.flight != nil, "delivered, but not in flight")
    case .discarded(let reason):
      if case .replaced(let id) = reason { checkReplacement(life, by: id) }
      if reason == .expired { checkExpiration(life) }
      if case .repeated(let id) = reason {
        if let first = lives[id], first.end == nil, !first.isPersisted, life.isPersisted {
          // The journal had failed to write the first.
          (lives[id]!.isPersisted, lives[id]!.sequence) = (true, nil)
          life.isAdopted = true
        }
        checkRepetition(life.notification, of: lives[id])
      }
      if life.isInSlot { slots[slot] = nil }
      life.isInSlot = false
    case .sent, .outcome, .decided, .faulted: break
    }
    if event.step.isTerminal { end(&life, event.step) }
    lives[event.uniqueID] = life
    if life.flight == nil { inFlight.remove(event.uniqueID) }
  }

  mutating func end(_ life: inout Life, _ step: DeliveryStep) {
    life.flight = nil
    life.end = step
    if case .discarded(let reason) = step {
      ends[reason.name, default: 0] += 1
    } else {
      ends[step.description, default: 0] += 1
    }
  }

  /// Time has passed: what has expired is not kept.
  private mutating func checkNothingIsOverdue() {
    for (id, life) in lives where life.end == nil {
      guard case .at(let moment) = life.notification.expiration else { continue }
      expect(moment > now, "expired, and still there: \(id)")
    }
  }

  private mutating func checkExpiration(_ life: Life) {
    guard case .at(let moment) = life.notification.expiration else {
      return expect(false, "expired, but tried once")
    }
    expect(moment <= now, "expired before its time")
  }

  /// The answer to what was sent again is that of the first, as long as that is on its way.
  private mutating func checkRepetition(of first: Life, _ request: RequestID) {
    guard let (notification, posted) = submissionAtHand, posted == request else {
      return expect(false, "200 for another's push")
    }
    checkRepetition(notification, of: first)
    lives[notification.uniqueID]!.isAccepted = true
  }

  private mutating func checkRepetition(_ notification: Notification, of first: Life?) {
    guard let first else { return expect(false, "a repetition of nothing") }
    expect(
      first.end == nil || first.end == .delivered, "a repetition of what has ended otherwise")
    expect(first.notification.apnsID == notification.apnsID, "a repetition of another")
    expect(
      first.notification.notificationClass == notification.notificationClass,
      "a repetition of another class")
    expect(first.notification.payload == notification.payload, "a repetition of other words")
    let app = registrationOf[notification.token].map { registrations[$0].app }
    expect(app == nil || registrations[first.registration].app == app, "of another app's")
    expect(
      first.isPersisted || first.end == .delivered || first.notification.expiration == .once,
      "a repetition of what is not promised")
  }

  /// Only what is newer, of the same app and class, alive, and safe in the journal replaces
  /// anything.
  private mutating func checkReplacement(_ life: Life, by id: UniqueID) {
    guard let newer = lives[id] else { return expect(false, "replaced by nothing") }
    expect(newer.order > life.order, "replaced by an older one")
    expect(newer.registration == life.registration, "replaced by another app's")
    expect(
      newer.notification.notificationClass == life.notification.notificationClass,
      "replaced by another class's")
    expect(newer.end == nil, "replaced by what has ended")
    expect(newer.isPersisted, "replaced by what the journal does not have")
  }
}
