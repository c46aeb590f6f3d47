import DequeModule
import Primitives

/// Devices and apps: created, removed, reported.
extension Shard {
  mutating func handle(
    _ wanted: RequestEvent, of credential: DeviceCredential, from request: RequestID,
    into effects: inout [Effect]
  ) {
    if case .enrolled = wanted { return enroll(credential, from: request, into: &effects) }
    guard let device = authenticate(credential, request, into: &effects) else { return }
    switch wanted {
    case .enrolled: break
    case .registered(let topic, let token, let isOwn):
      register(device, topic, token, isOwn: isOwn, from: request, into: &effects)
    case .unregistered(let topic): unregister(device, topic, from: request, into: &effects)
    case .inspected: effects.append(.answer(request, .inspected(report(device))))
    case .subscribed(let topic, let channel):
      subscribe(device, topic, channel, from: request, into: &effects)
    case .unsubscribed(let topic, let channel):
      unsubscribe(device, topic, channel, from: request, into: &effects)
    case .connected: connect(device, request, into: &effects)
    }
  }

  private mutating func enroll(
    _ credential: DeviceCredential, from request: RequestID, into effects: inout [Effect]
  ) {
    let id = credential.device
    guard devices.count < Limits.devicesPerShard else {
      return effects.append(.answer(request, .refused(.tooManyDevices)))
    }
    // Ids are minted at random and never twice; what comes as another node's may say one again.
    guard hasRoomForPersist, deviceNumber(id) == nil else {
      return effects.append(.answer(request, .refused(.unavailable)))
    }
    deviceIndex.insert(
      devices.insert(Device(id: id, secret: credential.secret)).number, KeyedHash.hash(id))
    counters.devices += 1
    answerWhenPersisted(
      .enrolled(id), to: request, of: id, record: .enrolled(id, credential.secret), into: &effects)
  }

  private mutating func register(
    _ device: DeviceNumber, _ topic: Topic, _ token: DeviceToken, isOwn: Bool,
    from request: RequestID,
    into effects: inout [Effect]
  ) {
    let id = devices[device].id
    let known = appNumber(of: device, topic)
    // Of another service now, like an app that was built for the other one and installed again.
    let moves =
      known.map {
        !isOwn && !apps[$0].isOwn && token.environment != nil
          && token.environment != apps[$0].token.environment
      } ?? false
    // Idempotent: keeps its token, unless it brings another of its own.
    if let known, !(isOwn || moves) || apps[known].token == token {
      // Promise nothing while its record may fail, or the app is about to get another token.
      let isSafe = !isPending(apps[known].registration) && !tokenChanges.contains(id, topic)
      let answer = isSafe ? DeviceAnswer.registered(apps[known].token) : .refused(.unavailable)
      return effects.append(.answer(request, answer))
    }
    guard !tokenChanges.contains(id, topic) else {
      return effects.append(.answer(request, .refused(.unavailable)))
    }
    guard known != nil || hasRoomForApp(device) else {
      return effects.append(.answer(request, .refused(.tooManyApps)))
    }
    guard !isOwn else {
      let own = OwnToken(token: token, device: id, topic: topic)
      return claim(own, from: request, into: &effects)
    }
    guard appNumber(token) == nil, aliasNumber(token) == nil else {
      return effects.append(.answer(request, .refused(.tokenTaken)))
    }
    guard hasRoomForPersist else { return effects.append(.answer(request, .refused(.unavailable))) }
    guard !moves else {
      guard tokenChanges.hasRoom(for: id) else {
        return effects.append(.answer(request, .refused(.unavailable)))
      }
      let new = OwnToken(token: token, device: id, topic: topic)
      return change(
        new, .registration(new), from: request, .registered(id, topic, token, isOwn: false),
        into: &effects)
    }
    attach(App(token: token, topic: topic, device: device, registration: nextSequence), to: device)
    goneTokens.remove(token)
    answerWhenPersisted(
      .registered(token), to: request, of: id, record: .registered(id, topic, token, isOwn: false),
      into: &effects)
  }

  private mutating func unregister(
    _ device: DeviceNumber, _ topic: Topic, from request: RequestID, into effects: inout [Effect]
  ) {
    guard !tokenChanges.contains(devices[device].id, topic) else {
      return effects.append(.answer(request, .refused(.unavailable)))
    }
    guard let app = appNumber(of: device, topic) else {
      return effects.append(.answer(request, .refused(.unknownApp)))
    }
    let own = ownToken(of: app)
    guard hasRoomForPersist, tokenChanges.hasRoom(for: own.device) else {
      return effects.append(.answer(request, .refused(.unavailable)))
    }
    change(
      own, .removal(own, at: now), from: request,
      .unregistered(own.device, topic, own.token, at: now), into: &effects)
  }

  /// Sets another shared policy. Used amounts carry over; held pushes are reviewed in ticks.
  mutating func change(to policy: SilentPolicy, at moment: Instant) {
    guard policy != budgets.policy else { return }
    budgets.change(to: policy, at: moment)
    nextToReview = AppNumber(0)
  }

  /// Undoes what the journal could not write.
  mutating func rollBack(_ answer: DeviceAnswer, _ sequence: UInt64, into effects: inout [Effect]) {
    switch answer {
    case .enrolled(let id):
      guard let device = deviceNumber(id), !devices[device].firstApp.exists,
        devices[device].connection == nil
      else { return }
      removeDevice(device)
    case .registered(let token):
      // The token may belong to another registration by now.
      guard let app = appNumber(token), apps[app].registration == sequence else { return }
      appIndex.remove(app.number, KeyedHash.hash(token))
      removeApp(app, into: &effects)
    case .subscribed(let channel): rollBackSubscription(channel, sequence)
    case .unregistered, .unsubscribed, .inspected, .refused: break
    }
  }

