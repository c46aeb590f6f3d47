package import DeviceModel
package import RelayCore

/// A world without a relay of its own: a driver connects its phones with a real one, in real time.
/// The world says what is to be done, as `orders`; the driver says what has come of it.
///
/// ```
///   real relay ── notification, keep-alive ──▶ driver ── receive, hear ──▶ world
///   real relay ◀── ack, state, keep-alive ──── driver ◀──── orders ─────── world
/// ```
extension World {
  /// Pushes that are remembered at least; twice as many at most.
  static let rememberedPushes = 10_000

  // MARK: Phones

  /// A phone that goes on where its memory ends: its power is back, and its user enters the code
  /// and looks at the app that was in front. What the memory says of apps that are installed again
  /// stands; they may have changed.
  mutating func addPhone(
    _ name: String, restoring memory: PhoneMemory, archives: [String: StateArchive]
  ) -> PhoneHandle {
    let number = Int32(phones.count)
    var effects: [PhoneEffect] = []
    let model = Phone(
      restoring: memory, transferMode: .performed, at: moment, into: &effects)
    phones.append(
      PhoneEntry(name: name, model: model, credential: .unused, network: model.network))
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
    if plan.network != .wifi { tell(phone.number, .networkChanged(plan.network.network)) }
    if plan.isCharging { tell(phone.number, .chargerChanged(isConnected: true)) }
    if plan.isLowPower { tell(phone.number, .lowPowerSwitched(isOn: true)) }
    for app in plan.apps where phones[Int(phone.number)].model.app(named: app.name) != nil {
      let known = phones[Int(phone.number)].model.app(named: app.name)?.definition
      if known != app.definition { tell(phone.number, .appInstalled(app.definition)) }
    }
  }

