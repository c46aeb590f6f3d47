import Primitives

@testable import RelayCore

extension World {
  /// A new shard and what the journal hands it.
  struct Restart {
    var configuration: Shard.Configuration
    var sequences: SequenceRanges
    var budgets: SilentBudgets
    var records: [RestoredRecord]
    var at: Instant

    func shard(into effects: inout [Effect]) -> Shard { play(into: &effects).shard }

    /// Everything that the shard was told, in order: what it tells itself, too.
    var events: [Event] {
      var effects: [Effect] = []
      return play(into: &effects).events
    }

    private func play(into effects: inout [Effect]) -> (shard: Shard, events: [Event]) {
      var shard = Shard(
        configuration: configuration, at: at, sequences: sequences, budgets: budgets)
      var events: [Event] = []
      var told = effects.count
      func hear(_ event: Event, _ effects: inout [Effect]) {
        events.append(event)
        shard.handle(event, at: at, into: &effects)
      }
      func hearItself(_ effects: inout [Effect]) {
        while told < effects.count {
          if case .tell(_, let event) = effects[told] { hear(event, &effects) }
          told += 1
        }
      }
      var isConfirmed = false
      for record in records {
        if record.acceptedAt != nil, !isConfirmed {
          hearItself(&effects)
          hear(.alias(.allConfirmed), &effects)
          isConfirmed = true
        }
        hear(.journal(.restored(record)), &effects)
      }
      if !isConfirmed {
        hearItself(&effects)
        hear(.alias(.allConfirmed), &effects)
      }
      hearItself(&effects)
      return (shard, events)
    }
  }

  /// A crash, now and then at a moment that chance alone seldom finds.
  mutating func fail() {
    switch Int.random(in: 0..<10, using: &generator) {
    case 0..<3: spendAndCrash()
    case 3: moveTokenAndCrash()
    default: crash()
    }
  }

  /// A phone's budget is spent, the journal has the notes or a part of them, and right after the
  /// restart there is more to send.
  private mutating func spendAndCrash() {
    guard let phone = phones.randomElement(using: &generator) else { return crash() }
    connectAndSpend(phone)
    if generator.chance(70) { handle(.journal(.persisted(through: checker.lastSequence))) }
    crash()
    connectAndSpend(phone)
  }

  private mutating func connectAndSpend(_ phone: Phone) {
    guard phones.contains(phone) else { return }
    let connection = fixture.newConnection()
    connections.append(connection)
    handle(.asked(.connected, phone.credential, from: connection))
    for app in checker.apps.filter({ $0.phone == phone }) + checker.apps where app.phone == phone {
      handle(.submitted(fixture.push(.silent, app), from: fixture.newRequest()))
    }
  }

  /// A device's own token goes to another of its apps, while something for the first is on disk.
  private mutating func moveTokenAndCrash() {
    guard let phone = phones.randomElement(using: &generator) else { return crash() }
    let token = DeviceToken(random: (generator.next(), 2, 2), routingKey: 0)
    let topics = ["com.example.app0", "com.example.app1"].shuffled(using: &generator)
    for topic in topics {
      let app = PhoneApp(phone: phone, topic: Topic(topic)!, token: token)
      handle(
        .asked(
          .registered(app.topic, token, isOwn: true), phone.credential, from: fixture.newRequest()))
      // The grant, and mostly the registration.
      handle(.journal(.persisted(through: checker.lastSequence)))
      if generator.chance(80) { handle(.journal(.persisted(through: checker.lastSequence))) }
      handle(.submitted(fixture.push(.visible, app), from: fixture.newRequest()))
      if topic == topics[0] {
        if generator.chance(50) { handle(.journal(.persisted(through: checker.lastSequence))) }
        handle(.asked(.unregistered(app.topic), phone.credential, from: fixture.newRequest()))
        let fails = generator.chance(plan.failures)
        handle(
          fails
            ? .journal(.persistFailed(through: checker.lastSequence))
            : .journal(.persisted(through: checker.lastSequence)))
      }
    }
    if generator.chance(50) { handle(.journal(.persisted(through: checker.lastSequence))) }
    crash()
  }

  /// The process dies, and some time later another one starts with what is on disk. Connections,
  /// requests without an answer and what was in flight are gone.
  mutating func crash() {
    disk.crash(at: fixture.now, using: &generator)
    crashCount += 1
    earlier = earlier + fixture.shard.counters
    connections = []
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: fixture.now = fixture.now + .seconds(.random(in: 0...600, using: &generator))
    case 1: fixture.now = fixture.now + .minutes(.random(in: 0...300, using: &generator))
    default: fixture.now = fixture.now + .milliseconds(.random(in: 0...10, using: &generator))
    }
    let lastSequence = checker.lastSequence + .random(in: 0...2, using: &generator)
    let sequences = SequenceRanges(first: lastSequence + 1, bits: plan.rangeBits)
    checker.crash(disk, at: fixture.now, sequences)
    if generator.chance(30) {
      // Somebody configured another policy meanwhile.
      checker.change(to: SilentPolicy.named.randomElement(using: &generator)!)
      disk.budgets.change(to: checker.policy, at: fixture.now)
    }
    phones.removeAll { checker.enrolments[$0.credential.device] == nil }
    var configuration = plan.configuration
    configuration.policy = checker.policy
    let restart = Restart(
      configuration: configuration, sequences: sequences, budgets: disk.budgets,
      records: disk.records(using: &generator), at: fixture.now)
    history.append(.restart(restart))
    var effects: [Effect] = []
    fixture.shard = restart.shard(into: &effects)
    fixture.now = max(fixture.now, fixture.shard.now)
    disk.note(effects)
    checker.checkRestoring(effects)
    effectsSeen += effects
    finishStep("restart", isThorough: true)
    restoreChannels()
  }
}
