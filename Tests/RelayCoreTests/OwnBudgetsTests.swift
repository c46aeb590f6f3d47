import Primitives
import Testing

@testable import RelayCore

/// A budget belongs to a device and a topic, whatever becomes of the app.
@Suite struct OwnBudgetsTests {
  private static let tokens = [1, 2].map { DeviceToken(hexadecimal: "aaaa000\($0)")! }

  /// How many of so many silents go at once.
  private func spend(
    _ fixture: inout ShardFixture, _ app: PhoneApp, _ connection: ConnectionID, of count: Int
  ) -> Int {
    (0..<count).reduce(0) { sum, _ in
      let push = fixture.push(.silent, app)
      let sent = fixture.submit(push).sendings.count
      if sent > 0 { _ = fixture.ack(push, connection) }
      return sum + sent
    }
  }

  private enum Change: CaseIterable {
    case registeredAgain, ownTokensInTurn, ownToMinted
  }

  private func change(_ change: Change, _ fixture: inout ShardFixture, _ app: inout PhoneApp) {
    switch change {
    case .registeredAgain:
      _ = fixture.unregister(app)
      app = fixture.register(app.phone)
    case .ownTokensInTurn:
      let token = Self.tokens.first { $0 != app.token }!
      #expect(fixture.register(app.phone, app.topic, own: token).answers == [.registered(token)])
      app.token = token
    case .ownToMinted:
      _ = fixture.register(app.phone, app.topic, own: Self.tokens[0])
      app.token = Self.tokens[0]
      _ = fixture.unregister(app)
      app = fixture.register(app.phone)
    }
  }

  @Test(arguments: 0..<3, [nil, SilentPolicy.documented])
  func registeringAgainFillsNoBudget(number: Int, own: SilentPolicy?) {
    var fixture = ShardFixture()
    var app = fixture.phoneWithApp()
    if let own {
      let device = app.phone.credential.device
      // Its own clocks differ from those of all.
      _ = fixture.handle(.operated(.administered(device, .setPolicy(.strict, at: fixture.now))))
      _ = fixture.advance(.minutes(40))
      _ = fixture.handle(.operated(.administered(device, .setPolicy(own, at: fixture.now))))
    }
    let (connection, _) = fixture.connect(app.phone)
    var sent = 0
    for _ in 0..<4 {
      sent += spend(&fixture, app, connection, of: 4)
      change(Change.allCases[number], &fixture, &app)
    }
    #expect(sent == 3)
    _ = fixture.advance(.minutes(21))
    #expect(spend(&fixture, app, connection, of: 3) == 1)
    expectSound(fixture)
  }

  /// A removed app's budget refills at its device's rate, be it slower or quicker than the shared
  /// one, and at the shared one once the device has no policy of its own any more.
  @Test(arguments: [false, true]) func itRefillsAsTheDeviceSays(returnsToShared: Bool) {
    let policies = [Interval.minutes(10), .hours(1)].map {
      SilentPolicy(
        name: "one every \($0)", perApp: RateLimit(1, per: $0, burst: 1), perDevice: nil)
    }
    for (own, shared) in [(policies[0], policies[1]), (policies[1], policies[0])] {
      var fixture = ShardFixture(configuration: .init(policy: shared))
      var app = fixture.phoneWithApp()
      let device = app.phone.credential.device
      let (connection, _) = fixture.connect(app.phone)
      _ = fixture.handle(.operated(.administered(device, .setPolicy(own, at: fixture.now))))
      #expect(spend(&fixture, app, connection, of: 1) == 1)
      _ = fixture.unregister(app)
      if returnsToShared {
        _ = fixture.handle(.operated(.administered(device, .setPolicy(nil, at: fixture.now))))
      }
      let policy = returnsToShared ? shared : own
      _ = fixture.advance(policy.perApp!.interval - .milliseconds(10))
      app = fixture.register(app.phone)
      #expect(spend(&fixture, app, connection, of: 1) == 0, "\(own.name)")
      // The one that is held goes.
      #expect(fixture.advance(.milliseconds(20)).sendings.count == 1, "\(own.name)")
      expectSound(fixture)
    }
  }

  /// And then the journal is told, so that it need not remember either.
  @Test func whatIsFullAgainIsForgotten() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    _ = spend(&fixture, app, connection, of: 1)
    _ = fixture.unregister(app)
    #expect(fixture.shard.formerBudgets.count == 1)
    _ = fixture.advance(.minutes(21))
    let other = fixture.register(app.phone, "com.example.other")
    _ = spend(&fixture, other, connection, of: 1)
    let effects = fixture.unregister(other)
    #expect(fixture.shard.formerBudgets.state.map(\.key.topic) == [other.topic])
    #expect(fixture.shard.formerBudgets.count == 1)
    #expect(spentOf(effects) == [BudgetKey(device: app.phone.credential.device, topic: app.topic)])
  }

  @Test func itComesBackAfterARestart() {
    for minutes in [Int64(1), 61] {
      var fixture = ShardFixture()
      let phone = fixture.enroll()
      let reading = fixture.shard.budgets.appClock.reading(at: fixture.now)
      let spent = RateLimit.State(full: reading + RefillClock.event * 3)
      fixture.now = fixture.now + .minutes(minutes)
      let topic = Topic("com.example.app")!
      let effects = fixture.handle(
        .journal(.restored(.spent(phone.credential.device, topic, spent))))
      #expect(spentOf(effects).count == (minutes > 60 ? 1 : 0))
      let app = fixture.register(phone)
      let (connection, _) = fixture.connect(phone)
      #expect(spend(&fixture, app, connection, of: 4) == (minutes > 60 ? 3 : 0))
    }
  }

  @Test func itLeavesWithItsPartition() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    _ = spend(&fixture, app, connection, of: 3)
    _ = fixture.unregister(app)
    #expect(fixture.shard.formerBudgets.count == 1)
    let key = app.phone.credential.device.routingKey
    _ = fixture.handle(.journal(.partitionDropped(fixture.shard.partition(ofRoutingKey: key))))
    #expect(fixture.shard.formerBudgets.count == 0)
  }

  @Test func whoRefillsFillsWhatIsRemembered() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    _ = spend(&fixture, app, connection, of: 3)
    _ = fixture.unregister(app)
    let device = app.phone.credential.device
    #expect(
      spentOf(fixture.handle(.operated(.administered(device, .refillBudget(nil))))).count == 1)
    let again = fixture.register(app.phone)
    #expect(spend(&fixture, again, connection, of: 4) == 3)
  }

  /// Whose app's budget the journal is told to be full.
  private func spentOf(_ effects: [Effect]) -> [BudgetKey] {
    effects.compactMap { effect in
      guard case .persist(let record) = effect,
        case .spent(let device, let topic, app: RateLimit.State(), _) = record.content
      else { return nil }
      return BudgetKey(device: device, topic: topic)
    }
  }
}
