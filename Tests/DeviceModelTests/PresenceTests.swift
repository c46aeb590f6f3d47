import Primitives
import Testing

@testable import DeviceModel

/// Phones that are off, apps that are gone, places, sound, and whether an app will run.
@Suite struct PresenceTests {
  private func refusals(_ bench: Bench, _ app: AppID = mail) -> [LaunchRefusal] {
    bench.steps(of: app).compactMap { if case .notRun(_, let why) = $0 { why } else { nil } }
  }

  @Test func offNothingHappensAndOnItStartsAnew() {
    var bench = Bench([.ordinary(fetchInterval: .minimum)])
    bench.send(.unlocked, .appOpened(mail))
    bench.send(.transferQueued(mail, TransferRequest(name: "film", bytes: 10_000_000)))
    bench.wait(.seconds(1))
    bench.send(.switchedOff)
    #expect(bench.state(mail) == .notRunning && bench.phone.nextWake == nil)
    let done = bench.phone.service.transfers[0].done
    bench.clear()
    bench.wait(.days(2))
    bench.send(.unlocked, .appOpened(mail), .pushReceived(.silent(1)), .switchedOff)
    #expect(bench.actions == Array(repeating: .ignored(.switchedOff), count: 4))
    bench.send(.networkChanged(.cellular), .switchedOn)
    #expect(bench.phone.lock == .beforeFirstUnlock && bench.phone.network == .cellular)
    #expect(done > 0 && bench.phone.service.transfers[0].done == done)
    bench.wait(.seconds(20))
    #expect(bench.phone.service.endedSessions(of: mail) == ["default"])
    bench.send(.switchedOn)
    #expect(bench.actions.last == .ignored(.alreadySo))
  }

