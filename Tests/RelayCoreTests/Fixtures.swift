import Primitives

@testable import RelayCore

extension SeededRandom {
  /// Whether something happens that happens `percent` times in a hundred.
  mutating func chance(_ percent: Int) -> Bool {
    Int.random(in: 0..<100, using: &self) < percent
  }
}

/// A device as the tests know it.
struct Phone: Hashable {
  var credential: DeviceCredential
}

/// An app on it.
struct PhoneApp: Hashable {
  var phone: Phone
  var topic: Topic
  var token: DeviceToken
}

/// A shard with a clock, peers and a journal around it.
struct ShardFixture {
  /// How the journal behaves.
  enum Journal {
    /// Every record is on disk at once: what `store: memory` does.
    case prompt
    /// Nothing is reported until the test says so.
    case manual
  }

  /// 2026-01-01T00:00:00Z, an arbitrary start.
  static let start = Instant(unixSeconds: 1_767_225_600)

  var shard: Shard
  var now = Self.start
  var journal: Journal
  /// Where its peers are, and who makes its ids: no two nodes have an address or an id in common.
  var node: UInt16 = 0
  /// Of the last record that was asked for.
  private(set) var lastSequence: UInt64 = 0
  private(set) var lastNumber: UInt32 = 0

  init(
    _ journal: Journal = .prompt, configuration: Shard.Configuration = Shard.Configuration(),
    firstSequence: UInt64 = 1, rangeBits: Int = SequenceRanges.defaultBits
  ) {
    self.journal = journal
    shard = Shard(
      configuration: configuration, at: Self.start,
      sequences: SequenceRanges(first: firstSequence, bits: rangeBits))
  }

  // MARK: Events

  /// Hands an event over; with a prompt journal what it asks to be written is written. What it
  /// tells other shards comes back at once: there is no other.
  mutating func handle(_ event: Event) -> [Effect] {
    var effects: [Effect] = []
    shard.handle(event, at: now, into: &effects)
    var index = 0
    while index < effects.count {
      if case .persist(let record) = effects[index] {
        lastSequence = record.sequence
        if journal == .prompt {
          shard.handle(.journal(.persisted(through: record.sequence)), at: now, into: &effects)
        }
      } else if case .tell(_, let event) = effects[index] {
        shard.handle(event, at: now, into: &effects)
      }
      index += 1
    }
    return effects
  }

  mutating func persistAll() -> [Effect] { handle(.journal(.persisted(through: lastSequence))) }

  mutating func failAll() -> [Effect] { handle(.journal(.persistFailed(through: lastSequence))) }

  /// Lets time pass in one step, then ticks.
  mutating func advance(_ interval: Interval) -> [Effect] {
    now = now + interval
    return handle(.clock(.tick))
  }

  /// The machine's clock is set.
  mutating func stepClock(by interval: Interval) -> [Effect] {
    now = now + interval
    return handle(.clock(.clockStepped(by: interval)))
  }

  mutating func enroll() -> Phone {
    lastNumber += 1
    let number = UInt64(lastNumber)
    let credential = DeviceCredential(
      device: DeviceID(UniqueID(high: number, low: ~number)),
      secret: SecretHash(words: (number, 1, 2, 3)))
    _ = handle(.asked(.enrolled, credential, from: newRequest()))
    return Phone(credential: credential)
  }

  mutating func register(_ phone: Phone, _ topic: String = "com.example.app") -> PhoneApp {
    lastNumber += 1
    let token = DeviceToken(
      random: (UInt64(lastNumber), 7, 7), routingKey: phone.credential.device.routingKey)
    let app = PhoneApp(phone: phone, topic: Topic(topic)!, token: token)
    _ = handle(
      .asked(.registered(app.topic, token, isOwn: false), phone.credential, from: newRequest()))
    return app
  }

  /// With a token that the phone brings along.
  mutating func register(
    _ phone: Phone, _ topic: Topic, own token: DeviceToken
  ) -> [Effect] {
    handle(.asked(.registered(topic, token, isOwn: true), phone.credential, from: newRequest()))
  }

  mutating func unregister(_ app: PhoneApp) -> [Effect] {
    handle(.asked(.unregistered(app.topic), app.phone.credential, from: newRequest()))
  }

  /// A device with one app.
  mutating func phoneWithApp() -> PhoneApp {
    let phone = enroll()
    return register(phone)
  }

  mutating func connect(_ phone: Phone) -> (connection: ConnectionID, effects: [Effect]) {
    let connection = newConnection()
    return (connection, handle(.asked(.connected, phone.credential, from: connection)))
  }

  /// Submits it; the request is the one that `newRequest` gave last.
  mutating func submit(_ notification: Notification) -> [Effect] {
    handle(.submitted(notification, from: newRequest()))
  }

  mutating func ack(_ notification: Notification, _ connection: ConnectionID) -> [Effect] {
    handle(.stream(connection, .acked(notification.uniqueID, nil)))
  }

  // MARK: Values

  mutating func newRequest() -> RequestID {
    lastNumber += 1
    return RequestID(loop: 0, connection: 1, stream: Int32(lastNumber), node: node)
  }

  mutating func newConnection() -> ConnectionID {
    lastNumber += 1
    return ConnectionID(loop: 1, connection: ConnectionNumber(lastNumber), stream: 1, node: node)
  }

  var lastRequest: RequestID {
    RequestID(loop: 0, connection: 1, stream: Int32(lastNumber), node: node)
  }

