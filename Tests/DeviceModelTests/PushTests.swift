import Foundation
import Primitives
import Testing

@testable import DeviceModel

/// WWDC 2013 session 204.
@Suite struct PushTests {
  @Test func aClassicPushIsABannerAndNothingElse() {
    var bench = Bench([.ordinary()])
    var push = RemotePush.alert(1)
    push.badge = 3
    push.hasSound = true
    bench.send(.pushReceived(push))
    #expect(bench.bannersShown.map(\.text) == ["message 1"])
    #expect(bench.actions.contains(.badge(mail, 3)))
    #expect(bench.actions.contains(.sound(mail)))
    #expect(bench.phone.isScreenOn)
    #expect(bench.reports == [PushID(1): [nil]])
    #expect(bench.state(mail) == .notRunning)
    bench.wait(.minutes(1))
    #expect(!bench.phone.isScreenOn)
    #expect(bench.phone.wakefulness == .asleep)
  }

  @Test func withContentAvailableTheAppIsWokenBeforeTheBanner() {
    var bench = Bench([.ordinary()])
    bench.send(.pushReceived(.alert(1, wakesApp: true)))
    #expect(bench.bannersShown.isEmpty)
    bench.wait(.seconds(10))
    let completed = bench.actions.firstIndex {
      if case .callback(_, _, .completed) = $0 { true } else { false }
    }
    let shown = bench.actions.firstIndex { if case .banner = $0 { true } else { false } }
    #expect((completed ?? .max) < (shown ?? -1))
    #expect(bench.bannersShown.first?.isContentReady == true)
    guard let banner = bench.phone.banners.banners.last(where: { $0.push == PushID(1) }) else {
      Issue.record("no banner")
      return
    }
    bench.send(.bannerOpened(banner.id))
    #expect(bench.state(mail) == .foreground)
    #expect(bench.steps(of: mail).last == .contentShown(waited: .zero))
  }

  @Test func withoutItTheUserWaits() {
    var bench = Bench([.ordinary()])
    bench.send(.pushReceived(.alert(1)))
    guard let banner = bench.bannersShown.first else {
      Issue.record("no banner")
      return
    }
    bench.send(.bannerOpened(banner.id))
    bench.wait(.minutes(1))
    #expect(bench.steps(of: mail).last == .contentShown(waited: .seconds(3)))
  }

  @Test func withoutANetworkTheUserWaitsInVain() {
    var bench = Bench([.ordinary()])
    bench.send(.pushReceived(.alert(1)))
    guard let banner = bench.bannersShown.first else {
      Issue.record("no banner")
      return
    }
    bench.send(.bannerOpened(banner.id), .networkChanged(.airplane))
    bench.wait(.minutes(1))
    #expect(bench.state(mail) == .foreground)
    #expect(!bench.steps(of: mail).contains { if case .contentShown = $0 { true } else { false } })
  }

  @Test func aKilledAppDelaysItsBannerAtMostByTheLimit() {
    var bench = Bench([.ordinary { $0.onPush.handler = .never }])
    bench.send(.pushReceived(.alert(1, wakesApp: true)))
    bench.wait(.seconds(30))
    #expect(bench.bannersShown.map(\.isContentReady) == [true], "it wrote what it loaded")
  }

  @Test func silentPushesStayInTheDark() {
    var bench = Bench([.ordinary()])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(bench.bannersShown.isEmpty)
    let lit = bench.actions.contains {
      if case .condition(let condition) = $0 { condition.screen == .on } else { false }
    }
    #expect(!lit)
  }

  // MARK: Priority 1

