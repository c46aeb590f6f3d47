import Primitives
import Testing

@testable import DeviceModel

/// WWDC 2013 session 204.
@Suite struct CallbackTests {
  @Test func aSilentPushLaunchesWorksCompletesAndSuspends() {
    var bench = Bench([.ordinary()])
    bench.send(.pushReceived(.silent(1)))
    #expect(bench.state(mail) == .background)
    #expect(bench.phone.wakefulness != .asleep)
    bench.wait(.minutes(1))
    #expect(bench.state(mail) == .suspended)
    #expect(bench.phone.wakefulness == .asleep)
    let push = PushID(1)
    #expect(
      bench.steps(of: mail) == [.launched(.push(push)), .startedFresh(.locked), .suspended])
    #expect(bench.callbackSteps(of: mail) == [.began(.push(push)), .completed(.newData)])
    #expect(bench.reports == [push: [.newData]])
    #expect(bench.bannersShown.isEmpty)
    #expect(!bench.phone.isScreenOn)
    // Launching takes longer than resuming; the work begins after it.
    let done = bench.moment { if case .report = $0 { true } else { false } }
    #expect(done == Bench.start + .milliseconds(2800))
  }

  @Test func whetherItRanBeforeMakesNoDifferenceToTheApp() {
    var bench = Bench([.ordinary()])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    let first = bench.callbackSteps(of: mail)
    bench.clear()
    bench.send(.pushReceived(.silent(2)))
    bench.wait(.minutes(1))
    #expect(bench.steps(of: mail) == [.resumed(.push(PushID(2))), .suspended])
    #expect(bench.callbackSteps(of: mail).count == first.count)
  }

  @Test(arguments: CallbackOutcome.allCases) func outcomesAreReported(outcome: CallbackOutcome) {
    var bench = Bench([.ordinary { $0.onPush.outcome = .always(outcome) }])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(bench.reports == [PushID(1): [PushOutcome(outcome)]])
    #expect(bench.callbackSteps(of: mail).last == .completed(outcome))
  }

  @Test func noCallInTimeKillsAndCountsAgainstIt() {
    var bench = Bench([.ordinary { $0.onPush.handler = .never }])
    let before = bench.phone[mail]?.behaviour.score ?? 0
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.milliseconds(29_999))
    #expect(bench.state(mail) == .background)
    bench.wait(.milliseconds(1))
    #expect(bench.state(mail) == .notRunning)
    #expect(bench.callbackSteps(of: mail).last == .abandoned(.handlerNotCalled))
    #expect(bench.reports == [PushID(1): [.failed]])
    #expect((bench.phone[mail]?.behaviour.score ?? 0) < before)
  }

  @Test func workThatTakesTooLongIsKilledToo() {
    var bench = Bench([.ordinary { $0.onPush.work = .seconds(31) }])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(bench.steps(of: mail).contains(.terminated(.handlerNotCalled)))
    // What it has done until then is charged.
    #expect((bench.phone[mail]?.energy.level(at: bench.now) ?? 0) < PhoneLimits().appEnergyPerDay)
  }

  @Test func aLateCallIsInTimeOrNot() {
    for (late, reason) in [(Interval.seconds(20), nil), (.seconds(28), .handlerNotCalled)]
      as [(Interval, TerminationReason?)]
    {
      var bench = Bench([.ordinary { $0.onPush.handler = .late(late) }])
      bench.send(.pushReceived(.silent(1)))
      bench.wait(.minutes(2))
      let expected: CallbackStep = reason.map { .abandoned($0) } ?? .completed(.newData)
      #expect(bench.callbackSteps(of: mail).last == expected)
    }
  }

  @Test func overlappingCallbacksEachHaveTheirHandler() {
    var bench = Bench([.ordinary { $0.onPush.work = .seconds(10) }])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.seconds(5))
    bench.send(.pushReceived(.silent(2)))
    bench.wait(.minutes(1))
    #expect(bench.reports == [PushID(1): [.newData], PushID(2): [.newData]])
    #expect(bench.state(mail) == .suspended)
  }

  @Test func onePropertyForTheHandlerLosesTheFirst() {
    var bench = Bench([
      .ordinary {
        $0.onPush.work = .seconds(10)
        $0.handlers = .oneProperty
      }
    ])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.seconds(5))
    bench.send(.pushReceived(.silent(2)))
    bench.wait(.minutes(1))
    // The first to finish calls the second one's handler; the first one's is never called.
    #expect(bench.reports == [PushID(2): [.newData], PushID(1): [.failed]])
    #expect(bench.steps(of: mail).contains(.terminated(.handlerNotCalled)))
    // Alone, each is fine, which is why the mistake is hard to find.
    bench.clear()
    bench.send(.pushReceived(.silent(3)))
    bench.wait(.minutes(1))
    #expect(bench.reports == [PushID(3): [.newData]])
  }

  /// What is called while an app still starts waits for that, too.
  @Test(arguments: [Int64(0), 200, 5000]) func noCallOvertakesTheLaunch(apart: Int64) {
    var limits = PhoneLimits()
    limits.launchTime = .seconds(5)
    var bench = Bench([.ordinary { $0.onPush.work = .milliseconds(100) }], limits: limits)
    bench.send(.pushReceived(.alert(1, wakesApp: true)))
    bench.wait(.milliseconds(apart))
    bench.send(.pushReceived(.alert(2, wakesApp: true)))
    bench.wait(.minutes(1))
    #expect(bench.bannersShown.map(\.text) == ["message 1", "message 2"])
    let ends = bench.effects.filter {
      if case .callback(_, _, .completed) = $0.action { true } else { false }
    }.map { $0.at - Bench.start }
    #expect(ends.allSatisfy { $0 >= .milliseconds(5100) }, "\(ends)")
  }

  @Test func afterEachCompletionASnapshot() {
    var bench = Bench([.ordinary()])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(bench.phone[mail]?.snapshot?.callback != nil)
    let shots = bench.actions.filter { if case .snapshot = $0 { true } else { false } }
    #expect(shots.count == 1)
  }

  @Test func tooManyCallbacksAtOnceAreRefused() {
    var bench = Bench([.ordinary()])
    let limit = PhoneLimits().callbacksPerApp
    for id in 1...UInt64(limit + 1) { bench.send(.pushReceived(.alert(id, wakesApp: true))) }
    #expect(bench.phone.callbacks.count == limit)
    #expect(
      bench.reports == [PushID(UInt64(limit + 1)): [.notLaunched(.tooManyCallbacks)]])
    bench.wait(.minutes(1))
    #expect(bench.bannersShown.count == limit + 1)
  }

  @Test func inTheForegroundTheUserDecidesAboutTime() {
    var bench = Bench([.ordinary { $0.onPush.handler = .never }])
    bench.send(.pushReceived(.silent(1)), .unlocked, .appOpened(mail))
    bench.wait(.minutes(5))
    #expect(bench.state(mail) == .foreground)
    bench.send(.appLeft)
    bench.wait(.seconds(29))
    #expect(bench.state(mail) == .background)
    bench.wait(.seconds(1))
    #expect(bench.steps(of: mail).last == .terminated(.handlerNotCalled))
  }

  @Test func randomOutcomesFollowTheSeed() {
    func run(_ seed: UInt64) -> [PushOutcome?] {
      var bench = Bench([.ordinary { $0.onPush.outcome = .newDataPercent(50) }], seed: seed)
      for id in UInt64(1)...20 {
        bench.send(.pushReceived(.silent(id)))
        bench.wait(.hours(2))
      }
      return (1...20).flatMap { bench.reports[PushID($0)] ?? [] }
    }
    #expect(run(1) == run(1))
    #expect(run(1) != run(2))
    #expect(Set(run(1)) == [.newData, .noData])
  }
}
