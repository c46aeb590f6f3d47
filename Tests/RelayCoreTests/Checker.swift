@testable import RelayCore

/// Watches everything a shard is told and asks for, and says what breaks a promise of design
/// sections 2 and 5. It knows nothing of the shard's inner workings.
struct Checker {
  /// What has become of one accepted notification.
  struct Life {
    var notification: Notification
    var request: RequestID
    /// The place in the order of acceptance.
    var order: Int
    /// Which registration of the token it belongs to.
    var registration: Int
    var sequence: UInt64?
    var isReceived = false
    var isPersisted = false
    var isInSlot = false
    /// The connection on which it is in flight; `inFlight` lists those that are.
    var flight: ConnectionID?
    var end: LifeStep?
    var isForgotten = false
  }

  /// A slot, or the line of what is sent to it.
  struct Slot: Hashable {
    var registration: Int
    var notificationClass: NotificationClass
  }

  /// A registered app as the outside knows it.
  struct Registration {
    var device: DeviceID
    var token: DeviceToken
    var isAlive = true
    var budget: [Int64] = []
  }

  var problems: [String] = []
  var now = ShardFixture.start
  var inFlightLimit: Int
  var policy: SilentPolicy
  var lives: [UniqueID: Life] = [:]
  var registrations: [Registration] = []
  var registrationOf: [DeviceToken: Int] = [:]
  var conditions: [DeviceID: DeviceCondition] = [:]
  var deviceBudgets: [DeviceID: [Int64]] = [:]
  var openRequests: Set<RequestID> = []
  var inFlight: Set<UniqueID> = []
  var live: [ConnectionID: DeviceID] = [:]
  var slots: [Slot: UniqueID] = [:]
  /// The order of what was first sent last.
  var lastSent: [Slot: Int] = [:]
  var journal: [UInt64: UniqueID] = [:]
  var lastSequence: UInt64 = 0
  var settledSequence: UInt64 = 0
  /// Whether the event at hand is a connection; only then is anything sent `via: connect`.
  var isConnecting = false

  init(policy: SilentPolicy, inFlightLimit: Int) {
    self.policy = policy
    self.inFlightLimit = inFlightLimit
  }

  mutating func expect(_ holds: Bool, _ text: @autoclosure () -> String) {
    if !holds { problems.append(text()) }
  }

  /// Everything in flight on a connection, in no order.
  func flights(on connection: ConnectionID) -> [UniqueID] {
    inFlight.filter { lives[$0]!.flight == connection }.sorted { $0.low < $1.low }
  }

  // MARK: What the shard is told

  /// Notes an event before the shard handles it.
  mutating func note(_ event: Event, at moment: Instant) {
    now = moment
    isConnecting = false
    switch event {
    case .submitted(let notification, let request):
      openRequests.insert(request)
      guard let registration = registrationOf[notification.token] else { return }
      lives[notification.uniqueID] = Life(
        notification: notification, request: request, order: lives.count + 1,
        registration: registration)
    case .persisted(let sequence): settle(through: sequence, isPersisted: true)
    case .persistFailed(let sequence): settle(through: sequence, isPersisted: false)
    case .enrolled(_, _, let request), .inspected(_, let request):
      openRequests.insert(request)
    case .registered(let credential, _, let token, _, let request):
      openRequests.insert(request)
      registrationOf[token] = registrations.count
      registrations.append(Registration(device: credential.device, token: token))
    case .unregistered(_, _, let request):
      openRequests.insert(request)
    case .connected(let credential, let connection):
      isConnecting = true
      live[connection] = credential.device
    case .disconnected(let connection): lose(connection)
    case .reported(let connection, let report):
      if let device = live[connection] {
        let before = conditions[device, default: DeviceCondition()]
        conditions[device] = DeviceCondition(
          power: report.power ?? before.power, network: report.network ?? before.network,
          screen: report.screen ?? before.screen)
      }
    case .policyChanged(let policy):
      self.policy = policy
      deviceBudgets = [:]
      for index in registrations.indices { registrations[index].budget = [] }
    case .acked, .heard, .shutDown, .tick:
      break
    }
  }

  /// The app of this registration is gone.
  mutating func remove(_ token: DeviceToken) {
    guard let registration = registrationOf.removeValue(forKey: token) else { return }
    registrations[registration].isAlive = false
  }

  private mutating func settle(through sequence: UInt64, isPersisted: Bool) {
    while settledSequence < min(sequence, lastSequence) {
      settledSequence += 1
      if isPersisted, let id = journal[settledSequence] { lives[id]!.isPersisted = true }
    }
  }

  private mutating func lose(_ connection: ConnectionID) {
    live[connection] = nil
    for id in flights(on: connection) {
      lives[id]!.flight = nil
      inFlight.remove(id)
    }
  }

  // MARK: What the shard asks for

  mutating func check(_ effects: [Effect]) {
    for effect in effects { check(effect) }
  }

