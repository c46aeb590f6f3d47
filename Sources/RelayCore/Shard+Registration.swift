import DequeModule

/// Devices and apps: made, removed, looked at.
extension Shard {
  mutating func enroll(
    _ id: DeviceID, _ secret: SecretHash, from request: RequestID, into effects: inout [Effect]
  ) {
    guard devices.count < Limits.devicesPerShard else {
      return effects.append(.answer(request, .refused(.tooManyDevices)))
    }
    guard hasRoomForPersist else {
      return effects.append(.answer(request, .refused(.unavailable)))
    }
    precondition(deviceNumber(id) == nil, "device ids are minted at random and never twice")
    deviceIndex.insert(
      devices.insert(Device(id: id, secret: secret)), NumberIndex.hash(id))
    snapshot.devices += 1
    answerWhenPersisted(
      .enrolled(id), to: request, record: .enrolled(id, secret), into: &effects)
  }

  mutating func register(
    _ credential: DeviceCredential, _ topic: Topic, _ token: DeviceToken, isOwn: Bool,
    from request: RequestID, into effects: inout [Effect]
  ) {
    guard let device = authenticate(credential, request, into: &effects) else { return }
    let known = appNumber(of: device, topic)
    // Idempotent: the token it has, unless it brings another one of its own.
    if let known, !isOwn || apps[known].token == token {
      // Nothing is promised twice before the journal has it once: its record may still fail.
      let isSafe = !isPending(apps[known].registration)
      let answer = isSafe ? DeviceAnswer.registered(apps[known].token) : .refused(.unavailable)
      return effects.append(.answer(request, answer))
    }
    guard appNumber(token) == nil else {
      return effects.append(.answer(request, .refused(.tokenTaken)))
    }
    guard known != nil || devices[device].appCount < Limits.appsPerDevice else {
      return effects.append(.answer(request, .refused(.tooManyApps)))
    }
    guard hasRoomForPersist else {
      return effects.append(.answer(request, .refused(.unavailable)))
    }
    if let known {
      // A record of its own, so that the moment is the same after a restart.
      note(.unregistered(credential.device, topic, apps[known].token, at: now), into: &effects)
      forgetToken(of: known, into: &effects)
      removeApp(known, into: &effects)
    }
    attach(
      App(token: token, topic: topic, device: device, registration: nextSequence), to: device)
    goneTokens.remove(token)
    if isOwn { effects.append(.route(token, isHere: true)) }
    answerWhenPersisted(
      .registered(token), to: request,
      record: .registered(credential.device, topic, token, isOwn: isOwn), into: &effects)
  }

  mutating func unregister(
    _ credential: DeviceCredential, _ topic: Topic, from request: RequestID,
    into effects: inout [Effect]
  ) {
    guard let device = authenticate(credential, request, into: &effects) else { return }
    guard let app = appNumber(of: device, topic) else {
      return effects.append(.answer(request, .refused(.unknownApp)))
    }
    guard hasRoomForPersist else {
      return effects.append(.answer(request, .refused(.unavailable)))
    }
    let token = apps[app].token
    forgetToken(of: app, into: &effects)
    removeApp(app, into: &effects)
    answerWhenPersisted(
      .unregistered, to: request,
      record: .unregistered(credential.device, topic, token, at: now), into: &effects)
  }

  mutating func inspect(
    _ credential: DeviceCredential, from request: RequestID, into effects: inout [Effect]
  ) {
    guard let device = authenticate(credential, request, into: &effects) else { return }
    effects.append(.answer(request, .inspected(report(device))))
  }

  /// Another policy: what was used carries over, and what is held is looked at again, a step with
  /// each tick.
  mutating func change(to policy: SilentPolicy, at moment: Instant) {
    guard policy != budgets.policy else { return }
    budgets.change(to: policy, at: moment)
    nextToReview = 0
  }

  /// Undoes what the journal could not write, so that memory promises no more than the disk.
  mutating func takeBack(
    _ answer: DeviceAnswer, _ sequence: UInt64, into effects: inout [Effect]
  ) {
    switch answer {
    case .enrolled(let id):
      guard let device = deviceNumber(id), devices[device].firstApp < 0,
        devices[device].connection == nil
      else { return }
      deviceIndex.remove(device, NumberIndex.hash(id))
      devices.remove(at: device)
      snapshot.devices -= 1
    case .registered(let token):
      // The token may by now be another registration's.
      guard let app = appNumber(token), apps[app].registration == sequence else { return }
      appIndex.remove(app, NumberIndex.hash(token))
      effects.append(.route(token, isHere: false))
      removeApp(app, into: &effects)
    case .unregistered, .inspected, .refused:
      // An app that is gone stays gone until the next start; the device is told to try again.
      break
    }
  }

