import Primitives
import Testing

@testable import RelayCore

/// What waits, and for how long: low priority, keep-alives, the window (docs/PROTOCOL.md, "What the
/// relay makes of a notification").
@Suite struct ShardWaitTests {
  private static let asleep = DeviceCondition(power: .low, network: .wifi, screen: .off)

  /// A connected phone in Low Power Mode with its screen off.
  private func sleeping(
    _ configuration: Shard.Configuration = .init(keepAlive: .days(1))
  ) -> (ShardFixture, PhoneApp, ConnectionID) {
    var fixture = ShardFixture(configuration: configuration)
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    _ = fixture.handle(.stream(connection, .reported(ConditionReport(Self.asleep))))
    return (fixture, app, connection)
  }

  // MARK: Low priority

  @Test func priorityFiveWaitsNoLongerThanTheHold() {
    var (fixture, app, connection) = sleeping()
    let push = fixture.push(.visible, app, priority: .powerAware)
    let acceptedAt = fixture.now
    let until = fixture.now + .minutes(15)
    expectEffects(
      fixture, fixture.submit(push),
      [
        fixture.received(push), fixture.persist(push, 3), fixture.accepted(push),
        fixture.log(.storedPower(until: until, limit: .lowPriority), push),
      ])
    expectEffects(fixture, fixture.advance(.milliseconds(899_999)), [])
    expectEffects(
      fixture, fixture.advance(.milliseconds(1)),
      fixture.sent(push, .hold, connection, acceptedAt: acceptedAt))
  }

  @Test func highPriorityNeverWaitsAndTakesTheOlderAlongFirst() {
    var (fixture, app, connection) = sleeping()
    let low = fixture.push(.visible, app, priority: .powerAware)
    _ = fixture.submit(low)
    let high = fixture.push(.visible, app)
    expectEffects(
      fixture, fixture.submit(high),
      [fixture.received(high), fixture.persist(high, 4, mayLinger: true)]
        + fixture.sent(low, .piggyback, with: .push(high.uniqueID), connection)
        + fixture.sent(high, .direct, connection)
        + [fixture.accepted(high)])
  }

  @Test func lowPriorityRidesAlongWithTheNextWord() {
    var (fixture, app, connection) = sleeping()
    let low = fixture.push(.visible, app, priority: .powerAware)
    _ = fixture.submit(low)
    expectEffects(
      fixture, fixture.handle(.stream(connection, .heard)),
      fixture.sent(low, .piggyback, with: .line(.answer), connection))
  }

  /// The table of docs/PROTOCOL.md, "Priorities".
  @Test(arguments: Priority.allCases, NotificationClass.allCases)
  func theConditionDecidesWhatWaits(priority: Priority, notificationClass: NotificationClass) {
    for power in Power.allCases {
      for screen in Screen.allCases {
        var (fixture, app, connection) = sleeping()
        let condition = DeviceCondition(power: power, screen: screen)
        _ = fixture.handle(.stream(connection, .reported(ConditionReport(condition))))
        let limit: BudgetLimit? =
          switch (notificationClass, priority) {
          case (.silent, _) where power == .low: .lowPowerMode
          case (.silent, .powerFirst), (.visible, .powerFirst):
            screen == .off ? .lowPriority : nil
          case (.visible, .powerAware): power == .low && screen == .off ? .lowPriority : nil
          case (.silent, .powerAware), (_, .immediate): nil
          }
        let push = fixture.push(notificationClass, app, priority: priority)
        let effects = fixture.submit(push)
        let until = priority == .powerAware ? fixture.now + .minutes(15) : nil
        if let limit {
          let wait = DeliveryStep.storedPower(
            until: limit == .lowPriority ? until : nil, limit: limit)
          #expect(effects.last == fixture.log(wait, push), "\(condition)")
        }
        #expect(effects.sendings == (limit == nil ? [Sending(push, .direct)] : []), "\(condition)")
        expectSound(fixture)
      }
    }
  }

  /// A phone with its screen off on battery, and another app on it.
  private func dozing(
    _ configuration: Shard.Configuration
  ) -> (ShardFixture, PhoneApp, PhoneApp, ConnectionID) {
    var fixture = ShardFixture(configuration: configuration)
    let app = fixture.phoneWithApp()
    let other = fixture.register(app.phone, "com.example.other")
    let (connection, _) = fixture.connect(app.phone)
    _ = fixture.handle(
      .stream(connection, .reported(ConditionReport(power: .battery, screen: .off))))
    return (fixture, app, other, connection)
  }

  @Test func priorityOneHasNoTimeOfItsOwn() {
    for notificationClass in NotificationClass.allCases {
      var (fixture, app, _, _) = dozing(.init(keepAlive: .days(40)))
      let push = fixture.push(
        notificationClass, app, priority: .powerFirst,
        expiration: .at(fixture.now + .days(2)))
      #expect(fixture.submit(push).sendings == [])
      #expect(fixture.advance(.days(1)) == [], "its budget is full, and nothing comes of it")
      #expect(fixture.advance(.days(1)).discards == [.expired])
      expectSound(fixture)
    }
  }

