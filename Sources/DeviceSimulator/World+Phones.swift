import DeviceModel
import RelayCore

/// Phones and apps come into the world, and what phones ask for.
extension World {
  /// Adds a phone: locked, asleep, unlocked once since its start, about to connect.
  public mutating func addPhone(
    _ name: String, network: NetworkKind = .wifi, isCharging: Bool = false,
    isLowPower: Bool = false
  ) -> PhoneHandle {
    let number = Int32(phones.count)
    let id = DeviceID(UniqueID(high: random.next(), low: UInt64(number) + 1))
    let secret = SecretHash(words: (random.next(), random.next(), random.next(), random.next()))
    let model = Phone(
      transferMode: shard == nil ? .performed : .modelled, seed: random.next(), at: moment)
    phones.append(
      PhoneEntry(
        name: name, model: model, credential: DeviceCredential(device: id, secret: secret),
        network: .none))
    tellRelay(.enrolled(id, secret, from: nextRequest()))
    if network != .wifi { tell(number, .networkChanged(network.network)) }
    if isCharging { tell(number, .chargerChanged(isConnected: true)) }
    if isLowPower { tell(number, .lowPowerSwitched(isOn: true)) }
    followNetwork(number)
    return PhoneHandle(number: number, name: name)
  }

  /// Installs an app and registers it with the relay. An app that is there already stays as it is.
  public mutating func install(_ app: AppDescription, on phone: PhoneHandle) -> AppHandle {
    let owner = Int(phone.number)
    if let there = phones[owner].apps.first(where: { apps[Int($0)].name == app.name }) {
      return AppHandle(number: there, name: app.name)
    }
    let number = addApp(app.name, of: phone.number)
    tell(phone.number, .appInstalled(app.definition))
    return AppHandle(number: number, name: app.name)
  }

  /// Gets to know an app that is on a phone, or about to be, and registers it.
  mutating func addApp(_ name: String, of phone: Int32) -> Int32 {
    let owner = Int(phone)
    let number = Int32(apps.count)
    let credential = phones[owner].credential
    let token = DeviceToken(
      random: (random.next(), random.next(), random.next()),
      routingKey: credential.device.routingKey)
    // A name that is no topic gets pushes refused; the app itself is none the worse for it.
    let topic = Topic(name) ?? .vacant
    let id = AppID(phones[owner].apps.count)
    apps.append(
      AppEntry(
        phone: phone, id: id, name: name, topic: topic, token: token,
        path: Array("/3/device/\(token.hexadecimal)".utf8)))
    phones[owner].apps.append(number)
    if topic != .vacant {
      tellRelay(.registered(credential, topic, token, isOwn: false, from: nextRequest()))
    }
    return number
  }

  /// The phone with this name.
  public func phone(named name: String) -> PhoneHandle? {
    phones.firstIndex { $0.name == name }.map { PhoneHandle(number: Int32($0), name: name) }
  }

  /// The app with this name on a phone.
  public func app(named name: String, on phone: PhoneHandle) -> AppHandle? {
    phones[Int(phone.number)].apps.first { apps[Int($0)].name == name }
      .map { AppHandle(number: $0, name: name) }
  }

  /// A request of the device API. Its number is none that a push has.
  private mutating func nextRequest() -> RequestID {
    lastRequest += 1
    return RequestID(loop: 1, connection: .max, stream: Int32(truncatingIfNeeded: lastRequest))
  }

  // MARK: What a phone asks for

  mutating func perform(_ action: PhoneAction, of phone: Int32) {
    switch action {
    case .report(let push, let outcome):
      let number = number(of: push)
      record(.phone(action), phone: phone, push: number)
      lastReported = number
      sendUp(.ack(number, outcome.map(DeliveryOutcome.init)), from: phone)
    case .condition(let condition):
      record(.phone(action), phone: phone)
      sendUp(.condition(condition), from: phone)
    case .phone(let step):
      record(.phone(action), phone: phone)
      order(step, of: phone)
      if step == .booted {
        loseConnection(phone, saysGoodbye: false)
        if phones[Int(phone)].model.network.isConnected { connectSoon(phone) }
      }
    case .callback(let id, let app, .began(.fetch)):
      let number = phones[Int(phone)].apps[app.number]
      record(.fetchBegan(id, apps[Int(number)].plannedBecause), app: number)
    case .callback(_, let app, .began(.push(let push))):
      record(
        .phone(action), app: phones[Int(phone)].apps[app.number],
        push: number(of: push))
    case .fetch(let plan):
      let number = phones[Int(phone)].apps[plan.app.number]
      if case .fetch = plan.when { apps[Int(number)].plannedBecause = plan.reason }
      record(.phone(action), app: number)
    case .banner(let banner):
      record(
        .phone(action), app: phones[Int(phone)].apps[banner.app.number],
        push: banner.push.map { number(of: $0) } ?? -1)
    case .app(let app, .launched(.push(let push))), .app(let app, .resumed(.push(let push))):
      record(
        .phone(action), app: phones[Int(phone)].apps[app.number],
        push: number(of: push))
    case .transfer(_, let app, _), .archive(let app, _), .badge(let app, _), .sound(let app),
      .snapshot(let app, _), .app(let app, _), .callback(_, let app, _):
      order(action, of: phone)
      record(.phone(action), app: phones[Int(phone)].apps[app.number])
    case .document, .ignored: record(.phone(action), phone: phone)
    }
  }

  // MARK: The trace

  mutating func record(_ fact: TraceEntry.Fact, app: Int32, push: Int32 = -1) {
    entries.append(
      TraceEntry(at: time, phone: apps[Int(app)].phone, app: app, push: push, fact: fact))
  }

  mutating func record(_ fact: TraceEntry.Fact, phone: Int32, push: Int32 = -1) {
    entries.append(TraceEntry(at: time, phone: phone, app: -1, push: push, fact: fact))
  }
}

/// A phone of one world.
public struct PhoneHandle: Hashable, Sendable {
  let number: Int32
  public let name: String
}

/// An app on a phone of one world.
public struct AppHandle: Hashable, Sendable {
  let number: Int32
  public let name: String
}

/// A push in one world.
public struct PushHandle: Hashable, Sendable {
  let index: Int32
  /// As it is called in the timeline, from 1.
  public var number: Int { Int(index) + 1 }
}
