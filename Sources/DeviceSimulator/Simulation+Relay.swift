import DeviceModel
import Primitives
import RelayCore

// The phones' links lead to the relay's core over a modelled link, or to a real relay by a driver.
//
//   modelled:  core ◀── Event ── link ◀── ItemUp ─── phones        one clock, one run
//              core ── Effect ─▶ link ── ItemDown ─▶ phones
//   real:      relay ◀── driver ◀── LiveOrder ─ phones             the clock on the wall
//              relay ──▶ driver ── linkOpened, receive, hear ─▶ phones

enum ItemDown: Sendable {
  /// Sent together with something else.
  case push(Int32, rides: Bool)
  case empty
  case keepAlive
}

enum ItemUp: Sendable {
  case hello
  case condition(DeviceCondition)
  case ack(Int32, DeliveryOutcome?)
  case decision(Int32, PushDecision)
  case keepAlive
}

extension Simulation {
  var isRelayUp: Bool { relay == nil || relay?.core != nil }

  /// A device API request, to a modelled relay only.
  mutating func request(_ event: (RequestID) -> Event) {
    guard let id = relay?.nextRequest() else { return }
    tellRelay(event(id))
  }

  /// Ignored with a modelled relay.
  mutating func order(_ task: LiveOrder.Task, _ phone: Int32) {
    if relay == nil { orders.append(LiveOrder(Int(phone), task)) }
  }
}

// MARK: What phones want

extension Simulation {
  /// Outcomes of pushes wait for the next connection; anything else would be sent again then, or is
  /// obsolete.
  mutating func sendUp(_ item: ItemUp, from phone: Int32) {
    // Nobody waits for an answer to a broadcast.
    if case .ack(let push, _) = item, isBroadcast(push) { return }
    if case .decision(let push, _) = item, isBroadcast(push) { return }
    guard case .live(let connection) = phones[Int(phone)].link else {
      if case .ack(let push, .some(let outcome)) = item, outcome != .later {
        keep(outcome, of: push, on: phone)
      }
      return
    }
    guard relay != nil else {
      if let task = task(of: item) { order(task, phone) }
      if case .ack(let push, let outcome) = item { noticeMissing(push, outcome) }
      return
    }
    let delay = phones[Int(phone)].path.delay(using: &random)
    let at = max(time + delay, phones[Int(phone)].lastArrivalThere)
    phones[Int(phone)].lastArrivalThere = at
    schedule(.arrivesAtRelay(phone, connection: connection, item), at: at)
  }

  /// The relay learns of an uninstalled app with the next push to it.
  mutating func noticeMissing(_ push: Int32, _ outcome: DeliveryOutcome?) {
    guard outcome == .missing, let entry = entry(of: push) else { return }
    unregister(apps[Int(entry.app)])
  }

  /// Draws whether a push or its acknowledgement gets lost on the phone's link; logs a loss.
  private mutating func loses(_ push: Int32, _ place: String, on phone: Int32) -> Bool {
    guard phones[Int(phone)].path.loses(using: &random) else { return false }
    let mark = FaultMark(name: "link", place: place, action: "drop")
    tellRelay(.operated(.faulted(uniqueID(push), mark)))
    return true
  }

  private mutating func keep(_ outcome: DeliveryOutcome, of push: Int32, on phone: Int32) {
    if phones[Int(phone)].untoldOutcomes.count == PhoneEntry.untoldOutcomes {
      phones[Int(phone)].untoldOutcomes.removeFirst()
    }
    phones[Int(phone)].untoldOutcomes.append((push, outcome))
  }

  /// Sends the first items of a new connection.
  mutating func introduce(_ phone: Int32) {
    sendUp(.condition(phones[Int(phone)].model.condition), from: phone)
    let outcomes = phones[Int(phone)].untoldOutcomes
    phones[Int(phone)].untoldOutcomes = []
    for (push, outcome) in outcomes { sendUp(.ack(push, outcome), from: phone) }
    let news = phones[Int(phone)].untoldNews
    phones[Int(phone)].untoldNews = []
    for one in news { tellRelay(one, of: phone) }
  }

  /// Adapts the link to the phone's current network.
  mutating func followNetwork(_ phone: Int32) {
    let network = phones[Int(phone)].model.network
    let before = phones[Int(phone)].network
    guard network != before else { return }
    phones[Int(phone)].network = network
    // Airplane mode leaves time for a good-bye; lost coverage or another network (a new address)
    // does not.
    loseConnection(phone, saysGoodbye: network == .airplane && before.isConnected)
    let isOn = phones[Int(phone)].model.wakefulness != .off
    if network.isConnected, isOn { connectSoon(phone) }
    if network.isConnected, !before.isConnected { sendDocuments(of: phone) }
  }

