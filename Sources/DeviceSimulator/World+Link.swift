import DeviceModel
import Primitives
import RelayCore

/// The link between relay and phones: connecting, losing it, what travels over it.
extension World {
  static func connectionID(_ number: UInt32) -> ConnectionID {
    ConnectionID(loop: 0, connection: number, stream: 1)
  }

  // MARK: What the relay asks for

  mutating func perform(_ effect: Effect) {
    switch effect {
    case .respond(let request, let answer):
      let push = Int(request.connection)
      guard pushes.indices.contains(push) else { return }
      pushes[push].answer = answer
      switch answer {
      case .accepted: break
      case .rejected(let rejection): refused(push, rejection.status, rejection.reason)
      case .gone: refused(push, Rejection.unregistered.status, Rejection.unregistered.reason)
      }
    case .send(let connection, let delivery):
      send(.push(pushNumber(delivery.notification.uniqueID)), over: connection.connection)
    case .sendEmpty(let connection): send(.empty, over: connection.connection)
    case .sendKeepAlive(let connection): send(.keepAlive, over: connection.connection)
    case .checkQueue(let connection):
      // A modelled link takes everything at once.
      tellRelay(.queueChecked(connection, isEmpty: true))
    case .close(let connection, let reason): closed(connection.connection, reason)
    case .log(let event):
      let push = pushNumber(event.uniqueID)
      let app = pushes[Int(push)].app
      record(.life(event.step), app: app, push: push)
    case .tell(_, let event):
      // There is one shard.
      tellRelay(event)
    case .answer, .hello, .persist, .forget, .handOver:
      // Devices are made in memory, the journal answers at once, and there is no other shard.
      break
    }
  }

  mutating func refused(_ push: Int, _ status: UInt16, _ reason: String) {
    record(.refused(status: status, reason: reason), app: pushes[push].app, push: Int32(push))
  }

  private mutating func send(_ item: ItemDown, over connection: UInt32) {
    let phone = Int(connections[Int(connection)])
    let at = max(time + delay(), phones[phone].lastArrivalHere)
    phones[phone].lastArrivalHere = at
    schedule(.arrivesAtPhone(Int32(phone), connection: connection, item), at: at)
  }

  private mutating func closed(_ connection: UInt32, _ reason: CloseReason) {
    let phone = connections[Int(connection)]
    record(.disconnected(reason.name), phone: phone)
    // A phone that has left it behind does not hear of it.
    guard phones[Int(phone)].link == .live(connection) else { return }
    phones[Int(phone)].link = .down
    connectSoon(phone)
  }

  // MARK: What arrives

  mutating func arrive(_ item: ItemDown, at phone: Int32, over connection: UInt32) {
    // Lost with the connection; the relay finds out later.
    guard phones[Int(phone)].link == .live(connection) else { return }
    switch item {
    case .push(let push):
      arrived(push, at: phone)
    case .empty: tell(phone, .linkHeard)
    case .keepAlive:
      tell(phone, .linkHeard)
      sendUp(.keepAlive, from: phone)
    }
  }

  /// A push is there. What its app makes of it is reported when it is known; that the phone has it
  /// is said at once.
  mutating func arrived(_ push: Int32, at phone: Int32) {
    guard let entry = entry(of: push) else { return }
    record(.arrived(entry.told), app: entry.app, push: push)
    lastReported = -1
    tell(phone, .pushReceived(remotePush(push, entry)))
    if lastReported != push { sendUp(.ack(push, .later), from: phone) }
  }

  private func remotePush(_ push: Int32, _ entry: PushEntry) -> RemotePush {
    // Of push type background nothing is shown, whatever it carries (Apple, "Pushing background
    // updates to your App").
    let shown = entry.notificationClass == .visible ? entry.payload : .silent
    return RemotePush(
      id: pushID(of: push), app: apps[Int(entry.app)].id, alert: shown.alert,
      badge: shown.badge, hasSound: shown.hasSound, wakesApp: entry.wakesApp,
      collapseID: entry.collapseID)
  }

  mutating func arrive(_ item: ItemUp, from phone: Int32, over connection: UInt32) {
    guard phones[Int(phone)].link == .live(connection) else { return }
    let id = Self.connectionID(connection)
    switch item {
    case .hello:
      record(.connected, phone: phone)
      phones[Int(phone)].connectionAtRelay = connection
      tellRelay(.connected(phones[Int(phone)].credential, id))
    case .condition(let condition):
      tellRelay(.reported(id, ConditionReport(condition)))
    case .ack(let push, let outcome):
      tellRelay(.acked(id, uniqueID(push), outcome))
    case .keepAlive: tellRelay(.keptAlive(id))
    }
  }

