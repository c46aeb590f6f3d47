public import DeviceModel
import HeapModule
public import Primitives
import RelayCore

/// One relay and any number of phones in virtual time: the relay's own core and the phone's own
/// model, joined by a modelled link. Nothing here waits; a month takes as long as its work.
///
/// ```swift
/// var simulation = Simulation(seed: 7)
/// let anna = simulation.addPhone("anna")
/// let app = AppDefinition(name: "com.example.mail", modes: .remoteNotification)
/// let mail = simulation.install(app, on: anna)
/// let push = simulation.push(.silent, to: mail)
/// simulation.advance(by: .minutes(1))
/// #expect(simulation.life(of: push).outcome == "newData")
/// ```
///
/// The same seed and the same calls give the same run, to the byte of `timeline`. A simulation is a
/// value: a copy goes its own way.
///
/// Invariants, held between any two calls:
/// 1. Everything due until `now` has happened, in order of time and then of scheduling.
/// 2. Items from one side to the other arrive in order, or not at all.
/// 3. The relay keeps a connection that the phone has lost at most until the keep-alive shows it.
///    The reverse lasts only as long as connecting.
public struct Simulation: Sendable {
  public let seed: UInt64
  /// The midnight that is time zero, in UNIX milliseconds.
  let start: Int64
  /// Milliseconds since `start`.
  var time: Int64 = 0
  /// When the scenario began, in simulation time.
  var origin: Int64 = 0
  /// Nil beside a real relay.
  var relay: ModelledRelay?
  /// For the driver of a real relay, oldest first.
  var orders: [LiveOrder] = []
  var pushIDs: [PushID: Int32] = [:]
  /// The number of `pushes[0]`; earlier ones are forgotten.
  var firstPush: Int32 = 0
  var phones: [PhoneEntry] = []
  var apps: [AppEntry] = []
  var pushes: [PushEntry] = []
  /// The trace: everything, or only `keptKinds`.
  var entries: [TraceEntry] = []
  private(set) var keptKinds: Set<TraceKind>?
  var queue = Heap<Scheduled>()
  var random: SeededRandom
  private var order: UInt64 = 0
  /// Scratch space, empty between calls; kept for its memory.
  private var relayEffects: [Effect] = []
  private var phoneEffects: [PhoneEffect] = []
  /// To detect a report during `arrived`.
  var lastReported: Int32 = -1
  /// -1 for none.
  var arriving: Int32 = -1

  /// 2026-11-21T00:00:00Z.
  static let virtualStart: Int64 = 1_795_219_200_000

  public init(
    seed: UInt64, policy: RelayPolicy = .documented, keepAlive: Duration = .minutes(15),
    link: LinkModel = LinkModel()
  ) {
    var configuration = Shard.Configuration(policy: policy.policy)
    configuration.keepAlive = .milliseconds(max(1000, keepAlive.simulatedMilliseconds))
    let start = Self.virtualStart
    let relay = ModelledRelay(
      configuration: configuration, link: link, at: Instant(milliseconds: start))
    self.init(seed: seed, relay: relay, start: start)
  }

  init(seed: UInt64, relay: ModelledRelay?, start: Int64) {
    self.seed = seed
    self.relay = relay
    self.start = start
    random = SeededRandom(seed: seed)
  }

  public var now: Duration { .milliseconds(time) }

  var nextHappening: Int64? { queue.min?.at }

  var instant: Instant { Instant(milliseconds: start + time) }

  // MARK: Time

  public mutating func advance(by duration: Duration) {
    advance(toMilliseconds: time + duration.simulatedMilliseconds)
  }

  /// Counted from the start; does nothing for a time in the past.
  public mutating func advance(until moment: Duration) {
    advance(toMilliseconds: moment.simulatedMilliseconds)
  }

  mutating func advance(toMilliseconds target: Int64) {
    let target = min(target, TimeText.longest)
    while let first = queue.min, first.at <= target {
      queue.removeMin()
      time = max(time, first.at)
      perform(first)
    }
    time = max(time, target)
  }

  mutating func schedule(_ happening: Happening, at moment: Int64) {
    order += 1
    queue.insert(Scheduled(at: moment, order: order, happening: happening))
  }

