import Primitives

@testable import RelayCore

/// What chance does in a world.
extension World {
  /// One thing happens.
  mutating func step() {
    if let connection = queueChecks.popLast() {
      handle(.stream(connection, .queueChecked(isEmpty: generator.chance(80))))
    }
    if plan.hasChannels, generator.chance(15) { return channelStep() }
    if Int.random(in: 0..<1000, using: &generator) < plan.crashes { return fail() }
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
      guard let phone = phones.randomElement(using: &generator) else { return }
      let number = Int.random(in: 0..<3, using: &generator)
      register(phone, number)
      // The device did not get the answer in time and asks again.
      if generator.chance(20) { register(phone, number) }
    case 98: if generator.chance(20) { changePolicy() }
    default: rare()
    }
  }

  private mutating func submit() {
    // A provider may not have heard yet that an app is gone.
    let isLate = generator.chance(4)
    let apps = isLate ? checker.registrations.map(\.app) : checker.apps
    guard let app = apps.randomElement(using: &generator) else { return }
    let notificationClass = NotificationClass.allCases.randomElement(using: &generator)!
    var expiration: Expiration?
    switch Int.random(in: 0..<10, using: &generator) {
    case 0: expiration = .once
    case 1: expiration = .at(fixture.now + .milliseconds(.random(in: -1...5, using: &generator)))
    case 2: expiration = .at(fixture.now + .seconds(.random(in: 0...4000, using: &generator)))
    default: break
    }
    let push = fixture.push(
      notificationClass, app, priority: Priority.allCases.randomElement(using: &generator)!,
      expiration: expiration, topic: generator.chance(2) ? "com.example.other" : nil,
      // Not the generator's to say: the worlds that are remembered stay what they are.
      showsNothing: fixture.lastNumber % 4 == 0)
    handle(.submitted(push, from: fixture.newRequest()))
    // Its provider may not hear of it, and send it again, soon or later.
    repeatable.append(push)
    if repeatable.count > 6 { repeatable.removeFirst() }
    guard generator.chance(10), let first = repeatable.randomElement(using: &generator) else {
      return
    }
    let more = fixture.lastNumber % 3 == 0 ? " " : ""
    handle(.submitted(fixture.repetition(of: first, saying: more), from: fixture.newRequest()))
  }

  private mutating func journal() {
    guard generator.chance(plan.diskSpeed) else { return }
    disk.forget(percent: plan.forgetting, using: &generator)
    let settled = checker.settledSequence
    guard checker.lastSequence > settled else { return }
    let sequence = UInt64.random(in: (settled + 1)...checker.lastSequence, using: &generator)
    let fails = generator.chance(plan.failures)
    handle(
      fails ? .journal(.persistFailed(through: sequence)) : .journal(.persisted(through: sequence)))
  }

  private mutating func connect() {
    guard let phone = phones.randomElement(using: &generator) else { return }
    let isConnected = checker.live.values.contains(phone.credential.device)
    guard !isConnected || generator.chance(30) else { return report() }
    let connection = fixture.newConnection()
    connections.append(connection)
    handle(.asked(.connected, phone.credential, from: connection))
    if generator.chance(30) { report() }
  }

  private mutating func disconnect() {
    guard let connection = connections.randomElement(using: &generator) else { return }
    connections.removeAll { $0 == connection }
    handle(.stream(connection, .disconnected))
    if generator.chance(20) { handle(.stream(connection, .heard)) }
    if generator.chance(20) { handle(.stream(connection, .keptAlive)) }
    if generator.chance(20) { handle(.stream(connection, .queueChecked(isEmpty: true))) }
  }

  private mutating func acknowledge() {
    guard let connection = connections.randomElement(using: &generator) else { return }
    let flights = checker.flights(on: connection)
    guard let id = flights.randomElement(using: &generator), !generator.chance(3) else {
      return handle(.stream(connection, .acked(UniqueID(high: 0, low: 0), .newData)))
    }
    if generator.chance(10) {
      handle(.stream(connection, .acked(id, .later)))
      let limit = PushLimit.allCases.randomElement(using: &generator)!
      handle(.stream(connection, .decided(id, .waits(limit, until: fixture.now + .minutes(5)))))
      if generator.chance(50) { handle(.stream(connection, .decided(id, .runs))) }
      return handle(.stream(connection, .acked(id, .newData)))
    }
    handle(.stream(connection, .acked(id, generator.chance(30) ? .noData : nil)))
  }

  private mutating func report() {
    guard let connection = connections.randomElement(using: &generator) else { return }
    handle(
      .stream(
        connection,
        .reported(
          ConditionReport(
            power: generator.chance(30) ? nil : Power.allCases.randomElement(using: &generator),
            network: generator.chance(30)
              ? nil : [Network.wifi, .cellular].randomElement(using: &generator),
            screen: generator.chance(30) ? nil : Screen.allCases.randomElement(using: &generator))))
    )
  }

  private mutating func hear() {
    guard let connection = connections.randomElement(using: &generator) else { return }
    handle(generator.chance(50) ? .stream(connection, .heard) : .stream(connection, .keptAlive))
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
    if !generator.chance(30) { handle(.clock(.tick)) }
  }

  private mutating func unregister() {
    guard let app = checker.apps.randomElement(using: &generator) else { return }
    handle(.asked(.unregistered(app.topic), app.phone.credential, from: fixture.newRequest()))
    // A provider that has not heard of it yet.
    if generator.chance(50) {
      let late = fixture.push(.visible, app)
      handle(.submitted(late, from: fixture.newRequest()))
    }
  }

  /// Chance alone seldom fills a budget and then leaves the phone in peace until it refills.
  private mutating func holdAndRelease() {
    guard let connection = connections.randomElement(using: &generator),
      let app = checker.apps.filter({ $0.phone.credential.device == checker.live[connection] })
        .randomElement(using: &generator)
    else { return }
    let isSilent = generator.chance(50)
    handle(
      .stream(
        connection, .reported(ConditionReport(DeviceCondition(power: isSilent ? .battery : .low)))))
    for _ in 0..<5 {
      let push = fixture.push(isSilent ? .silent : .visible, app, priority: .powerAware)
      handle(.submitted(push, from: fixture.newRequest()))
    }
    handle(.journal(.persisted(through: checker.lastSequence)))
    for _ in 0..<8 {
      fixture.now = max(fixture.now, fixture.shard.nextWake ?? fixture.now)
      handle(.clock(.tick))
    }
  }

  private mutating func changePolicy() {
    let policy = SilentPolicy.named.randomElement(using: &generator)!
    if generator.chance(40), let phone = phones.randomElement(using: &generator) {
      let own = generator.chance(30) ? nil : policy
      let action = AdminAction.setPolicy(own, at: fixture.now)
      return handle(.operated(.administered(phone.credential.device, action)))
    }
    handle(.operated(.policyChanged(policy, at: fixture.now)))
  }

  private mutating func rare() {
    switch Int.random(in: 0..<5, using: &generator) {
    case 0: if generator.chance(20) { handle(.operated(.shutDown)) }
    case 1: handle(.clock(.tick))
    case 2: if checker.enrolments.count < 5 { enroll() }
    default:
      guard let phone = phones.randomElement(using: &generator) else { return }
      handle(.asked(.inspected, phone.credential, from: fixture.newRequest()))
    }
  }
}