  /// Its banner is there when the user looks, and lights nothing.
  @Test(arguments: [nil, 1, 5, 10]) func priorityOneLightsNoScreen(priority: Int?) {
    var bench = Bench([.ordinary()])
    var push = RemotePush.alert(1)
    (push.priority, push.hasSound, push.badge) = (priority, true, 2)
    bench.send(.pushReceived(push))
    let isQuiet = priority == 1
    #expect(bench.phone.isScreenOn == !isQuiet)
    #expect((bench.phone.wakefulness == .asleep) == isQuiet)
    #expect(bench.actions.contains(.sound(mail)) == !isQuiet)
    #expect(bench.actions.contains(.badge(mail, 2)))
    #expect(bench.bannersShown.map { $0.isQuiet == true } == [isQuiet])
    #expect(bench.reports == [PushID(1): [nil]])
  }

  @Test func inTheHandPriorityOneIsLikeAnyOther() {
    var bench = Bench([.ordinary()])
    var push = RemotePush.alert(1)
    (push.priority, push.hasSound) = (1, true)
    bench.send(.unlocked, .pushReceived(push))
    #expect(bench.bannersShown.map(\.isQuiet) == [nil] && bench.actions.contains(.sound(mail)))
  }

  /// Shown at once, and its app is run with what next wakes the phone.
  @Test(arguments: [true, false]) func priorityOneRunsItsAppWhenThePhoneIsAwake(isSilent: Bool) {
    var bench = Bench([.ordinary()])
    var push = isSilent ? RemotePush.silent(1) : .alert(1, wakesApp: true)
    push.priority = 1
    bench.send(.pushReceived(push))
    bench.wait(.hours(1))
    #expect(bench.bannersShown.count == (isSilent ? 0 : 1) && bench.reports.isEmpty)
    #expect(bench.actions.contains(.decision(mail, PushID(1), .waits(.nextWake, until: nil))))
    bench.send(.linkHeard)
    bench.wait(.minutes(1))
    #expect(bench.reports == [PushID(1): [.newData]])
    #expect(bench.bannersShown.count == (isSilent ? 0 : 1), "shown once")
  }

  /// Awake it waits for its power as any silent push does, and nothing is said at each wake.
  @Test func whatWaitsForPowerIsNotJudgedAtEachWake() {
    var bench = Bench([.ordinary()])
    var push = RemotePush.silent(1)
    push.priority = 1
    bench.send(.lowPowerSwitched(isOn: true))
    bench.wait(.minutes(1))
    bench.send(.pushReceived(push))
    for _ in 0..<5 {
      bench.send(.linkHeard)
      bench.wait(.minutes(15))
    }
    let decisions = bench.actions.filter { if case .decision = $0 { true } else { false } }
    #expect(decisions.count == 1 && bench.reports.isEmpty)
    bench.send(.lowPowerSwitched(isOn: false), .linkHeard)
    bench.wait(.minutes(1))
    #expect(bench.reports == [PushID(1): [.newData]])
  }

  @Test func inTheForegroundNothingIsAnnounced() {
    var bench = Bench([.ordinary()])
    bench.send(.unlocked, .appOpened(mail), .pushReceived(.alert(1, wakesApp: true)))
    bench.wait(.minutes(1))
    #expect(bench.bannersShown.isEmpty)
    #expect(bench.reports == [PushID(1): [.newData]])
  }

  @Test func refusalsHaveTheirReason() {
    let limits = PhoneLimits()
    let cases: [(LaunchRefusal, [PhoneEvent])] = [
      (.forceQuit, [.unlocked, .appOpened(mail), .appSwipedAway(mail), .locked]),
      (.refreshOff, [.refreshSwitched(mail, isOn: false)]),
      (.refreshOffForAll, [.refreshSwitched(nil, isOn: false)]),
    ]
    for (refusal, events) in cases {
      var bench = Bench([.ordinary()], limits: limits)
      for event in events { bench.send(event) }
      bench.send(.pushReceived(.silent(1)))
      bench.wait(.hours(1))
      #expect(bench.reports == [PushID(1): [.notLaunched(refusal)]])
      // Visible ones are shown all the same.
      bench.send(.pushReceived(.alert(2, wakesApp: true)))
      bench.wait(.minutes(1))
      #expect(bench.bannersShown.count == 1)
      #expect(bench.reports[PushID(2)] == [.notLaunched(refusal)])
    }
    var bench = Bench([.ordinary(modes: [])])
    bench.send(.pushReceived(.silent(1)), .pushReceived(.silent(2, AppID(7))))
    #expect(bench.reports[PushID(1)] == [.notLaunched(.modeMissing)])
    #expect(bench.reports[PushID(2)] == [.notLaunched(.notInstalled)])
  }

