import Primitives
import Testing

@testable import RelayCore

/// What rides along unpaid, and what does not (docs/PROTOCOL.md, "Rides").
@Suite struct ShardRideTests {
  /// A connected phone with two apps whose budgets are used up and whose silent slots are taken.
  private struct Scene {
    var fixture = ShardFixture(
      configuration: .init(
        policy: SilentPolicy(
          name: "test", perApp: RateLimit(1, per: .hours(1), burst: 1), perDevice: nil),
        keepAlive: .minutes(15), keepAliveTimeout: .seconds(30)))
    var apps: [PhoneApp] = []
    var connection: ConnectionID
    var held: [Notification] = []

    init() {
      let phone = fixture.enroll()
      apps = [
        fixture.register(phone, "com.example.one"), fixture.register(phone, "com.example.two"),
      ]
      connection = fixture.connect(phone).connection
      for app in apps {
        let paid = fixture.push(.silent, app)
        _ = fixture.submit(paid)
        _ = fixture.ack(paid, connection)
      }
      hold()
    }

    /// Fills both slots.
    mutating func hold() {
      held = apps.map { fixture.push(.silent, $0) }
      for push in held { _ = fixture.submit(push) }
    }

    var rides: [Sending] { held.map { Sending($0, .piggyback) } }
  }

  // MARK: What opens a ride