  @Test func priorityOneGoesAlongWithWhatFindsThePhoneAwake() {
    let lit = ConditionReport(screen: .on)
    for notificationClass in NotificationClass.allCases {
      for cause in 0..<5 {
        var (fixture, app, other, connection) = dozing(.init(keepAlive: .hours(1)))
        let push = fixture.push(notificationClass, app, priority: .powerFirst)
        #expect(fixture.submit(push).sendings == [])
        let effects =
          switch cause {
          case 0: fixture.advance(.hours(1))
          case 1: fixture.submit(fixture.push(.visible, other))
          case 2: fixture.submit(fixture.push(.silent, other))
          case 3: fixture.handle(.stream(connection, .reported(lit)))
          default: fixture.connect(app.phone).effects
          }
        let via = cause == 4 ? Via.connect : .piggyback
        #expect(effects.sendings.contains(Sending(push, via)), "cause \(cause)")
        expectSound(fixture)
      }
    }
  }

  @Test func anOnlyAttemptThatWouldWakeThePhoneIsNotMade() {
    var (fixture, app, _, _) = dozing(.init(keepAlive: .days(1)))
    let once = fixture.push(.visible, app, priority: .powerFirst, expiration: .once)
    #expect(fixture.submit(once).discards == [.notStored])
  }