  /// Low Power Mode holds the newest, over a restart too, and gives it to its app afterwards.
  @Test func lowPowerDelaysAndLosesNothing() throws {
    var bench = Bench([.ordinary()])
    bench.send(.lowPowerSwitched(isOn: true))
    for hour in UInt64(1)...23 {
      bench.send(.pushRode(.silent(hour)))
      bench.wait(.hours(1))
    }
    #expect(bench.reports[PushID(22)] == [.replaced(by: PushID(23))])
    #expect(decisions(bench)[PushID(23)] == [.waits(.lowPower, until: nil)])
    bench.send(.pushReceived(.alert(24)))
    // Before the first unlock, and in a life after this one, it still waits.
    bench.send(.rebooted)
    let memory = try JSONDecoder().decode(
      PhoneMemory.self, from: JSONEncoder().encode(bench.phone.memory()))
    bench.phone = Phone(restoring: memory, at: bench.now, into: &bench.effects)
    bench.send(.unlocked)
    bench.wait(.hours(1))
    #expect(bench.reports[PushID(23)] == nil)
    bench.send(.lowPowerSwitched(isOn: false))
    bench.wait(.minutes(1))
    #expect(bench.reports[PushID(23)] == [.newData])
    #expect(bench.reports.count == 24, "each has come to an end")
  }

  @Test func anEmptyBudgetDelaysUntilItFillsUpOrACharger() {
    for isEnergy in [true, false] {
      for isRelieved in [true, false] {
        var bench = Bench([
          .ordinary {
            $0.onPush.energy = isEnergy ? 500_000 : 1
            $0.onPush.bytes = isEnergy ? 0 : 80_000_000
          }
        ])
        bench.send(.networkChanged(.cellular), .pushReceived(.silent(1)))
        bench.wait(.hours(1))
        bench.send(.pushReceived(.silent(2)))
        guard case .waits(let limit, .some)? = decisions(bench)[PushID(2)]?.first else {
          Issue.record("\(decisions(bench))")
          continue
        }
        #expect(limit == (isEnergy ? .energyBudget : .dataBudget))
        if isRelieved {
          bench.send(isEnergy ? .chargerChanged(isConnected: true) : .networkChanged(.wifi))
        } else {
          #expect(bench.reports[PushID(2)] == nil)
          bench.wait(.days(1))
        }
        bench.wait(.minutes(1))
        #expect(bench.reports[PushID(2)] == [.newData])
      }
    }
  }

  /// The radio and the processor are awake for something else: that is what riding along is for.
  @Test func whatRidesAlongRunsAndCostsNothing() {
    var bench = Bench([.ordinary()])
    for id in UInt64(1)...3 { bench.send(.pushReceived(.silent(id))) }
    bench.wait(.minutes(1))
    bench.send(.pushReceived(.silent(4)), .pushRode(.silent(5)))
    bench.wait(.minutes(1))
    #expect(bench.reports[PushID(4)] == [.replaced(by: PushID(5))])
    #expect(bench.reports[PushID(5)] == [.newData])
    let before = bench.phone[mail]?.silentAllowance
    bench.send(.pushRode(.silent(6)))
    #expect(bench.phone[mail]?.silentAllowance == before)
  }

