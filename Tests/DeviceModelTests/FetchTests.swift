import Primitives
import Testing

@testable import DeviceModel

/// WWDC 2013 session 204.
@Suite struct FetchTests {
  private func fetches(_ bench: Bench, _ app: AppID = mail) -> [Instant] {
    bench.effects.compactMap {
      if case .callback(_, app, .began(.fetch)) = $0.action { $0.at } else { nil }
    }
  }

  @Test func neverIsTheDefault() {
    var bench = Bench([.ordinary()])
    bench.wait(.days(7))
    #expect(bench.effects.isEmpty)
    #expect(bench.phone.apps.map(\.plan.reason) == [.intervalNever])
    #expect(bench.phone.nextWake == nil)
  }

  @Test func minimumLeavesItToTheSystem() {
    var bench = Bench([.ordinary(fetchInterval: .minimum)])
    bench.wait(.days(1))
    #expect((4...10).contains(fetches(bench).count), "\(fetches(bench).count)")
  }

  /// Of an app that nobody opens: that it always finds news does not bring it more fetches.
  @Test func newsAloneMakesNoUser() {
    var bench = Bench([.ordinary(fetchInterval: .minimum)])
    bench.wait(.days(28))
    let last = fetches(bench).filter { $0 > Bench.start + .days(21) }
    #expect((13...14).contains(last.count), "\(last.count)")
  }

  /// The more useful its fetches were, the more of them an app gets; never more than it asks for.
  @Test func whatItAnswersDecidesHowOftenItIsAsked() {
    func count(_ outcome: CallbackOutcome, _ interval: FetchInterval = .minimum) -> Int {
      var bench = Bench([
        .ordinary(fetchInterval: interval) { $0.onFetch.outcome = .always(outcome) }
      ])
      for _ in 0..<14 * 3 {
        bench.use(mail)
        bench.wait(.hours(8))
      }
      return fetches(bench).count
    }
    let (useful, empty, failing) = (count(.newData), count(.noData), count(.failed))
    #expect(useful > empty && empty > failing && failing > 0, "\(useful), \(empty), \(failing)")
    #expect(count(.newData, .seconds(7200)) <= 14 * 12)
  }

  @Test func anIntervalIsCountedFromAnyActivity() {
    var bench = Bench([.ordinary(fetchInterval: .seconds(6 * 3600))])
    var uses: [Instant] = []
    for hour in 0..<24 * 10 {
      if hour % 5 == 0 {
        bench.use(mail)
        uses.append(bench.now)
      }
      bench.wait(.hours(1))
    }
    // Used every five hours, it is never six hours without activity.
    #expect(fetches(bench).isEmpty)
    bench.wait(.days(2))
    let after = fetches(bench)
    #expect(!after.isEmpty)
    for (first, second) in zip(after, after.dropFirst()) {
      #expect(second - first >= .hours(6))
    }
  }

  @Test func aWorkedExampleOfAUsersDay() {
    var bench = Bench([.ordinary("news", fetchInterval: .minimum)])
    for _ in 0..<6 {
      for minutes in [7 * 60 + 40, 12 * 60 + 30, 19 * 60] as [Int64] {
        let day =
          floorQuotient(
            bench.now.milliseconds, Interval.days(1).milliseconds) * Interval.days(1).milliseconds
        bench.wait(Instant(milliseconds: day) + .minutes(minutes) - bench.now)
        bench.use(mail)
      }
      bench.wait(.hours(5))
    }
    bench.clear()
    let midnight = bench.now
    bench.wait(.days(1))
    // Nobody uses it on this day, so each expected use has its fetch and what repeats it.
    let times = fetches(bench).map { ($0 - midnight).milliseconds / 60_000 }
    for use in [7 * 60 + 40, 12 * 60 + 30, 19 * 60] as [Int64] {
      #expect(times.contains { (use - 60..<use).contains($0) }, "\(use): \(times)")
    }
    #expect(times.count <= 8, "\(times)")
  }

