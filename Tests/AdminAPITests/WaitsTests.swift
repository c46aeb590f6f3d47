import Primitives
import RelayCore
import Testing

@testable import AdminAPI

/// The sentence and the data about a held push say what the report of its device says.
@Suite struct WaitsTests {
  private static let now = Instant(unixSeconds: 1_795_302_250)  // 2026-11-21T23:04:10Z
  private static let push = UniqueID(high: 1, low: 2)

  /// A phone with one app, whose silent budget has been used up and whose silent push is held.
  private static func report(
    isConnected: Bool = true, power: Power = .battery, rides: Int64 = 3, isPaid: Bool = false,
    expiresAt: Instant? = nil, decision: BudgetDecision? = held
  ) -> DeviceReport {
    let app = Allowance(
      remaining: 0, limit: RateLimit(3, per: .hours(1), burst: 3), next: now + .seconds(359))
    let slot = DeviceReport.Slot(
      uniqueID: push, apnsID: push, acceptedAt: now, expiresAt: expiresAt, isPaid: isPaid,
      decision: isConnected ? decision : nil)
    return DeviceReport(
      device: DeviceID(push), isConnected: isConnected, condition: DeviceCondition(power: power),
      policy: "documented",
      allowance: Allowance(
        remaining: 8, limit: RateLimit(12, per: .hours(1), burst: 12), next: now + .minutes(1)),
      rides: Allowance(
        remaining: rides, limit: RateLimit(1, per: .minutes(1), burst: 3),
        next: rides < 3 ? now + .seconds(30) : nil),
      keepAliveAt: isConnected ? now + .minutes(1) : nil, inFlight: 32,
      apps: [
        .init(
          topic: Topic("com.example.app")!, token: DeviceToken(hexadecimal: "abcd")!,
          visible: nil, silent: slot,
          budget: power == .low ? .held(until: nil, by: .lowPowerMode) : held, allowance: app)
      ])
  }

  private static let held = BudgetDecision.held(until: now + .seconds(359), by: .perApp)
  private static let budgets =
    "app budget: 0 of 3 left, one comes back every 20 minutes, the next at 23:10:09; "
    + "phone budget: 8 of 12 left (policy documented)"

  private func sentence(_ report: DeviceReport) -> String? {
    HeldPush(Self.push, in: report, at: Self.now)?.sentence
  }

  private static let sentences: [(DeviceReport, String)] = [
    (
      report(),
      "Held: \(budgets); or it goes along with the next push that shows something, a new "
        + "connection, a change of its state or a keep-alive, at 23:05:10 at the latest if the "
        + "phone stays connected."
    ),
    (
      report(rides: 0, expiresAt: now + .minutes(4)),
      "Held: \(budgets); or it goes along with the next push that shows something or a "
        + "keep-alive, at 23:05:10 at the latest if the phone stays connected. "
        + "It expires at 23:08:10."
    ),
    (
      report(isConnected: false),
      "Held: the phone is not connected; it goes when the phone connects."
    ),
    (
      report(isConnected: false, rides: 0),
      "Held: the phone is not connected; it goes when the phone connects after 23:04:40, as it "
        + "has connected too often to carry it before, or by its budget: \(budgets)."
    ),
    (
      report(isConnected: false, rides: 0, isPaid: true),
      "Held: the phone is not connected; it goes when the phone connects."
    ),
    (
      report(isConnected: false, power: .low),
      "Held: the phone is not connected, and was in Low Power Mode when it last was: silent "
        + "pushes wait until it reports another state of its power."
    ),
    (
      report(power: .low, decision: .held(until: nil, by: .lowPowerMode)),
      "Held: the phone is in Low Power Mode, where silent pushes wait and nothing carries them, "
        + "until it reports another state of its power."
    ),
    (
      report(isPaid: true, decision: .held(until: nil, by: .inFlight)),
      "Held: 32 pushes are on their way to the phone, the most at once; it goes when the phone "
        + "acknowledges one."
    ),
    (
      report(power: .low, decision: .held(until: nil, by: .inFlight)),
      "Held: 32 pushes are on their way to the phone, the most at once; and silent ones wait "
        + "while the phone is in Low Power Mode."
    ),
    (report(decision: .allowed), "Held: nothing holds it any more, and it is about to be sent."),
  ]

  @Test(arguments: sentences) func aSentenceSaysWhatHoldsItAndWhatEndsThat(
    report: DeviceReport, expected: String
  ) {
    #expect(sentence(report) == expected)
  }

