import DequeModule
import Primitives
import RelayCore
import RelayRecording

/// At least one value of every case that is recorded.
enum Samples {
  static let now = Instant(milliseconds: 1_790_000_000_123)
  static let id = UniqueID(high: 0xFEDC_BA98_7654_3210, low: 0x0123_4567_89AB_CDEF)
  static let token = DeviceToken(random: (11, .max, 13), routingKey: 0x1234)
  static let device = DeviceID(UniqueID(high: 0x1234, low: 99))
  static let secret = SecretHash(words: (0xAAAA_BBBB_CCCC_DDDD, 2, 3, .max))
  static let topic = Topic("com.example.app")!
  static let request = RequestID(loop: 3, connection: ConnectionNumber(.max), stream: .max)
  static let otherRequest = RequestID(loop: 3, connection: 1, stream: 5)
  static let own = OwnToken(
    token: DeviceToken(hexadecimal: "abcdef")!, device: device, topic: topic)
  static let credential = DeviceCredential(device: device, secret: secret)
  static let spent = RateLimit.State(full: now)

  static let decisions: [PushDecision] =
    PushLimit.allCases.flatMap { [.waits($0, until: nil), .waits($0, until: now)] } + [.runs]

  static let mark = FaultMark(name: "flaky", place: "provider", action: "drop")