  private mutating func perform(_ scheduled: Scheduled) {
    switch scheduled.happening {
    case .relayWakes:
      guard relay?.wake == scheduled.at else { return }
      relay?.wake = .max
      tellRelay(.clock(.tick))
    case .phoneWakes(let phone):
      guard phones[Int(phone)].wake == scheduled.at else { return }
      phones[Int(phone)].wake = .max
      tell(phone, .tick)
    case .connects(let phone, let connection): connect(phone, connection)
    case .arrivesAtPhone(let phone, let connection, let item):
      arrive(item, at: phone, over: connection)
    case .arrivesAtRelay(let phone, let connection, let item):
      arrive(item, from: phone, over: connection)
    case .connectionEnds(let connection): connectionEnds(connection)
    case .journalAnswers(let sequence):
      if let answer = relay?.journal.answer(through: sequence) { tellRelay(answer) }
    case .relayStarts: relayStarts()
    }
  }

  // MARK: The two cores

  /// Performs the effects, too.
  mutating func tellRelay(_ event: Event) {
    let now = instant
    var effects = relayEffects
    relayEffects = []
    relay?.core?.handle(event, at: now, into: &effects)
    var written: UInt64?
    var next = 0
    // A journal that answers at once causes more effects.
    while next < effects.count {
      if case .persist(let record) = effects[next] {
        let due = relay?.journal.enqueue(record, at: time) ?? time
        if due <= time {
          written = record.sequence
        } else {
          schedule(.journalAnswers(through: record.sequence), at: due)
        }
      } else if case .forget(let sequence) = effects[next] {
        relay?.journal.forget(sequence, at: time)
      } else {
        perform(effects[next])
      }
      next += 1
      if next == effects.count, let sequence = written {
        written = nil
        if let answer = relay?.journal.answer(through: sequence) {
          relay?.core?.handle(answer, at: now, into: &effects)
        }
      }
    }
    effects.removeAll(keepingCapacity: true)
    relayEffects = effects
    if let wake = relay?.core?.nextWake {
      let at = max(time, wake.milliseconds - start)
      guard at < relay?.wake ?? .max else { return }
      relay?.wake = at
      schedule(.relayWakes, at: at)
    }
  }

  /// Performs the effects, too.
  mutating func tell(_ phone: Int32, _ event: PhoneEvent) {
    var effects = phoneEffects
    phoneEffects = []
    phones[Int(phone)].model.handle(event, at: instant, into: &effects)
    for effect in effects { perform(effect.action, of: phone) }
    effects.removeAll(keepingCapacity: true)
    phoneEffects = effects
    followNetwork(phone)
    if let wake = phones[Int(phone)].model.nextWake {
      let at = max(time, wake.milliseconds - start)
      if at < phones[Int(phone)].wake {
        phones[Int(phone)].wake = at
        schedule(.phoneWakes(phone), at: at)
      }
    }
  }
}

// MARK: Phones and apps

extension Simulation {
  /// Adds a phone: locked after its first unlock, asleep, about to connect.
  public mutating func addPhone(
    _ name: String, network: Network = .wifi, isCharging: Bool = false,
    isLowPower: Bool = false, limits: PhoneLimits = PhoneLimits()
  ) -> PhoneHandle {
    let number = Int32(phones.count)
    let id = DeviceID(UniqueID(high: random.next(), low: UInt64(number) + 1))
    let secret = SecretHash(words: (random.next(), random.next(), random.next(), random.next()))
    let model = Phone(
      limits: limits, transferMode: relay == nil ? .performed : .modelled, seed: random.next(),
      at: instant)
    phones.append(
      PhoneEntry(
        name: name, model: model, credential: DeviceCredential(device: id, secret: secret),
        path: relay?.link ?? LinkModel(), network: .none))
    request { .asked(.enrolled, DeviceCredential(device: id, secret: secret), from: $0) }
    if network != .wifi { tell(number, .networkChanged(network)) }
    if isCharging { tell(number, .chargerChanged(isConnected: true)) }
    if isLowPower { tell(number, .lowPowerSwitched(isOn: true)) }
    followNetwork(number)
    return PhoneHandle(number: number, name: name)
  }

  /// Registers the app with the relay. An app of that name stays as it is.
  public mutating func install(_ app: AppDefinition, on phone: PhoneHandle) -> AppHandle {
    let owner = Int(phone.number)
    if let there = phones[owner].apps.first(where: { apps[Int($0)].name == app.name }) {
      return AppHandle(number: there, name: app.name)
    }
    let number = addApp(app.name, of: phone.number)
    tell(phone.number, .appInstalled(app))
    return AppHandle(number: number, name: app.name)
  }