  /// Whatever an app makes of its pushes, one that behaves never waits where another does not.
  @Test(arguments: [20, 60, 300, 600, 1200, 2400] as [Int64])
  func aGoodAppIsNeverWorseOff(seconds: Int64) {
    func waiting(_ outcome: CallbackOutcome) -> [Int64: Int64] {
      var bench = Bench([.ordinary { $0.onPush.outcome = .always(outcome) }])
      var waits: [Int64: Int64] = [:]
      for id in Int64(1)...60 {
        bench.send(.pushReceived(.silent(UInt64(id))))
        if let held = bench.phone[mail]?.heldPush { waits[id] = Int64(held.id.number) }
        bench.wait(.seconds(seconds))
      }
      return waits
    }
    let (good, middling, bad) = (waiting(.newData), waiting(.noData), waiting(.failed))
    #expect(good.count <= middling.count && middling.count <= bad.count)
    #expect((good.keys.min() ?? .max) >= (bad.keys.min() ?? .max))
    #expect(good[3] == nil, "three at once go straight through")
  }

  @Test func aBusyAppDelaysTheNewestOfItsPushes() {
    var bench = Bench([.ordinary { $0.onPush.work = .seconds(25) }])
    bench.send(.chargerChanged(isConnected: true))
    let limit = UInt64(PhoneLimits().callbacksPerApp)
    for id in 1...limit + 3 { bench.send(.pushReceived(.silent(id))) }
    #expect(bench.phone[mail]?.heldPush?.id == PushID(limit + 3))
    bench.wait(.minutes(2))
    #expect(bench.reports[PushID(limit + 2)] == [.replaced(by: PushID(limit + 3))])
    #expect(bench.reports[PushID(limit + 3)] == [.newData])
  }

  @Test func whatComesLateDoesNotReplaceTheNewer() {
    var bench = Bench([.ordinary()])
    for id in UInt64(1)...3 { bench.send(.pushReceived(.silent(id))) }
    var (older, newer) = (RemotePush.silent(4), RemotePush.silent(5))
    older.acceptedAt = Bench.start
    newer.acceptedAt = Bench.start + .seconds(2)
    bench.send(.pushReceived(newer), .pushReceived(older))
    #expect(bench.reports[PushID(4)] == [.replaced(by: PushID(5))])
    bench.wait(.hours(1))
    #expect(bench.reports[PushID(5)] == [.newData])
  }

  @Test func whileThePhoneIsInUseNothingWaits() {
    var bench = Bench([.ordinary()])
    bench.send(.unlocked)
    for id in UInt64(1)...20 {
      bench.send(.pushReceived(.silent(id)))
      bench.wait(.seconds(10))
      #expect(bench.reports[PushID(id)] == [.newData])
    }
    bench.send(.locked)
    bench.wait(.minutes(1))
    bench.send(.pushReceived(.silent(21)))
    bench.wait(.minutes(1))
    #expect(bench.reports[PushID(21)] == [.newData], "what cost nothing is not counted")
  }

  @Test func thePhonesOwnLimitDelaysAndKeepsTheNewest() {
    var bench = Bench([.ordinary { $0.onPush.outcome = .always(.noData) }])
    let burst = UInt64(PhoneLimits().silentBurst)
    for id in 1...burst + 2 {
      bench.send(.pushReceived(.silent(id)))
      bench.wait(.seconds(10))
    }
    #expect(bench.reports[PushID(burst + 1)] == [.replaced(by: PushID(burst + 2))])
    #expect(bench.reports[PushID(burst + 2)] == nil)
    #expect(bench.phone[mail]?.heldPush?.id == PushID(burst + 2))
    bench.wait(.hours(1))
    #expect(bench.reports[PushID(burst + 2)] == [.noData])
  }

  private func decisions(_ bench: Bench) -> [PushID: [PushDecision]] {
    var all: [PushID: [PushDecision]] = [:]
    for case .decision(_, let push, let decision) in bench.actions {
      all[push, default: []].append(decision)
    }
    return all
  }