  /// A new notification. Without an expiration it may be stored for 30 days.
  mutating func push(
    _ notificationClass: NotificationClass, _ app: PhoneApp, priority: Priority = .immediate,
    expiration: Expiration? = nil, topic: String? = nil,
    token: DeviceToken? = nil, apnsID: UniqueID? = nil, showsNothing: Bool = false
  ) -> Notification {
    lastNumber += 1
    let isSilent = notificationClass == .silent
    return Notification(
      uniqueID: UniqueID(generator: 1 + 2 * UInt64(node), number: UInt64(lastNumber)),
      apnsID: apnsID
        ?? UniqueID(generator: 2 + 2 * UInt64(node), number: UInt64(lastNumber)),
      token: token ?? app.token,
      topic: topic.map { Topic($0)! } ?? app.topic, notificationClass: notificationClass,
      pushType: isSilent ? .background : .alert,
      // A silent push at 10 is an error, and usually has 5.
      priority: isSilent && priority == .immediate ? .powerAware : priority,
      wakesApp: isSilent, showsNothing: showsNothing && !isSilent, collapseID: [],
      expiration: expiration ?? Expiration(unixSeconds: nil, at: now),
      payload: Array(#"{"aps":{"content-available":1}}"#.utf8))
  }

  /// The same, sent again; or more under its id.
  mutating func repetition(of first: Notification, saying more: String = "") -> Notification {
    lastNumber += 1
    return Notification(
      uniqueID: UniqueID(generator: 1 + 2 * UInt64(node), number: UInt64(lastNumber)),
      apnsID: first.apnsID, token: first.token, topic: first.topic,
      notificationClass: first.notificationClass, pushType: first.pushType,
      priority: first.priority, wakesApp: first.wakesApp, showsNothing: first.showsNothing,
      collapseID: first.collapseID, expiration: first.expiration,
      payload: first.payload + Array(more.utf8))
  }

  // MARK: Effects that tests expect

  func log(_ step: DeliveryStep, _ notification: Notification) -> Effect {
    .log(DeliveryEvent(at: now, uniqueID: notification.uniqueID, step: step))
  }

  func received(_ notification: Notification) -> Effect {
    log(
      .received(
        notification.notificationClass, apnsID: notification.apnsID,
        device: device(of: notification.token),
        notification.topic),
      notification)
  }

  private func device(of token: DeviceToken) -> DeviceID {
    guard let app = shard.appNumber(token) else { return DeviceID(UniqueID(high: 0, low: 0)) }
    return shard.devices[shard.apps[app].device].id
  }

  func discarded(_ notification: Notification, _ reason: DiscardReason) -> Effect {
    log(.discarded(reason), notification)
  }

  func sent(
    _ notification: Notification, _ via: Via, with carrier: Carrier? = nil,
    _ connection: ConnectionID, acceptedAt: Instant? = nil
  ) -> [Effect] {
    let delivery = Delivery(
      notification: notification, via: via, acceptedAt: acceptedAt ?? now, sentAt: now)
    return [.send(connection, delivery), log(.sent(via, with: carrier), notification)]
  }

  /// - Parameter mayLinger: sent to the device at once.
  func persist(
    _ notification: Notification, _ sequence: UInt64, mayLinger: Bool = false
  ) -> Effect {
    .persist(
      JournalRecord(
        sequence: sequence, content: .accepted(notification, at: now), mayLinger: mayLinger))
  }

  /// The note that silent pushes have used this much of two budgets that were full.
  func spent(
    _ app: PhoneApp, _ sequence: UInt64, count: Int64 = 1, policy: SilentPolicy = .documented
  ) -> Effect {
    var (used, deviceUsed) = (RateLimit.State(), RateLimit.State())
    let budgets = SilentBudgets(policy, at: Self.start)
    for _ in 0..<count {
      budgets.consume(app: &used, device: &deviceUsed, condition: DeviceCondition(), at: now)
    }
    return .persist(
      JournalRecord(
        sequence: sequence,
        content: .spent(app.phone.credential.device, app.topic, app: used, device: deviceUsed),
        mayLinger: true))
  }

  func accepted(_ notification: Notification, _ request: RequestID? = nil) -> Effect {
    .respond(request ?? lastRequest, .accepted(uniqueID: notification.uniqueID))
  }

  func rejected(_ rejection: Rejection, _ request: RequestID? = nil) -> Effect {
    .respond(request ?? lastRequest, .rejected(rejection))
  }
}

/// What was sent, in order, and how it came about.
struct Sending: Hashable {
  var uniqueID: UniqueID
  var via: Via

  init(_ notification: Notification, _ via: Via) {
    uniqueID = notification.uniqueID
    self.via = via
  }
}

extension [Effect] {
  /// What each of these went along with.
  var carriers: [UniqueID: Carrier] {
    var found: [UniqueID: Carrier] = [:]
    for effect in self {
      guard case .log(let event) = effect, case .sent(_, let carrier?) = event.step
      else { continue }
      found[event.uniqueID] = carrier
    }
    return found
  }

  var sendings: [Sending] {
    compactMap { effect in
      guard case .send(_, let delivery) = effect else { return nil }
      return Sending(delivery.notification, delivery.via)
    }
  }

  var discards: [DiscardReason] {
    compactMap { effect in
      guard case .log(let event) = effect, case .discarded(let reason) = event.step else {
        return nil
      }
      return reason
    }
  }

  var answers: [DeviceAnswer] {
    compactMap { effect in
      if case .answer(_, let answer) = effect { answer } else { nil }
    }
  }
}

extension Slab.Index: ExpressibleByIntegerLiteral {
  package init(integerLiteral number: Int32) { self.init(number) }
}
