import Primitives
import Testing

@testable import DeviceModel

@Suite struct LifecycleTests {
  @Test func openingUnlocks() {
    var bench = Bench([.ordinary()])
    bench.send(.appOpened(mail))
    #expect(bench.phone.lock == .unlocked)
    #expect(bench.state(mail) == .foreground)
    #expect(bench.phone.foreground == mail)
  }

  /// What the user left before locking, or the phone started anew after, is no longer in front.
  @Test(
    arguments: [
      ([.locked], mail), ([.locked, .memoryRanOut], mail), ([.appLeft, .locked], nil),
      ([.locked, .rebooted], nil), ([.locked, .appUninstalled(mail)], nil),
      ([.locked, .appUninstalled(mail), .appInstalled(.ordinary())], nil),
      ([.locked, .appOpened(news), .appLeft, .locked], nil),
    ] as [([PhoneEvent], AppID?)])
  func unlockingBringsBackWhatWasInFront(events: [PhoneEvent], front: AppID?) {
    var bench = Bench([.ordinary(), .ordinary("news")])
    bench.send(.appOpened(mail))
    for event in events {
      bench.send(event)
      bench.wait(.minutes(1))
    }
    #expect(bench.phone.foreground == nil)
    bench.send(.unlocked)
    #expect(bench.phone.foreground == front)
  }

  @Test func anotherAppIsOpenedInThePlaceOfTheOneThatWasInFront() {
    var bench = Bench([.ordinary(), .ordinary("news")])
    bench.send(.appOpened(mail), .locked)
    bench.clear()
    bench.send(.appOpened(news))
    #expect(bench.phone.foreground == news)
    #expect(bench.steps(of: mail).isEmpty)
  }

