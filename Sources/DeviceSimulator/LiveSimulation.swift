package import DeviceModel
package import Primitives
package import RelayCore

/// The phones of a scenario beside a real relay, in real time. A driver owns it, tells it what
/// happens and the time, does what `drainOrders` says, and shows what `drainTrace` tells.
///
/// All times are in UNIX milliseconds. What the scenario's provider would push, and which policy
/// its relay would have, is the real ones' affair and left out.
package struct LiveSimulation: Sendable {
  private let scenario: Scenario
  private var player: ScenarioPlayer
  /// How much of the trace has been told.
  private var told = 0
  /// A scenario with expectations keeps everything that happened, up to a limit.
  private let keepsTrace: Bool
  private static let keptEntries = 1_000_000
  /// Whether more happened than is kept, so that nothing can be judged any more.
  private var hasForgotten = false
  private let places: [String: Int]

  /// Sets up the phones; they are about to connect. Those in `last`, by their names, go on where
  /// they were.
  package init(
    _ scenario: Scenario, seed: UInt64, at now: Int64, last: [String: LastingPhone] = [:]
  ) {
    self.scenario = scenario
    places = Dictionary(
      uniqueKeysWithValues: scenario.phones.enumerated().map { ($1.name, $0) })
    // Times of the trace are times of the day.
    let midnight = now - now % TimeText.day
    var simulation = Simulation(seed: seed, relay: nil, start: midnight)
    simulation.time = now - midnight
    player = ScenarioPlayer(scenario, in: simulation, seed: seed, last: last)
    keepsTrace = !scenario.expectations.isEmpty
  }

  /// The phones' names.
  package var phones: [String] { scenario.phones.map(\.name) }

  /// The place of the phone with this name.
  package func place(ofPhone name: String?) -> Int? { name.flatMap { places[$0] } }

  /// When `advance` is wanted next, if nothing else happens.
  package var nextWake: Int64 {
    let next = player.nextMoment
    return next == .max ? .max : next + player.simulation.start
  }

  /// Whether the scenario's time is over.
  package func isOver(at now: Int64) -> Bool { now - player.simulation.start >= player.end }

  /// Lets time pass.
  package mutating func advance(to now: Int64) {
    player.play(until: now - player.simulation.start)
  }

  // MARK: What happens

  /// Something that the driver has seen of a phone.
  package enum Event: Sendable {
    case connected
    case lost(reason: String)
    case received(Delivery)
    /// Anything else from the relay; a keep-alive is answered.
    case heard(isKeepAlive: Bool)
    /// Of a transfer, an archive.
    case phone(PhoneEvent)
  }

  /// Takes in what has happened to a phone.
  package mutating func handle(_ event: Event, of phone: Int, at now: Int64) {
    advance(to: now)
    let number = Int32(phone)
    switch event {
    case .connected: player.simulation.linkOpened(number)
    case .lost(let reason): player.simulation.linkLost(number, reason)
    case .received(let delivery): player.simulation.receive(delivery, at: number)
    case .heard(let isKeepAlive): player.simulation.hear(number, isKeepAlive: isKeepAlive)
    case .phone(let event): player.simulation.tell(number, event)
    }
  }

  /// Does what a person says, in the words of a scenario's `do`: `open com.example.app`,
  /// `network airplane`, `lock`. Of several phones it names one: `anna: lock`.
  package mutating func perform(command: String, at now: Int64) throws(LiveCommandError) {
    let command = try LiveCommand(command, in: scenario)
    advance(to: now)
    player.perform(command.action)
  }

  /// What the phone wants of the relay, as far as it knows.
  package func link(of phone: Int) -> PhoneEntry.Link {
    player.simulation.phones[phone].link
  }

  /// A phone's own state, for what the driver performs or keeps.
  package func model(of phone: Int) -> Phone { player.simulation.phones[phone].model }

  // MARK: What is to be done

  /// What the driver is to do, oldest first; each is told once.
  package mutating func drainOrders() -> [LiveOrder] {
    defer { player.simulation.orders = [] }
    return player.simulation.orders
  }

  /// What has happened since it was last asked.
  package mutating func drainTrace() -> [TraceLine] {
    defer { forgetTrace() }
    return (told..<player.simulation.entries.count).map { player.simulation.line($0) }
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

  /// What came of the scenario's expectations. What only the relay sees is not judged.
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

  /// The expectations that are not judged, as they are told to people.
  package var unjudged: [String] {
    scenario.expectations.filter(\.needsRelay).map(\.says)
  }
}

/// What is left of a phone from its last run.
package struct LastingPhone: Sendable {
  package var memory: PhoneMemory
  /// The states of its apps, by their names.
  package var archives: [String: StateArchive]

  package init(memory: PhoneMemory, archives: [String: StateArchive]) {
    self.memory = memory
    self.archives = archives
  }
}

extension Expectation {
  /// Whether it looks at what only the relay sees, or at pushes by the names of the scenario.
  fileprivate var needsRelay: Bool {
    switch rule {
    case .expect(let match, _, _): match.needsRelay
    case .order(let matches): matches.contains { $0.needsRelay }
    case .fetchedBeforeUse: false
    }
  }
}

extension Expectation.Match {
  fileprivate var needsRelay: Bool {
    if push != nil { return true }
    return kind.map(TraceKind.seenByRelay.contains) ?? false
  }
}

/// What the driver of a real relay has seen.
extension Simulation {
  /// Pushes that are remembered at least; twice as many at most.
  static let rememberedPushes = 10_000

  /// A phone has its stream, or has it again.
  mutating func linkOpened(_ phone: Int32) {
    guard case .connecting(let connection) = phones[Int(phone)].link else { return }
    phones[Int(phone)].link = .live(connection)
    record(.connected, phone: phone)
    introduce(phone)
  }

  /// A phone has lost its stream, and the driver tries to get it a new one.
  mutating func linkLost(_ phone: Int32, _ reason: String) {
    guard case .live(let connection) = phones[Int(phone)].link else { return }
    phones[Int(phone)].link = .connecting(connection)
    record(.disconnected(reason), phone: phone)
  }

  /// The relay has sent a push over the phone's stream.
  mutating func receive(_ delivery: Delivery, at phone: Int32) {
    guard case .live = phones[Int(phone)].link else { return }
    let notification = delivery.notification
    let topic = notification.topic.description
    guard let app = phones[Int(phone)].apps.first(where: { apps[Int($0)].name == topic }) else {
      return order(.ack(notification.uniqueID, .missing), phone)
    }
    let id = Self.pushID(notification.uniqueID)
    let rides = delivery.via.isRide
    if let known = pushIDs[id] { return arrived(known, at: phone, rides: rides) }
    forgetOldPushes()
    let number = firstPush + Int32(pushes.count)
    let payload = notification.compactPayload
    var entry = PushEntry(
      app: app, name: nil, payload: Payload(bytes: payload),
      collapseID: String(decoding: notification.collapseID, as: UTF8.self), postedAt: time)
    entry.notificationClass = notification.notificationClass
    entry.wakesApp = notification.wakesApp || notification.notificationClass == .silent
    entry.id = notification.uniqueID
    entry.acceptedAt = delivery.acceptedAt.milliseconds
    entry.told =
      "\(notification.notificationClass.name), \(delivery.via.name), "
      + String(decoding: payload, as: UTF8.self)
    pushes.append(entry)
    pushIDs[id] = number
    arrived(number, at: phone, rides: rides)
  }

  /// The relay has said something else.
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
  /// A phone that goes on where its memory ends: its power is back, and its user enters the code
  /// and looks at the app that was in front. What the memory says of apps that are installed again
  /// stands; they may have changed.
  mutating func addPhone(
    _ name: String, restoring memory: PhoneMemory, archives: [String: StateArchive],
    limits: PhoneLimits = PhoneLimits()
  ) -> PhoneHandle {
    let number = Int32(phones.count)
    var effects: [PhoneEffect] = []
    let model = Phone(
      restoring: memory, limits: limits, transferMode: .performed, at: moment,
      into: &effects)
    phones.append(
      PhoneEntry(
        name: name, model: model, credential: .unused, path: LinkModel(),
        network: model.network))
    for app in model.apps { _ = addApp(app.definition.name, of: number) }
    for effect in effects { perform(effect.action, of: number) }
    for app in model.apps {
      guard let archive = archives[app.definition.name] else { continue }
      tell(number, .archiveFound(app.id, archive))
    }
    tell(number, .unlocked)
    if let front = memory.foreground, let app = model.app(named: front) {
      tell(number, .appOpened(app.id))
    } else {
      tell(number, .locked)
    }
    return PhoneHandle(number: number, name: name)
  }

  /// Apps that were there already are brought up to date, and what is said of the phone itself
  /// stands; what is not said is as it was.
  mutating func update(_ phone: PhoneHandle, to plan: Scenario.PhonePlan) {
    if plan.network != .wifi { tell(phone.number, .networkChanged(plan.network)) }
    if plan.isCharging { tell(phone.number, .chargerChanged(isConnected: true)) }
    if plan.isLowPower { tell(phone.number, .lowPowerSwitched(isOn: true)) }
    for app in plan.apps where phones[Int(phone.number)].model.app(named: app.name) != nil {
      let known = phones[Int(phone.number)].model.app(named: app.name)?.definition
      if known != app { tell(phone.number, .appInstalled(app)) }
    }
  }
}

/// What a driver is to do for a phone, which it knows by its place among the simulation's phones.
package struct LiveOrder: Hashable, Sendable {
  package let phone: Int
  package let task: Task

  package init(_ phone: Int, _ task: Task) { (self.phone, self.task) = (phone, task) }

  package enum Task: Hashable, Sendable {
    /// Get it a stream, and a new one whenever it is lost.
    case connect
    /// From the next stream on its link is like that.
    case link(LinkModel)
    /// End its stream; without a good-bye the relay is to find out by itself.
    case disconnect(saysGoodbye: Bool)
    case ack(UniqueID, DeliveryOutcome?)
    case decision(UniqueID, PushDecision)
    case state(ConditionReport)
    case keepAlive
    case transfer(TransferID, TransferStep)
    case archive(app: String, ArchiveStep)
    /// An app is there again; or not any more, as its provider is to hear.
    case register(topic: String)
    case unregister(topic: String)
    /// The keys of protected files are there from now on, or gone.
    case unlock
    case lock
  }
}

extension DeviceCredential {
  /// A real relay gives phones credentials of its own.
  fileprivate static let unused = DeviceCredential(
    device: DeviceID(UniqueID(high: 0, low: 0)), secret: SecretHash(words: (0, 0, 0, 0)))
}