  static func push(
    _ expiration: Expiration, apnsID: UniqueID = id,
    _ notificationClass: NotificationClass = .silent
  ) -> Notification {
    Notification(
      uniqueID: id, apnsID: apnsID, token: token, topic: topic,
      notificationClass: notificationClass,
      pushType: .background, priority: .powerAware, wakesApp: true,
      showsNothing: notificationClass == .visible, collapseID: Array("score".utf8),
      expiration: expiration,
      payload: Array(#"{"aps":{"alert":"hello"}}"#.utf8))
  }

  static let stored = push(.at(now), apnsID: UniqueID(high: 5, low: 6))
  static let visible = push(.at(now), .visible)

  private static var devices: [Device] {
    [Device.Phase.away, .live(request), .questioned(otherRequest)].enumerated().map {
      place, phase in
      var device = Device(
        id: DeviceID(UniqueID(high: 0x1234, low: UInt64(98 + place))), secret: secret)
      device.phase = phase
      device.condition = DeviceCondition(power: .low, network: .wifi, screen: .on)
      return device
    }
  }

  private static func places<Element: Vacating>(_ elements: [Element]) -> Slab<Element> {
    var slab = Slab(vacant: Element.vacant)
    for element in elements { _ = slab.insert(element) }
    let freed = slab.insert(.vacant)
    slab.remove(at: freed)
    return slab
  }

  static let channel = ChannelID(high: 0xFEDC_BA98_7654_3210, low: 77)
  static let broadcast = Broadcast(
    channel: channel, number: 12, acceptedAt: now, notification: stored)

  /// Something of everything that a shard has; of no shard that there could be.
  static let shard: Shard = {
    var shard = Shard(
      configuration: Shard.Configuration(), at: now,
      budgets: SilentBudgets(.strict, at: now))
    shard.lastOrder = 9
    shard.devices = places(devices)
    var apps = [
      App(token: token, topic: topic, device: 0, registration: 8, isOwn: true),
      App(token: token, topic: topic, device: 1, registration: 7),
    ]
    apps[0].slots = PerClass(visible: 1, silent: 2)
    apps[0].budget = spent
    apps[1].isRegistered = false
    shard.apps = places(apps)
    let phases: [AcceptedNotification.Phase] = [.inFlight(next: -1), .stored, .stored]
    let entries = zip([stored, visible, stored], phases).enumerated().map { place, entry in
      AcceptedNotification(
        notification: entry.0, order: 4, sequence: 12 + UInt64(place), acceptedAt: now,
        app: place == 0 ? 1 : 0, phase: entry.1)
    }
    shard.entries = places(entries)
    let subjects: [TimerWheel.Subject] = [
      .expiration(entry: 2), .hold(app: 0), .refill(app: 0), .keepAlive(device: 1),
      .acknowledgement(device: 2),
    ]
    for subject in subjects { _ = shard.timers.set(now, subject) }
    shard.aliases = places([Alias(own: own, grant: 3, goneBefore: now, isConfirmed: false)])
    let reply = TokenChanges.Reply(request: request, answer: .registered(token))
    shard.tokenChanges.state = [
      .init(own: own, step: .claiming(request)),
      .init(own: own, step: .writing(request)),
      .init(own: own, step: .leaving(since: nil, then: nil)),
      .init(own: own, step: .leaving(since: now, then: reply), questions: 2, nextAt: now),
    ]
    shard.pending = [
      .submission(request, uniqueID: id, entry: 1), .device(key: 1), .alias(key: .max),
      .note(key: 2), .nothing,
    ]
    shard.pendingAnswers = [reply]
    shard.aliasSteps = [.grant(own), .registration(own), .removal(own, at: now)]
    shard.nextToReview = 1
    shard.leaving = PartitionID(3)
    shard.goneTokens.state = [.init(token, now), .init(Samples.own.token, nil)]
    shard.formerBudgets.state = [
      FormerBudget(key: BudgetKey(device: device, topic: topic), spent: spent)
    ]
    shard.takenPushes.state = [
      .init(
        TakenPush.Key(apnsID: id, device: device),
        TakenPush(notification: visible, acceptedAt: now, takenAt: now))
    ]
    shard.unanswered = [0: request, 2: otherRequest]
    shard.awaitedOutcomes.state = [.init(id, AwaitedOutcome(device: 1, decisions: 2))]
    shard.subscriptions = places([
      Subscription(app: 0, channel: channel, place: 0, registration: 9)
    ])
    shard.channels = [
      channel: ShardChannel(subscribers: [0], stored: broadcast, delivered: 3),
      ChannelID(high: 1, low: .max): ShardChannel(stored: broadcast),
    ]
    shard.fanOuts = [FanOut(broadcast: broadcast, rest: 1)]
    shard.ownBudgets = [device: SilentBudgets(.strict, at: now)]
    return shard
  }()

  static let restored: [RestoredRecord] = [
    .device(device, secret, budget: spent),
    .app(device, topic, token, isOwn: true, budget: spent), .alias(own),
    .spent(device, topic, spent), .subscription(device, topic, channel), .gone(token, since: now),
    .notification(stored, sequence: 77, acceptedAt: now),
    .forwarded(stored, to: device, sequence: 78, acceptedAt: now),
  ]

  static let aliasEvents: [AliasEvent] = [
    .claimed(own), .left(own, since: nil), .left(own, since: now), .confirmed(own), .allConfirmed,
    .decided(own, .granted), .decided(own, .refused(.tokenTaken)), .released(own),
    .denied(own), .forwarded(stored, to: device, from: request),
    .restored(stored, to: device, sequence: 3, acceptedAt: now), .questioned(own),
  ]

  static let outcomes: [DeliveryOutcome?] = [
    nil, .newData, .noData, .failed, .notLaunched(reason: "terminated by the user é"), .later,
  ]

  static let events: [Event] =
    [
      .submitted(stored, from: request), .submitted(push(.once), from: request),
      .submitted(stored.with(topic: .vacant), from: request),
      .journal(.persisted(through: 5)), .journal(.persistFailed(through: .max)),
      .asked(.enrolled, DeviceCredential(device: device, secret: secret), from: request),
      .asked(.registered(topic, token, isOwn: true), credential, from: request),
      .asked(.unregistered(topic), credential, from: request),
      .asked(.inspected, credential, from: request),
      .asked(.subscribed(topic, channel), credential, from: request),
      .asked(.unsubscribed(topic, channel), credential, from: request),
      .broadcast(.published(broadcast)), .broadcast(.ended(channel)),
      .asked(.connected, credential, from: request), .stream(request, .reported(ConditionReport())),
      .stream(
        request, .reported(ConditionReport(power: .charging, network: .airplane, screen: .on))),
      .stream(request, .keptAlive), .stream(request, .heard),
      .stream(request, .queueChecked(isEmpty: false)),
      .stream(request, .clockFollowed),
      .stream(request, .disconnected), .journal(.partitionDropped(PartitionID(.max))),
      .operated(.policyChanged(.unlimited, at: now)),
      .operated(.policyChanged(.documented, at: now)), .operated(.checkpointSaved(1)),
      .operated(.rewound(to: 300)), .operated(.checkpointDropped(.max)),
      .operated(.administered(device, .disconnect)),
      .operated(.administered(device, .emptySlots(topic))),
      .operated(.administered(device, .refillBudget(nil))),
      .operated(.administered(device, .forget)),
      .operated(.administered(device, .setPolicy(.strict, at: now))),
      .operated(.administered(device, .setPolicy(nil, at: now))), .operated(.faulted(id, mark)),
      .operated(.shutDown), .clock(.tick),
      .clock(.clockStepped(by: .hours(-1))),
    ] + outcomes.map { .stream(request, .acked(id, $0)) }
    + decisions.map { .stream(request, .decided(id, $0)) }
    + aliasEvents.map { .alias($0) }
    + restored.map { .journal(.restored($0)) }

  static let contents: [JournalRecord.Content] = [
    .accepted(stored, at: now), .enrolled(device, secret),
    .registered(device, topic, token, isOwn: false), .unregistered(device, topic, token, at: now),
    .granted(own), .released(own), .spent(device, topic, app: spent, device: spent),
    .subscribed(device, topic, channel), .unsubscribed(device, topic, channel),
    .forgotten(device), .forwarded(stored, to: device, at: now),
  ]

  static let carriers: [Carrier] = [.push(id)] + Carrier.Line.allCases.map { .line($0) }

  static let steps: [DeliveryStep] =
    [
      .received(.visible, apnsID: id, device: device, topic), .restored, .storedOffline,
      .storedPower(until: nil, limit: .lowPowerMode), .delivered,
      .storedPower(until: now, limit: .perApp), .discarded(.expired), .discarded(.unregistered),
      .discarded(.notStored), .discarded(.repeated(of: id)), .discarded(.replaced(by: id)),
      .discarded(.journalFailed),
      .faulted(mark),
    ] + decisions.map { .decided($0) } + Via.allCases.map { .sent($0) }
    + carriers.map { .sent(.piggyback, with: $0) }
    + outcomes.compactMap { $0.map { .outcome($0) } }

  static let report: DeviceReport = {
    let decisions: [BudgetDecision] = [.allowed, .held(until: now, by: .perDevice)]
    let slot = DeviceReport.Slot(
      uniqueID: id, apnsID: id, acceptedAt: now, expiresAt: nil, isPaid: true,
      decision: decisions[1])
    let limit = RateLimit(3, per: .hours(1), burst: 3)
    return DeviceReport(
      device: device, isConnected: true, condition: DeviceCondition(), policy: "documented",
      allowance: nil, rides: Allowance(remaining: 1, limit: limit, next: now), keepAliveAt: now,
      inFlight: 3,
      apps: decisions.map { decision in
        DeviceReport.AppReport(
          topic: topic, token: token, visible: slot, silent: nil, budget: decision,
          allowance: Allowance(remaining: 3, limit: limit, next: nil))
      })
  }()

  static let effects: [Effect] =
    [
      .respond(request, .accepted(uniqueID: id)), .respond(request, .rejected(.badTopic)),
      .respond(request, .gone(since: now)), .answer(request, .enrolled(device)),
      .answer(request, .registered(token)), .answer(request, .unregistered),
      .answer(request, .subscribed(channel)), .answer(request, .unsubscribed),
      .sendBroadcast(broadcast, to: [request, otherRequest]),
      .answer(request, .inspected(report)), .answer(request, .refused(.unauthorized)),
      .hello(request), .sendEmpty(request), .sendKeepAlive(request), .checkQueue(request),
      .send(
        request, Delivery(notification: stored, via: .refill, acceptedAt: now, sentAt: now)),
      .close(request, .ackTimeout), .forget(4), .tell(routingKey: .max, .alias(.claimed(own))),
    ] + contents.map { .persist(JournalRecord(sequence: 5, content: $0, mayLinger: true)) }
    + steps.map { .log(DeliveryEvent(at: now, uniqueID: id, step: $0)) }
}

extension Slab.Index: ExpressibleByIntegerLiteral {
  package init(integerLiteral number: Int32) { self.init(number) }
}
