@testable import RelayCore

/// A shard with phones, apps, providers and a journal that do anything at any time, as a seed says.
struct World {
  /// What the seed decided about this world.
  struct Plan {
    var configuration: Shard.Configuration
    var phones: Int
    var appsPerPhone: Int
    /// Percent of the journal's answers that are failures.
    var failures: Int
    /// Percent of the chances to push or speak that are taken: budgets refill only in quiet.
    var chatter: Int
  }

  var generator: SeededGenerator
  var fixture: ShardFixture
  var checker: Checker
  /// Everything that happened, to be played again.
  private(set) var history: [(event: Event, at: Instant)] = []
  private(set) var effectsSeen: [Effect] = []
  var phones: [Phone] = []
  private var apps: [PhoneApp] = []
  var connections: [ConnectionID] = []
  private let plan: Plan
  private var stepNumber = 0

  init(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    plan = Self.plan(&generator)
    self.generator = generator
    fixture = ShardFixture(.manual, configuration: plan.configuration)
    checker = Checker(
      policy: plan.configuration.policy, inFlightLimit: plan.configuration.inFlightPerDevice)
    for _ in 0..<plan.phones {
      let number = UInt64(phones.count + 1)
      let phone = Phone(
        credential: DeviceCredential(
          device: DeviceID(UniqueID(high: number, low: number)),
          secret: SecretHash(words: (number, 0, 0, 0))))
      phones.append(phone)
      handle(
        .enrolled(
          phone.credential.device, phone.credential.secret, from: fixture.newRequest()))
      for app in 0..<plan.appsPerPhone { register(phone, app) }
    }
    handle(.persisted(through: checker.lastSequence))
  }

  private static func plan(_ generator: inout SeededGenerator) -> Plan {
    let policies =
      SilentPolicy.named + [
        SilentPolicy(
          name: "odd", perApp: RateLimit(7, per: .minutes(10), burst: 2), perDevice: nil),
        SilentPolicy(
          name: "device", perApp: nil, perDevice: RateLimit(2, per: .minutes(7), burst: 1)),
      ]
    let keepAlives: [Interval] = [.seconds(20), .minutes(15), .days(2)]
    let isQuiet = generator.chance(50)
    return Plan(
      configuration: Shard.Configuration(
        policy: policies.randomElement(using: &generator)!,
        keepAlive: isQuiet ? .days(2) : keepAlives.randomElement(using: &generator)!,
        keepAliveTimeout: .seconds(10), lowPriorityHold: .minutes(15),
        requestsPerToken: generator.chance(20) ? RateLimit(5, per: .seconds(1), burst: 5) : nil,
        inFlightPerDevice: isQuiet ? 32 : [1, 2, 3, 32].randomElement(using: &generator)!,
        pendingPersists: generator.chance(20) ? 12 : 1000),
      phones: Int.random(in: 1...3, using: &generator),
      appsPerPhone: Int.random(in: 1...3, using: &generator),
      failures: generator.chance(50) ? 0 : 20, chatter: isQuiet ? 8 : 100)
  }

  // MARK: Events

  /// What is wrong after `handle`, with where it happened; empty when nothing is.
  var problems: [String] = []

  mutating func handle(_ event: Event) {
    stepNumber += 1
    history.append((event, fixture.now))
    checker.note(event, at: fixture.now)
    var effects: [Effect] = []
    fixture.shard.handle(event, at: fixture.now, into: &effects)
    follow(event, effects)
    checker.check(effects)
    effectsSeen += effects
    if stepNumber % 8 == 0 || !checker.problems.isEmpty {
      checker.problems += fixture.shard.inconsistencies
    } else if !fixture.shard.snapshot.addsUp {
      checker.problems.append("the counters do not add up")
    }
    if problems.isEmpty {
      problems = checker.problems.map { "\($0) (step \(stepNumber), \(event))" }
    }
  }

