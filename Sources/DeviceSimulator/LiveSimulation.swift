package import DeviceModel
package import Primitives
package import RelayCore

/// The phones of a scenario beside a real relay, in real time. The driver reports events and time,
/// performs what `drainOrders` returns, and prints `drainTrace`.
///
/// Times are UNIX milliseconds. The scenario's pushes and relay policy are ignored: real providers
/// and the relay have their own.
package struct LiveSimulation: Sendable {
  private let scenario: Scenario
  private var player: ScenarioPlayer
  /// Entries of the trace already returned.
  private var told = 0
  /// With expectations the whole trace is kept, up to a limit.
  private let keepsTrace: Bool
  private static let keptEntries = 1_000_000
  /// The limit was exceeded, so expectations can no longer be judged.
  private var hasForgotten = false
  private let places: [String: Int]
  /// By the app's number in the simulation.
  private var lastRuns: [Int32: PhoneState.Run] = [:]

  /// Sets up the phones, about to connect. Those in `last`, by name, continue their last run.
  package init(
    _ scenario: Scenario, seed: UInt64, at now: Int64, last: [String: LastingPhone] = [:]
  ) {
    self.scenario = scenario
    places = Dictionary(uniqueKeysWithValues: scenario.phones.enumerated().map { ($1.name, $0) })
    // Trace times are times of day.
    let midnight = now - now % TimeText.day
    var simulation = Simulation(seed: seed, relay: nil, start: midnight)
    simulation.time = now - midnight
    player = ScenarioPlayer(scenario, in: simulation, seed: seed, last: last)
    keepsTrace = !scenario.expectations.isEmpty
  }

  package var phones: [String] { scenario.phones.map(\.name) }

  package func place(ofPhone name: String?) -> Int? { name.flatMap { places[$0] } }

  /// When `advance` is due next if nothing else happens.
  package var nextWake: Int64 {
    let next = player.nextMoment
    return next == .max ? .max : next + player.simulation.start
  }

  package func isOver(at now: Int64) -> Bool { now - player.simulation.start >= player.end }

  package mutating func advance(to now: Int64) {
    player.play(until: now - player.simulation.start)
  }

  // MARK: What happens

  package enum Event: Sendable {
    case connected
    case lost(reason: String)
    case received(Delivery)
    case broadcast(Broadcast)
    /// The relay has given an app that was installed again a token.
    case registered(app: String, token: String)
    /// Anything else from the relay; a keep-alive is answered.
    case heard(isKeepAlive: Bool)
    /// About a transfer or an archive.
    case phone(PhoneEvent)
  }

  package mutating func handle(_ event: Event, of phone: Int, at now: Int64) {
    advance(to: now)
    let number = Int32(phone)
    switch event {
    case .connected: player.simulation.linkOpened(number)
    case .lost(let reason): player.simulation.linkLost(number, reason)
    case .received(let delivery): player.simulation.receive(delivery, at: number)
    case .broadcast(let broadcast): player.simulation.receive(broadcast, at: number)
    case .registered(let app, let token): player.simulation.hasToken(token, of: app, on: phone)
    case .heard(let isKeepAlive): player.simulation.hear(number, isKeepAlive: isKeepAlive)
    case .phone(let event): player.simulation.tell(number, event)
    }
  }

  /// Performs a typed command in the words of a scenario's `do`, such as `network airplane`. With
  /// several phones it starts with a name: `anna: lock`.
  package mutating func perform(command: String, at now: Int64) throws(LiveCommandError) {
    let command = try LiveCommand(command, in: scenario)
    advance(to: now)
    player.order(command.action)
  }

  /// Performs an order in JSON: `{"do":"swipe away","app":"com.example.news"}`.
  package mutating func perform(
    order: [UInt8], of phone: Int, at now: Int64
  ) throws(LiveCommandError) {
    let command = try LiveCommand(order: order, to: phones[phone], in: scenario)
    advance(to: now)
    player.order(command.action)
  }

  package func link(of phone: Int) -> PhoneEntry.Link {
    player.simulation.phones[phone].link
  }

  /// How a phone is, for people.
  package func state(of phone: Int) -> PhoneState {
    PhoneState(player.simulation, phone: phone, lastRuns)
  }

  /// Tokens and channels of Live Activities that the relay is to know now, by app.
  package func activityAddresses(of phone: Int) -> [(app: String, address: ActivityAddress)] {
    model(of: phone).apps.flatMap { app in
      model(of: phone).addresses(of: app.id).map { (app.definition.name, $0) }
    }
  }

  /// For what the driver performs or stores.
  package func model(of phone: Int) -> Phone { player.simulation.phones[phone].model }

  // MARK: What is to be done

  /// Oldest first, each once.
  package mutating func drainOrders() -> [LiveOrder] {
    defer { player.simulation.orders = [] }
    return player.simulation.orders
  }

  /// The trace since the last call.
  package mutating func drainTrace() -> [TraceLine] {
    defer { forgetTrace() }
    return (told..<player.simulation.entries.count).map { place in
      let line = player.simulation.line(place)
      remember(line, of: player.simulation.entries[place].app)
      return line
    }
  }

  private mutating func remember(_ line: TraceLine, of app: Int32) {
    let at = line.milliseconds + player.simulation.start
    if line.kind == .began {
      lastRuns[app] = PhoneState.Run(began: at, cause: line.why, uniqueId: line.pushID?.description)
    } else if line.kind == .completed || line.kind == .abandoned {
      lastRuns[app]?.ended = at
      lastRuns[app]?.outcome = line.why
    } else if line.kind == .uninstalled {
      lastRuns[app] = nil
    }
  }

  private mutating func forgetTrace() {
    if keepsTrace, player.simulation.entries.count < Self.keptEntries {
      told = player.simulation.entries.count
    } else {
      hasForgotten = keepsTrace || hasForgotten
      player.simulation.entries.removeAll(keepingCapacity: true)
      told = 0
    }
  }

  /// Leaves out expectations about what only the relay sees.
  package func verdicts() -> [Verdict] {
    scenario.expectations.filter { !$0.needsRelay }.map { expectation in
      guard !hasForgotten else {
        return Verdict(
          says: expectation.says, isPassed: false,
          found: "more than \(Self.keptEntries) things happened; make the scenario shorter")
      }
      return player.simulation.verdict(expectation)
    }
  }

  /// The expectations that `verdicts` leaves out, for display.
  package var unjudged: [String] {
    scenario.expectations.filter(\.needsRelay).map(\.says)
  }
}