  private mutating func check(_ effect: Effect) {
    switch effect {
    case .respond(let request, _), .answer(let request, _):
      expect(openRequests.remove(request) != nil, "answered twice or unasked: \(effect)")
    case .hello(let connection), .sendEmpty(let connection), .sendKeepAlive(let connection):
      expect(live[connection] != nil, "to a connection that is closed: \(effect)")
    case .close(let connection, _):
      expect(live[connection] != nil, "closed twice: \(effect)")
      lose(connection)
    case .send(let connection, let delivery): send(connection, delivery)
    case .persist(let record):
      expect(record.sequence == lastSequence + 1, "sequences have a gap: \(record.sequence)")
      lastSequence = record.sequence
      if case .accepted(let notification, _) = record.content {
        journal[record.sequence] = notification.uniqueID
        lives[notification.uniqueID]!.sequence = record.sequence
      }
    case .forget(let sequence): forget(sequence)
    case .route: break
    case .log(let event): log(event)
    }
  }

  private mutating func send(_ connection: ConnectionID, _ delivery: Delivery) {
    let id = delivery.notification.uniqueID
    guard var life = lives[id] else { return expect(false, "sent, but never submitted: \(id)") }
    let registration = registrations[life.registration]
    expect(delivery.notification == life.notification, "what is sent is what was posted")
    expect(delivery.sentAt == now, "the time of sending")
    expect(live[connection] == registration.device, "sent to a closed or another connection")
    expect(registration.isAlive, "sent after the app was removed")
    expect(life.end == nil, "sent after the end")
    expect(life.flight == nil, "in flight twice")
    if case .at(let moment) = life.notification.expiration {
      expect(moment > now, "sent after it expired, via \(delivery.via)")
    } else {
      expect(delivery.via == .direct, "what is tried once goes directly")
    }
    expect((delivery.via == .connect) == isConnecting, "via \(delivery.via)")
    expect(
      delivery.via == .direct || life.isInSlot, "only what was in a slot goes via \(delivery.via)")
    let slot = Slot(
      registration: life.registration, notificationClass: life.notification.notificationClass)
    if life.isInSlot { slots[slot] = nil }
    checkOrder(life, slot)
    if life.notification.notificationClass == .silent, [.direct, .refill].contains(delivery.via) {
      takeBudget(life.registration)
    }
    life.isInSlot = false
    life.flight = connection
    lives[id] = life
    inFlight.insert(id)
    expect(flights(on: connection).count <= inFlightLimit, "the window is exceeded")
  }

  /// First sendings come in the order of acceptance; what has been sent before may come again, and
  /// what is tried once may go ahead.
  private mutating func checkOrder(_ life: Life, _ slot: Slot) {
    guard life.notification.expiration != .once else { return }
    let last = lastSent[slot, default: 0]
    let wasSent = life.order <= last && sentBefore.contains(life.notification.uniqueID)
    expect(wasSent || life.order > last, "sent out of order")
    lastSent[slot] = max(last, life.order)
    sentBefore.insert(life.notification.uniqueID)
  }

  private var sentBefore: Set<UniqueID> = []

  /// In no window more than the burst and what the rate adds.
  private mutating func takeBudget(_ registration: Int) {
    let device = registrations[registration].device
    let condition = conditions[device] ?? DeviceCondition()
    expect(!condition.withholdsSilent, "a silent push in Low Power Mode")
    guard !condition.liftsBudget else { return }
    registrations[registration].budget.append(now.milliseconds)
    deviceBudgets[device, default: []].append(now.milliseconds)
    for (times, limit, name) in [
      (registrations[registration].budget, policy.perApp, "app"),
      (deviceBudgets[device]!, policy.perDevice, "device"),
    ] {
      guard let limit else { continue }
      for (index, first) in times.enumerated() {
        let allowed = limit.burst + (now.milliseconds - first) / limit.interval.milliseconds
        expect(
          Int64(times.count - index) <= allowed, "more silent pushes than the \(name) may have")
      }
    }
  }

  private mutating func forget(_ sequence: UInt64) {
    guard let id = journal[sequence] else { return expect(false, "forgot what is no push") }
    expect(!lives[id]!.isForgotten, "forgotten twice")
    lives[id]!.isForgotten = true
    expect(lives[id]!.end != nil, "forgotten before its end")
  }

  private mutating func log(_ event: LifeEvent) {
    expect(event.at == now, "the time of the log")
    guard var life = lives[event.uniqueID] else {
      return expect(false, "a log line of nothing: \(event)")
    }
    let slot = Slot(
      registration: life.registration, notificationClass: life.notification.notificationClass)
    if case .outcome = event.step {
      expect(life.end == .delivered, "an outcome belongs to a delivery")
      return
    }
    expect(life.end == nil, "a step after the end: \(event)")
    switch event.step {
    case .received, .restored:
      expect(!life.isReceived, "received twice")
      life.isReceived = true
    case .storedOffline, .storedPower:
      expect(life.isPersisted, "stored before the journal has it")
      expect(slots[slot] == nil, "two in one slot")
      expect(registrations[life.registration].isAlive, "stored after the app was removed")
      slots[slot] = event.uniqueID
      life.isInSlot = true
      life.flight = nil
    case .delivered:
      expect(life.flight != nil, "delivered, but not in flight")
      life.end = event.step
      life.flight = nil
    case .discarded(let reason):
      if case .replaced(let id) = reason { checkReplacement(life, by: id) }
      if life.isInSlot { slots[slot] = nil }
      life.isInSlot = false
      life.flight = nil
      life.end = event.step
    case .sent, .outcome: break
    }
    lives[event.uniqueID] = life
    if life.flight == nil { inFlight.remove(event.uniqueID) }
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