  /// Removes a device without apps and stream.
  mutating func removeDevice(_ device: DeviceNumber) {
    let id = devices[device].id
    ownBudgets[id] = nil
    deviceIndex.remove(device.number, KeyedHash.hash(id))
    devices.remove(at: device)
    counters.devices -= 1
  }

  /// The device, if the secret is right; otherwise answers and returns nil.
  private mutating func authenticate(
    _ credential: DeviceCredential, _ request: RequestID, into effects: inout [Effect]
  ) -> DeviceNumber? {
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

  mutating func answerWhenPersisted(
    _ answer: DeviceAnswer, to request: RequestID, of device: DeviceID,
    record: JournalRecord.Content, mayLinger: Bool = false, into effects: inout [Effect]
  ) {
    let sequence = nextSequence
    pending.append(.device(key: device.routingKey))
    pendingAnswers.append(TokenChanges.Reply(request: request, answer: answer))
    effects.append(
      .persist(JournalRecord(sequence: sequence, content: record, mayLinger: mayLinger)))
  }

  func appNumber(of device: DeviceNumber, _ topic: Topic) -> AppNumber? {
    var app = devices[device].firstApp
    while app.exists {
      if apps[app].topic == topic { return app }
      app = apps[app].next
    }
    return nil
  }

  /// Counts apps about to be added.
  func hasRoomForApp(_ device: DeviceNumber) -> Bool {
    let coming = tokenChanges.changes(of: devices[device].id).count { change in
      if case .leaving = change.step { return false }
      return appNumber(of: device, change.own.topic) == nil
    }
    return Int(devices[device].appCount) + coming < Limits.appsPerDevice
  }

  mutating func attach(_ app: consuming App, to device: DeviceNumber) {
    if let spent = removeFormerBudget(of: device, app.topic) { app.budget = spent }
    app.next = devices[device].firstApp
    let hash = KeyedHash.hash(app.token)
    let number = apps.insert(app)
    devices[device].firstApp = number
    devices[device].appCount += 1
    appIndex.insert(number.number, hash)
    counters.apps += 1
  }

  /// The token is invalid from now on: 410 with this moment.
  mutating func retire(_ token: DeviceToken, since moment: Instant) {
    _ = goneTokens.insert(moment, for: token)
  }

  /// Removes an app. Its entries in slots end here; those in flight end later, but the journal
  /// forgets them now, before another app can get the token.
  mutating func removeApp(_ app: AppNumber, into effects: inout [Effect]) {
    let device = apps[app].device
    removeSubscriptions(of: app)
    keepBudget(
      apps[app].budget, of: BudgetKey(device: devices[device].id, topic: apps[app].topic),
      into: &effects)
    let next = apps[app].next
    if devices[device].firstApp == app {
      devices[device].firstApp = next
    } else {
      var current = devices[device].firstApp
      while apps[current].next != app { current = apps[current].next }
      apps[current].next = next
    }
    // It could be removed from the list later than the next one, and would then name a free place.
    apps[app].next = .none
    devices[device].appCount -= 1
    counters.apps -= 1
    for notificationClass in NotificationClass.allCases {
      let entry = apps[app].slots[notificationClass]
      if entry.exists { discard(entry, .unregistered, into: &effects) }
    }
    var entry = devices[device].firstInFlight
    while entry.exists, case .inFlight(let next) = entries[entry].phase {
      if entries[entry].app == app { unstore(entry, into: &effects) }
      entry = next
    }
    // Also what waits for the journal: the next owner's registration must not overtake it.
    if apps[app].waiting != PerClass(visible: 0, silent: 0) {
      for case .submission(_, _, let entry) in pending {
        guard entry.exists, entries[entry].app == app, case .waiting = entries[entry].phase else {
          continue
        }
        discard(entry, .unregistered, into: &effects)
      }
    }
    apps[app].isRegistered = false
    if apps[app].entryCount == 0 { apps.remove(at: app) }
  }

  /// `mutating` as `decide` is: it changes nothing.
  mutating func report(_ device: DeviceNumber) -> DeviceReport {
    let budgets = budgets(of: device)
    let reports = appNumbers(of: device, nil).map { number in
      let app = apps[number]
      return DeviceReport.AppReport(
        topic: app.topic, token: app.token, visible: slotReport(app.slots.visible),
        silent: slotReport(app.slots.silent),
        budget: budgets.decide(
          app: app.budget, device: devices[device].budget, condition: devices[device].condition,
          at: now),
        allowance: budgets.allowance(app: app.budget, at: now))
    }
    var keepAliveAt: Instant?
    if case .live = devices[device].phase {
      keepAliveAt = timers.deadline(of: devices[device].keepAliveTimer)
    }
    return DeviceReport(
      device: devices[device].id, isConnected: devices[device].connection != nil,
      condition: devices[device].condition, policy: budgets.policy.name,
      allowance: budgets.allowance(device: devices[device].budget, at: now),
      rides: Allowance(configuration.rides, devices[device].rides, at: now),
      keepAliveAt: keepAliveAt, inFlight: Int(devices[device].inFlightCount), apps: reports)
  }

  private mutating func slotReport(_ entry: EntryNumber) -> DeviceReport.Slot? {
    guard entry.exists else { return nil }
    let stored = entries[entry]
    let isAway = devices[apps[stored.app].device].connection == nil
    var expiresAt: Instant?
    if case .at(let moment) = stored.notification.expiration { expiresAt = moment }
    return DeviceReport.Slot(
      uniqueID: stored.notification.uniqueID, apnsID: stored.notification.apnsID,
      acceptedAt: stored.acceptedAt, expiresAt: expiresAt, isPaid: stored.isPaid,
      decision: isAway ? nil : decide(entry))
  }
}