  mutating func addApp(_ name: String, of phone: Int32) -> Int32 {
    let owner = Int(phone)
    let number = Int32(apps.count)
    let credential = phones[owner].credential
    let token = DeviceToken(
      random: (random.next(), random.next(), random.next()),
      routingKey: credential.device.routingKey)
    // Pushes to a name that is no valid topic are refused; the app still runs.
    let topic = Topic(name) ?? .vacant
    let id = AppID(phones[owner].apps.count)
    apps.append(AppEntry(phone: phone, id: id, name: name, topic: topic, token: token))
    phones[owner].apps.append(number)
    // The driver of a real relay registers apps.
    if relay != nil, topic != .vacant { register(apps[Int(number)]) }
    return number
  }

  public func phone(named name: String) -> PhoneHandle? {
    phones.firstIndex { $0.name == name }.map { PhoneHandle(number: Int32($0), name: name) }
  }

  public func app(named name: String, on phone: PhoneHandle) -> AppHandle? {
    phones[Int(phone.number)].apps.first { apps[Int($0)].name == name }
      .map { AppHandle(number: $0, name: name) }
  }

  /// Performs the action and records it.
  mutating func perform(_ action: PhoneAction, of phone: Int32) {
    func number(_ app: AppID) -> Int32 { self.number(app, of: phone) }
    switch action {
    case .report(let push, let outcome):
      lastReported = self.number(of: push)
      record(.phone(action), phone: phone, push: lastReported)
      let told = outcome.map { deliveryOutcome($0, of: lastReported) }
      sendUp(.ack(lastReported, told), from: phone)
    case .decision(let app, let push, let decision):
      let number = self.number(of: push)
      // The acknowledgement goes first; that the app runs is visible anyway.
      if number == arriving, lastReported != number {
        lastReported = number
        sendUp(.ack(number, .later), from: phone)
      }
      if decision != .runs {
        record(.phone(action), app: self.number(app, of: phone), push: number)
      }
      sendUp(.decision(number, decision), from: phone)
    case .condition(let condition):
      record(.phone(action), phone: phone)
      sendUp(.condition(condition), from: phone)
    case .phone(let step):
      record(.phone(action), phone: phone)
      switch step {
      case .locked, .booted, .switchedOff: order(.lock, phone)
      case .unlocked: order(.unlock, phone)
      case .woke, .slept: break
      }
      if step == .switchedOff { loseConnection(phone, saysGoodbye: true) }
      if step == .booted {
        loseConnection(phone, saysGoodbye: false)
        if phones[Int(phone)].model.network.isConnected { connectSoon(phone) }
        sendDocuments(of: phone)
      }
    case .callback(let id, let app, .began(.fetch)):
      let number = number(app)
      record(.fetchBegan(id, apps[Int(number)].plannedBecause), app: number)
    case .fetch(let plan):
      let number = number(plan.app)
      if case .fetch = plan.when { apps[Int(number)].plannedBecause = plan.reason }
      record(.phone(action), app: number)
    case .banner(let banner):
      let push = banner.push.map { self.number(of: $0) } ?? -1
      record(.phone(action), app: number(banner.app), push: push)
    case .callback(_, let app, .began(.push(let push))), .app(let app, .launched(.push(let push))),
      .app(let app, .resumed(.push(let push))), .app(let app, .handled(let push, _, _)):
      record(.phone(action), app: number(app), push: self.number(of: push))
    case .transfer(let id, let app, let step):
      order(.transfer(id, step), phone)
      record(.transfer(nameOfTransfer(id, step, on: Int(phone)), action), app: number(app))
    case .archive(let app, let step):
      let number = number(app)
      order(.archive(app: apps[Int(number)].name, step), phone)
      record(.phone(action), app: number)
    case .badge(let app, _), .sound(let app), .snapshot(let app, _), .app(let app, _),
      .callback(_, let app, _):
      record(.phone(action), app: number(app))
    case .document(let id, let step):
      let apps = phones[Int(phone)].model.apps
      let words = step.words(by: clock) { apps[$0.number].definition.name }
      record(.document("document \(id.number) \(words)"), phone: phone)
      if case .uploadNeeded = step { sendDocuments(of: phone) }
      if step == .deleted { sendDocuments(of: phone) }
    case .activity(let app, let step): perform(step, of: number(app))
    case .ignored: record(.phone(action), phone: phone)
    }
  }

  private mutating func nameOfTransfer(
    _ id: TransferID, _ step: TransferStep, on phone: Int
  ) -> String {
    switch step {
    case .queued(let request, _):
      phones[phone].transferNames[id] = request.name
      return request.name
    case .ended:
      let name = phones[phone].transferNames.removeValue(forKey: id)
      return name ?? phones[phone].model.service[id]?.request.name ?? ""
    case .started, .brokeOff, .held, .credentialsDemanded:
      return phones[phone].transferNames[id] ?? phones[phone].model.service[id]?.request.name ?? ""
    }
  }