  /// What waits says so at once: why, and until when; then that its app runs.
  @Test func whatWaitsSaysWhyAndUntilWhen() throws {
    var bench = Bench([.ordinary()])
    for id in UInt64(1)...4 { bench.send(.pushReceived(.silent(id))) }
    let waits = decisions(bench)
    #expect(waits.keys.map { $0 } == [PushID(4)])
    guard case .waits(.app, let until?)? = waits[PushID(4)]?.first else {
      Issue.record("\(waits)")
      return
    }
    #expect(until > bench.now)
    // How the app behaves meanwhile may put it off: then that is said, too.
    for _ in 0..<180 where bench.reports[PushID(4)] == nil { bench.wait(.minutes(1)) }
    #expect(bench.now >= until)
    let all = try #require(decisions(bench)[PushID(4)])
    #expect(all.last == .runs && all.count { $0 == .runs } == 1)
    #expect(bench.reports[PushID(4)]?.count == 1)
  }

  @Test func allAppsTogetherHaveALimitOfTheirOwn() {
    let names = (0..<8).map { "app\($0)" }
    var bench = Bench(names.map { .ordinary($0) })
    var id = UInt64(0)
    for app in 0..<8 {
      for _ in 0..<2 {
        id += 1
        var push = RemotePush.silent(id)
        push.app = AppID(app)
        bench.send(.pushReceived(push))
      }
    }
    guard case .waits(.phone, .some)? = decisions(bench)[PushID(16)]?.first else {
      Issue.record("\(decisions(bench))")
      return
    }
  }

  @Test func beforeTheFirstUnlockItWaitsForThat() {
    var bench = Bench([.ordinary()])
    bench.send(.rebooted, .pushReceived(.silent(1)))
    #expect(decisions(bench)[PushID(1)] == [.waits(.firstUnlock, until: nil)])
    bench.send(.unlocked)
    #expect(decisions(bench)[PushID(1)]?.last == .runs)
  }

  @Test func aHeldPushIsReleasedWhenThePhoneIsInUseAnyway() {
    var bench = Bench([.ordinary()])
    for id in UInt64(1)...4 {
      bench.send(.pushReceived(.silent(id)))
      bench.wait(.seconds(10))
    }
    #expect(bench.phone[mail]?.heldPush != nil)
    bench.send(.unlocked)
    bench.wait(.seconds(10))
    #expect(bench.reports[PushID(4)] == [.newData])
  }

  @Test func aHeldPushIsRefusedWhenItsAppIsSwipedAway() {
    var bench = Bench([.ordinary()])
    bench.send(.appOpened(mail), .appLeft, .locked)
    for id in UInt64(1)...4 {
      bench.send(.pushReceived(.silent(id)))
      bench.wait(.seconds(10))
    }
    // Unlocking releases it; low power holds another.
    bench.send(.unlocked)
    bench.wait(.seconds(10))
    bench.send(.lowPowerSwitched(isOn: true), .pushReceived(.silent(8)))
    #expect(bench.phone[mail]?.heldPush?.id == PushID(8))
    bench.send(.appSwipedAway(mail))
    #expect(bench.reports[PushID(8)] == [.notLaunched(.forceQuit)])
    #expect(bench.phone[mail]?.heldPush == nil)
  }

  @Test func onChargerAndWiFiThereIsNoLimit() {
    var bench = Bench([.ordinary()])
    bench.send(.chargerChanged(isConnected: true))
    for id in UInt64(1)...50 {
      bench.send(.pushReceived(.silent(id)))
      bench.wait(.seconds(10))
    }
    #expect(bench.reports.values.allSatisfy { $0 == [.newData] })
  }

  @Test func badBehaviourStretchesTheLimit() {
    func launches(_ change: (inout AppScript) -> Void) -> Int {
      var bench = Bench([.ordinary("app", change)])
      for id in UInt64(1)...200 {
        bench.send(.pushReceived(.silent(id)))
        bench.wait(.minutes(5))
      }
      return bench.callbackSteps(of: mail).count { if case .began = $0 { true } else { false } }
    }
    let good = launches { _ in }
    let bad = launches { $0.onPush.handler = .never }
    #expect(good > bad * 3, "\(good) and \(bad)")
    #expect(bad > 0)
  }