/// The remains of a phone from its last run.
package struct LastingPhone: Sendable {
  package var memory: PhoneMemory
  /// By app name.
  package var archives: [String: StateArchive]

  package init(memory: PhoneMemory, archives: [String: StateArchive]) {
    self.memory = memory
    self.archives = archives
  }
}

extension Expectation {
  /// Looks at what only the relay sees, or at pushes by their scenario names.
  fileprivate var needsRelay: Bool {
    rule.matches.contains { match in
      match.push != nil || match.kind.map(TraceKind.seenByRelay.contains) ?? false
    }
  }
}

/// Observations of a real relay's driver.
extension Simulation {
  /// At least this many pushes are remembered, at most twice as many.
  static let rememberedPushes = 10_000

  mutating func linkOpened(_ phone: Int32) {
    guard case .connecting(let connection) = phones[Int(phone)].link else { return }
    phones[Int(phone)].link = .live(connection)
    record(.connected, phone: phone)
    introduce(phone)
  }

  /// The driver reconnects.
  mutating func linkLost(_ phone: Int32, _ reason: String) {
    guard case .live(let connection) = phones[Int(phone)].link else { return }
    phones[Int(phone)].link = .connecting(connection)
    record(.disconnected(reason), phone: phone)
  }

  mutating func receive(_ delivery: Delivery, at phone: Int32) {
    guard case .live = phones[Int(phone)].link else { return }
    let notification = delivery.notification
    let topic = notification.topic.description
    guard let (app, address) = place(of: topic, on: phone) else {
      return order(.ack(notification.uniqueID, .missing), phone)
    }
    let number = know(
      notification, of: app, address, acceptedAt: delivery.acceptedAt,
      "\(notification.notificationClass.name), \(delivery.via.name)")
    arrived(number, at: phone, rides: delivery.via.isRide)
  }

  /// Not acknowledged.
  mutating func receive(_ broadcast: Broadcast, at phone: Int32) {
    let topic = broadcast.notification.topic.description
    guard case .live = phones[Int(phone)].link, let found = place(of: topic, on: phone) else {
      return hear(phone, isKeepAlive: false)
    }
    let number = know(
      broadcast.notification, of: found.app, .channel(broadcast.channel.description),
      acceptedAt: broadcast.acceptedAt, "broadcast")
    arrived(number, at: phone, rides: false)
  }

  /// The number of a push, perhaps of one that came before.
  private mutating func know(
    _ notification: Notification, of app: Int32, _ address: ActivityAddress?,
    acceptedAt: Instant, _ kind: String
  ) -> Int32 {
    let id = Self.pushID(notification.uniqueID)
    if let known = pushIDs[id] { return known }
    forgetOldPushes()
    let number = firstPush + Int32(pushes.count)
    let payload = notification.compactPayload
    var entry = PushEntry(
      app: app, name: nil, payload: Payload(bytes: payload),
      collapseID: String(decoding: notification.collapseID, as: UTF8.self), postedAt: time)
    entry.adopt(notification)
    entry.wakesApp = notification.wakesApp || notification.notificationClass == .silent
    entry.activity = address
    entry.id = notification.uniqueID
    entry.acceptedAt = acceptedAt.milliseconds
    entry.told = "\(kind), " + String(decoding: payload, as: UTF8.self)
    pushes.append(entry)
    pushIDs[id] = number
    return number
  }