  @Test func leavingTakesASnapshotAndSuspendsAfterAMoment() {
    var bench = Bench([.ordinary()])
    bench.send(.unlocked, .appOpened(mail))
    bench.clear()
    bench.send(.appLeft)
    #expect(bench.state(mail) == .background)
    #expect(
      bench.phone[mail]?.snapshot
        == AppSnapshot(
          takenAt: bench.now, shows: .content(revision: 0, top: nil), callback: nil))
    bench.wait(.seconds(5))
    #expect(bench.state(mail) == .suspended)
    bench.clear()
    bench.send(.appOpened(mail))
    #expect(bench.steps(of: mail).first == .resumed(.user))
  }

  @Test func openingAnotherAppLeavesTheFirst() {
    var bench = Bench([.ordinary("mail"), .ordinary("news")])
    bench.send(.unlocked, .appOpened(mail), .appOpened(news))
    #expect(bench.state(mail) == .background)
    #expect(bench.phone.foreground == news)
    #expect(bench.phone.switcher.apps == [news, mail])
  }

  @Test func lockingLeavesTheAppBeforeTheKeysAreGone() {
    var bench = Bench([.ordinary { $0.interface = sampleInterface() }])
    bench.send(.unlocked, .appOpened(mail))
    bench.clear()
    bench.send(.locked)
    #expect(bench.phone.foreground == nil)
    guard case .saved? = bench.archiveSteps(of: mail).first else {
      Issue.record("not saved: \(bench.actions)")
      return
    }
  }

  /// WWDC 2013 session 204.
  @Test func aSwipedAwayAppIsLaunchedByItsUserOnly() {
    var bench = Bench([.ordinary(fetchInterval: .minimum)])
    bench.send(.unlocked, .appOpened(mail), .appSwipedAway(mail))
    #expect(bench.state(mail) == .forceQuit)
    #expect(bench.phone.switcher.apps.isEmpty)
    #expect(bench.phone[mail]?.snapshot == nil)
    bench.clear()
    bench.send(.locked, .pushReceived(.silent(1)), .pushReceived(.alert(2, wakesApp: true)))
    bench.wait(.days(3))
    #expect(bench.steps(of: mail).isEmpty)
    #expect(
      bench.reports == [
        PushID(1): [.notLaunched(.forceQuit)], PushID(2): [.notLaunched(.forceQuit)],
      ])
    #expect(bench.bannersShown.map(\.push) == [PushID(2)])
    bench.send(.rebooted, .unlocked)
    #expect(bench.state(mail) == .forceQuit)
    bench.send(.appOpened(mail))
    #expect(bench.state(mail) == .foreground)
  }

  @Test func onlyWhatIsInTheSwitcherCanBeSwipedAway() {
    var bench = Bench([.ordinary()])
    bench.send(.unlocked, .appSwipedAway(mail))
    #expect(bench.actions.contains(.ignored(.notInSwitcher)))
    #expect(bench.state(mail) == .notRunning)
  }

  @Test func swipingAwayAbandonsWhatIsUnderWay() {
    var bench = Bench([.ordinary { $0.onLeave.task = TaskScript(work: .minutes(2)) }])
    bench.send(.unlocked, .appOpened(mail), .appLeft, .pushReceived(.silent(1)))
    bench.send(.appSwipedAway(mail))
    #expect(bench.callbackSteps(of: mail).last == .abandoned(.swipedAway))
    #expect(bench.reports == [PushID(1): [.failed]])
    #expect(bench.phone[mail]?.task == nil)
  }

  @Test func memoryTakesSuspendedAppsOnly() {
    var bench = Bench([.ordinary("mail"), .ordinary("news")])
    bench.send(.unlocked, .appOpened(mail), .appOpened(news))
    bench.wait(.seconds(10))
    bench.send(.memoryRanOut)
    #expect(bench.state(mail) == .notRunning)
    #expect(bench.state(news) == .foreground)
    // It stays in the switcher and may be launched in the background.
    #expect(bench.phone.switcher.apps == [news, mail])
    bench.send(.pushReceived(.silent(1)))
    #expect(bench.state(mail) == .background)
  }

  @Test func aRebootEndsEveryProcessAndLocks() {
    var bench = Bench([.ordinary("mail"), .ordinary("news")])
    bench.send(.unlocked, .appOpened(mail), .appOpened(news))
    bench.wait(.seconds(10))
    bench.send(.rebooted)
    #expect(bench.state(mail) == .notRunning)
    #expect(bench.state(news) == .notRunning)
    #expect(bench.phone.lock == .beforeFirstUnlock)
    #expect(bench.phone[news]?.snapshot == nil)
    #expect(bench.phone[mail]?.snapshot != nil)
    bench.wait(.minutes(1))
    #expect(bench.phone.wakefulness == .asleep)
  }

  @Test func anotherVersionTakesThePlaceOfAnApp() throws {
    var bench = Bench([.ordinary { $0.interface = sampleInterface() }])
    bench.send(.unlocked, .appOpened(mail), .fetchIntervalSet(mail, .seconds(7200)))
    bench.send(.stateChanged(mail, [.set(["window", "list"], key: "row", .number(7))]))
    bench.send(.appLeft, .pushReceived(.silent(1)))
    bench.clear()
    var update = try #require(bench.phone[mail]).definition
    update.version = "2.0"
    update.fetchInterval = .minimum
    bench.send(.appInstalled(update))
    #expect(bench.steps(of: mail) == [.terminated(.updated), .installed])
    #expect(bench.callbackSteps(of: mail) == [.abandoned(.updated)])
    #expect(bench.reports == [PushID(1): [.failed]])
    #expect(bench.phone.apps.count == 1 && bench.phone[mail]?.definition == update)
    #expect(bench.phone[mail]?.fetchInterval == .seconds(7200))
    #expect(bench.phone.switcher.apps == [mail])
    // What it was doing is there again, saved by the version before.
    bench.send(.appOpened(mail))
    let shown = try #require(bench.phone[mail]).process.interface
    let list = try #require(shown.find(["window", "list"]).flatMap { shown[$0] })
    #expect(list.entries.contains { $0.key == "row" && $0.value == .number(7) })
    bench.clear()
    bench.send(.appInstalled(update))
    #expect(bench.actions == [.ignored(.alreadySo)])
  }

  @Test func anUpdateStartsNothingThatWasSwipedAway() {
    var bench = Bench([.ordinary()])
    bench.send(.unlocked, .appOpened(mail), .appSwipedAway(mail))
    bench.send(.appInstalled(.ordinary(modes: [])))
    #expect(bench.state(mail) == .forceQuit)
    #expect(bench.phone[mail]?.plan.reason == .modeMissing)
  }

  @Test func theLaunchImageIsTheSnapshotUnlessThereIsAReason() {
    var bench = Bench([.ordinary { $0.interface = sampleInterface() }])
    bench.send(.unlocked, .appOpened(mail))
    #expect(bench.steps(of: mail).contains(.launchImage(nil)))
    bench.send(.appLeft)
    bench.wait(.seconds(10))
    bench.send(.memoryRanOut)
    bench.clear()
    bench.send(.appOpened(mail))
    let shown = ScreenContent.content(revision: 0, top: nil)
    #expect(bench.steps(of: mail).contains(.launchImage(shown)))
    // Asked to ignore it once.
    bench.send(.snapshotIgnoredOnce(mail), .appLeft)
    for image in [nil, shown] {
      bench.wait(.seconds(10))
      bench.send(.memoryRanOut)
      bench.clear()
      bench.send(.appOpened(mail))
      #expect(bench.steps(of: mail).contains(.launchImage(image)))
      bench.send(.appLeft)
    }
  }

  @Test func sensitiveContentIsHidden() {
    var bench = Bench([.ordinary { $0.hidesContent = true }])
    bench.send(.unlocked, .appOpened(mail), .appLeft)
    #expect(bench.phone[mail]?.snapshot?.shows == .hidden)
  }

  @Test func whatDoesNotApplyIsSaid() {
    var bench = Bench([.ordinary()])
    let events: [(PhoneEvent, IgnoreReason)] = [
      (.appOpened(AppID(9)), .unknownApp), (.appLeft, .notRunning), (.locked, .alreadySo),
      (.appCrashed(mail), .notRunning), (.fetchIntervalSet(mail, .minimum), .notRunning),
      (.stateChanged(mail, []), .notRunning), (.snapshotIgnoredOnce(mail), .notRunning),
      (.transferQueued(mail, TransferRequest(name: "a", bytes: 1)), .notRunning),
      (.bannerOpened(BannerID(number: 5)), .unknownBanner), (.appSwipedAway(mail), .locked),
      (.networkChanged(.wifi), .alreadySo), (.chargerChanged(isConnected: false), .alreadySo),
      (.lowPowerSwitched(isOn: false), .alreadySo), (.appInstalled(.ordinary()), .alreadySo),
      (.transferEnded(TransferID(number: 1), .finished), .unknownTransfer),
      (.transferChallenged(TransferID(number: 1)), .unknownTransfer),
      (.appOpened(AppID(-1)), .unknownApp),
    ]
    for (event, reason) in events {
      bench.clear()
      bench.send(event)
      #expect(bench.actions == [.ignored(reason)], "\(event)")
    }
  }
}
