import Primitives
import Testing

@testable import RelayCore

@Suite struct SilentBudgetTests {
  private let now = Instant(unixSeconds: 1_767_225_600)

  private static let conditions = Power.allCases.flatMap { power in
    Network.allCases.flatMap { network in
      Screen.allCases.map {
        DeviceCondition(power: power, network: network, screen: $0)
      }
    }
  }

  /// Every policy under every condition: how many of twenty pushes to two apps go through at once.
  @Test(arguments: SilentPolicy.named)
  func everyPolicyUnderEveryCondition(policy: SilentPolicy) {
    for condition in Self.conditions {
      let budgets = SilentBudgets(policy, at: now)
      var device = RateLimit.State()
      var apps = [RateLimit.State(), RateLimit.State()]
      var allowed = [0, 0]
      for number in 0..<20 {
        let app = number % 2
        let decision = budgets.decide(
          app: apps[app], device: device, condition: condition, at: now)
        switch decision {
        case .allowed:
          allowed[app] += 1
          budgets.consume(app: &apps[app], device: &device, condition: condition, at: now)
        case .held(let until, let limit):
          #expect((until == nil) == (limit == .lowPowerMode), "\(condition)")
          #expect(until.map { $0 > now } ?? true, "\(condition)")
        }
      }
      let expected: Int
      switch (condition.power, condition.network, policy.name) {
      case (.low, _, _): expected = 0
      case (.charging, .wifi, _), (_, _, "unlimited"): expected = 10
      case (_, _, "strict"): expected = 1
      default: expected = 3
      }
      #expect(allowed == [expected, expected], "\(policy.name), \(condition)")
      let isUntouched = device == RateLimit.State() && apps[0] == RateLimit.State()
      #expect(isUntouched == (condition.liftsBudget || expected != 1 && expected != 3))
    }
  }

  @Test func theLaterOfBothLimitsIsNamed() {
    let policy = SilentPolicy(
      name: "test", perApp: RateLimit(1, per: .minutes(10), burst: 1),
      perDevice: RateLimit(1, per: .minutes(30), burst: 1))
    let budgets = SilentBudgets(policy, at: now)
    var app = RateLimit.State()
    var device = RateLimit.State()
    let condition = DeviceCondition()
    budgets.consume(app: &app, device: &device, condition: condition, at: now)
    #expect(
      budgets.decide(app: app, device: device, condition: condition, at: now)
        == .held(until: now + .minutes(30), by: .perDevice))
    #expect(
      budgets.decide(app: app, device: RateLimit.State(), condition: condition, at: now)
        == .held(until: now + .minutes(10), by: .perApp))
    #expect(
      budgets.decide(app: app, device: device, condition: condition, at: now + .minutes(30))
        == .allowed)
  }

  @Test func ofTwoEqualLimitsTheAppsIsNamed() {
    let limit = RateLimit(1, per: .minutes(10), burst: 1)
    let budgets = SilentBudgets(
      SilentPolicy(name: "test", perApp: limit, perDevice: limit), at: now)
    var (app, device) = (RateLimit.State(), RateLimit.State())
    budgets.consume(app: &app, device: &device, condition: DeviceCondition(), at: now)
    #expect(
      budgets.decide(app: app, device: device, condition: DeviceCondition(), at: now)
        == .held(until: now + .minutes(10), by: .perApp))
  }

  @Test func theDeviceBudgetIsSharedByItsApps() {
    let budgets = SilentBudgets(.documented, at: now)
    var device = RateLimit.State()
    for _ in 0..<12 {
      var app = RateLimit.State()
      #expect(
        budgets.decide(app: app, device: device, condition: DeviceCondition(), at: now) == .allowed)
      budgets.consume(app: &app, device: &device, condition: DeviceCondition(), at: now)
    }
    #expect(
      budgets.decide(
        app: RateLimit.State(), device: device, condition: DeviceCondition(), at: now)
        == .held(until: now + .minutes(5), by: .perDevice))
  }

  @Test func conditionsMeanWhatTheDesignSays() {
    for condition in Self.conditions {
      #expect(
        condition.liftsBudget == (condition.power == .charging && condition.network == .wifi))
      #expect(condition.withholdsSilent == (condition.power == .low))
      #expect(!condition.withholds(.immediate))
      #expect(
        condition.withholds(.powerAware) == (condition.power == .low && condition.screen == .off))
      #expect(condition.withholds(.powerFirst) == (condition.screen == .off))
    }
    #expect(DeviceCondition() == DeviceCondition(power: .battery, network: .cellular, screen: .off))
  }

  @Test func namesAreUnique() {
    #expect(Set(BudgetLimit.allCases.map(\.name)).count == BudgetLimit.allCases.count)
    #expect(Set(SilentPolicy.named.map(\.name)).count == SilentPolicy.named.count)
  }
}