  /// Tells the relay, and the app's server, what has become of a token or a subscription; without a
  /// network when the phone has connected again.
  mutating func tellRelay(_ news: RegistrationNews, of phone: Int32) {
    let model = phones[Int(phone)].model
    var isHeard = isRelayUp && model.network.isConnected && model.wakefulness != .off
    if relay == nil {
      if case .live = phones[Int(phone)].link {} else { isHeard = false }
      // With its next stream the driver tells a real relay of all addresses.
      if !isHeard, case .address = news { return }
    }
    // In order.
    guard isHeard, phones[Int(phone)].untoldNews.isEmpty else {
      let (news, most) = (phones[Int(phone)].untoldNews + [news], PhoneEntry.untoldOutcomes)
      return phones[Int(phone)].untoldNews = news.suffix(most)
    }
    switch news {
    case .app(let app):
      if model[apps[Int(app)].id]?.state != .uninstalled { renewToken(of: app) }
    case .address(let address, let app, let isValid): follow(address, isValid: isValid, of: app)
    }
  }

  mutating func loseConnection(_ phone: Int32, saysGoodbye: Bool) {
    let link = phones[Int(phone)].link
    phones[Int(phone)].link = .down
    guard relay == nil else {
      guard saysGoodbye, case .live(let connection) = link else { return }
      return schedule(
        .connectionEnds(connection), at: max(time, phones[Int(phone)].lastArrivalThere))
    }
    guard link != .down else { return }
    if case .live = link {
      record(.disconnected(saysGoodbye ? "said good-bye" : "lost"), phone: phone)
    }
    order(.disconnect(saysGoodbye: saysGoodbye), phone)
  }

  mutating func connectSoon(_ phone: Int32) {
    let connection = UInt32(relay?.connections.count ?? 0)
    phones[Int(phone)].link = .connecting(connection)
    guard relay != nil else { return order(.connect, phone) }
    relay?.connections.append(phone)
    let wait = phones[Int(phone)].path.reconnect.simulatedMilliseconds
    schedule(.connects(phone, connection: connection), at: time + wait + random.below(wait / 2 + 1))
  }

  /// Nil for pushes from before the last start of the phone.
  private func task(of item: ItemUp) -> LiveOrder.Task? {
    switch item {
    case .hello: nil
    case .condition(let condition): .state(ConditionReport(condition))
    case .keepAlive: .keepAlive
    case .decision(let push, let decision): entry(of: push)?.id.map { .decision($0, decision) }
    case .ack(let push, let outcome): entry(of: push)?.id.map { .ack($0, outcome) }
    }
  }
}

// MARK: The modelled relay and its link

extension Simulation {
  mutating func perform(_ effect: Effect) {
    switch effect {
    case .respond(let request, let answer):
      let push = Int(request.connection.value)
      guard pushes.indices.contains(push) else { return }
      pushes[push].answer = .given(answer)
      switch answer {
      case .accepted: break
      case .rejected(let rejection): refused(push, rejection.status, rejection.reason)
      case .gone: refused(push, Rejection.unregistered.status, Rejection.unregistered.reason)
      }
    case .send(let connection, let delivery):
      let push = Self.pushNumber(delivery.notification.uniqueID)
      send(.push(push, rides: delivery.via.isRide), over: connection.connection.value)
    case .sendEmpty(let connection): send(.empty, over: connection.connection.value)
    case .sendKeepAlive(let connection): send(.keepAlive, over: connection.connection.value)
    case .checkQueue(let connection):
      // A modelled link has no send queue.
      tellRelay(.stream(connection, .queueChecked(isEmpty: true)))
    case .close(let connection, let reason): closed(connection.connection.value, reason)
    case .log(let event):
      // The phone has already recorded its decision.
      if case .decided = event.step { return }
      let push = Self.pushNumber(event.uniqueID)
      // After a restart the core logs journaled pushes again.
      if case .received = event.step, event.at < instant { return }
      let app = pushes[Int(push)].app
      record(.life(event.step), app: app, push: push)
    case .tell(_, let event):
      // There is one shard.
      tellRelay(event)
    case .sendBroadcast(let broadcast, let connections):
      let push = Self.pushNumber(broadcast.notification.uniqueID)
      for one in connections { send(.push(push, rides: false), over: one.connection.value) }
    case .answer, .hello, .persist, .forget:
      // Not needed here, or handled by the journal.
      break
    }
  }