  @Test func ofWhatIsUninstalledNothingStays() throws {
    var bench = Bench([
      .ordinary("mail") { $0.interface = sampleInterface() }, .ordinary("news"),
    ])
    bench.use(mail)
    #expect(bench.phone.vault.holds(mail))
    bench.send(.unlocked, .appOpened(mail))
    bench.send(.transferQueued(mail, TransferRequest(name: "film", bytes: .max)))
    bench.send(.document(.created(by: mail, name: "plan", bytes: 7)))
    bench.send(.pushReceived(.alert(1)), .locked, .pushReceived(.alert(2)), .appUninstalled(mail))
    let phone = bench.phone
    #expect(phone.service.transfers.isEmpty && phone.documents.documents.isEmpty)
    #expect(phone.banners.banners.isEmpty && !phone.vault.holds(mail) && phone.callbacks.isEmpty)
    #expect(
      !phone.switcher.apps.contains(mail) && phone.backgroundRefusal(of: mail) == .notInstalled)
    bench.clear()
    bench.send(.pushReceived(.silent(3)), .unlocked, .appOpened(mail), .regionEntered(mail))
    #expect(bench.reports == [PushID(3): [.notLaunched(.notInstalled)]])
    #expect(bench.actions.count { $0 == .ignored(.unknownApp) } == 2)
    let definition = try #require(phone[mail]).definition
    bench.send(.appInstalled(definition), .pushReceived(.silent(4)))
    bench.wait(.seconds(10))
    #expect(bench.reports[PushID(4)] == [.newData] && bench.phone[mail]?.content.revision == 1)
  }

  @Test func aPlaceStartsWhatItsUserHasNotSwipedAway() {
    var bench = Bench([.ordinary(modes: .location), .ordinary("news")])
    bench.send(.regionEntered(mail))
    bench.wait(.seconds(5))
    #expect(bench.callbackSteps(of: mail) == [.began(.region), .completed(.newData)])
    bench.use(mail)
    bench.send(.refreshSwitched(mail, isOn: false), .regionEntered(mail))
    bench.send(.refreshSwitched(mail, isOn: true), .unlocked, .appSwipedAway(mail))
    bench.send(.regionEntered(mail), .regionEntered(news), .rebooted, .regionEntered(mail))
    #expect(refusals(bench) == [.refreshOff, .forceQuit, .beforeFirstUnlock])
    #expect(refusals(bench, news) == [.locationModeMissing])
    #expect(bench.callbackSteps(of: mail).count == 2)
  }

  @Test(arguments: [BackgroundModes.audio, .fetch])
  func soundNeedsItsMode(modes: BackgroundModes) {
    var bench = Bench([.ordinary(modes: modes)])
    bench.send(.unlocked, .appOpened(mail), .audioSwitched(mail, isOn: true), .locked)
    bench.wait(.hours(1))
    let plays = modes == .audio
    #expect(bench.state(mail) == (plays ? .background : .suspended))
    #expect((bench.phone.wakefulness != .asleep) == plays)
    #expect(bench.steps(of: mail).contains(.audio(isOn: false)) == !plays)
    guard plays else { return }
    bench.send(.audioSwitched(mail, isOn: true), .audioSwitched(mail, isOn: false))
    #expect(bench.actions.contains(.ignored(.alreadySo)) && bench.state(mail) == .suspended)
    bench.wait(.minutes(1))
    #expect(bench.phone.wakefulness == .asleep)
  }

  @Test func anIssueADayOnWiFi() {
    var bench = Bench([.ordinary(modes: .newsstand)])
    bench.send(.networkChanged(.cellular), .pushReceived(.silent(1)))
    bench.send(.networkChanged(.wifi), .pushReceived(.silent(2)))
    bench.wait(.hours(23))
    bench.send(.pushReceived(.silent(3)))
    bench.wait(.hours(1))
    bench.send(.pushReceived(.silent(4)))
    bench.wait(.seconds(10))
    #expect(
      (1...4).map { bench.reports[PushID($0)] } == [
        [.notLaunched(.newsstandNeedsWiFi)], [.newData], [.notLaunched(.newsstandOncePerDay)],
        [.newData],
      ])
  }

  @Test func beforeTheFirstUnlockNothingRuns() throws {
    var bench = Bench([.ordinary()])
    bench.send(.unlocked)
    #expect(bench.phone.backgroundRefusal(of: mail) == nil)
    try bench.powerCut(.hours(1))
    #expect(bench.phone.backgroundRefusal(of: mail) == .beforeFirstUnlock)
  }

  /// The answer is the truth: what the phone says before is what becomes of the next silent push.
  @Test func whetherItWillRunIsKnownBefore() {
    let changes: [(PhoneEvent, LaunchRefusal?)] = [
      (.linkHeard, nil), (.lowPowerSwitched(isOn: true), .lowPower),
      (.refreshSwitched(nil, isOn: false), .refreshOffForAll),
      (.refreshSwitched(mail, isOn: false), .refreshOff), (.appSwipedAway(mail), .forceQuit),
    ]
    for (change, refusal) in changes {
      var bench = Bench([.ordinary()])
      bench.use(mail)
      bench.send(.unlocked, change)
      #expect(bench.phone.backgroundRefusal(of: mail) == refusal)
      bench.send(.pushReceived(.silent(1)))
      bench.wait(.seconds(10))
      // Want of power delays, anything else refuses.
      let isDelayed = bench.phone[mail]?.heldPush != nil
      #expect(isDelayed == (refusal == .lowPower))
      #expect(
        bench.reports[PushID(1)]
          == (isDelayed ? nil : [refusal.map { .notLaunched($0) } ?? .newData]))
    }
    var bench = Bench([.ordinary(modes: [])])
    bench.send(.unlocked, .appOpened(mail), .backgroundAsked(mail))
    #expect(bench.steps(of: mail).last == .asked(.noModes))
    bench.send(.locked)
    bench.wait(.minutes(1))
    bench.send(.backgroundAsked(mail))
    #expect(bench.actions.last == .ignored(.notRunning), "only what runs can ask")
  }

  // MARK: What it costs

  @Test func costAndStandingAreTold() {
    var bench = Bench([.ordinary(), .ordinary("news") { $0.onPush.handler = .never }])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.seconds(10))
    #expect(
      bench.actions.contains(
        .app(mail, .judged(before: 500, after: 562, silentInterval: .milliseconds(1_125_600)))))
    bench.send(.pushReceived(.silent(2, news)))
    bench.wait(.minutes(1))
    #expect(
      bench.actions.contains(
        .app(news, .judged(before: 500, after: 250, silentInterval: .minutes(50)))))
  }

  /// Two calls at once pay for one radio, however far they overlap.
  @Test func callsThatOverlapShareTheRadio() {
    for apart in stride(from: Int64(0), through: 10_000, by: 500) {
      var bench = Bench([.ordinary(), .ordinary("news")])
      bench.send(.networkChanged(.cellular), .pushReceived(.silent(1)))
      bench.wait(.milliseconds(apart))
      bench.send(.pushReceived(.silent(2, news)))
      bench.wait(.minutes(1))
      let times = bench.actions.compactMap { action -> Interval? in
        if case .app(_, .spent(_, _, let radio)) = action { radio } else { nil }
      }
      let total = times.map(\.milliseconds).reduce(0, +)
      // Launch and work take 2.8 s, the tail 5 s.
      #expect(times.count == 2 && total == 7800 + min(apart, 7800), "\(apart) ms apart: \(times)")
    }
  }

  // MARK: Transfers in trouble

  @Test(arguments: [true, false]) func whatBreaksOffIsTriedAgain(resumes: Bool) {
    var bench = Bench([.ordinary()])
    var request = TransferRequest(name: "film", bytes: 5_000_000, resumes: resumes)
    request.breaksAt = 2_000_000
    bench.send(.unlocked, .appOpened(mail), .transferQueued(mail, request))
    bench.wait(.minutes(1))
    let steps = bench.actions.compactMap { action -> TransferStep? in
      if case .transfer(_, _, let step) = action { step } else { nil }
    }
    #expect(
      steps.dropFirst() == [
        .started(offset: 0), .brokeOff(offset: 2_000_000),
        .started(offset: resumes ? 2_000_000 : 0), .ended(.finished),
      ])
  }

  @Test func aServerWithMoreThanItSaidAndAWrongAnswer() {
    var bench = Bench([.ordinary { $0.onAuthentication = .wrong(after: .seconds(1)) }])
    var large = TransferRequest(session: "a", name: "film", bytes: 1000)
    large.actualBytes = 1001
    let secret = TransferRequest(
      session: "b", name: "key", bytes: 1000, demandsCredentials: true)
    bench.send(.unlocked, .appOpened(mail), .transferQueued(mail, large))
    bench.send(.transferQueued(mail, secret))
    bench.wait(.minutes(1))
    let ends = bench.actions.compactMap { action -> TransferResult? in
      if case .transfer(_, _, .ended(let result)) = action { result } else { nil }
    }
    #expect(ends == [.tooLarge, .notAuthenticated])
  }

  /// The app need not be allowed to run in the background for what comes while it is in front.
  @Test(arguments: [true, false]) func inFrontNoModeIsNeeded(isInFront: Bool) {
    var bench = Bench([.ordinary(modes: [])])
    bench.send(.unlocked, .appOpened(mail))
    if !isInFront { bench.send(.appLeft) }
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(bench.reports == [PushID(1): [isInFront ? .newData : .notLaunched(.modeMissing)]])
  }

  @Test func noIconHasLessThanNothing() {
    var bench = Bench([.ordinary()])
    var push = RemotePush.alert(1)
    for badge in [3, -2] {
      push = RemotePush(id: PushID(UInt64(badge + 9)), app: mail, badge: badge)
      bench.send(.pushReceived(push))
    }
    #expect(
      bench.actions.filter { if case .badge = $0 { true } else { false } }
        == [.badge(mail, 3), .badge(mail, 0)])
    bench.send(
      .pushReceived(RemotePush(id: PushID(99), app: mail, badge: 4)), .appUninstalled(mail))
    #expect(bench.phone.apps[0].badge == 0)
  }
}