  /// What the world learns from the answers, before they are checked.
  private mutating func follow(_ event: Event, _ effects: [Effect]) {
    for effect in effects {
      switch effect {
      case .close(let connection, _): connections.removeAll { $0 == connection }
      case .respond(let request, .rejected), .respond(let request, .gone):
        // Refused at once: it was never accepted.
        if case .submitted(let notification, request) = event {
          checker.lives[notification.uniqueID] = nil
        }
      case .answer(let request, let answer): follow(event, request, answer)
      default: break
      }
    }
    if case .unregistered(let credential, let topic, _) = event,
      effects.contains(where: { if case .persist = $0 { true } else { false } })
    {
      let isIt = { (app: PhoneApp) in app.phone.credential == credential && app.topic == topic }
      for app in apps where isIt(app) { checker.remove(app.token) }
      apps.removeAll(where: isIt)
    }
  }

  private mutating func follow(_ event: Event, _ request: RequestID, _ answer: DeviceAnswer) {
    switch answer {
    case .refused(.unavailable):
      // A registration that the journal did not take.
      guard let token = registering.removeValue(forKey: request) else { return }
      checker.remove(token)
      apps.removeAll { $0.token == token }
    default:
      registering[request] = nil
    }
  }

  private var registering: [RequestID: DeviceToken] = [:]

  private mutating func register(_ phone: Phone, _ number: Int) {
    let topic = Topic("com.example.app\(number)")!
    guard !apps.contains(where: { $0.phone == phone && $0.topic == topic }) else { return }
    let token = DeviceToken(
      random: (generator.next(), 1, 1), routingKey: phone.credential.device.routingKey)
    let request = fixture.newRequest()
    registering[request] = token
    apps.append(PhoneApp(phone: phone, topic: topic, token: token))
    handle(.registered(phone.credential, topic, token, isOwn: generator.chance(20), from: request))
  }

  // MARK: Chance

  /// One thing happens.
  mutating func step() {
    let dice = Int.random(in: 0..<100, using: &generator)
    let isChatter = (12..<35).contains(dice) || (58..<82).contains(dice)
    if isChatter, !generator.chance(plan.chatter) { return letTimePass() }
    switch dice {
    case 0..<35: submit()
    case 35..<50: journal()
    case 50..<58: connect()
    case 58..<61: disconnect()
    case 61..<75: acknowledge()
    case 75..<79: report()
    case 79..<82: hear()
    case 82..<95: letTimePass()
    case 95: holdAndRelease()
    case 96: unregister()
    case 97:
      register(
        phones.randomElement(using: &generator)!, Int.random(in: 0..<3, using: &generator))
    case 98: if generator.chance(20) { changePolicy() }
    default: rare()
    }
  }

  private mutating func submit() {
    guard let app = apps.randomElement(using: &generator) else { return }
    let notificationClass = NotificationClass.allCases.randomElement(using: &generator)!
    var expiration: Expiration?
    switch Int.random(in: 0..<10, using: &generator) {
    case 0: expiration = .once
    case 1: expiration = .at(fixture.now + .milliseconds(.random(in: -1...5, using: &generator)))
    case 2: expiration = .at(fixture.now + .seconds(.random(in: 0...4000, using: &generator)))
    default: break
    }
    var push = fixture.push(
      notificationClass, app, priority: Priority.allCases.randomElement(using: &generator)!,
      expiration: expiration)
    if generator.chance(2) { push.topic = Topic("com.example.other")! }
    handle(.submitted(push, from: fixture.newRequest()))
  }

  private mutating func journal() {
    let settled = checker.settledSequence
    guard checker.lastSequence > settled else { return }
    let sequence = UInt64.random(in: (settled + 1)...checker.lastSequence, using: &generator)
    let fails = generator.chance(plan.failures)
    handle(fails ? .persistFailed(through: sequence) : .persisted(through: sequence))
  }