  /// An expected use that has happened is over with the last quarter hour that usually belongs to
  /// it, an hour at most: not before the next one is expected.
  @Test(arguments: [1, 2, 6]) func aUseIsSettledUntilItsUsualEnd(quarters: Int64) {
    var bench = Bench([.ordinary(fetchInterval: .minimum)])
    for _ in 0..<10 {
      bench.wait(.hours(12))
      for _ in 0..<quarters {
        bench.use(mail)
        bench.wait(.minutes(14))
      }
      bench.wait(.hours(12) - .minutes(15 * quarters))
    }
    let midnight = bench.now
    bench.wait(.hours(12))
    bench.use(mail)
    #expect(
      bench.phone[mail]?.usedUntil
        == midnight + .hours(12) + .minutes(15 * min(quarters, 4)))
  }

  /// Use ends with the process, however that ends.
  @Test(arguments: [PhoneEvent.appLeft, .appCrashed(mail), .rebooted])
  func anIntervalIsCountedFromTheEndOfUse(end: PhoneEvent) {
    var bench = Bench([.ordinary(fetchInterval: .seconds(2 * 3600))])
    bench.send(.unlocked, .appOpened(mail))
    bench.wait(.hours(5))
    bench.send(end)
    let ended = bench.now
    if end == .rebooted { bench.send(.unlocked, .locked) }
    bench.clear()
    bench.wait(.days(1))
    let times = fetches(bench)
    #expect(!times.isEmpty && times.allSatisfy { $0 - ended >= .hours(2) }, "\(times)")
  }

  @Test func obstaclesAreNamedAndRemoved() {
    let cases: [([PhoneEvent], FetchReason, [PhoneEvent])] = [
      ([.lowPowerSwitched(isOn: true)], .lowPower, [.lowPowerSwitched(isOn: false)]),
      ([.networkChanged(.airplane)], .offline, [.networkChanged(.wifi)]),
      ([.networkChanged(.none)], .offline, [.networkChanged(.cellular)]),
      ([.refreshSwitched(mail, isOn: false)], .refreshOff, [.refreshSwitched(mail, isOn: true)]),
      (
        [.refreshSwitched(nil, isOn: false)], .refreshOffForAll, [.refreshSwitched(nil, isOn: true)]
      ),
      ([.rebooted], .beforeFirstUnlock, [.unlocked, .locked]),
      (
        [.unlocked, .appOpened(mail), .appSwipedAway(mail), .locked], .forceQuit,
        [.unlocked, .appOpened(mail), .locked]
      ),
    ]
    for (block, reason, release) in cases {
      var bench = Bench([.ordinary(fetchInterval: .minimum)])
      for event in block { bench.send(event) }
      bench.wait(.minutes(1))
      bench.clear()
      bench.wait(.days(2))
      #expect(fetches(bench).isEmpty, "\(reason)")
      #expect(bench.phone.apps.map(\.plan.reason) == [reason])
      #expect(bench.phone.apps.map(\.plan.when) == [.onChange])
      for event in release { bench.send(event) }
      bench.wait(.days(1))
      #expect(!fetches(bench).isEmpty, "\(reason)")
    }
  }

  @Test func signingOutEndsIt() {
    var bench = Bench([.ordinary(fetchInterval: .minimum)])
    bench.send(.unlocked, .appOpened(mail), .fetchIntervalSet(mail, .never), .locked)
    bench.clear()
    bench.wait(.days(2))
    #expect(fetches(bench).isEmpty)
  }

  @Test func aCallbackMayAskForAnotherInterval() {
    var bench = Bench([.ordinary { $0.onPush.setsFetchInterval = .minimum }])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.seconds(10))
    #expect(bench.phone.apps.map(\.plan.reason) == [.exploring])
    bench.wait(.hours(4))
    #expect(fetches(bench).count == 1)
  }

  @Test func anEmptyBudgetPutsItOff() {
    var bench = Bench([
      .ordinary(fetchInterval: .minimum) {
        $0.onFetch.energy = 1_000_000
        $0.onFetch.bytes = 0
      }
    ])
    bench.wait(.hours(4))
    #expect(fetches(bench).count == 1)
    #expect(bench.phone.apps.map(\.plan.reason) == [.energyBudget])
    guard case .reconsider(let moment)? = bench.phone.apps.first?.plan.when else {
      Issue.record("\(bench.phone.apps.map(\.plan))")
      return
    }
    #expect(moment > bench.now + .hours(12))
    bench.wait(moment - bench.now + .hours(4))
    #expect(fetches(bench).count == 2)
  }

  @Test func severalAppsShareAnAwakePeriod() {
    var bench = Bench((0..<10).map { .ordinary("app \($0)", fetchInterval: .minimum) })
    bench.wait(.days(1))
    let begun = bench.actions.count {
      if case .callback(_, _, .began(.fetch)) = $0 { true } else { false }
    }
    let wakes = bench.actions.count { $0 == .phone(.woke) }
    #expect(begun >= 40)
    #expect(wakes * 5 <= begun, "\(begun) fetches in \(wakes) awake periods")
  }

  @Test func aWakeForAnotherReasonTakesFetchesAlong() {
    var bench = Bench([.ordinary(fetchInterval: .minimum), .ordinary("news")])
    bench.wait(.minutes(1))
    guard case .fetch(let planned)? = bench.phone[mail]?.plan.when else {
      Issue.record("\(bench.phone.apps.map(\.plan))")
      return
    }
    bench.wait(planned - bench.now - .minutes(5))
    bench.clear()
    bench.send(.pushReceived(.silent(1, news)))
    #expect(fetches(bench) == [bench.now])
  }

  /// Both bounds to the millisecond: how soon the fetch must be due, and that the app's interval is
  /// over.
  @Test(arguments: [(-1, true), (0, true), (1, false)] as [(Int64, Bool)])
  func onlyWhatIsDueSoonIsTakenAlong(_ late: Int64, _ isTaken: Bool) throws {
    var bench = Bench([.ordinary(fetchInterval: .minimum), .ordinary("news")])
    bench.wait(.minutes(1))
    let plan = try #require(bench.phone[mail]?.plan)
    let soon = bench.phone.limits.fetchCoalescing
    #expect(plan.dueAt - soon > plan.earliest, "the other bound is far")
    bench.wait(plan.dueAt - soon - .milliseconds(late) - bench.now)
    bench.clear()
    bench.send(.pushReceived(.silent(1, news)))
    #expect(fetches(bench) == (isTaken ? [bench.now] : []))
    #expect(
      bench.steps(of: mail).contains(.fetchedEarly(planned: plan.dueAt)) == isTaken)
  }

  @Test(arguments: [(-1, false), (0, true), (1, true)] as [(Int64, Bool)])
  func noFetchIsTakenAlongBeforeTheIntervalIsOver(_ late: Int64, _ isTaken: Bool) throws {
    var limits = PhoneLimits()
    limits.fetchExploring = limits.fetchFloor + .minutes(10)
    var bench = Bench([.ordinary(fetchInterval: .minimum), .ordinary("news")], limits: limits)
    bench.wait(.minutes(1))
    let plan = try #require(bench.phone[mail]?.plan)
    #expect(plan.earliest < plan.dueAt && plan.dueAt - limits.fetchCoalescing < plan.earliest)
    bench.wait(plan.earliest + .milliseconds(late) - bench.now)
    bench.clear()
    bench.send(.pushReceived(.silent(1, news)))
    #expect(fetches(bench) == (isTaken ? [bench.now] : []))
  }

  @Test func timesWhenThePhoneIsIdleAreAvoided() {
    // The phone is used by day, the app never is: nothing is learned about it, but about the phone.
    var bench = Bench([.ordinary(fetchInterval: .minimum), .ordinary("news")])
    func day(_ bench: inout Bench) {
      bench.wait(.hours(8))
      for _ in 0..<14 {
        bench.use(news)
        bench.wait(.minutes(59))
      }
      bench.wait(.hours(2))
    }
    for _ in 0..<7 { day(&bench) }
    bench.clear()
    let begin = bench.now
    for _ in 0..<7 { day(&bench) }
    let found = fetches(bench).map { ($0 - begin).milliseconds / 3_600_000 % 24 }
    #expect(!found.isEmpty)
    #expect(found.allSatisfy { (7...22).contains($0) }, "hours of the fetches: \(found)")
  }

  /// An hour with exactly the share of use that the limit names is no idle one.
  @Test func anHourWithJustEnoughUseIsNotIdle() {
    var limits = PhoneLimits()
    let now = Bench.start + .days(10)
    var phone = UsagePattern(at: Bench.start)
    for day in Int64(0)..<10 { phone.record(at: Bench.start + .days(day) + .hours(8)) }
    phone.roll(to: now)
    let share = phone.habits(at: now, after: limits.fetchLearningDays).percentInHour(from: 32)
    for (least, isMoved) in [(share, true), (share + 1, false)] {
      limits.fetchIdlePercent = least
      let next = FetchPlanner(limits: limits, phone: phone).next(
        UsagePattern(at: now), Behaviour(), earliest: now + .hours(4), settledUntil: nil,
        lastActivity: now)
      // The first hour with the use in it begins a quarter past seven.
      #expect(next.at == now + (isMoved ? .minutes(7 * 60 + 15) : .hours(4)), "\(next)")
      #expect(next.reason == (isMoved ? .afterIdle : .exploring))
    }
  }

  @Test func expensiveAndFailingAppsFetchLess() {
    func count(_ change: (inout AppScript) -> Void) -> Int {
      var bench = Bench([.ordinary(fetchInterval: .minimum, change)])
      bench.send(.networkChanged(.cellular))
      for _ in 0..<24 * 20 {
        bench.use(mail)
        bench.wait(.minutes(59))
      }
      return fetches(bench).count
    }
    let good = count { $0.onFetch.bytes = 10_000 }
    let failing = count {
      $0.onFetch.bytes = 10_000
      $0.onFetch.handler = .never
    }
    let greedy = count { $0.onFetch.bytes = 20_000_000 }
    #expect(good > failing * 3 / 2, "good \(good), failing \(failing)")
    #expect(good > greedy * 2, "good \(good), greedy \(greedy)")
  }

  @Test func reasonsCanBePrinted() {
    #expect(FetchReason.exploring.description == "nothing learned yet")
    #expect(
      FetchReason.beforeUse(minuteOfDay: 425).description == "before the use expected from 7:05")
  }
}

