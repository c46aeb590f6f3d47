import Primitives
import Testing

@testable import DeviceModel

@Suite struct BudgetTests {
  @Test func aDayFillsIt() {
    var budget = Budget(perDay: 2400, at: Bench.start)
    budget.spend(2400, at: Bench.start)
    #expect(budget.level(at: Bench.start) == 0)
    #expect(budget.level(at: Bench.start + .hours(1)) == 100)
    #expect(budget.level(at: Bench.start + .days(30)) == 2400)
  }

  @Test func itIsNeverNegative() {
    var random = SeededRandom(seed: 5)
    for seed in UInt64(1)...20 {
      var budget = Budget(perDay: 1 + random.below(1 << 50), at: Bench.start)
      var now = Bench.start
      for _ in 0..<200 {
        now = now + .milliseconds(random.below(50_000_000) - 1000)
        budget.spend(random.below(1 << 49) - 1000, at: now)
        #expect((0...budget.perDay).contains(budget.level(at: now)), "seed \(seed)")
      }
    }
  }

  @Test func itSaysWhenEnoughWillBeThere() {
    var random = SeededRandom(seed: 6)
    for seed in UInt64(1)...100 {
      var budget = Budget(perDay: 1000 + random.below(1_000_000), at: Bench.start)
      budget.spend(budget.perDay, at: Bench.start)
      let need = 1 + random.below(budget.perDay)
      let moment = budget.moment(of: need, from: Bench.start)
      #expect(moment > Bench.start)
      #expect(budget.level(at: moment) >= need, "seed \(seed)")
    }
    let full = Budget(perDay: 10, at: Bench.start)
    #expect(full.moment(of: 5, from: Bench.start) == Bench.start)
    #expect(full.moment(of: 50, from: Bench.start) == Bench.start)
  }

  /// At that moment, and not long before, all of it is spent.
  @Test func itSaysWhenItWillBeEmpty() {
    for milliwatts in [Int64(0), 1, 2, 400, 1200, .max] {
      let budget = Budget(perDay: 172_800, at: Bench.start)
      let end = budget.end(spending: milliwatts, from: Bench.start)
      guard milliwatts > 2 else {
        #expect(end == .never, "it refills two millijoules a second")
        continue
      }
      func isLeft(_ moment: Instant) -> Bool {
        let time = (moment - Bench.start).milliseconds
        return 172_800 + time * 2 / 1000 > saturatingProduct(time, milliwatts) / 1000
      }
      #expect(!isLeft(end + .milliseconds(1)) && (milliwatts == .max || isLeft(end - .seconds(1))))
    }
  }

  @Test(arguments: [Int64.min, -1, 0, 1, .max]) func anySizeIsUsable(perDay: Int64) {
    var budget = Budget(perDay: perDay, at: Bench.start)
    budget.spend(.max, at: .never)
    #expect(budget.level(at: .never) == 0)
    #expect(budget.level(at: Instant(milliseconds: .min)) == 0)
  }
}

@Suite struct BehaviourTests {
  @Test func goodBehaviourShortensAndBadStretches() {
    var good = Behaviour()
    var bad = Behaviour()
    #expect(good.stretched(.minutes(10)) == .minutes(10))
    for _ in 0..<60 {
      good.completed(.newData, taking: .seconds(1), limit: .seconds(30))
      bad.killed()
    }
    #expect(good.stretched(.minutes(10)) < .minutes(6))
    #expect(bad.stretched(.minutes(10)) == .minutes(40))
  }

  @Test func outcomesAreWeighed() {
    var scores: [Int64] = []
    for outcome in [CallbackOutcome.newData, .noData, .failed] {
      var behaviour = Behaviour()
      behaviour.completed(outcome, taking: .seconds(1), limit: .seconds(30))
      scores.append(behaviour.score)
    }
    #expect(scores == scores.sorted(by: >))
    var slow = Behaviour()
    slow.completed(.newData, taking: .seconds(20), limit: .seconds(30))
    #expect(slow.score < scores[0])
  }

  @Test func costsAreAveraged() {
    var behaviour = Behaviour()
    for _ in 0..<50 { behaviour.spent(energy: 4000, bytes: 80_000) }
    #expect(abs(behaviour.averageEnergy - 4000) <= 4)
    #expect(abs(behaviour.averageBytes - 80_000) <= 4)
  }
}

@Suite struct RadioTests {
  private static func at(_ seconds: Int64) -> Instant { Bench.start + .seconds(seconds) }

