import Primitives
import Testing

@testable import DeviceModel

/// WWDC 2013 session 204 and Apple, "Encrypting Your App's Files".
@Suite struct PowerTests {
  /// In low power a push waits for its end, or is run when that is over; after a restart, too.
  @Test(arguments: [false, true])
  func whatWaitsIsNotRunBehindItsExpiration(hasPowerCut: Bool) throws {
    for (lapse, outcome) in [
      (Interval.minutes(4), PushOutcome.newData), (.minutes(6), .notLaunched(.expired)),
    ] {
      var bench = Bench([.ordinary()])
      var push = RemotePush.silent(1)
      push.expiresAt = bench.phone.now + .minutes(5)
      bench.send(.lowPowerSwitched(isOn: true), .pushReceived(push))
      #expect(bench.phone[mail]?.heldPush == push)
      if hasPowerCut { try bench.powerCut(.minutes(1)) }
      bench.wait(lapse - (hasPowerCut ? .minutes(1) : .zero))
      #expect((bench.phone[mail]?.heldPush == nil) == (outcome != .newData), "at its time")
      bench.send(.lowPowerSwitched(isOn: false), .unlocked)
      bench.wait(.seconds(20))
      #expect(bench.reports[PushID(1)] == [outcome], "after \(lapse)")
    }
  }

  /// One that is tried once, with `apns-expiration: 0`, leaves alone what may wait.
  @Test func whatIsTriedOnceDoesNotWait() {
    var bench = Bench([.ordinary()])
    bench.send(.rebooted, .pushReceived(.silent(1)))
    var (once, shown) = (RemotePush.silent(2), RemotePush.alert(3, wakesApp: true))
    (once.isOnce, shown.isOnce) = (true, true)
    bench.send(.pushReceived(once), .pushReceived(shown))
    #expect(bench.bannersShown.count == 1)
    for id in [PushID(2), PushID(3)] {
      #expect(bench.reports[id] == [.notLaunched(.expired)], "\(id)")
    }
    #expect(bench.phone[mail]?.heldPush?.id == PushID(1) && bench.phone[mail]?.shownPushes == nil)
    bench.send(.unlocked)
    bench.wait(.seconds(20))
    #expect(bench.reports[PushID(1)] == [.newData])
    once.id = PushID(4)
    bench.send(.pushReceived(once))
    bench.wait(.seconds(20))
    #expect(bench.reports[PushID(4)] == [.newData], "nothing had to wait")
  }

  @Test func aVisibleOneIsShownAndDoesNotRunItsAppBehindItsExpiration() {
    var bench = Bench([.ordinary()])
    var push = RemotePush.alert(1, wakesApp: true)
    push.expiresAt = bench.phone.now + .minutes(5)
    bench.send(.rebooted, .pushReceived(push))
    #expect(bench.bannersShown.count == 1)
    bench.wait(.minutes(6))
    #expect(bench.reports[PushID(1)] == [.notLaunched(.expired)])
    bench.send(.unlocked)
    #expect(bench.state(mail) == .notRunning && bench.phone[mail]?.shownPushes == nil)
  }

  @Test func aTaskDoesNotKeepALockedPhoneAwake() {
    var bench = Bench([.ordinary { $0.onLeave.task = TaskScript(work: .seconds(60)) }])
    bench.send(.unlocked, .appOpened(mail), .locked)
    bench.wait(.seconds(10))
    #expect(bench.phone.wakefulness == .asleep)
    #expect(bench.state(mail) == .background)
    let first = bench.phone[mail]?.task?.remaining ?? .zero
    #expect(first > .seconds(50) && first < .seconds(60))
    bench.wait(.hours(1))
    #expect(bench.phone[mail]?.task?.remaining == first)
    // Whenever the phone is awake for another reason it goes on.
    var slices = 0
    while bench.phone[mail]?.task != nil, slices < 100 {
      slices += 1
      bench.send(.linkHeard)
      bench.wait(.minutes(15))
    }
    #expect((20...30).contains(slices), "\(slices) slices of two seconds")
    #expect(bench.steps(of: mail).suffix(2) == [.taskEnded, .suspended])
  }