  @Test func theLastOneIsNamedWhileTheLogKnowsIt() throws {
    let held = try #require(
      HeldPush(Self.push, in: Self.report(), lastOfApp: Self.now - .seconds(1), at: Self.now))
    #expect(
      held.sentence.hasPrefix(
        "Held: app budget: 0 of 3 left, the last on it went at 23:04:09, one comes back every 20"))
    #expect(held.waits?.app?.last == (Self.now - .seconds(1)).milliseconds)
    #expect(held.waits?.device?.last == nil)
  }

  /// With its budget it goes by itself when the window opens: nothing carries it.
  @Test func throughAFullWindowNothingRides() throws {
    for budget in [Self.held, .allowed] {
      var report = Self.report(decision: .held(until: nil, by: .inFlight))
      report.apps[0].budget = budget
      let waits = try #require(HeldPush(Self.push, in: report, at: Self.now)?.waits)
      #expect((waits.ride == nil) == (budget == .allowed))
    }
  }

  /// At the moment of the refill it is gone.
  @Test func itExpiresRatherThanGoes() throws {
    for (late, isNamed) in [(Int64(-1), true), (0, true), (1, false)] {
      let end = Self.now + .seconds(359) + .milliseconds(late)
      let held = try #require(
        HeldPush(Self.push, in: Self.report(expiresAt: end), at: Self.now))
      #expect(held.sentence.contains("It expires at") == isNamed, "\(held.sentence)")
      #expect(held.waits?.expires == end.milliseconds)
    }
  }

  @Test func aFullWindowIsFollowedByTheBudget() throws {
    let text = try #require(sentence(Self.report(decision: .held(until: nil, by: .inFlight))))
    #expect(text.contains("acknowledges one, its budget decides: \(Self.budgets); or it goes"))
  }

  /// The refill is sooner than the keep-alive, and another app may carry it.
  @Test func onlyWhatComesBeforeTheRefillIsNamed() throws {
    var report = Self.report(rides: 0)
    report.keepAliveAt = Self.now + .hours(1)
    #expect(
      sentence(report)?.hasSuffix("goes along with the next push that shows something.") == true)
    report.apps.append(report.apps[0])
    report.apps[1].silent = nil
    #expect(
      sentence(report)?.hasSuffix(
        "the next push that shows something or another app's silent push on its own budget.")
        == true)
    let waits = try #require(HeldPush(Self.push, in: report, at: Self.now)?.waits)
    #expect(waits.ride?.by == (Self.now + .hours(1)).milliseconds, "the data has all")
    // The phone's own budget refills first, or not.
    for (seconds, mayCarry) in [(358, true), (359, false)] as [(Int64, Bool)] {
      report.allowance?.remaining = 0
      report.allowance?.next = Self.now + .seconds(seconds)
      #expect(sentence(report)?.contains("another app's silent push") == mayCarry)
    }
  }

  @Test func aVisibleOneOfLowPriorityWaitsForTheEarlierTime() throws {
    var report = Self.report(
      power: .low, decision: .held(until: Self.now + .minutes(15), by: .lowPriority))
    (report.apps[0].visible, report.apps[0].silent) = (report.apps[0].silent, nil)
    #expect(
      sentence(report)
        == "Held: a push of priority 5 waits while the phone is in Low Power Mode with its screen "
        + "off; it goes with the phone's next line or the next push sent, at 23:05:10 at the "
        + "latest.")
    let waits = try #require(HeldPush(Self.push, in: report, at: Self.now)?.waits)
    #expect(waits.limit == "low-priority" && waits.app == nil && waits.ride != nil)
    #expect(waits.until == (Self.now + .minutes(15)).milliseconds)
  }

  @Test func oneOfPriorityOneWaitsForAPhoneThatIsAwake() throws {
    var report = Self.report(decision: .held(until: nil, by: .lowPriority))
    let why =
      "Held: a push of priority 1 wakes no phone, and waits while the screen is off; it goes "
    let carriers =
      "the next push that shows something, a new connection, a change of its state or a "
      + "keep-alive, at 23:05:10 at the latest if the phone stays connected."
    #expect(sentence(report) == why + "along with \(carriers)")
    let silent = try #require(HeldPush(Self.push, in: report, at: Self.now)?.waits)
    #expect(silent.limit == "low-priority" && silent.until == nil && silent.ride != nil)
    (report.apps[0].visible, report.apps[0].silent) = (report.apps[0].silent, nil)
    #expect(sentence(report) == why + "along with the phone's next line, or with \(carriers)")
  }

  @Test func theDataHasTheNumbersOfTheSentence() throws {
    let waits = try #require(HeldPush(Self.push, in: Self.report(), at: Self.now)?.waits)
    let next = (Self.now + .seconds(359)).milliseconds
    #expect(waits.by == "relay" && waits.limit == "app-budget" && waits.until == next)
    #expect(waits.app?.remaining == 0 && waits.app?.burst == 3 && waits.app?.every == "20m")
    #expect(waits.app?.next == next && waits.policy == "documented")
    #expect(waits.device?.remaining == 8 && waits.device?.every == "5m")
    #expect(waits.ride?.by == (Self.now + .minutes(1)).milliseconds)
    let paid = Self.report(isPaid: true, decision: .held(until: nil, by: .inFlight))
    let free = try #require(HeldPush(Self.push, in: paid, at: Self.now)?.waits)
    #expect(free.limit == "in-flight" && free.app == nil && free.ride == nil)
    let away = Self.report(isConnected: false)
    #expect(HeldPush(Self.push, in: away, at: Self.now)?.waits?.limit == "offline")
    #expect(HeldPush(Self.push, in: Self.report(decision: .allowed), at: Self.now)?.waits == nil)
    #expect(HeldPush(UniqueID(high: 9, low: 9), in: away, at: Self.now) == nil)
    let phone = Waits(.energyBudget, until: nil)
    #expect(phone.by == "phone" && phone.limit == "energy-budget" && phone.until == nil)
  }

  @Test func aStatusHasTheSameNumbers() {
    let status = DeviceStatus(Self.report())
    #expect(status.budget.burst == 12 && status.budget.every == "5m")
    #expect(status.budget.next == (Self.now + .minutes(1)).milliseconds)
    let app = status.apps[0].budget
    #expect(app.burst == 3 && app.every == "20m" && app.next == app.heldUntil)
  }

  @Test(arguments: PushLimit.allCases) func everyLimitOfThePhoneHasWords(limit: PushLimit) {
    #expect(limit.text.hasPrefix("it ") || limit.text.hasPrefix("the day's "))
  }
}