  /// The device, if the secret is right; otherwise it answers and returns nil.
  mutating func authenticate(
    _ credential: DeviceCredential, _ request: RequestID, into effects: inout [Effect]
  ) -> Int32? {
    guard let device = deviceNumber(credential.device) else {
      effects.append(.answer(request, .refused(.unknownDevice)))
      return nil
    }
    guard devices[device].secret == credential.secret else {
      effects.append(.answer(request, .refused(.unauthorized)))
      return nil
    }
    return device
  }

  // MARK: Details

  private mutating func answerWhenPersisted(
    _ answer: DeviceAnswer, to request: RequestID, record: JournalRecord.Content,
    into effects: inout [Effect]
  ) {
    let sequence = nextSequence
    pending.append(.device)
    pendingAnswers.append((request, answer))
    effects.append(.persist(JournalRecord(sequence: sequence, content: record)))
  }

  private func appNumber(of device: Int32, _ topic: Topic) -> Int32? {
    var app = devices[device].firstApp
    while app >= 0 {
      if apps[app].topic == topic { return app }
      app = apps[app].next
    }
    return nil
  }

  /// Gives a device one more app.
  mutating func attach(_ app: consuming App, to device: Int32) {
    app.next = devices[device].firstApp
    let hash = NumberIndex.hash(app.token)
    let number = apps.insert(app)
    devices[device].firstApp = number
    devices[device].appCount += 1
    appIndex.insert(number, hash)
    snapshot.apps += 1
  }

  /// The token is dead from now on: 410 with this moment.
  private mutating func forgetToken(of app: Int32, into effects: inout [Effect]) {
    let token = apps[app].token
    appIndex.remove(app, NumberIndex.hash(token))
    // The token's route stays, so that the answer is 410 from this shard and not BadDeviceToken.
    if let forgotten = goneTokens.insert(token, since: now) {
      effects.append(.route(forgotten, isHere: false))
    }
  }

  /// Takes an app off its device; its entries that are in slots end here, others where they are.
  private mutating func removeApp(_ app: Int32, into effects: inout [Effect]) {
    let device = apps[app].device
    let next = apps[app].next
    if devices[device].firstApp == app {
      devices[device].firstApp = next
    } else {
      var current = devices[device].firstApp
      while apps[current].next != app { current = apps[current].next }
      apps[current].next = next
    }
    devices[device].appCount -= 1
    snapshot.apps -= 1
    for notificationClass in NotificationClass.allCases {
      let entry = apps[app].slots[notificationClass]
      if entry >= 0 { discard(entry, .unregistered, into: &effects) }
    }
    apps[app].isRegistered = false
    if apps[app].entryCount == 0 { apps.remove(at: app) }
  }

  private func report(_ device: Int32) -> DeviceReport {
    var reports: [DeviceReport.AppReport] = []
    var number = devices[device].firstApp
    while number >= 0 {
      let app = apps[number]
      reports.append(
        DeviceReport.AppReport(
          topic: app.topic, token: app.token, visible: slotReport(app.slots.visible),
          silent: slotReport(app.slots.silent),
          budget: budgets.decide(
            app: app.budget, device: devices[device].budget,
            condition: devices[device].condition, at: now),
          remaining: budgets.remaining(app: app.budget, at: now)))
      number = app.next
    }
    return DeviceReport(
      device: devices[device].id, isConnected: devices[device].connection != nil,
      condition: devices[device].condition, policy: budgets.policy.name,
      remaining: budgets.remaining(device: devices[device].budget, at: now),
      inFlight: Int(devices[device].inFlightCount), apps: reports.reversed())
  }

  private func slotReport(_ entry: Int32) -> DeviceReport.Slot? {
    guard entry >= 0 else { return nil }
    let stored = entries[entry]
    var expiresAt: Instant?
    if case .at(let moment) = stored.notification.expiration { expiresAt = moment }
    return DeviceReport.Slot(
      uniqueID: stored.notification.uniqueID, apnsID: stored.notification.apnsID,
      acceptedAt: stored.acceptedAt, expiresAt: expiresAt)
  }
}