  /// A phone speaks, if it has a connection. What an app made of a push is told when it has one
  /// again; everything else is said anew then or of no interest any more.
  mutating func sendUp(_ item: ItemUp, from phone: Int32) {
    guard case .live(let connection) = phones[Int(phone)].link else {
      if case .ack(let push, .some(let outcome)) = item, outcome != .later {
        keep(outcome, of: push, on: phone)
      }
      return
    }
    guard shard != nil else { return orderLine(item, from: phone) }
    let at = max(time + delay(), phones[Int(phone)].lastArrivalThere)
    phones[Int(phone)].lastArrivalThere = at
    schedule(.arrivesAtRelay(phone, connection: connection, item), at: at)
  }

  private mutating func keep(_ outcome: DeliveryOutcome, of push: Int32, on phone: Int32) {
    if phones[Int(phone)].untoldOutcomes.count == PhoneEntry.untoldOutcomes {
      phones[Int(phone)].untoldOutcomes.removeFirst()
    }
    phones[Int(phone)].untoldOutcomes.append((push, outcome))
  }

  /// What a phone says first over a new connection.
  mutating func introduce(_ phone: Int32) {
    sendUp(.condition(phones[Int(phone)].model.condition), from: phone)
    let outcomes = phones[Int(phone)].untoldOutcomes
    phones[Int(phone)].untoldOutcomes = []
    for (push, outcome) in outcomes { sendUp(.ack(push, outcome), from: phone) }
  }

  private mutating func delay() -> Int64 {
    link.latency.worldMilliseconds + random.below(link.jitter.worldMilliseconds + 1)
  }

  // MARK: Connecting and losing the connection

  /// Brings the link in line with the network that the phone has now.
  mutating func followNetwork(_ phone: Int32) {
    let network = phones[Int(phone)].model.network
    let before = phones[Int(phone)].network
    guard network != before else { return }
    phones[Int(phone)].network = network
    // Airplane mode is switched on by somebody, so that there is time for a good-bye; coverage just
    // ends, and another network means another address: the relay is not told.
    loseConnection(phone, saysGoodbye: network == .airplane && before.isConnected)
    if network.isConnected { connectSoon(phone) }
  }

  mutating func loseConnection(_ phone: Int32, saysGoodbye: Bool) {
    guard shard != nil else { return orderDisconnect(phone, saysGoodbye: saysGoodbye) }
    let link = phones[Int(phone)].link
    phones[Int(phone)].link = .down
    guard saysGoodbye, case .live(let connection) = link else { return }
    schedule(.connectionEnds(connection), at: max(time, phones[Int(phone)].lastArrivalThere))
  }

  mutating func connectionEnds(_ connection: UInt32) {
    // The good-bye may have overtaken the greeting, which was then lost.
    guard phones[Int(connections[Int(connection)])].connectionAtRelay == connection else { return }
    record(.disconnected("airplane mode"), phone: connections[Int(connection)])
    tellRelay(.disconnected(Self.connectionID(connection)))
  }

  mutating func connectSoon(_ phone: Int32) {
    guard shard != nil else { return orderConnect(phone) }
    let connection = UInt32(connections.count)
    connections.append(phone)
    phones[Int(phone)].link = .connecting(connection)
    let wait = link.reconnect.worldMilliseconds
    schedule(.connects(phone, connection: connection), at: time + wait + random.below(wait / 2 + 1))
  }

  mutating func connect(_ phone: Int32, _ connection: UInt32) {
    guard phones[Int(phone)].link == .connecting(connection) else { return }
    phones[Int(phone)].link = .live(connection)
    sendUp(.hello, from: phone)
    introduce(phone)
  }

  // MARK: Names

  func uniqueID(_ push: Int32) -> UniqueID {
    UniqueID(generator: seed, number: UInt64(push) + 1)
  }

  private func pushNumber(_ id: UniqueID) -> Int32 { Self.pushNumber(id) }

  /// The number within an id of `UniqueID.init(generator:number:)`.
  static func pushNumber(_ id: UniqueID) -> Int32 {
    Int32(truncatingIfNeeded: Int64(id.low & 0x3FFF_FFFF_FFFF_FFFF) - 1)
  }
}

extension ConditionReport {
  init(_ condition: PhoneCondition) {
    let power: DeviceCondition.Power =
      switch condition.power {
      case .battery: .battery
      case .charging: .charging
      case .low: .low
      }
    // Without a network there is nobody to tell.
    let network: DeviceCondition.Network? =
      switch condition.network {
      case .wifi: .wifi
      case .cellular: .cellular
      case .none, .airplane: nil
      }
    self.init(power: power, network: network, screen: condition.isScreenOn ? .on : .off)
  }
}

extension DeliveryOutcome {
  init(_ outcome: PushOutcome) {
    switch outcome {
    case .newData: self = .newData
    case .noData: self = .noData
    case .failed: self = .failed
    case .notLaunched(let refusal): self = .notLaunched(reason: refusal.rawValue)
    }
  }
}