  @Test func unlockedATaskRunsThrough() {
    var bench = Bench([.ordinary { $0.onLeave.task = TaskScript(work: .seconds(60)) }])
    bench.send(.unlocked, .appOpened(mail), .appLeft)
    bench.wait(.seconds(59))
    #expect(bench.state(mail) == .background)
    bench.wait(.seconds(1))
    #expect(bench.state(mail) == .suspended)
  }

  @Test func aTaskThatOverrunsIsExpiredOrKilled() {
    for endsInTime in [true, false] {
      var bench = Bench([
        .ordinary {
          $0.onLeave.task = TaskScript(work: .minutes(10), endsInTime: endsInTime)
        }
      ])
      bench.send(.unlocked, .appOpened(mail), .appLeft)
      bench.wait(.minutes(4))
      #expect(bench.state(mail) == (endsInTime ? .suspended : .notRunning))
      #expect(
        bench.steps(of: mail).contains(endsInTime ? .taskExpired : .terminated(.taskOverran)))
      let score = bench.phone[mail]?.behaviour.score
      #expect(score == Behaviour().score / (endsInTime ? 1 : 2))
    }
  }

  @Test func aTaskFromACallbackGetsSeconds() {
    var bench = Bench([.ordinary { $0.onPush.task = TaskScript(work: .minutes(1)) }])
    bench.send(.unlocked, .pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(bench.steps(of: mail).contains(.taskExpired))
    let began = bench.moment { $0 == .app(mail, .taskBegan(.minutes(1))) }
    let ended = bench.moment { $0 == .app(mail, .taskExpired) }
    #expect(began.map { $0 + .seconds(10) } == ended)
  }

  @Test func comingBackEndsTheNeedForATask() {
    var bench = Bench([.ordinary { $0.onLeave.task = TaskScript(work: .minutes(1)) }])
    bench.send(.unlocked, .appOpened(mail), .appLeft, .appOpened(mail))
    bench.wait(.minutes(10))
    #expect(bench.state(mail) == .foreground)
    #expect(bench.phone[mail]?.task == nil)
  }

  @Test func theRelayIsToldOfTheCondition() {
    var bench = Bench([.ordinary()])
    bench.send(.unlocked, .chargerChanged(isConnected: true), .lowPowerSwitched(isOn: true))
    bench.send(.networkChanged(.cellular), .locked)
    let conditions = bench.actions.compactMap {
      if case .condition(let condition) = $0 { condition } else { nil }
    }
    #expect(
      conditions == [
        DeviceCondition(power: .battery, network: .wifi, screen: .on),
        DeviceCondition(power: .charging, network: .wifi, screen: .on),
        DeviceCondition(power: .low, network: .wifi, screen: .on),
        DeviceCondition(power: .low, network: .cellular, screen: .on),
        DeviceCondition(power: .low, network: .cellular, screen: .off),
      ])
  }

  /// With exactly what a run takes there is enough, of the app's and of the phone's.
  @Test func whatJustSufficesSuffices() {
    var bench = Bench([.ordinary()])
    bench.send(.networkChanged(.cellular))
    for isEnergy in [true, false] {
      for isApps in [true, false] {
        var phone = bench.phone
        let behaviour = phone.apps[0].behaviour
        let need = max(1, isEnergy ? behaviour.averageEnergy : behaviour.averageBytes)
        var budget = Budget(perDay: need * 10, at: bench.now)
        budget.spend(need * 9, at: bench.now)
        func set(_ budget: Budget) {
          switch (isEnergy, isApps) {
          case (true, true): phone.apps[0].energy = budget
          case (true, false): phone.energy = budget
          case (false, true): phone.apps[0].data = budget
          case (false, false): phone.data = budget
          }
        }
        set(budget)
        #expect(phone.shortage(0) == nil, "\(isEnergy), \(isApps)")
        budget.spend(1, at: bench.now)
        set(budget)
        #expect(phone.shortage(0)?.isEnergy == isEnergy, "\(isApps)")
      }
    }
  }

  @Test func workCostsEnergyOnBatteryAndDataOverCellular() {
    func spent(_ events: PhoneEvent...) -> (energy: Int64, data: Int64) {
      var bench = Bench([.ordinary()])
      for event in events { bench.send(event) }
      bench.send(.pushReceived(.silent(1)))
      bench.wait(.seconds(10))
      let limits = PhoneLimits()
      let app = bench.phone[mail]
      let phone = limits.phoneEnergyPerDay - bench.phone.energy.level(at: bench.now)
      let energy = limits.appEnergyPerDay - (app?.energy.level(at: bench.now) ?? 0)
      #expect(phone <= energy + 1)
      return (energy, limits.appDataPerDay - (app?.data.level(at: bench.now) ?? 0))
    }
    let wifi = spent()
    let cellular = spent(.networkChanged(.cellular))
    let charging = spent(.chargerChanged(isConnected: true))
    #expect(wifi.energy > 0 && wifi.data == 0)
    #expect(cellular.energy > wifi.energy && cellular.data > 0)
    #expect(charging.energy == 0)
  }

  @Test(arguments: DataProtection.allCases)
  func whatCanBeReadAndWritten(protection: DataProtection) {
    let readable = LockState.allCases.filter { protection.isReadable($0) }
    let writable = LockState.allCases.filter { protection.isWritable($0) }
    switch protection {
    case .complete:
      #expect(readable == [.unlocked])
      #expect(writable == [.unlocked])
    case .unlessOpen:
      #expect(readable == [.unlocked])
      #expect(writable == LockState.allCases)
    case .untilFirstUnlock:
      #expect(readable == [.locked, .unlocked])
      #expect(writable == readable)
    case .none:
      #expect(readable == LockState.allCases)
      #expect(writable == readable)
    }
  }

  @Test func backgroundWorkWhileLockedNeedsTheRightProtection() {
    for (reads, writes, isFine) in [
      (DataProtection.untilFirstUnlock, DataProtection.unlessOpen, true),
      (.complete, .unlessOpen, false), (.untilFirstUnlock, .complete, false),
    ] {
      var bench = Bench([
        .ordinary {
          $0.onPush.reads = reads
          $0.onPush.writes = writes
        }
      ])
      bench.send(.pushReceived(.silent(1)))
      bench.wait(.minutes(1))
      #expect(bench.reports == [PushID(1): [isFine ? .newData : .failed]])
      // Unlocked everything works.
      bench.send(.unlocked, .pushReceived(.silent(2)))
      bench.wait(.minutes(1))
      #expect(bench.reports[PushID(2)] == [.newData])
    }
  }

  /// The budgets are of the background, and so is what an app is known for.
  @Test(arguments: [true, false]) func inFrontNothingIsSpent(isInFront: Bool) throws {
    var bench = Bench([.ordinary { $0.onPush.bytes = 1_000_000 }])
    bench.send(.networkChanged(.cellular), .unlocked)
    if isInFront { bench.send(.appOpened(mail)) }
    let before = try #require(bench.phone[mail])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.seconds(20))
    let after = try #require(bench.phone[mail])
    #expect(bench.reports[PushID(1)] == [.newData])
    #expect((after.energy.level(at: bench.now) == before.energy.perDay) == isInFront)
    #expect((after.data.level(at: bench.now) == before.data.perDay) == isInFront)
    #expect((after.behaviour.score == before.behaviour.score) == isInFront)
  }

  @Test func downloadsWhileLockedAreMergedAfterUnlocking() {
    var bench = Bench([.ordinary()])
    for id in UInt64(1)...2 {
      bench.send(.pushReceived(.silent(id)))
      bench.wait(.hours(1))
    }
    #expect(bench.phone[mail]?.content.files.count == 2)
    #expect(bench.phone[mail]?.content.revision == 0)
    bench.send(.unlocked)
    // Suspended, it does not run; it merges when it does.
    #expect(bench.phone[mail]?.content.files.count == 2)
    bench.send(.appOpened(mail))
    #expect(bench.merged(of: mail) == [2])
    #expect(bench.phone[mail]?.content.revision == 1)
  }
}