  @Test func lowPowerModeHoldsSilentsUntilSomethingChanges() {
    var (fixture, app, connection) = sleeping()
    let silent = fixture.push(.silent, app)
    #expect(
      fixture.submit(silent).last
        == fixture.log(.storedPower(until: nil, limit: .lowPowerMode), silent))
    #expect(fixture.advance(.hours(20)).sendings == [])
    #expect(
      fixture.handle(.stream(connection, .reported(ConditionReport(DeviceCondition())))).sendings
        == [Sending(silent, .piggyback)])
  }

  /// The phone would not run it: neither a visible push nor a keep-alive, a connect or another
  /// change of its condition takes it along, and what was sent before waits again.
  @Test func inLowPowerModeNothingRides() {
    var (fixture, app, connection) = sleeping(.init(policy: .unlimited, keepAlive: .minutes(15)))
    let silent = fixture.push(.silent, app)
    _ = fixture.submit(silent)
    let visible = fixture.push(.visible, app)
    #expect(fixture.submit(visible).sendings == [Sending(visible, .direct)])
    _ = fixture.ack(visible, connection)
    #expect(fixture.advance(.minutes(15)).sendings == [])
    #expect(fixture.handle(.stream(connection, .keptAlive)).sendings == [])
    var report = ConditionReport(Self.asleep)
    report.network = .cellular
    #expect(fixture.handle(.stream(connection, .reported(report))).sendings == [])
    let (newer, effects) = fixture.connect(app.phone)
    #expect(effects.sendings == [])
    let normal = ConditionReport(DeviceCondition())
    #expect(
      fixture.handle(.stream(newer, .reported(normal))).sendings == [Sending(silent, .piggyback)])
    _ = fixture.handle(.stream(newer, .reported(ConditionReport(Self.asleep))))
    let (newest, again) = fixture.connect(app.phone)
    #expect(again.sendings == [])
    #expect(
      fixture.handle(.stream(newest, .reported(normal))).sendings == [Sending(silent, .piggyback)])
    expectSound(fixture)
  }

  @Test func chargingOnWiFiLiftsTheBudgetAndTakesNothingFromIt() {
    var fixture = ShardFixture(configuration: .init(policy: .strict))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    _ = fixture.handle(
      .stream(
        connection, .reported(ConditionReport(DeviceCondition(power: .charging, network: .wifi)))))
    for _ in 0..<5 {
      let push = fixture.push(.silent, app)
      #expect(fixture.submit(push).sendings == [Sending(push, .direct)])
    }
    _ = fixture.handle(.stream(connection, .reported(ConditionReport(DeviceCondition()))))
    let first = fixture.push(.silent, app)
    #expect(fixture.submit(first).sendings == [Sending(first, .direct)])
    #expect(fixture.submit(fixture.push(.silent, app)).sendings == [])
  }

  // MARK: Keep-alive

  @Test func keepAlivesComeInTheirRhythmWhileTheyAreAnswered() {
    var fixture = ShardFixture(
      configuration: .init(keepAlive: .seconds(60), keepAliveTimeout: .seconds(10)))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    for _ in 0..<5 {
      expectEffects(fixture, fixture.advance(.milliseconds(59_999)), [])
      expectEffects(fixture, fixture.advance(.milliseconds(1)), [.sendKeepAlive(connection)])
      expectEffects(fixture, fixture.advance(.milliseconds(9999)), [])
      expectEffects(fixture, fixture.handle(.stream(connection, .heard)), [])
    }
  }

  @Test func silenceEndsTheConnection() {
    var fixture = ShardFixture(
      configuration: .init(
        keepAlive: .seconds(60), keepAliveTimeout: .seconds(10), ackTimeout: .days(1)))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let push = fixture.push(.visible, app)
    _ = fixture.submit(push)
    #expect(fixture.advance(.seconds(60)) == [.sendKeepAlive(connection)])
    expectEffects(
      fixture, fixture.advance(.seconds(10)),
      [.close(connection, .keepAliveTimeout), fixture.log(.storedOffline, push)])
    #expect(fixture.shard.counters.connections == 0)
    expectEffects(fixture, fixture.handle(.stream(connection, .heard)), [])
  }

  @Test func everyWordAnswersAKeepAlive() {
    let id = UniqueID(high: 9, low: 9)
    for word in 0..<3 {
      var fixture = ShardFixture(
        configuration: .init(keepAlive: .seconds(60), keepAliveTimeout: .seconds(10)))
      let app = fixture.phoneWithApp()
      let (connection, _) = fixture.connect(app.phone)
      _ = fixture.advance(.seconds(60))
      let words: [Event] = [
        .stream(connection, .heard), .stream(connection, .acked(id, nil)),
        .stream(connection, .reported(ConditionReport(DeviceCondition()))),
      ]
      _ = fixture.handle(words[word])
      expectEffects(fixture, fixture.advance(.seconds(59)), [])
      expectEffects(fixture, fixture.advance(.seconds(1)), [.sendKeepAlive(connection)])
    }
  }

  @Test func shutDownSaysGoodByeToEveryone() {
    var fixture = ShardFixture()
    let apps = (0..<3).map { _ in fixture.phoneWithApp() }
    let connections = apps.map { fixture.connect($0.phone).connection }
    let push = fixture.push(.visible, apps[1])
    _ = fixture.submit(push)
    expectEffects(
      fixture, fixture.handle(.operated(.shutDown)),
      [
        .close(connections[0], .shutdown), .close(connections[1], .shutdown),
        fixture.log(.storedOffline, push), .close(connections[2], .shutdown),
      ])
  }

  // MARK: The window

  @Test func beyondTheWindowTheSlotsHoldBack() {
    var fixture = ShardFixture(
      configuration: .init(policy: .unlimited, inFlightPerDevice: 2))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let pushes = (0..<4).map { _ in fixture.push(.visible, app) }
    #expect(fixture.submit(pushes[0]).sendings == [Sending(pushes[0], .direct)])
    #expect(fixture.submit(pushes[1]).sendings == [Sending(pushes[1], .direct)])
    #expect(
      fixture.submit(pushes[2]).last
        == fixture.log(.storedPower(until: nil, limit: .inFlight), pushes[2]))
    #expect(fixture.submit(pushes[3]).discards == [.replaced(by: pushes[3].uniqueID)])
    expectSound(fixture)
    expectEffects(
      fixture, fixture.ack(pushes[0], connection),
      [fixture.log(.delivered, pushes[0]), .forget(3)]
        + fixture.sent(pushes[3], .piggyback, with: .line(.answer), connection))
    let once = fixture.push(.visible, app, expiration: .once)
    #expect(fixture.submit(once).discards == [.notStored], "the window is full")
    expectSound(fixture)
  }

  @Test func aWindowOfOneDeliversEverythingInTurn() {
    var fixture = ShardFixture(configuration: .init(inFlightPerDevice: 1))
    let phone = fixture.enroll()
    let apps = (0..<4).map { fixture.register(phone, "com.example.app\($0)") }
    let pushes = apps.flatMap { app in
      NotificationClass.allCases.map { notificationClass in
        let push = fixture.push(notificationClass, app)
        _ = fixture.submit(push)
        return push
      }
    }
    let connection = fixture.newConnection()
    var effects = fixture.handle(.asked(.connected, phone.credential, from: connection))
    var seen: [UniqueID] = []
    while let sending = effects.sendings.first {
      #expect(effects.sendings.count == 1)
      seen.append(sending.uniqueID)
      effects = fixture.handle(.stream(connection, .acked(sending.uniqueID, nil)))
      expectSound(fixture)
    }
    let order = [0, 2, 4, 6, 1, 3, 5, 7]
    #expect(seen == order.map { pushes[$0].uniqueID })
  }

  // MARK: A clock that leaps

  @Test func deadlinesComeWithTheFollowedClock() {
    var configuration = Shard.Configuration()
    configuration.deadlinesNeedClock = true
    var fixture = ShardFixture(configuration: configuration)
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let push = fixture.push(.visible, app)
    #expect(fixture.submit(push).sendings.count == 1)
    #expect(fixture.advance(.hours(1)) == [], "neither keep-alive nor acknowledgement is due")
    #expect(fixture.handle(.stream(connection, .clockFollowed)) == [])
    #expect(fixture.advance(.zero) == [.checkQueue(connection)])
    #expect(
      fixture.handle(.stream(connection, .queueChecked(isEmpty: true))).sendings
        == [Sending(push, .resend)])
    #expect(fixture.advance(configuration.keepAlive).contains(.sendKeepAlive(connection)))
    let again = fixture.handle(.stream(connection, .clockFollowed))
    #expect(again == [], "said twice, it changes nothing")
    let fired = fixture.shard.counters.fired
    #expect(fired[TimerWheel.Subject.Kind.keepAlive.rawValue] == 1)
    #expect(fixture.shard.isSettled)
  }
}