  // MARK: What has come of it

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
  mutating func receive(_ arrival: LiveArrival, at phone: Int32) {
    guard case .live = phones[Int(phone)].link else { return }
    guard let app = phones[Int(phone)].apps.first(where: { apps[Int($0)].name == arrival.topic })
    else {
      let refusal = DeliveryOutcome(.notLaunched(.notInstalled))
      return orders.append(.ack(phone: Int(phone), arrival.uniqueID, refusal))
    }
    let id = Self.pushID(arrival.uniqueID)
    if let known = pushIDs[id] { return arrived(known, at: phone) }
    forgetOldPushes()
    let number = firstPush + Int32(pushes.count)
    var entry = PushEntry(
      app: app, name: nil, payload: Payload(bytes: arrival.payload),
      collapseID: arrival.collapseID, postedAt: time)
    entry.notificationClass = arrival.isSilent ? .silent : .visible
    entry.wakesApp = arrival.wakesApp || arrival.isSilent
    entry.id = arrival.uniqueID
    entry.told = arrival.told
    pushes.append(entry)
    pushIDs[id] = number
    arrived(number, at: phone)
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

  // MARK: Pushes and their numbers

  /// The push with this number, unless it is forgotten or -1.
  func entry(of push: Int32) -> PushEntry? {
    let index = Int(push) - Int(firstPush)
    return push >= 0 && pushes.indices.contains(index) ? pushes[index] : nil
  }

  /// By which a phone knows a push. One of a real relay has the same after a restart.
  func pushID(of push: Int32) -> PushID {
    entry(of: push)?.id.map(Self.pushID) ?? PushID(UInt64(push) + 1)
  }

  /// -1 for one that is forgotten.
  func number(of push: PushID) -> Int32 {
    shard == nil ? pushIDs[push] ?? -1 : Int32(truncatingIfNeeded: push.number) - 1
  }

  private static func pushID(_ id: UniqueID) -> PushID {
    PushID(id.low ^ (id.high &* 0x9E37_79B9_7F4A_7C15))
  }

  // MARK: What is to be done

  mutating func orderLine(_ item: ItemUp, from phone: Int32) {
    switch item {
    case .hello: break
    case .condition(let condition):
      orders.append(.state(phone: Int(phone), ConditionReport(condition)))
    case .keepAlive: orders.append(.keepAlive(phone: Int(phone)))
    case .ack(let push, let outcome):
      // What came in an earlier life of the phone is not known any more.
      guard let id = entry(of: push)?.id else { return }
      orders.append(.ack(phone: Int(phone), id, outcome))
    }
  }

  mutating func orderConnect(_ phone: Int32) {
    phones[Int(phone)].link = .connecting(0)
    orders.append(.connect(phone: Int(phone)))
  }

  mutating func orderDisconnect(_ phone: Int32, saysGoodbye: Bool) {
    let link = phones[Int(phone)].link
    guard link != .down else { return }
    phones[Int(phone)].link = .down
    if case .live = link {
      record(.disconnected(saysGoodbye ? "said good-bye" : "lost"), phone: phone)
    }
    orders.append(.disconnect(phone: Int(phone), saysGoodbye: saysGoodbye))
  }

  mutating func order(_ step: PhoneStep, of phone: Int32) {
    guard shard == nil else { return }
    switch step {
    case .locked, .booted: orders.append(.lock(phone: Int(phone)))
    case .unlocked: orders.append(.unlock(phone: Int(phone)))
    case .woke, .slept: break
    }
  }

  mutating func order(_ action: PhoneAction, of phone: Int32) {
    guard shard == nil else { return }
    switch action {
    case .transfer(let id, _, let step):
      orders.append(.transfer(phone: Int(phone), id, step))
    case .archive(let app, let step):
      let name = apps[Int(phones[Int(phone)].apps[app.number])].name
      orders.append(.archive(phone: Int(phone), app: name, step))
    default: break
    }
  }
}

/// What a driver is to do for a phone, which it knows by its place among the world's phones.
package enum LiveOrder: Hashable, Sendable {
  /// Get it a stream, and a new one whenever it is lost.
  case connect(phone: Int)
  /// End its stream; without a good-bye the relay is to find out by itself.
  case disconnect(phone: Int, saysGoodbye: Bool)
  case ack(phone: Int, UniqueID, DeliveryOutcome?)
  case state(phone: Int, ConditionReport)
  case keepAlive(phone: Int)
  case transfer(phone: Int, TransferID, TransferStep)
  case archive(phone: Int, app: String, ArchiveStep)
  /// The keys of protected files are there from now on, or gone.
  case unlock(phone: Int)
  case lock(phone: Int)

  /// The phone that it is about.
  package var phone: Int {
    switch self {
    case .connect(let phone), .disconnect(let phone, _), .ack(let phone, _, _),
      .state(let phone, _), .keepAlive(let phone), .transfer(let phone, _, _),
      .archive(let phone, _, _), .unlock(let phone), .lock(let phone):
      phone
    }
  }
}

/// A push as a real relay delivers it.
package struct LiveArrival: Hashable, Sendable {
  package var uniqueID: UniqueID
  package var topic: String
  package var isSilent: Bool
  package var wakesApp: Bool
  package var collapseID: String
  package var payload: [UInt8]
  /// How the relay sent it: `direct`, `piggyback`, …
  package var via: String

  package init(
    uniqueID: UniqueID, topic: String, isSilent: Bool, wakesApp: Bool, collapseID: String,
    payload: [UInt8], via: String
  ) {
    self.uniqueID = uniqueID
    self.topic = topic
    self.isSilent = isSilent
    self.wakesApp = wakesApp
    self.collapseID = collapseID
    self.payload = payload
    self.via = via
  }

  /// For the trace.
  var told: String {
    "\(isSilent ? "silent" : "visible"), \(via), \(String(decoding: payload, as: UTF8.self))"
  }
}

extension DeviceCredential {
  /// A real relay gives phones credentials of its own.
  fileprivate static let unused = DeviceCredential(
    device: DeviceID(UniqueID(high: 0, low: 0)), secret: SecretHash(words: (0, 0, 0, 0)))
}