  @Test func aVisiblePushTakesOneSilentOfEachAppAlong() {
    var scene = Scene()
    let visible = scene.fixture.push(.visible, scene.apps[0])
    #expect(
      scene.fixture.submit(visible).sendings == [Sending(visible, .direct)] + scene.rides)
    expectSound(scene.fixture)
  }

  /// It would not have taken them along itself.
  @Test func whatGoesWithOneThatShowsNothingOpensTheRide() {
    var scene = Scene()
    let dark = DeviceCondition(power: .battery, network: .cellular, screen: .off)
    _ = scene.fixture.handle(.stream(scene.connection, .reported(ConditionReport(dark))))
    scene.hold()
    let shown = scene.fixture.push(.visible, scene.apps[0], priority: .powerFirst)
    #expect(scene.fixture.submit(shown).sendings == [])
    let bare = scene.fixture.push(.visible, scene.apps[0], showsNothing: true)
    let effects = scene.fixture.submit(bare)
    #expect(
      effects.sendings == [Sending(shown, .piggyback), Sending(bare, .direct)] + scene.rides)
    #expect(effects.carriers[scene.held[0].uniqueID] == .push(shown.uniqueID))
    expectSound(scene.fixture)
  }

  @Test func aSilentThatWasPaidTakesOthersAlongButNoneOfItsOwnApp() {
    var scene = Scene()
    let phone = scene.apps[0].phone
    let other = scene.fixture.register(phone, "com.example.three")
    let paid = scene.fixture.push(.silent, other)
    #expect(scene.fixture.submit(paid).sendings == [Sending(paid, .direct)] + scene.rides)
    expectSound(scene.fixture)
  }

  /// Three visible pushes in one millisecond, of which the second finds something held.
  @Test func whatCarriedItIsNamedThoughTheClockStands() {
    var scene = Scene()
    let (first, second, third) = (
      scene.fixture.push(.visible, scene.apps[0]), scene.fixture.push(.visible, scene.apps[1]),
      scene.fixture.push(.visible, scene.apps[0])
    )
    let before = scene.held
    #expect(
      scene.fixture.submit(first).carriers
        == [before[0].uniqueID: .push(first.uniqueID), before[1].uniqueID: .push(first.uniqueID)])
    scene.hold()
    let effects = scene.fixture.submit(second)
    #expect(effects.carriers[scene.held[0].uniqueID] == .push(second.uniqueID))
    #expect(scene.fixture.submit(third).carriers == [:])
  }

  @Test func whatReleasesOneFromItsBudgetCarriesTheOthers() {
    var scene = Scene()
    let lifted = DeviceCondition(power: .charging, network: .wifi)
    for _ in 0..<3 {
      _ = scene.fixture.handle(.stream(scene.connection, .keptAlive))
      for push in scene.held { _ = scene.fixture.ack(push, scene.connection) }
      scene.hold()
    }
    let effects = scene.fixture.handle(
      .stream(scene.connection, .reported(ConditionReport(lifted))))
    #expect(
      effects.carriers == [scene.held[1].uniqueID: .push(scene.held[0].uniqueID)],
      "the other is sent by its budget")
  }

  @Test func aKeepAliveIsOneRideQuestionAndAnswerTogether() {
    var scene = Scene()
    #expect(scene.fixture.advance(.minutes(15)).sendings == scene.rides)
    scene.hold()
    #expect(scene.fixture.handle(.stream(scene.connection, .keptAlive)).sendings == [])
    // Asked for by nobody, it is the phone's own ride.
    #expect(scene.fixture.handle(.stream(scene.connection, .keptAlive)).sendings == scene.rides)
    expectSound(scene.fixture)
  }

  @Test func aRefillTakesOthersAlong() {
    var scene = Scene()
    _ = scene.fixture.handle(.stream(scene.connection, .disconnected))
    // The first app's budget refills while the phone is away, the second one's later.
    let app = scene.apps[0]
    let before = scene.fixture.shard.counters.sent
    let (_, effects) = scene.fixture.connect(app.phone)
    #expect(effects.sendings == scene.held.map { Sending($0, .connect) })
    #expect(scene.fixture.shard.counters.sent != before)
  }

  /// The older one of two has no budget; the newer one has, and opens the ride for both.
  @Test func anEarlierOneRidesWithALaterOneThatIsPaid() {
    var fixture = ShardFixture(
      configuration: .init(
        policy: SilentPolicy(
          name: "test", perApp: RateLimit(1, per: .hours(1), burst: 1), perDevice: nil),
        rides: RateLimit(1, per: .days(1), burst: 1)))
    let phone = fixture.enroll()
    let poor = fixture.register(phone, "com.example.poor")
    let rich = fixture.register(phone, "com.example.rich")
    var connection = fixture.connect(phone).connection
    func pay(_ app: PhoneApp) {
      let push = fixture.push(.silent, app)
      #expect(fixture.submit(push).sendings == [Sending(push, .direct)])
      _ = fixture.ack(push, connection)
    }
    pay(rich)
    _ = fixture.advance(.minutes(30))
    pay(poor)
    // The phone's one ride of the day.
    _ = fixture.handle(.stream(connection, .disconnected))
    let first = fixture.push(.silent, poor)
    _ = fixture.submit(first)
    connection = fixture.connect(phone).connection
    _ = fixture.ack(first, connection)
    _ = fixture.handle(.stream(connection, .disconnected))

    let (older, newer) = (fixture.push(.silent, poor), fixture.push(.silent, rich))
    for push in [older, newer] { _ = fixture.submit(push) }
    _ = fixture.advance(.minutes(31))
    let effects = fixture.connect(phone).effects
    #expect(effects.sendings == [Sending(newer, .refill), Sending(older, .piggyback)])
    #expect(effects.carriers[older.uniqueID] == .push(newer.uniqueID))
    expectSound(fixture)
  }

  // MARK: What does not

  /// One app, a silent push every 30 ms, a phone that acknowledges after 100 ms.
  @Test func acknowledgementsCarryNothing() {
    var fixture = ShardFixture(configuration: .init(keepAlive: .days(1)))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    var acks: [(at: Instant, push: UniqueID)] = []
    var delivered = 0
    for _ in 0..<10_000 {
      fixture.now = fixture.now + .milliseconds(30)
      var effects = fixture.handle(.clock(.tick))
      effects += fixture.submit(fixture.push(.silent, app))
      while let first = acks.first, first.at <= fixture.now {
        acks.removeFirst()
        effects += fixture.handle(.stream(connection, .acked(first.push, nil)))
      }
      delivered += effects.sendings.count
      acks += effects.sendings.map { (fixture.now + .milliseconds(100), $0.uniqueID) }
    }
    #expect(delivered == 3, "five minutes of a budget of three an hour")
    expectSound(fixture)
  }

  @Test func whatOnlyAnswersCarriesNothing() {
    var scene = Scene()
    let visible = scene.fixture.push(.visible, scene.apps[0])
    _ = scene.fixture.submit(visible)
    let rode = scene.held
    scene.hold()
    var words: [Event] = [
      .stream(scene.connection, .heard), .stream(scene.connection, .queueChecked(isEmpty: true)),
      .stream(scene.connection, .acked(visible.uniqueID, nil)),
      .stream(scene.connection, .acked(rode[0].uniqueID, .later)),
      .stream(scene.connection, .acked(rode[0].uniqueID, .newData)),
      // Nothing has changed.
      .stream(scene.connection, .reported(ConditionReport(DeviceCondition()))),
    ]
    words.append(.stream(scene.connection, .acked(UniqueID(high: 0, low: 0), nil)))
    for word in words {
      #expect(scene.fixture.handle(word).sendings == [], "\(word)")
      expectSound(scene.fixture)
    }
  }

  @Test func whatShowsNothingIsDeliveredAndCarriesNothing() {
    var scene = Scene()
    let bare = scene.fixture.push(.visible, scene.apps[0], showsNothing: true)
    #expect(scene.fixture.submit(bare).sendings == [Sending(bare, .direct)])
    _ = scene.fixture.ack(bare, scene.connection)
    // Nor from its slot, to a phone that has used up its own rides.
    for _ in 0..<3 {
      let (connection, effects) = scene.fixture.connect(scene.apps[0].phone)
      for sending in effects.sendings {
        _ = scene.fixture.handle(.stream(connection, .acked(sending.uniqueID, nil)))
      }
      _ = scene.fixture.handle(.stream(connection, .disconnected))
      scene.hold()
    }
    let stored = scene.fixture.push(.visible, scene.apps[0], showsNothing: true)
    _ = scene.fixture.submit(stored)
    let (_, effects) = scene.fixture.connect(scene.apps[0].phone)
    #expect(effects.sendings == [Sending(stored, .connect)])
    expectSound(scene.fixture)
  }

  @Test func aResendCarriesNothing() {
    var scene = Scene()
    let visible = scene.fixture.push(.visible, scene.apps[0])
    _ = scene.fixture.submit(visible)
    for push in scene.held { _ = scene.fixture.ack(push, scene.connection) }
    scene.hold()
    #expect(scene.fixture.advance(.seconds(60)) == [.checkQueue(scene.connection)])
    let effects = scene.fixture.handle(.stream(scene.connection, .queueChecked(isEmpty: true)))
    #expect(effects.sendings == [Sending(visible, .resend)])
  }

  // MARK: What a phone can do at will

  private enum Trick: CaseIterable {
    case keepAlives, conditions, connects
  }

  @Test(arguments: Trick.allCases)
  private func aPhoneOpensFewRidesByItself(trick: Trick) {
    var scene = Scene()
    var delivered = 0
    for second in 0..<600 {
      scene.fixture.now = scene.fixture.now + .seconds(1)
      var effects = scene.fixture.handle(.clock(.tick))
      let isEven = second % 2 == 0
      switch trick {
      case .keepAlives: effects += scene.fixture.handle(.stream(scene.connection, .keptAlive))
      case .conditions:
        let condition = DeviceCondition(screen: isEven ? .on : .off)
        effects += scene.fixture.handle(
          .stream(scene.connection, .reported(ConditionReport(condition))))
      case .connects:
        let (connection, more) = scene.fixture.connect(scene.apps[0].phone)
        scene.connection = connection
        effects += more
      }
      for sending in effects.sendings {
        effects += scene.fixture.handle(.stream(scene.connection, .acked(sending.uniqueID, nil)))
      }
      delivered += effects.sendings.count
      scene.hold()
    }
    // Three at once, then one a minute, for each of two apps.
    #expect(delivered == 2 * (3 + 9))
    expectSound(scene.fixture)
  }

  @Test func beyondItVisiblePushesStillGo() {
    var scene = Scene()
    for round in 0..<3 {
      let (connection, effects) = scene.fixture.connect(scene.apps[0].phone)
      #expect(effects.sendings.count == 2)
      guard round < 2 else { continue }
      for push in scene.held { _ = scene.fixture.ack(push, connection) }
      scene.hold()
    }
    // Not acknowledged: they are paid for, and come again with every connection.
    let (connection, again) = scene.fixture.connect(scene.apps[0].phone)
    #expect(again.sendings == scene.held.map { Sending($0, .connect) })
    for push in scene.held { _ = scene.fixture.ack(push, connection) }
    scene.hold()
    let (last, effects) = scene.fixture.connect(scene.apps[0].phone)
    // Not empty, but nothing may go.
    #expect(effects.sendings == [] && !effects.contains(.sendEmpty(last)))
    _ = scene.fixture.handle(.stream(last, .disconnected))
    let visible = scene.fixture.push(.visible, scene.apps[0])
    _ = scene.fixture.submit(visible)
    let (_, more) = scene.fixture.connect(scene.apps[0].phone)
    #expect(
      more.sendings == [Sending(visible, .connect)] + scene.held.map { Sending($0, .connect) })
  }

  @Test func aVisiblePushThatComesAgainOpensNoRide() {
    var scene = Scene()
    _ = scene.fixture.handle(.stream(scene.connection, .disconnected))
    let visible = scene.fixture.push(.visible, scene.apps[0])
    _ = scene.fixture.submit(visible)
    var delivered: Set<UniqueID> = []
    for _ in 0..<20 {
      let (connection, effects) = scene.fixture.connect(scene.apps[0].phone)
      #expect(effects.sendings.first == Sending(visible, .connect))
      for sending in effects.sendings.dropFirst() {
        delivered.insert(sending.uniqueID)
        _ = scene.fixture.handle(.stream(connection, .acked(sending.uniqueID, nil)))
      }
      _ = scene.fixture.handle(.stream(connection, .disconnected))
      scene.hold()
    }
    // The visible one's first frame, and three rides of the phone's own.
    #expect(delivered.count == 2 * 4)
  }

  @Test func chargingOnWiFiFreesWhatIsHeldWithoutARide() {
    var scene = Scene()
    for _ in 0..<4 {
      _ = scene.fixture.handle(.stream(scene.connection, .keptAlive))
      for push in scene.held { _ = scene.fixture.ack(push, scene.connection) }
      scene.hold()
    }
    let lifted = DeviceCondition(power: .charging, network: .wifi)
    let effects = scene.fixture.handle(
      .stream(scene.connection, .reported(ConditionReport(lifted))))
    // The first one needs no budget and takes the other along.
    #expect(effects.sendings == [Sending(scene.held[0], .refill), scene.rides[1]])
    expectSound(scene.fixture)
  }

  @Test func whatALimitedConnectLeavesGoesWhenItsBudgetRefills() {
    var scene = Scene()
    for _ in 0..<3 {
      let (connection, _) = scene.fixture.connect(scene.apps[0].phone)
      for push in scene.held { _ = scene.fixture.ack(push, connection) }
      _ = scene.fixture.handle(.stream(connection, .disconnected))
      scene.hold()
    }
    let effects = scene.fixture.connect(scene.apps[0].phone).effects
    #expect(effects.sendings == [])
    // They were stored because it was away; now it is said until when they wait.
    let told = effects.compactMap { effect -> UniqueID? in
      guard case .log(let event) = effect, case .storedPower(.some(_), .perApp) = event.step
      else { return nil }
      return event.uniqueID
    }
    #expect(told == scene.held.map(\.uniqueID))
    let sent = (0..<240).flatMap { _ in scene.fixture.advance(.seconds(15)).sendings }
    #expect(Set(sent.map(\.uniqueID)).isSuperset(of: scene.held.map(\.uniqueID)))
  }

  // MARK: One silent of each app

  @Test func anOlderSilentNeverRidesWithItsSuccessor() {
    var scene = Scene()
    scene.fixture.journal = .manual
    let lifted = DeviceCondition(power: .charging, network: .wifi)
    // Nothing may go while the window is full, so that slots are taken although the budget allows.
    scene.fixture.shard.configuration.inFlightPerDevice = 0
    _ = scene.fixture.handle(.stream(scene.connection, .reported(ConditionReport(lifted))))
    scene.fixture.shard.configuration.inFlightPerDevice = 32
    let newer = scene.fixture.push(.silent, scene.apps[0])
    #expect(scene.fixture.submit(newer).sendings == [], "until the journal has it")
    let effects = scene.fixture.persistAll()
    #expect(effects.sendings == [Sending(newer, .direct), Sending(scene.held[1], .piggyback)])
    #expect(effects.discards == [.replaced(by: newer.uniqueID)])
    expectSound(scene.fixture)
  }

  @Test func whatIsNeverStoredLeavesTheOlderInItsSlot() {
    var scene = Scene()
    scene.fixture.shard.configuration.inFlightPerDevice = 0
    let lifted = DeviceCondition(power: .charging, network: .wifi)
    _ = scene.fixture.handle(.stream(scene.connection, .reported(ConditionReport(lifted))))
    _ = scene.fixture.handle(
      .stream(scene.connection, .reported(ConditionReport(DeviceCondition()))))
    scene.fixture.shard.configuration.inFlightPerDevice = 32
    scene.fixture.now = scene.fixture.now + .hours(2)
    let once = scene.fixture.push(.silent, scene.apps[0], expiration: .once)
    let sendings = scene.fixture.submit(once).sendings
    #expect(sendings.first == Sending(once, .direct))
    #expect(!sendings.contains { $0.uniqueID == scene.held[0].uniqueID && $0.via == .piggyback })
    expectSound(scene.fixture)
  }

  /// A visible push that goes along opens a ride for all, also for the app whose silent it is with.
  @Test func whatStayedInItsSlotRidesWithAVisibleOne() {
    var scene = Scene()
    scene.fixture.shard.configuration.inFlightPerDevice = 0
    let visible = scene.fixture.push(.visible, scene.apps[0])
    _ = scene.fixture.submit(visible)
    scene.fixture.shard.configuration.inFlightPerDevice = 32
    scene.fixture.now = scene.fixture.now + .hours(2)
    let once = scene.fixture.push(.silent, scene.apps[0], expiration: .once)
    #expect(
      scene.fixture.submit(once).sendings
        == [Sending(once, .direct), Sending(visible, .piggyback)] + scene.rides)
    expectSound(scene.fixture)
  }

  @Test func whatAFullWindowKeepsBackRidesWhenItOpens() {
    var scene = Scene()
    scene.fixture.shard.configuration.inFlightPerDevice = 1
    let visible = scene.fixture.push(.visible, scene.apps[0])
    #expect(scene.fixture.submit(visible).sendings == [Sending(visible, .direct)])
    let first = scene.fixture.ack(visible, scene.connection)
    #expect(first.sendings == [scene.rides[0]])
    #expect(scene.fixture.ack(scene.held[0], scene.connection).sendings == [scene.rides[1]])
    expectSound(scene.fixture)
  }

  @Test func whatReplacesARiderThatWaitsHasNoTicket() {
    var scene = Scene()
    scene.fixture.shard.configuration.inFlightPerDevice = 1
    let visible = scene.fixture.push(.visible, scene.apps[0])
    _ = scene.fixture.submit(visible)
    let newer = scene.fixture.push(.silent, scene.apps[0])
    _ = scene.fixture.submit(newer)
    #expect(scene.fixture.ack(visible, scene.connection).sendings == [scene.rides[1]])
    #expect(scene.fixture.ack(scene.held[1], scene.connection).sendings == [])
  }

  @Test func theConditionSurvivesAReconnect() {
    var scene = Scene()
    let low = DeviceCondition(power: .low)
    _ = scene.fixture.handle(.stream(scene.connection, .reported(ConditionReport(low))))
    _ = scene.fixture.connect(scene.apps[0].phone)
    _ = scene.fixture.handle(
      .asked(.inspected, scene.apps[0].phone.credential, from: scene.fixture.newRequest()))
    let silent = scene.fixture.push(.silent, scene.apps[0])
    #expect(
      scene.fixture.submit(silent).last
        == scene.fixture.log(.storedPower(until: nil, limit: .lowPowerMode), silent))
  }
}