  @Test func beforeTheFirstUnlockNoKeyIsThereSoItWaits() {
    var bench = Bench([.ordinary()])
    bench.send(.rebooted, .pushReceived(.silent(1)), .pushReceived(.alert(2, wakesApp: true)))
    bench.wait(.hours(1))
    #expect(bench.steps(of: mail).isEmpty)
    #expect(bench.bannersShown.count == 1)
    bench.send(.pushReceived(.alert(3, wakesApp: true)), .lowPowerSwitched(isOn: true))
    #expect(bench.reports.isEmpty && bench.bannersShown.count == 2)
    // Visible ones wake for each, whatever the power; the silent one waits for that.
    bench.send(.unlocked)
    bench.wait(.minutes(1))
    #expect(bench.reports == [PushID(2): [.newData], PushID(3): [.newData]])
    #expect(bench.bannersShown.count == 2)
    #expect(bench.phone.banners.banners.map(\.isContentReady) == [true, true])
    bench.send(.lowPowerSwitched(isOn: false))
    bench.wait(.minutes(1))
    #expect(bench.reports[PushID(1)] == [.newData])
  }

  /// An app that takes its time does not keep the news from its user.
  @Test func aBannerWaitsForItsAppOnlySoLong() throws {
    var bench = Bench([.ordinary { $0.onPush.work = .seconds(25) }])
    bench.send(.pushReceived(.alert(1, wakesApp: true)))
    bench.wait(.seconds(14))
    #expect(bench.bannersShown.isEmpty)
    bench.wait(.seconds(1))
    #expect(bench.bannersShown.map(\.isContentReady) == [false])
    bench.wait(.seconds(12))
    #expect(bench.bannersShown.count == 1)
    let banner = try #require(bench.phone.banners.banners.last { $0.push == PushID(1) })
    #expect(banner.isContentReady)
    bench.send(.bannerOpened(banner.id))
    #expect(bench.steps(of: mail).last == .contentShown(waited: .zero))
  }

  @Test func doublesAreDroppedAndTheReportRepeated() {
    var bench = Bench([.ordinary()])
    bench.send(.pushReceived(.silent(1)), .pushReceived(.silent(1)))
    #expect(bench.actions.contains(.ignored(.duplicatePush)))
    bench.wait(.minutes(1))
    bench.send(.pushReceived(.silent(1)))
    #expect(bench.reports == [PushID(1): [.newData, .newData]])
    #expect(bench.callbackSteps(of: mail).count == 2)
  }

  @Test func aCollapseIDReplacesTheBanner() {
    var bench = Bench([.ordinary("mail"), .ordinary("news")])
    for id in UInt64(1)...3 {
      var push = RemotePush.alert(id, id == 3 ? news : mail)
      push.collapseID = "score"
      bench.send(.pushReceived(push))
    }
    #expect(bench.phone.banners.banners.map(\.push) == [PushID(2), PushID(3)])
  }

  @Test func theListOfBannersIsBounded() {
    var limits = PhoneLimits()
    limits.banners = 3
    var bench = Bench([.ordinary()], limits: limits)
    for id in UInt64(1)...5 { bench.send(.pushReceived(.alert(id))) }
    #expect(bench.phone.banners.banners.map(\.push?.number) == [3, 4, 5])
  }

  @Test func recentPushesAreBounded() {
    var recent = RecentPushes()
    for number in UInt64(1)...5 { recent.add(PushID(number), atMost: 3) }
    recent.report(PushID(1), .newData)
    recent.report(PushID(5), .noData)
    #expect((1...5).map { recent[PushID($0)] } == [nil, nil, .open, .open, .reported(.noData)])
  }
}
