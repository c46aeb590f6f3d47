import Primitives

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
    /// Percent of the chances to answer that the disk takes.
    var diskSpeed: Int
    /// Percent of the forgets that reach the disk whenever it works.
    var forgetting: Int
    /// Crashes in a thousand steps.
    var crashes: Int
    /// A range of sequences has two to this many.
    var rangeBits: Int
    /// Phones subscribe to channels, on which is broadcast.
    var hasChannels = false
    /// Where its peers are.
    var node: UInt16 = 0
    /// All devices and tokens are of this one; nil for any.
    var partition: PartitionID?
  }

  /// What happened to the shard.
  enum Happening {
    case event(Event, at: Instant)
    case restart(Restart)
  }

  var generator: SeededRandom
  var fixture: ShardFixture
  var checker: Checker
  var disk: Disk
  /// What was pushed last, which may be sent again.
  var repeatable: [Notification] = []
  /// Everything that happened, to be played again.
  var history: [Happening] = []
  var effectsSeen: [Effect] = []
  /// What is wrong, with where it happened; empty when nothing is.
  private(set) var problems: [String] = []
  /// Those that were told their ids.
  var phones: [Phone] = []
  private var newPhones: [DeviceID: Phone] = [:]
  /// Tokens that devices brought along.
  var ownTokens: [DeviceToken] = []
  var connections: [ConnectionID] = []
  /// Connections that were asked whether everything has left.
  var queueChecks: [ConnectionID] = []
  /// Sums of the shards before the last restart.
  var earlier = ShardCounters()
  var crashCount = 0
  let plan: Plan
  private var stepNumber = 0
  /// What the shard has told itself, oldest first: it hears it before anything else.
  private var mail: [Event] = []
  private var isDelivering = false

  init(seed: UInt64, _ change: (inout Plan) -> Void = { _ in }) {
    var generator = SeededRandom(seed: seed)
    var plan = Self.plan(&generator)
    change(&plan)
    self.plan = plan
    self.generator = generator
    fixture = ShardFixture(
      .manual, configuration: plan.configuration, rangeBits: plan.rangeBits)
    fixture.node = plan.node
    checker = Checker(plan.configuration, fixture.shard.sequences)
    disk = Disk(budgets: fixture.shard.budgets)
    // Not the generator's to say: the worlds that are remembered stay what they are.
    disk.keepsDevices = seed & 8 != 0
    for _ in 0..<plan.phones { enroll() }
    handle(.journal(.persisted(through: checker.lastSequence)))
    for phone in phones {
      for app in 0..<plan.appsPerPhone { register(phone, app) }
    }
    handle(.journal(.persisted(through: checker.lastSequence)))
  }

  private static func plan(_ generator: inout SeededRandom) -> Plan {
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
        keepAliveTimeout: .seconds(10),
        ackTimeout: [.seconds(60), .minutes(20)].randomElement(using: &generator)!,
        rides: [RateLimit(1, per: .minutes(1), burst: 3), RateLimit(1, per: .hours(1), burst: 1)]
          .randomElement(using: &generator)!,
        lowPriorityHold: .minutes(15),
        requestsPerToken: generator.chance(20) ? RateLimit(5, per: .seconds(1), burst: 5) : nil,
        inFlightPerDevice: isQuiet ? 32 : [1, 2, 3, 32].randomElement(using: &generator)!,
        pendingPersists: generator.chance(20) ? 12 : 1000),
      phones: Int.random(in: 1...3, using: &generator),
      appsPerPhone: Int.random(in: 1...3, using: &generator),
      failures: generator.chance(50) ? 0 : 20, chatter: isQuiet ? 8 : 100,
      diskSpeed: generator.chance(50) ? 100 : 30,
      forgetting: [0, 30, 100].randomElement(using: &generator)!,
      crashes: [0, 5, 20].randomElement(using: &generator)!,
      rangeBits: [1, 5, SequenceRanges.defaultBits].randomElement(using: &generator)!)
  }

  // MARK: Events

  mutating func handle(_ event: Event) {
    history.append(.event(event, at: fixture.now))
    checker.note(event, at: fixture.now)
    switch event {
    case .journal(.persisted(let sequence)):
      disk.write(through: sequence, at: fixture.now, using: &generator)
    case .journal(.persistFailed(let sequence)): disk.fail(through: sequence)
    case .operated(.policyChanged(let policy, let moment)):
      disk.budgets.change(to: policy, at: moment)
    case .broadcast(.ended(let channel)): disk.end(channel)
    default: break
    }
    var effects: [Effect] = []
    fixture.shard.handle(event, at: fixture.now, into: &effects)
    disk.note(effects)
    follow(effects)
    checker.check(effects)
    if fixture.shard.fanOuts.isEmpty { checker.checkAllGotIt() }
    effectsSeen += effects
    finishStep("\(event)")
    endAgain(effects)
    for effect in effects {
      if case .tell(_, let event) = effect { mail.append(event) }
    }
    guard !isDelivering else { return }
    isDelivering = true
    while !mail.isEmpty { handle(mail.removeFirst()) }
    isDelivering = false
  }

  /// Looks at the shard from inside, and takes down what is wrong.
  mutating func finishStep(_ name: @autoclosure () -> String, isThorough: Bool = false) {
    stepNumber += 1
    if isThorough || stepNumber % 8 == 0 || !checker.problems.isEmpty {
      checker.problems += fixture.shard.inconsistencies
    } else if !fixture.shard.counters.addsUp {
      checker.problems.append("the counters do not add up")
    }
    if problems.isEmpty, !checker.problems.isEmpty {
      problems = checker.problems.map { "\($0) (step \(stepNumber), \(name()))" }
    }
  }

  mutating func report(_ problem: String) { problems.append(problem) }

  /// What the world learns from the answers.
  private mutating func follow(_ effects: [Effect]) {
    for effect in effects {
      switch effect {
      case .close(let connection, _): connections.removeAll { $0 == connection }
      case .checkQueue(let connection): queueChecks.append(connection)
      case .answer(_, .enrolled(let device)):
        if let phone = newPhones.removeValue(forKey: device) { phones.append(phone) }
      default: break
      }
    }
  }

  mutating func enroll() {
    var number = UInt64(checker.enrolments.count + 1)
    while let partition = plan.partition,
      fixture.shard.partition(ofRoutingKey: number) != partition
    { number += 1 }
    let phone = Phone(
      credential: DeviceCredential(
        device: DeviceID(UniqueID(high: number, low: generator.next())),
        secret: SecretHash(words: (number, 0, 0, 0))))
    newPhones[phone.credential.device] = phone
    handle(
      .asked(
        .enrolled,
        DeviceCredential(device: phone.credential.device, secret: phone.credential.secret),
        from: fixture.newRequest()))
  }

  /// The app may be there already, and the token may be anyone's or have been.
  mutating func register(_ phone: Phone, _ number: Int) {
    var token = DeviceToken(
      random: (generator.next(), 1, 1), routingKey: phone.credential.device.routingKey)
    let isOwn = generator.chance(25)
    if isOwn, let known = ownTokens.randomElement(using: &generator), generator.chance(50) {
      token = known
    } else if isOwn {
      ownTokens.append(token)
    }
    handle(
      .asked(
        .registered(Topic("com.example.app\(number)")!, token, isOwn: isOwn), phone.credential,
        from: fixture.newRequest()))
  }
}