  /// One that waits since an earlier run.
  private mutating func know(_ push: RemotePush, of app: Int32) {
    guard let id = push.relayID.flatMap({ UniqueID($0) }) else { return }
    var entry = PushEntry(
      app: app, name: nil, payload: .silent, collapseID: push.collapseID, postedAt: time)
    (entry.id, entry.acceptedAt) = (id, push.acceptedAt?.milliseconds)
    entry.expiresAt = push.expiresAt?.milliseconds
    entry.told = "of an earlier run"
    pushIDs[push.id] = firstPush + Int32(pushes.count)
    pushes.append(entry)
  }

  mutating func hear(_ phone: Int32, isKeepAlive: Bool) {
    guard case .live = phones[Int(phone)].link else { return }
    tell(phone, .linkHeard)
    if isKeepAlive { sendUp(.keepAlive, from: phone) }
  }

  private mutating func forgetOldPushes() {
    guard pushes.count >= 2 * Self.rememberedPushes else { return }
    pushes.removeFirst(Self.rememberedPushes)
    firstPush += Int32(Self.rememberedPushes)
    pushIDs = pushIDs.filter { $0.value >= firstPush }
  }
}

extension Simulation {
  /// Adds a phone that continues from its memory: it is switched on, unlocked once unless nobody
  /// had done so, and its foreground app opened again. Its apps are not installed again; `update`
  /// may change them.
  mutating func addPhone(
    _ name: String, restoring memory: PhoneMemory, archives: [String: StateArchive],
    limits: PhoneLimits = PhoneLimits()
  ) -> PhoneHandle {
    let number = Int32(phones.count)
    var effects: [PhoneEffect] = []
    let model = Phone(
      restoring: memory, limits: limits, transferMode: .performed, at: instant, into: &effects)
    phones.append(
      PhoneEntry(
        name: name, model: model, credential: .unused, path: LinkModel(), network: model.network))
    for app in model.apps {
      let place = addApp(app.definition.name, of: number)
      for push in app.heldPushes { know(push, of: place) }
    }
    for effect in effects { perform(effect.action, of: number) }
    for app in model.apps {
      guard let archive = archives[app.definition.name] else { continue }
      tell(number, .archiveFound(app.id, archive))
    }
    if !memory.isBeforeFirstUnlock {
      tell(number, .unlocked)
      let front = memory.foreground.flatMap { model.app(named: $0) }
      tell(number, front.map { .appOpened($0.id) } ?? .locked)
    }
    return PhoneHandle(number: number, name: name)
  }

  /// Updates known apps, and settings of the phone that differ from the defaults.
  mutating func update(_ phone: PhoneHandle, to plan: Scenario.PhonePlan) {
    if plan.network != .wifi { tell(phone.number, .networkChanged(plan.network)) }
    if plan.isCharging { tell(phone.number, .chargerChanged(isConnected: true)) }
    if plan.isLowPower { tell(phone.number, .lowPowerSwitched(isOn: true)) }
    for var app in plan.apps {
      guard let known = phones[Int(phone.number)].model.app(named: app.name)?.definition else {
        continue
      }
      // It was updated meanwhile.
      if app.isOlder(than: known) { app.version = known.version }
      if known != app { tell(phone.number, .appInstalled(app)) }
    }
  }
}

extension AppDefinition {
  /// By the numbers of its version.
  fileprivate func isOlder(than other: Self) -> Bool {
    let numbers = [version, other.version].map { $0.split(separator: ".").map { Int($0) ?? 0 } }
    return numbers[0].lexicographicallyPrecedes(numbers[1])
  }
}

/// A task for the driver; `phone` is the index in the simulation.
package struct LiveOrder: Hashable, Sendable {
  package let phone: Int
  package let task: Task

  package init(_ phone: Int, _ task: Task) { (self.phone, self.task) = (phone, task) }

  package enum Task: Hashable, Sendable {
    /// Connect, and reconnect whenever the stream is lost.
    case connect
    /// Applies from the next stream on.
    case link(LinkModel)
    /// Without a good-bye the relay has to find out by itself.
    case disconnect(saysGoodbye: Bool)
    case ack(UniqueID, DeliveryOutcome?)
    case decision(UniqueID, PushDecision)
    case state(ConditionReport)
    case keepAlive
    case transfer(TransferID, TransferStep)
    case archive(app: String, ArchiveStep)
    /// The app was installed again; `unregister`: it is gone, as its provider shall learn.
    case register(topic: String)
    case unregister(topic: String)
    /// A token of a Live Activity, or a subscription, has come or ended.
    case address(ActivityAddress, app: String, isValid: Bool)
    /// The keys of protected files become available; `lock`: unavailable.
    case unlock
    case lock
  }
}

extension DeviceCredential {
  /// A real relay issues its own credentials.
  fileprivate static let unused = DeviceCredential(
    device: DeviceID(UniqueID(high: 0, low: 0)), secret: SecretHash(words: (0, 0, 0, 0)))
}
