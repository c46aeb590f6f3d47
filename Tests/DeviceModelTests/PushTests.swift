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
    guard let banner = bench.phone.banners.banner(of: PushID(1)) else {
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

  @Test func aKilledAppDelaysItsBannerAtMostByTheLimit() {
    var bench = Bench([.ordinary { $0.onPush.handler = .never }])
    bench.send(.pushReceived(.alert(1, wakesApp: true)))
    bench.wait(.seconds(30))
    #expect(bench.bannersShown.map(\.isContentReady) == [false])
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
      (.lowPower, [.lowPowerSwitched(isOn: true)]),
    ]
    for (refusal, events) in cases {
      var bench = Bench([.ordinary()], limits: limits)
      for event in events { bench.send(event) }
      bench.send(.pushReceived(.silent(1)))
      bench.wait(.hours(1))
      #expect(bench.reports == [PushID(1): [.notLaunched(refusal)]])
      // Visible ones are shown all the same; Low Power Mode does not even keep them from waking.
      bench.send(.pushReceived(.alert(2, wakesApp: true)))
      bench.wait(.minutes(1))
      #expect(bench.bannersShown.count == 1)
      let expected: PushOutcome = refusal == .lowPower ? .newData : .notLaunched(refusal)
      #expect(bench.reports[PushID(2)] == [expected])
    }
    var bench = Bench([.ordinary(modes: [])])
    bench.send(.pushReceived(.silent(1)), .pushReceived(.silent(2, AppID(7))))
    #expect(bench.reports[PushID(1)] == [.notLaunched(.modeMissing)])
    #expect(bench.reports[PushID(2)] == [.notLaunched(.notInstalled)])
  }

  @Test func anEmptyBudgetRefusesUntilItFillsUp() {
    for isEnergy in [true, false] {
      var bench = Bench([
        .ordinary {
          $0.onPush.energy = isEnergy ? 500_000 : 1
          $0.onPush.bytes = isEnergy ? 0 : 80_000_000
        }
      ])
      bench.send(.networkChanged(.cellular), .pushReceived(.silent(1)))
      bench.wait(.hours(1))
      bench.send(.pushReceived(.silent(2)))
      let refusal: LaunchRefusal = isEnergy ? .energyBudget : .dataBudget
      #expect(bench.reports[PushID(2)] == [.notLaunched(refusal)])
      bench.wait(.days(1))
      bench.send(.pushReceived(.silent(3)))
      bench.wait(.minutes(1))
      #expect(bench.reports[PushID(3)] == [.newData])
    }
  }

  @Test func thePhonesOwnLimitDelaysAndKeepsTheNewest() {
    var bench = Bench([.ordinary { $0.onPush.outcome = .always(.noData) }])
    let burst = UInt64(PhoneLimits().silentBurst)
    for id in 1...burst + 2 {
      bench.send(.pushReceived(.silent(id)))
      bench.wait(.seconds(10))
    }
    #expect(bench.reports[PushID(burst + 1)] == [.notLaunched(.replaced)])
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
    bench.send(.unlocked, .appOpened(mail), .locked)
    for id in UInt64(1)...4 {
      bench.send(.pushReceived(.silent(id)))
      bench.wait(.seconds(10))
    }
    // Unlocking releases it, so the user is already there when it arrives.
    bench.send(.unlocked)
    bench.wait(.seconds(10))
    for id in UInt64(5)...8 { bench.send(.pushReceived(.silent(id))) }
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
    // The visible one took the silent one's place; both only ask the app to look.
    #expect(bench.reports == [PushID(1): [.notLaunched(.replaced)]])
    bench.send(.unlocked)
    bench.wait(.minutes(1))
    #expect(bench.reports[PushID(2)] == [.newData])
    #expect(bench.bannersShown.count == 1)
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
    var recent = RecentPushes(limit: 3)
    for number in UInt64(1)...5 { recent.add(PushID(number)) }
    recent.report(PushID(1), .newData)
    recent.report(PushID(5), .noData)
    #expect((1...5).map { recent[PushID($0)] } == [nil, nil, .open, .open, .reported(.noData)])
  }
}
