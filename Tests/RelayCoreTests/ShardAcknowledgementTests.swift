import RelayCore
import Testing

/// What ends a life, and what may follow.
struct ShardAcknowledgementTests {
  @Test(arguments: [
    nil, DeliveryOutcome.newData, .noData, .failed, .notLaunched(reason: "force quit"),
  ])
  func anAckEndsTheLife(outcome: DeliveryOutcome?) {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let push = fixture.push(.visible, app)
    _ = fixture.submit(push)
    #expect(fixture.shard.counters.delivered == 0, "only the ack makes it delivered")
    let acked = fixture.handle(.stream(connection, .acked(push.uniqueID, outcome)))
    expectEffects(
      fixture, acked,
      [fixture.log(.delivered, push)] + (outcome.map { [fixture.log(.outcome($0), push)] } ?? [])
        + [.forget(3)])
    expectEffects(fixture, fixture.handle(.stream(connection, .acked(push.uniqueID, outcome))), [])
    expectEffects(fixture, fixture.handle(.stream(connection, .disconnected)), [])
    #expect(fixture.connect(app.phone).effects.sendings == [])
  }

  @Test func anOutcomeMayFollowTheAck() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let other = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let (stranger, _) = fixture.connect(other.phone)
    let push = fixture.push(.visible, app)
    _ = fixture.submit(push)
    expectEffects(
      fixture, fixture.handle(.stream(connection, .acked(push.uniqueID, .later))),
      [fixture.log(.delivered, push), .forget(5)])
    // Nobody else may add to its life, and a promise repeated is none kept.
    expectEffects(fixture, fixture.handle(.stream(stranger, .acked(push.uniqueID, .newData))), [])
    expectEffects(fixture, fixture.handle(.stream(connection, .acked(push.uniqueID, .later))), [])
    expectEffects(fixture, fixture.handle(.stream(connection, .disconnected)), [])
    let (again, _) = fixture.connect(app.phone)
    let outcome = DeliveryOutcome.notLaunched(reason: "low power")
    expectEffects(
      fixture, fixture.handle(.stream(again, .acked(push.uniqueID, outcome))),
      [fixture.log(.outcome(outcome), push)])
    expectEffects(fixture, fixture.handle(.stream(again, .acked(push.uniqueID, outcome))), [])
  }

  @Test func anAckByTheProvidersIDEndsTheOldestOfThem() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    // By one name, but no repetitions: of two apps, and of two classes.
    let other = fixture.register(app.phone, "com.example.second")
    let pushes = [(NotificationClass.visible, app), (.silent, app), (.visible, other)].map {
      let push = fixture.push($0, $1, apnsID: UniqueID(high: 1, low: 2))
      _ = fixture.submit(push)
      return push
    }
    for push in pushes {
      let effects = fixture.handle(.stream(connection, .acked(push.apnsID, nil)))
      #expect(effects.first == fixture.log(.delivered, push))
      expectSound(fixture)
    }
  }
}
