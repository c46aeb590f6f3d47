import Primitives
import Testing

@testable import RelayCore

/// Another silent policy while the relay runs.
@Suite struct ShardPolicyTests {
  private static let hour = SilentPolicy(
    name: "hour", perApp: RateLimit(1, per: .hours(1), burst: 1), perDevice: nil)
  private static let minute = SilentPolicy(
    name: "minute", perApp: RateLimit(1, per: .minutes(1), burst: 1), perDevice: nil)

  /// A phone that is connected and has used its budget up, and a push that is held.
  private func usedUp(
    _ policy: SilentPolicy
  ) -> (fixture: ShardFixture, app: PhoneApp, held: Notification) {
    var fixture = ShardFixture(configuration: .init(policy: policy, keepAlive: .days(2)))
    let app = fixture.phoneWithApp()
    _ = fixture.connect(app.phone)
    while true {
      let push = fixture.push(.silent, app)
      if fixture.submit(push).sendings.isEmpty { return (fixture, app, push) }
    }
  }

  private func held(_ fixture: inout ShardFixture, _ app: PhoneApp) -> BudgetDecision? {
    let answers = fixture.handle(
      .asked(.inspected, app.phone.credential, from: fixture.newRequest())
    ).answers
    guard case .inspected(let report)? = answers.first else { return nil }
    return report.apps[0].budget
  }

  @Test func theSamePolicyChangesNothing() {
    var (fixture, app, _) = usedUp(.documented)
    _ = fixture.advance(.minutes(5))
    let (before, wake) = (held(&fixture, app), fixture.shard.nextWake)
    expectEffects(
      fixture, fixture.handle(.operated(.policyChanged(.documented, at: fixture.now))), [])
    #expect(held(&fixture, app) == before)
    #expect(fixture.shard.nextWake == wake)
  }

  @Test func whatWasUsedCarriesOverToAStricterPolicy() {
    var (fixture, app, _) = usedUp(Self.minute)
    _ = fixture.advance(.seconds(30))
    expectEffects(
      fixture, fixture.handle(.operated(.policyChanged(Self.hour, at: fixture.now))), [])
    // Half of it had come back, at a minute an event.
    #expect(held(&fixture, app) == .held(until: fixture.now + .minutes(30), by: .perApp))
    #expect(fixture.advance(.minutes(29)).sendings.isEmpty)
    #expect(fixture.advance(.minutes(1)).sendings.map(\.via) == [.refill])
    expectSound(fixture)
  }

  @Test func whatWasUsedCarriesOverToALooserPolicy() {
    var (fixture, _, held) = usedUp(Self.hour)
    _ = fixture.advance(.minutes(30))
    _ = fixture.handle(.operated(.policyChanged(Self.minute, at: fixture.now)))
    #expect(fixture.shard.nextWake == fixture.now)
    #expect(fixture.advance(.seconds(0)).sendings.isEmpty, "not a fresh budget")
    #expect(fixture.advance(.seconds(30)).sendings == [Sending(held, .refill)])
    expectSound(fixture)
  }

  @Test func aPolicyWithoutALimitLeavesTheBudgetAsItIs() {
    var (fixture, app, held) = usedUp(.documented)
    _ = fixture.handle(.operated(.policyChanged(.unlimited, at: fixture.now)))
    #expect(fixture.advance(.seconds(0)).sendings == [Sending(held, .refill)])
    for _ in 0..<5 {
      #expect(fixture.submit(fixture.push(.silent, app)).sendings.map(\.via) == [.direct])
    }
    _ = fixture.advance(.minutes(5))
    _ = fixture.handle(.operated(.policyChanged(.documented, at: fixture.now)))
    let last = fixture.push(.silent, app)
    #expect(fixture.submit(last).sendings.isEmpty)
    // Of the twenty minutes, five have passed.
    #expect(fixture.advance(.minutes(14)).sendings.isEmpty)
    #expect(fixture.advance(.minutes(1)).sendings == [Sending(last, .refill)])
  }

  /// However many are held: one step with a tick, and events are handled in between.
  @Test func whatIsHeldIsLookedAtInSteps() {
    var fixture = ShardFixture(configuration: .init(policy: .strict))
    let count = 2 * Limits.reviewedApps + 10
    for _ in 0..<count {
      let app = fixture.phoneWithApp()
      _ = fixture.connect(app.phone)
      _ = fixture.submit(fixture.push(.silent, app))
      _ = fixture.submit(fixture.push(.silent, app))
    }
    #expect(fixture.shard.counters.inSlots == count)
    #expect(fixture.handle(.operated(.policyChanged(.unlimited, at: fixture.now))).isEmpty)
    var steps: [Int] = []
    while fixture.shard.nextWake == fixture.now {
      steps.append(fixture.advance(.seconds(0)).sendings.count)
    }
    #expect(steps == [Limits.reviewedApps, Limits.reviewedApps, 10])
    #expect(fixture.shard.counters.inSlots == 0)
    expectSound(fixture)
  }

  /// Every shard computes the same clocks from the same moment, whenever it hears of it.
  @Test func theMomentOfTheChangeCounts() {
    let budgets = [Interval.seconds(0), .seconds(2)].map { delay in
      var fixture = ShardFixture()
      let moment = fixture.now + .minutes(1)
      fixture.now = moment + delay
      _ = fixture.handle(.operated(.policyChanged(.strict, at: moment)))
      return fixture.shard.budgets
    }
    #expect(budgets[0] == budgets[1])
  }
}
