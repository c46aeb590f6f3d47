import Primitives
import Testing

@testable import RelayCore

/// The machine's clock is set: lengths of time stay, expirations go by the new time.
@Suite struct ShardClockStepTests {
  static let steps: [Interval] = [
    .seconds(1), .seconds(-1), .hours(1), .hours(-1), .days(30), .days(-30),
  ]

  private static let far = Expiration.at(Instant(milliseconds: 1 << 46))

  /// A silent that its app's budget holds for twenty minutes more.
  private func held(_ fixture: inout ShardFixture) -> (PhoneApp, ConnectionID, Notification) {
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    for _ in 0..<3 {
      let push = fixture.push(.silent, app, expiration: Self.far)
      _ = fixture.submit(push)
      _ = fixture.ack(push, connection)
    }
    let waiting = fixture.push(.silent, app, expiration: Self.far)
    #expect(fixture.submit(waiting).sendings.isEmpty)
    return (app, connection, waiting)
  }

  @Test(arguments: steps) func aBudgetRefillsAfterTheSameTime(_ step: Interval) {
    var fixture = ShardFixture(configuration: .init(keepAlive: .days(2)))
    let (_, _, waiting) = held(&fixture)
    _ = fixture.advance(.minutes(9))
    #expect(fixture.stepClock(by: step) == [])
    expectSound(fixture)
    #expect(fixture.advance(.minutes(11) - .milliseconds(1)).sendings.isEmpty)
    #expect(fixture.advance(.milliseconds(1)).sendings == [Sending(waiting, .refill)])
    expectSound(fixture)
  }