  mutating func refused(_ push: Int, _ status: UInt16, _ reason: String) {
    record(.refused(status: status, reason: reason), app: pushes[push].app, push: Int32(push))
  }

  private mutating func send(_ item: ItemDown, over connection: UInt32) {
    guard let number = relay?.connections[Int(connection)] else { return }
    let phone = Int(number)
    let delay = phones[phone].path.delay(using: &random)
    let at = max(time + delay, phones[phone].lastArrivalHere)
    phones[phone].lastArrivalHere = at
    schedule(.arrivesAtPhone(Int32(phone), connection: connection, item), at: at)
  }

  private mutating func closed(_ connection: UInt32, _ reason: CloseReason) {
    guard let phone = relay?.connections[Int(connection)] else { return }
    record(.disconnected(reason.name), phone: phone)
    // The phone has already left this connection.
    guard phones[Int(phone)].link == .live(connection) else { return }
    phones[Int(phone)].link = .down
    connectSoon(phone)
  }

  // MARK: What arrives

  mutating func arrive(_ item: ItemDown, at phone: Int32, over connection: UInt32) {
    // Lost with the connection; the relay finds out later.
    guard phones[Int(phone)].link == .live(connection) else { return }
    switch item {
    case .push(let push, let rides):
      if !loses(push, "delivery", on: phone) { arrived(push, at: phone, rides: rides) }
    case .empty: tell(phone, .linkHeard)
    case .keepAlive:
      guard !phones[Int(phone)].path.loses(using: &random) else { return }
      tell(phone, .linkHeard)
      sendUp(.keepAlive, from: phone)
    }
  }

  /// Acknowledges the push at once; the app's outcome is reported later.
  mutating func arrived(_ push: Int32, at phone: Int32, rides: Bool) {
    guard let entry = entry(of: push), let app = app(of: entry, on: phone) else { return }
    record(.arrived(entry.told), app: app, push: push)
    lastReported = -1
    arriving = push
    defer { arriving = -1 }
    if let address = entry.activity {
      let message = activityPush(push, entry, of: app, to: address)
      tell(phone, .activity(.pushed(message, rides: rides)))
    } else {
      let remote = remotePush(push, entry)
      tell(phone, rides ? .pushRode(remote) : .pushReceived(remote))
    }
    if lastReported != push { sendUp(.ack(push, .later), from: phone) }
  }

  private func remotePush(_ push: Int32, _ entry: PushEntry) -> RemotePush {
    let app = apps[Int(entry.app)]
    let isPass = app.name.hasPrefix("pass.")
    let handler = isPass ? .wallet : PushHandler(rawValue: entry.type.wireName)
    // Push type background shows nothing (Apple, "Pushing background updates to your App").
    let shown = handler == nil && entry.notificationClass == .visible ? entry.payload : .silent
    var remote = RemotePush(
      id: pushID(of: push), app: app.id, alert: shown.alert, badge: shown.badge,
      hasSound: shown.hasSound, wakesApp: handler == nil && entry.wakesApp,
      collapseID: entry.collapseID,
      acceptedAt: Instant(milliseconds: entry.acceptedAt ?? start + entry.postedAt))
    remote.expiresAt = entry.expiresAt.map { Instant(milliseconds: $0) }
    remote.isOnce = entry.expiresAt == nil ? true : nil
    remote.priority = Int(entry.priority.rawValue)
    remote.isVisible = entry.notificationClass == .visible
    remote.relayID = entry.id?.description
    guard let handler else { return remote }
    remote.handler = handler
    remote.subject = handler.subject(of: entry.payload)
    let bundle = app.name.dropLast(entry.type.topicSuffix.count)
    remote.owner = place(of: String(bundle), on: app.phone).map { apps[Int($0.app)].id }
    return remote
  }