/// An app may ask for any interval; a learned pattern does not make it overflow.
@Test func theLongestIntervalIsNever() {
  var bench = Bench([.ordinary(fetchInterval: .seconds(.max))])
  for _ in 0..<5 {
    bench.use(mail)
    bench.wait(.days(1))
  }
  bench.send(.rebooted, .unlocked, .networkChanged(.cellular))
  #expect((bench.phone[mail]?.plan.dueAt ?? bench.now) > .endOfCalendar)
}

@Suite struct UsagePatternTests {
  @Test func whatIsUsedDailyIsExpected() {
    var pattern = UsagePattern(at: Bench.start)
    for day in Int64(0)..<5 {
      pattern.record(at: Bench.start + .days(day) + .hours(8))
      pattern.record(at: Bench.start + .days(day) + .hours(8) + .minutes(3))
    }
    #expect(pattern.days == 4)
    #expect(pattern.all.percentInHour(from: 32) >= 100)
    #expect(pattern.all.percentInHour(from: 29) >= 100)
    #expect(pattern.all.percentInHour(from: 33) == 0)
    #expect(pattern.all.isUsed(32) && !pattern.all.isUsed(31))
  }

  @Test func oldHabitsFade() {
    var pattern = UsagePattern(at: Bench.start)
    for day in Int64(0)..<10 { pattern.record(at: Bench.start + .days(day) + .hours(8)) }
    var percents: [Int64] = []
    for day in Int64(10)..<30 {
      pattern.roll(to: Bench.start + .days(day))
      percents.append(pattern.all.percentInHour(from: 32))
    }
    #expect(percents == percents.sorted(by: >))
    #expect((percents.last ?? 100) < 10)
    pattern.roll(to: Bench.start + .days(100_000))
    #expect(pattern.all.percentInHour(from: 32) == 0)
  }