  @Test(arguments: steps) func aKeepAliveAndAnAcknowledgementAreDueAfterTheSameTime(
    _ step: Interval
  ) {
    var fixture = ShardFixture(
      configuration: .init(keepAlive: .minutes(15), keepAliveTimeout: .seconds(30)))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    _ = fixture.submit(fixture.push(.visible, app, expiration: Self.far))
    _ = fixture.advance(.seconds(10))
    _ = fixture.stepClock(by: step)
    #expect(fixture.advance(.seconds(50) - .milliseconds(1)) == [])
    #expect(fixture.advance(.milliseconds(1)) == [.checkQueue(connection)])
    #expect(
      fixture.handle(.stream(connection, .queueChecked(isEmpty: true))).contains {
        if case .send = $0 { true } else { false }
      })
    _ = fixture.handle(.stream(connection, .heard))
    _ = fixture.advance(.minutes(14) - .milliseconds(1))
    let effects = fixture.advance(.milliseconds(1))
    #expect(effects.contains(.sendKeepAlive(connection)))
    expectSound(fixture)
  }

  @Test(arguments: steps) func aVisibleOfLowPriorityWaitsAsLong(_ step: Interval) {
    var fixture = ShardFixture(configuration: .init(keepAlive: .days(2)))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    _ = fixture.handle(.stream(connection, .reported(ConditionReport(power: .low, screen: .off))))
    let push = fixture.push(
      .visible, app, priority: .powerAware, expiration: Self.far)
    #expect(fixture.submit(push).sendings.isEmpty)
    _ = fixture.advance(.minutes(5))
    _ = fixture.stepClock(by: step)
    #expect(fixture.advance(.minutes(10) - .milliseconds(1)).sendings.isEmpty)
    #expect(fixture.advance(.milliseconds(1)).sendings == [Sending(push, .hold)])
  }

  /// The one in ten minutes, by the new time; the one that is over by the new time; and nothing
  /// that is not.
  @Test(arguments: steps) func expirationsGoByTheNewTime(_ step: Interval) {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let early = fixture.push(.visible, app, expiration: .at(fixture.now + .minutes(10)))
    _ = fixture.submit(early)
    let isOver = step >= .minutes(10)
    let effects = fixture.stepClock(by: step) + fixture.handle(.clock(.tick))
    #expect(effects.discards == (isOver ? [.expired] : []))
    if !isOver {
      #expect(fixture.advance(.minutes(10) - step - .milliseconds(1)).discards == [])
      #expect(fixture.advance(.milliseconds(1)).discards == [.expired])
    }
    let late = fixture.push(.visible, app, expiration: .at(fixture.now + .minutes(10)))
    #expect(fixture.submit(late).contains(fixture.accepted(late)))
    #expect(fixture.connect(app.phone).effects.sendings == [Sending(late, .connect)])
    expectSound(fixture)
  }

  /// A device's rides, and a token's requests.
  @Test(arguments: steps) func limitsStayUsed(_ step: Interval) {
    var fixture = ShardFixture(
      configuration: .init(requestsPerToken: RateLimit(1, per: .minutes(1), burst: 1)))
    let app = fixture.phoneWithApp()
    _ = fixture.submit(fixture.push(.visible, app, expiration: Self.far))
    _ = fixture.advance(.seconds(59))
    _ = fixture.stepClock(by: step)
    let refused = fixture.submit(fixture.push(.visible, app, expiration: Self.far))
    #expect(refused == [.respond(fixture.lastRequest, .rejected(.tooManyRequests))])
    _ = fixture.advance(.seconds(1))
    let push = fixture.push(.visible, app, expiration: Self.far)
    #expect(fixture.submit(push).contains(fixture.accepted(push)))
  }

  /// What a recording says may be anything.
  @Test func aStepOutOfAllTimeIsAFlaw() {
    var fixture = ShardFixture()
    for step in [Interval.milliseconds(.max), .milliseconds(.min), .days(-365 * 100)] {
      #expect(fixture.shard.flaw(in: .clock(.clockStepped(by: step)), at: fixture.now) != nil)
    }
    #expect(fixture.shard.flaw(in: .clock(.clockStepped(by: .hours(-1))), at: fixture.now) == nil)
  }

  // MARK: Any history

  /// What is asked for without the moments that are in it.
  private func timeless(_ effects: [Effect], _ shift: Interval) -> [String] {
    effects.map { effect in
      switch effect {
      case .send(let connection, let delivery):
        return "send \(connection) \(delivery.via) \(delivery.notification.uniqueID)"
      case .log(let event):
        guard case .storedPower(let until?, let limit) = event.step else {
          return "log \(event.step) \(event.uniqueID)"
        }
        return "held \(event.uniqueID) \(limit) \(until - shift)"
      case .persist(let record): return "persist \(record.sequence)"
      case .answer(let request, .inspected(let report)):
        return "\(request) \(report.inFlight) \(report.apps.map(\.allowance?.remaining))"
      case .respond(let request, .gone): return "\(request) gone"
      case .tell: return "tell"
      case .respond, .answer, .hello, .sendBroadcast, .sendEmpty, .sendKeepAlive, .checkQueue,
        .close, .forget:
        return "\(effect)"
      }
    }
  }

  /// A history in which nothing expires, and the same with steps in between: all that is asked for
  /// is the same.
  @Test func stepsChangeNothingElse() {
    var (steps, held) = (0, 0)
    for seed in UInt64(0)..<60 {
      var world = World(seed: seed) { $0.crashes = 0 }
      for _ in 0..<200 { world.step() }
      var generator = SeededRandom(seed: seed)
      var shards = (0..<2).map { _ in
        ShardFixture(
          .manual, configuration: world.plan.configuration, rangeBits: world.plan.rangeBits
        ).shard
      }
      var shift = Interval.zero
      for case .event(let event, let moment) in world.history {
        if generator.chance(5) {
          let step = Self.steps.randomElement(using: &generator)!
          shift = shift + step
          var effects: [Effect] = []
          let now = shards[1].now + step
          shards[1].handle(.clock(.clockStepped(by: step)), at: now, into: &effects)
          #expect(effects == [] && shards[1].now == now && shards[1].inconsistencies == [])
          steps += 1
        }
        var (plain, stepped): ([Effect], [Effect]) = ([], [])
        shards[0].handle(event.shifted(by: .zero), at: moment, into: &plain)
        shards[1].handle(event.shifted(by: shift), at: moment + shift, into: &stepped)
        let expected = timeless(plain, .zero)
        held += expected.count { $0.hasPrefix("held") }
        let found = timeless(stepped, shift)
        guard found == expected else {
          Issue.record("seed \(seed), \(event): \(found.difference(from: expected))")
          break
        }
      }
    }
    #expect(steps > 500 && held > 50, "\(steps) steps, \(held) held")
  }
}

extension Event {
  /// As it would be said by a clock that was set so far; and nothing expires.
  fileprivate func shifted(by interval: Interval) -> Event {
    let far = Instant(milliseconds: 1 << 46)
    switch self {
    case .submitted(let notification, let request):
      guard case .at = notification.expiration else { return self }
      return .submitted(notification.expiring(.at(far)), from: request)
    case .alias(.forwarded(let notification, let device, let request)):
      guard case .at = notification.expiration else { return self }
      return .alias(.forwarded(notification.expiring(.at(far)), to: device, from: request))
    case .operated(.policyChanged(let policy, let moment)):
      return .operated(.policyChanged(policy, at: moment + interval))
    case .operated(.administered(let device, .setPolicy(let policy, let moment))):
      return .operated(.administered(device, .setPolicy(policy, at: moment + interval)))
    default: return self
    }
  }
}

extension Notification {
  fileprivate func expiring(_ expiration: Expiration) -> Notification {
    Notification(
      uniqueID: uniqueID, apnsID: apnsID, token: token, topic: topic,
      notificationClass: notificationClass, pushType: pushType, priority: priority,
      wakesApp: wakesApp, collapseID: collapseID, expiration: expiration, payload: payload)
  }
}