  mutating func arrive(_ item: ItemUp, from phone: Int32, over connection: UInt32) {
    guard phones[Int(phone)].link == .live(connection) else {
      // Lost with the connection. The phone tells an outcome again, at once or with the next one.
      if case .ack(_, .some(let outcome)) = item, outcome != .later { sendUp(item, from: phone) }
      return
    }
    let id = Self.connectionID(connection)
    switch item {
    case .hello:
      record(.connected, phone: phone)
      phones[Int(phone)].connectionAtRelay = connection
      tellRelay(.asked(.connected, phones[Int(phone)].credential, from: id))
    case .condition(let condition): tellRelay(.stream(id, .reported(ConditionReport(condition))))
    case .decision(let push, let decision):
      tellRelay(.stream(id, .decided(uniqueID(push), decision)))
    case .ack(let push, let outcome):
      guard !loses(push, "acknowledgement", on: phone) else { return }
      tellRelay(.stream(id, .acked(uniqueID(push), outcome)))
      noticeMissing(push, outcome)
    case .keepAlive:
      guard !phones[Int(phone)].path.loses(using: &random) else { return }
      tellRelay(.stream(id, .keptAlive))
    }
  }

  mutating func connect(_ phone: Int32, _ connection: UInt32) {
    guard phones[Int(phone)].link == .connecting(connection) else { return }
    // No relay is running: try again.
    guard isRelayUp else { return connectSoon(phone) }
    phones[Int(phone)].link = .live(connection)
    sendUp(.hello, from: phone)
    introduce(phone)
  }

  mutating func connectionEnds(_ connection: UInt32) {
    guard let phone = relay?.connections[Int(connection)] else { return }
    // The good-bye may have overtaken the hello, which was then lost.
    guard phones[Int(phone)].connectionAtRelay == connection else { return }
    let isOff = phones[Int(phone)].model.wakefulness == .off
    record(.disconnected(isOff ? "switched off" : "airplane mode"), phone: phone)
    tellRelay(.stream(Self.connectionID(connection), .disconnected))
  }

  private static func connectionID(_ number: UInt32) -> ConnectionID {
    ConnectionID(loop: 0, connection: ConnectionNumber(number), stream: 1)
  }

  func uniqueID(_ push: Int32) -> UniqueID {
    UniqueID(generator: seed, number: UInt64(push) + 1)
  }

  /// Nil if forgotten, or for -1.
  func entry(of push: Int32) -> PushEntry? {
    let index = Int(push) - Int(firstPush)
    return push >= 0 && pushes.indices.contains(index) ? pushes[index] : nil
  }

  /// With a real relay the same after a restart.
  func pushID(of push: Int32) -> PushID {
    entry(of: push)?.id.map(Self.pushID) ?? PushID(UInt64(push) + 1)
  }

  /// -1 if forgotten or unknown.
  func number(of push: PushID) -> Int32 {
    relay == nil ? pushIDs[push] ?? -1 : Int32(truncatingIfNeeded: push.number) - 1
  }

  static func pushID(_ id: UniqueID) -> PushID {
    PushID(id.low ^ (id.high &* 0x9E37_79B9_7F4A_7C15))
  }

  /// The inverse of `UniqueID.init(generator:number:)`.
  static func pushNumber(_ id: UniqueID) -> Int32 {
    Int32(truncatingIfNeeded: Int64(id.low & 0x3FFF_FFFF_FFFF_FFFF) - 1)
  }
}

extension PushHandler {
  /// The part of a payload that it needs (docs/PROTOCOL.md, "Pushes for others than the app").
  fileprivate func subject(of payload: Payload) -> String? {
    let root = try? JSONTree.read(payload.bytes)
    switch self {
    case .widgets:
      if case .flag(true)? = root?["aps"]?["content-changed"]?.value { return "content" }
      return nil
    case .fileprovider: return root?["container-identifier"]?.text
    case .pushtotalk: return root?["activeSpeaker"]?.text
    case .complication, .location, .voip, .wallet: return nil
    }
  }
}

extension Via {
  var isRide: Bool { self == .piggyback || self == .connect }
}

extension DeliveryOutcome {
  static let missing = notLaunched(reason: LaunchRefusal.notInstalled.rawValue)
}

extension Simulation {
  func deliveryOutcome(_ outcome: PushOutcome, of push: Int32) -> DeliveryOutcome {
    switch outcome {
    case .shown: return .shown
    case .notShown(let refusal):
      return .notShown(reason: entry(of: push).map { words(refusal, of: $0.app) } ?? "unknown")
    case .newData: return .newData
    case .noData: return .noData
    case .failed: return .failed
    case .notLaunched(let refusal): return .notLaunched(reason: refusal.rawValue)
    case .replaced(let newer): return .notLaunched(reason: "replaced by \(name(of: newer))")
    }
  }

  /// As people who look at the relay, or at a scenario, know it.
  func name(of push: PushID) -> String {
    let number = number(of: push)
    return entry(of: number)?.id.map { "\($0)" } ?? "push \(number + 1)"
  }
}