  /// Uses are told at their ends: what is shared is counted once in whatever order they come.
  @Test func sharedTimeIsCountedOnce() {
    let uses: [(Int64, Int64)] = [(0, 20), (5, 6), (18, 19), (30, 31), (100, 110), (2, 120)]
    var random = SeededRandom(seed: 3)
    for _ in 0..<50 {
      var (radio, left, sum) = (Radio(), uses, Interval.zero)
      while !left.isEmpty {
        let (start, end) = left.remove(at: Int(random.below(Int64(left.count))))
        sum = sum + radio.use(from: Self.at(start), until: Self.at(end), tail: .seconds(5))
      }
      #expect(sum == .seconds(125))
    }
    var radio = Radio()
    #expect(radio.use(from: Self.at(0), until: Self.at(1), tail: .seconds(5)) == .seconds(6))
    #expect(radio.use(from: Self.at(7), until: Self.at(8), tail: .seconds(5)) == .seconds(6))
    #expect(radio.use(from: Self.at(3), until: Self.at(9), tail: .seconds(5)) == .seconds(2))
    #expect(radio.use(from: Self.at(3), until: Self.at(9), tail: .seconds(5)) == .zero)
  }

  @Test func overlappingUsesOfTheRadioShareItsTime() {
    var apart = Radio()
    var together = Radio()
    let tail = Interval.seconds(5)
    let first = Bench.start
    let second = first + .minutes(1)
    let alone =
      apart.use(from: first, until: first + .seconds(2), tail: tail)
      + apart.use(from: second, until: second + .seconds(2), tail: tail)
    let shared =
      together.use(from: first, until: first + .seconds(2), tail: tail)
      + together.use(from: first, until: first + .seconds(2), tail: tail)
    #expect(alone == .seconds(14))
    #expect(shared == .seconds(7))
  }

  @Test func limitsAgreeWithEachOther() {
    #expect(PhoneLimits().relationsHold)
    var limits = PhoneLimits()
    limits.fetchLead = .hours(2)
    #expect(!limits.relationsHold)
    limits = PhoneLimits()
    limits.timeZone = .hours(15)
    #expect(!limits.relationsHold)
    limits = PhoneLimits()
    for (count, hold) in [(0, false), (1, true), (limits.recentPushes, false)] {
      limits.callbacksPerApp = count
      #expect(limits.relationsHold == hold, "\(count)")
    }
    let intervals: [WritableKeyPath<PhoneLimits, Interval>] = [
      \.activityStartInterval, \.activityUpdateInterval, \.frequentUpdateInterval,
    ]
    for interval in intervals {
      for (length, hold) in [(Interval.zero, false), (.milliseconds(1), true)] {
        limits = PhoneLimits()
        limits[keyPath: interval] = length
        #expect(limits.relationsHold == hold, "\(interval) \(length)")
      }
    }
  }

  /// The app's budget or the phone's, whichever is used up for longer.
  @Test func theNextSilentPushIsAsTheScarcerBudgetHasIt() {
    for (app, phone) in [(1, 9), (9, 1)] as [(Int64, Int64)] {
      var limits = PhoneLimits()
      (limits.silentBurst, limits.phoneSilentBurst) = (app, phone)
      var bench = Bench([.ordinary()], limits: limits)
      #expect(bench.phone.nextSilent(of: mail) <= bench.now)
      bench.send(.pushReceived(.silent(1)))
      let next = bench.phone.nextSilent(of: mail)
      #expect(next > bench.now)
      bench.send(.pushReceived(.silent(2)))
      bench.wait(next - bench.now - .milliseconds(1))
      #expect(bench.reports[PushID(2)] == nil)
      bench.wait(.seconds(10))
      #expect(bench.reports[PushID(2)] == [.newData])
    }
  }

  @Test func everyLimitHasAName() {
    let names = Mirror(reflecting: PhoneLimits()).children.compactMap(\.label)
    #expect(names == PhoneLimits.slots.map(\.name))
    var limits = PhoneLimits()
    let given = [
      ("callbackTime", "45s"), ("timeZone", "-5h"), ("silentBurst", "7"), ("documents", "9"),
    ]
    for (name, text) in given {
      let isSet = limits.set(name, to: text)
      #expect(isSet, "\(name)")
    }
    #expect(limits.callbackTime == .seconds(45) && limits.timeZone == .hours(-5))
    #expect(limits.silentBurst == 7 && limits.documents == 9)
    let isSet = limits.set("timeZone", to: "2h")
    #expect(isSet && limits.timeZone == .hours(2))
    for (name, text) in [
      ("callbackTime", "soon"), ("callbackTime", "-45s"), ("silentBurst", "-1"), ("nothing", "1"),
    ] {
      let isSet = limits.set(name, to: text)
      #expect(!isSet, "\(name)")
    }
  }
}