  @Test func theHourWrapsAroundMidnight() {
    var pattern = UsagePattern(at: Bench.start)
    for day in Int64(0)..<5 { pattern.record(at: Bench.start + .days(day) + .minutes(5)) }
    #expect(pattern.all.percentInHour(from: 94) > 50)
  }

  /// Day 0 of the bench is a Saturday. After two weekends and a week each kind of day is known.
  @Test func weekdaysAndWeekendsAreLearnedApart() {
    var pattern = UsagePattern(at: Bench.start)
    let (eight, eleven) = (32, 44)
    for day in Int64(0)..<16 {
      let isWeekend = day % 7 < 2
      pattern.record(at: Bench.start + .days(day) + .hours(isWeekend ? 11 : 8))
      let sunday = Bench.start + .days(1)
      let monday = Bench.start + .days(2)
      if day == 1 {
        // A single weekend is not enough to tell them apart.
        #expect(pattern.habits(at: sunday, after: 3) == pattern.all)
        #expect(pattern.habits(at: monday, after: 3) == pattern.all)
      }
      guard day > 8 else { continue }
      let (weekday, weekend) = (
        pattern.habits(at: monday, after: 3), pattern.habits(at: sunday, after: 3)
      )
      #expect(weekday.isUsed(eight) && !weekday.isUsed(eleven), "day \(day)")
      #expect(weekday.percentInHour(from: eight) > 80 && weekday.percentInHour(from: eleven) == 0)
      #expect(!weekend.isUsed(eight) || weekend == pattern.all, "day \(day)")
      #expect(weekend.isUsed(eleven))
    }
    #expect(pattern.weekends.days == 5 && pattern.weekdays.days == 10 && pattern.days == 15)
  }

  /// Every day is of one kind: together they are all.
  @Test func theKindsAddUp() {
    for seed in UInt64(1)...50 {
      var random = SeededRandom(seed: seed)
      var pattern = UsagePattern(at: Bench.start)
      var now = Bench.start
      for _ in 0..<200 {
        now = now + .minutes(random.below(2000))
        pattern.record(at: now)
        #expect(pattern.weekdays.days + pattern.weekends.days == pattern.days, "seed \(seed)")
        #expect(pattern.isSound, "seed \(seed)")
        // What was used just now counts for its kind of day.
        let bin = UsagePattern.bin(now)
        #expect(pattern.habits(at: now, after: 0).isUsed(bin), "seed \(seed)")
      }
    }
  }
}