  private func number(_ app: AppID, of phone: Int32) -> Int32 {
    phones[Int(phone)].apps[app.number]
  }

  mutating func record(_ fact: TraceEntry.Fact, app: Int32, push: Int32 = -1) {
    keep(TraceEntry(at: time, phone: apps[Int(app)].phone, app: app, push: push, fact: fact))
  }

  /// Applies to past entries, too; nil keeps everything.
  mutating func keepOnly(_ kinds: Set<TraceKind>?) {
    keptKinds = kinds
    if let kinds { entries.removeAll { !kinds.contains($0.kind) } }
  }

  mutating func keep(_ entry: TraceEntry) {
    if keptKinds?.contains(entry.kind) ?? true { entries.append(entry) }
  }

  mutating func record(_ fact: TraceEntry.Fact, phone: Int32, push: Int32 = -1) {
    keep(TraceEntry(at: time, phone: phone, app: -1, push: push, fact: fact))
  }
}

/// News for the relay about the topics that a phone is registered for.
enum RegistrationNews: Sendable {
  /// It was installed again.
  case app(Int32)
  case address(ActivityAddress, app: Int32, isValid: Bool)
}

/// A phone in the simulation.
package struct PhoneEntry: Sendable {
  let name: String
  var model: Phone
  let credential: DeviceCredential
  var link = Link.down
  var path: LinkModel
  /// Phones with the same account share documents; nil for none.
  var account: String?
  /// The connection that the relay believes in.
  var connectionAtRelay: UInt32?
  /// Outcomes not yet sent, for lack of a connection, oldest first.
  var untoldOutcomes: [(push: Int32, outcome: DeliveryOutcome)] = []
  /// The same of what has become of tokens and subscriptions, for lack of a network.
  var untoldNews: [RegistrationNews] = []
  /// The network that the link was last adapted to.
  var network: Network
  var transferNames: [TransferID: String] = [:]
  var wake = Int64.max
  /// Arrival times of the latest items under way.
  var lastArrivalHere: Int64 = 0
  var lastArrivalThere: Int64 = 0
  /// Indices into `Simulation.apps`, in order of installation.
  var apps: [Int32] = []

  /// The maximum; then the oldest are dropped.
  static let untoldOutcomes = 1000

  package enum Link: Hashable, Sendable {
    case down
    /// The number of the connection being opened.
    case connecting(UInt32)
    case live(UInt32)
  }
}

struct AppEntry: Sendable {
  let phone: Int32
  let id: AppID
  let name: String
  let topic: Topic
  /// Changes when the app is installed again.
  var token: DeviceToken { didSet { path = Self.path(of: token) } }
  /// The request path, the same for every push.
  private(set) var path: [UInt8]
  /// The reason for the next fetch.
  var plannedBecause: FetchReason?
  /// Known to its server, with a modelled relay.
  var activityTokens: [ActivityAddress: DeviceToken] = [:]

  init(phone: Int32, id: AppID, name: String, topic: Topic, token: DeviceToken) {
    self.phone = phone
    self.id = id
    self.name = name
    self.topic = topic
    self.token = token
    path = Self.path(of: token)
  }

  static func path(of token: DeviceToken) -> [UInt8] {
    Array("/3/device/\(token.hexadecimal)".utf8)
  }
}

struct Scheduled: Comparable, Sendable {
  let at: Int64
  let order: UInt64
  let happening: Happening

  static func < (left: Scheduled, right: Scheduled) -> Bool {
    left.at == right.at ? left.order < right.order : left.at < right.at
  }

  static func == (left: Scheduled, right: Scheduled) -> Bool { left.order == right.order }
}

enum Happening: Sendable {
  case relayWakes
  case phoneWakes(Int32)
  case connects(Int32, connection: UInt32)
  case arrivesAtPhone(Int32, connection: UInt32, ItemDown)
  case arrivesAtRelay(Int32, connection: UInt32, ItemUp)
  case connectionEnds(UInt32)
  case journalAnswers(through: UInt64)
  case relayStarts
}

/// A phone of one simulation.
public struct PhoneHandle: Hashable, Sendable {
  let number: Int32
  public let name: String
}

/// An app on a phone of one simulation.
public struct AppHandle: Hashable, Sendable {
  let number: Int32
  public let name: String
}

/// A push in one simulation.
public struct PushHandle: Hashable, Sendable {
  let index: Int32
  /// As in the timeline, from 1.
  public var number: Int { Int(index) + 1 }
}