  private mutating func connect() {
    let phone = phones.randomElement(using: &generator)!
    let isConnected = checker.live.values.contains(phone.credential.device)
    guard !isConnected || generator.chance(30) else { return report() }
    let connection = fixture.newConnection()
    connections.append(connection)
    handle(.connected(phone.credential, connection))
    if generator.chance(30) { report() }
  }

  private mutating func disconnect() {
    guard let connection = connections.randomElement(using: &generator) else { return }
    connections.removeAll { $0 == connection }
    handle(.disconnected(connection))
    if generator.chance(20) { handle(.heard(connection)) }
  }

  private mutating func acknowledge() {
    guard let connection = connections.randomElement(using: &generator) else { return }
    let flights = checker.flights(on: connection)
    guard let id = flights.randomElement(using: &generator), !generator.chance(3) else {
      return handle(.acked(connection, UniqueID(high: 0, low: 0), .newData))
    }
    handle(.acked(connection, id, generator.chance(30) ? .noData : nil))
  }

  private mutating func report() {
    guard let connection = connections.randomElement(using: &generator) else { return }
    handle(
      .reported(
        connection,
        ConditionReport(
          power: generator.chance(30)
            ? nil : DeviceCondition.Power.allCases.randomElement(using: &generator),
          network: generator.chance(30)
            ? nil : DeviceCondition.Network.allCases.randomElement(using: &generator),
          screen: generator.chance(30)
            ? nil : DeviceCondition.Screen.allCases.randomElement(using: &generator))))
  }

  private mutating func hear() {
    guard let connection = connections.randomElement(using: &generator) else { return }
    handle(.heard(connection))
  }

  private mutating func letTimePass() {
    switch Int.random(in: 0..<10, using: &generator) {
    case 0..<3: fixture.now = fixture.now + .milliseconds(.random(in: 0...10, using: &generator))
    case 3..<5: fixture.now = fixture.now + .seconds(.random(in: 0...600, using: &generator))
    case 5: fixture.now = fixture.now + .minutes(.random(in: 0...300, using: &generator))
    default:
      if let wake = fixture.shard.nextWake { fixture.now = max(fixture.now, wake) }
    }
    // Now and then the tick is late.
    if !generator.chance(30) { handle(.tick) }
  }

  private mutating func unregister() {
    guard let app = apps.randomElement(using: &generator) else { return }
    handle(.unregistered(app.phone.credential, app.topic, from: fixture.newRequest()))
    // A provider that has not heard of it yet.
    if generator.chance(50) {
      let late = fixture.push(.visible, app)
      handle(.submitted(late, from: fixture.newRequest()))
    }
  }

  /// Chance alone seldom fills a budget and then leaves the phone in peace until it refills.
  private mutating func holdAndRelease() {
    guard let connection = connections.randomElement(using: &generator),
      let app = apps.filter({ $0.phone.credential.device == checker.live[connection] })
        .randomElement(using: &generator)
    else { return }
    let isSilent = generator.chance(50)
    handle(
      .reported(connection, ConditionReport(DeviceCondition(power: isSilent ? .battery : .low))))
    for _ in 0..<5 {
      let push = fixture.push(isSilent ? .silent : .visible, app, priority: .powerAware)
      handle(.submitted(push, from: fixture.newRequest()))
    }
    handle(.persisted(through: checker.lastSequence))
    for _ in 0..<8 {
      fixture.now = max(fixture.now, fixture.shard.nextWake ?? fixture.now)
      handle(.tick)
    }
  }

  private mutating func changePolicy() {
    handle(.policyChanged(SilentPolicy.named.randomElement(using: &generator)!))
  }

  private mutating func rare() {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: if generator.chance(20) { handle(.shutDown) }
    case 1: handle(.tick)
    default:
      let phone = phones.randomElement(using: &generator)!
      handle(.inspected(phone.credential, from: fixture.newRequest()))
    }
  }
}
