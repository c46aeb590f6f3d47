import Primitives
import Testing

@testable import DeviceModel

/// Live Activities on a phone (ActivityKit).
@Suite struct ActivityTests {
  private let first = ActivityID(1)
  private let object = Array(#"{"a":1}"#.utf8)

  private func bench(
    types: [String] = ["Order"], isFrequent: Bool = false, limits: PhoneLimits = PhoneLimits(),
    _ change: (inout AppScript) -> Void = { _ in }
  ) -> Bench {
    var app = AppDefinition.ordinary("com.example.shop", change)
    app.activities = ActivityPlan(types: types, isFrequent: isFrequent)
    return Bench([app], limits: limits)
  }

  private func start(_ id: UInt64, at seconds: Int64 = 0, app: AppID = mail) -> ActivityPush {
    var push = ActivityPush(id: PushID(id), app: app, to: .start("Order"), .start)
    (push.type, push.timestamp) = ("Order", seconds)
    (push.attributes, push.content) = (object, Array(#"{"s":"ordered"}"#.utf8))
    push.alert = "Ordered"
    return push
  }

  private func update(
    _ id: UInt64, _ status: String?, at seconds: Int64 = 1, _ deed: ActivityPush.Deed = .update,
    of activity: ActivityID = ActivityID(1)
  ) -> ActivityPush {
    var push = ActivityPush(id: PushID(id), app: mail, to: .update(activity), deed)
    push.timestamp = seconds
    push.content = status.map { Array(#"{"s":"\#($0)"}"#.utf8) }
    return push
  }

  private func shown(_ bench: Bench, _ id: ActivityID = ActivityID(1)) -> String? {
    bench.phone[mail]?.live[id].map { String(decoding: $0.content, as: UTF8.self) }
  }

  private func steps(_ bench: Bench) -> [ActivityStep] {
    bench.actions.compactMap { if case .activity(mail, let step) = $0 { step } else { nil } }
  }

  private func send(_ push: ActivityPush, _ bench: inout Bench, rides: Bool = false) {
    bench.send(.activity(.pushed(push, rides: rides)))
  }

  private func outcome(_ push: UInt64, _ bench: Bench) -> PushOutcome? {
    bench.reports[PushID(push)]?.last ?? nil
  }

  @Test func aStartIsShownAndRunsTheAppForItsToken() {
    var bench = bench()
    var push = start(1)
    push.alert = "Ordered"
    send(push, &bench)
    #expect(outcome(1, bench) == .shown)
    #expect(shown(bench) == #"{"s":"ordered"}"#)
    #expect(bench.bannersShown.map(\.text) == ["Ordered"])
    #expect(bench.phone.addresses(of: mail) == [.start("Order")], "the app has not read it yet")
    bench.wait(.seconds(10))
    #expect(bench.steps(of: mail).first == .launched(.activity))
    #expect(bench.phone.addresses(of: mail) == [.start("Order"), .update(first)])
    #expect(steps(bench).contains(.address(.update(first), isValid: true)))
  }

  @Test func ofASwipedAwayAppTheTokenComesWhenItIsOpened() {
    var bench = bench()
    bench.send(.unlocked, .appOpened(mail), .appSwipedAway(mail), .locked)
    send(start(1), &bench)
    bench.wait(.minutes(1))
    #expect(outcome(1, bench) == .shown && bench.state(mail) == .forceQuit)
    #expect(bench.phone.addresses(of: mail) == [.start("Order")])
    bench.send(.unlocked, .appOpened(mail))
    #expect(bench.phone.addresses(of: mail) == [.start("Order"), .update(first)])
  }

  @Test func anAppThatCrashesOverItHandsOutNoToken() {
    var bench = bench {
      $0.onActivity = {
        var script = CallbackScript(); script.handler = .never; return script
      }()
    }
    send(start(1), &bench)
    bench.wait(.minutes(2))
    #expect(bench.state(mail) == .notRunning)
    #expect(bench.phone.addresses(of: mail) == [.start("Order")])
  }

  @Test func byBroadcastThereIsNoToken() {
    var bench = bench()
    var push = start(1)
    push.channel = "one"
    send(push, &bench)
    bench.wait(.minutes(1))
    #expect(bench.phone.addresses(of: mail) == [.start("Order"), .channel("one")])
    #expect(bench.state(mail) == .notRunning)
  }

  @Test func anAppStartsOneInTheForegroundOnly() {
    var bench = bench()
    let event = PhoneEvent.activity(
      .started(mail, type: "Order", attributes: object, content: object))
    bench.send(event)
    #expect(bench.actions == [.ignored(.notInForeground)])
    bench.send(.unlocked, .appOpened(mail), event)
    #expect(bench.phone.addresses(of: mail) == [.start("Order"), .update(first)], "at once")
    for _ in 0..<5 { bench.send(event) }
    #expect(bench.phone[mail]?.live.activities.count == 5)
    #expect(bench.actions.last == .ignored(.limitReached))
  }

  @Test func whatIsWrongWithAPushIsSaid() {
    var lacking = (1...9).map { start(UInt64($0 > 6 ? $0 + 4 : $0)) }
    lacking[0].deed = nil
    lacking[1].timestamp = nil
    lacking[2].type = nil
    lacking[3].attributes = nil
    lacking[4].content = nil
    lacking[5].type = "Match"
    lacking[6].type = "Ride"
    lacking[7].alert = nil
    lacking[8].otherType = "alert"
    let refusals: [ActivityRefusal] = [
      .lacks("event"), .lacks("timestamp"), .lacks("attributes-type"), .lacks("attributes"),
      .lacks("content-state"), .unknownType("Match"), .wrongToken, .lacks("alert"),
      .otherType("alert"),
    ]
    var bench = bench(types: ["Order", "Ride"])
    for (push, refusal) in zip(lacking, refusals) {
      send(push, &bench)
      #expect(outcome(push.id.number, bench) == .notShown(refusal))
    }
    #expect(bench.phone[mail]?.live.activities == [])
    var wrong = update(7, "packed")
    wrong.address = .start("Order")
    send(wrong, &bench)
    #expect(outcome(7, bench) == .notShown(.wrongToken))
    send(update(8, "packed"), &bench)
    #expect(outcome(8, bench) == .notShown(.unknownActivity))
    send(start(9), &bench)
    send(update(10, nil), &bench)
    #expect(outcome(10, bench) == .notShown(.lacks("content-state")))
  }

  @Test func theEleventhStartIsDroppedUntilTheBudgetIsBack() {
    var limits = PhoneLimits()
    limits.activities = 20
    var bench = bench(limits: limits)
    for id in 1...11 { send(start(UInt64(id)), &bench) }
    let until = Bench.start + .minutes(6)
    #expect((1...10).allSatisfy { outcome($0, bench) == .shown })
    #expect(outcome(11, bench) == .notShown(.startBudget(until: until)))
    #expect(bench.phone.activityBudgets(of: mail).starts == 0)
    bench.wait(.minutes(6))
    send(start(12), &bench)
    #expect(outcome(12, bench) == .shown)
  }

  @Test(arguments: [(false, true, 15), (true, true, 60), (true, false, 15)])
  func updatesOfPriorityTenHaveABudget(isFrequent: Bool, isAllowed: Bool, count: Int) {
    var bench = bench(isFrequent: isFrequent)
    if !isAllowed { bench.send(.activity(.frequentAllowed(mail, isOn: false))) }
    send(start(1), &bench)
    for id in 0..<count { send(update(UInt64(100 + id), "\(id)"), &bench) }
    send(update(900, "over"), &bench)
    guard case .notShown(.updateBudget)? = outcome(900, bench) else {
      return #expect(Bool(false), "\(String(describing: outcome(900, bench)))")
    }
    #expect(shown(bench) == #"{"s":"\#(count - 1)"}"#, "it shows what it did")
    var soft = update(901, "soft")
    soft.isUrgent = false
    send(soft, &bench)
    #expect(outcome(901, bench) == .shown, "priority 5 has none")
    send(update(902, "done", .end), &bench)
    #expect(outcome(902, bench) == .shown, "an end is not held back")
    #expect(bench.phone[mail]?.live[first]?.state == .ended)
  }

  @Test func priorityFiveWaitsForWhatWakesThePhoneMergedToTheNewest() {
    var bench = bench()
    send(start(1), &bench)
    bench.wait(.minutes(5))
    #expect(bench.phone.wakefulness == .asleep)
    bench.clear()
    for id in 2...3 {
      var push = update(UInt64(id), "soft \(id)", at: Int64(id))
      push.isUrgent = false
      send(push, &bench)
    }
    #expect(bench.phone.wakefulness == .asleep)
    #expect(outcome(2, bench) == .notShown(.replaced(by: PushID(3))))
    #expect(bench.reports[PushID(3)] == nil)
    #expect(bench.actions.contains(.decision(mail, PushID(3), .waits(.nextWake, until: nil))))
    bench.send(.linkHeard)
    #expect(outcome(3, bench) == .shown)
    #expect(shown(bench) == #"{"s":"soft 3"}"#)
    bench.wait(.minutes(5))
    var push = update(4, "soft 4", at: 4)
    push.isUrgent = false
    send(push, &bench, rides: true)
    #expect(outcome(4, bench) == .shown, "with something else it comes at once")
  }

  /// Pushes of priority 5 to a phone that sleeps, then an urgent one or whatever else wakes it:
  /// a timestamp each, `end`, or `?` for one without content.
  @Test(arguments: [
    (["1", "end 2", "3"], nil, ["replaced", "shown", "ended"], "start"),
    (["end 2", "1"], nil, ["shown", "replaced"], "start"),
    (["end 2", "end 3"], nil, ["replaced", "shown"], "start"),
    (["1", "? 2"], nil, ["shown", "lacks"], "1"),
    (["2"], "1", ["shown"], "2"),
    (["1"], "2", ["replaced"], "2"),
    (["1"], "? 2", ["shown"], "1"),
    (["end 1"], "2", ["shown"], "start"),
    (["end 2"], "1", ["shown"], "1"),
  ])
  func ofPushesThatWaitNoneIsLostByOneThatCannotBeShown(
    soft: [String], urgent: String?, outcomes: [String], content: String
  ) throws {
    var bench = bench()
    var begin = start(1)
    begin.content = Array(#"{"s":"start"}"#.utf8)
    send(begin, &bench)
    bench.wait(.minutes(5))
    func push(_ id: Int, _ text: String) throws -> ActivityPush {
      let parts = text.split(separator: " ")
      let time = try #require(parts.last.flatMap { Int64($0) })
      let isBare = parts.count > 1
      return update(
        UInt64(id), isBare ? nil : "\(time)", at: time, parts[0] == "end" ? .end : .update)
    }
    for (number, text) in soft.enumerated() {
      var push = try push(2 + number, text)
      push.isUrgent = false
      send(push, &bench)
    }
    #expect(bench.phone.wakefulness == .asleep)
    if let urgent { send(try push(9, urgent), &bench) } else { bench.send(.linkHeard) }
    let found = soft.indices.map { number in
      switch outcome(UInt64(2 + number), bench) {
      case .shown: "shown"
      case .notShown(.replaced): "replaced"
      case .notShown(.hasEnded): "ended"
      case .notShown(.lacks): "lacks"
      default: "other"
      }
    }
    #expect(found == outcomes)
    #expect(shown(bench) == #"{"s":"\#(content)"}"#)
    let hasEnd = soft.contains { $0.hasPrefix("end") }
    #expect((bench.phone[mail]?.live[first]?.state == .ended) == hasEnd)
  }

  @Test func startedBeforeTheFirstUnlockItsAppIsRunBehindThat() {
    var bench = bench()
    bench.send(.rebooted)
    send(start(1), &bench)
    bench.wait(.minutes(1))
    #expect(bench.steps(of: mail).contains(.notRun(.activity, .beforeFirstUnlock)))
    #expect(bench.phone.addresses(of: mail) == [.start("Order")])
    bench.send(.unlocked)
    bench.wait(.minutes(1))
    #expect(bench.phone.addresses(of: mail) == [.start("Order"), .update(first)])
  }

  @Test func priorityFiveIsNotKeptForOneThatHasEnded() {
    var bench = bench()
    send(start(1), &bench)
    send(update(2, "done", .end), &bench)
    bench.wait(.minutes(5))
    var push = update(3, "soft", at: 3)
    push.isUrgent = false
    send(push, &bench)
    #expect(bench.phone.wakefulness == .asleep)
    #expect(outcome(3, bench) == .notShown(.hasEnded))
  }

  @Test func timestampsThatGoBackAreIgnored() {
    var bench = bench()
    send(start(1, at: 100), &bench)
    send(update(2, "new", at: 200), &bench)
    send(update(3, "old", at: 199), &bench)
    send(update(4, "same second", at: 200), &bench)
    #expect(outcome(3, bench) == .notShown(.outdated))
    #expect(shown(bench) == #"{"s":"same second"}"#)
  }

  @Test func aStaleOneIsActiveAgainWithTheNextUpdate() {
    var bench = bench()
    send(start(1), &bench)
    var push = update(2, "packed")
    push.staleAt = bench.now + .minutes(30)
    send(push, &bench)
    bench.wait(.minutes(29))
    #expect(bench.phone[mail]?.live[first]?.state == .active)
    bench.wait(.minutes(1))
    #expect(bench.phone[mail]?.live[first]?.state == .stale)
    #expect(
      bench.effects.contains {
        $0.at == push.staleAt && $0.action == .activity(mail, .stale(first))
      })
    send(update(3, "sent", at: 2), &bench)
    #expect(bench.phone[mail]?.live[first]?.state == .active)
  }

  @Test(arguments: [(nil, 4), (1, 1), (9, 4), (-1, 0)] as [(Int64?, Int64)])
  func anEndStaysAtMostFourHours(wanted: Int64?, hours: Int64) {
    var bench = bench()
    send(start(1), &bench)
    bench.wait(.minutes(1))
    var push = update(2, "done", .end)
    push.leavesAt = wanted.map { bench.now + .hours($0) }
    let ended = bench.now
    send(push, &bench)
    #expect(bench.phone.addresses(of: mail) == [.start("Order")])
    send(update(3, "after", at: 9), &bench)
    #expect(outcome(3, bench) == .notShown(hours == 0 ? .unknownActivity : .hasEnded))
    bench.wait(.hours(5))
    let left = bench.moment { $0 == .activity(mail, .left(first)) }
    #expect(left == ended + .hours(hours))
    #expect(bench.phone[mail]?.live.activities == [])
  }

  /// Also on a phone that is off meanwhile, for so many hours from the first on.
  @Test(arguments: [0, 6, 9, 12] as [Int64])
  func itEndsByItselfAfterEightHoursAndLeavesAfterTwelve(off: Int64) {
    var bench = bench()
    send(start(1), &bench)
    bench.wait(.hours(1))
    if off > 0 { bench.send(.switchedOff) }
    bench.wait(.hours(off))
    if off > 0 { bench.send(.switchedOn) }
    bench.wait(.hours(13 - off))
    let ended = bench.moment {
      if case .activity(mail, .ended) = $0 { true } else { false }
    }
    #expect(ended == Bench.start + .hours(max(8, off + 1)))
    let left = bench.moment { $0 == .activity(mail, .left(first)) }
    #expect(left == Bench.start + .hours(max(12, off + 1)))
  }

  @Test func switchedOffAllTokensAndActivitiesGo() {
    for event in [ActivityEvent.allowed(nil, isOn: false), .allowed(mail, isOn: false)] {
      var bench = bench()
      send(start(1), &bench)
      bench.wait(.seconds(10))
      bench.send(.activity(event))
      #expect(bench.phone.addresses(of: mail) == [] && bench.phone[mail]?.live.activities == [])
      let gone = steps(bench).filter { if case .address(_, false) = $0 { true } else { false } }
      #expect(gone.count == 2)
      send(start(2), &bench)
      #expect(
        outcome(2, bench) == .notShown(event == .allowed(nil, isOn: false) ? .offForAll : .off))
      bench.send(.activity(event))
      #expect(bench.actions.last == .ignored(.alreadySo))
    }
    var bench = bench()
    bench.send(.activity(.allowed(nil, isOn: false)), .activity(.allowed(nil, isOn: true)))
    #expect(bench.phone.addresses(of: mail) == [.start("Order")])
  }

  @Test func theAppUpdatesAndEndsAndItsUserSwipesAway() {
    var bench = bench()
    send(start(1), &bench)
    bench.send(.activity(.updated(mail, first, content: object)))
    #expect(shown(bench) == #"{"a":1}"#, "it runs for the token")
    bench.send(.activity(.ended(mail, first, content: nil)))
    #expect(bench.phone[mail]?.live[first]?.state == .ended)
    bench.send(.activity(.swipedAway(mail, first)))
    #expect(bench.phone[mail]?.live.activities == [])
    bench.send(.activity(.swipedAway(mail, first)))
    #expect(bench.actions.last == .ignored(.unknownActivity))
    bench.wait(.minutes(1))
    bench.send(.activity(.updated(mail, first, content: object)))
    #expect(bench.actions.last == .ignored(.notRunning))
    bench.send(.activity(.allowed(AppID(7), isOn: true)))
    #expect(bench.actions.last == .ignored(.unknownApp))
  }

  @Test func aTokenMayChange() {
    var bench = bench()
    send(start(1), &bench)
    bench.send(.activity(.renewed(mail, first)))
    #expect(bench.actions.last == .ignored(.notAllowed), "there is none yet")
    bench.wait(.seconds(10))
    bench.clear()
    bench.send(.activity(.renewed(mail, first)))
    #expect(steps(bench) == [.address(.update(first), isValid: false)], "the app has to run for it")
    bench.wait(.seconds(10))
    #expect(steps(bench).last == .address(.update(first), isValid: true))
    bench.send(.unlocked, .appOpened(mail))
    bench.clear()
    bench.send(.activity(.renewed(mail, first)))
    #expect(steps(bench).last == .address(.update(first), isValid: true), "it runs")
    bench.send(.appSwipedAway(mail), .activity(.renewed(mail, first)))
    bench.wait(.hours(1))
    #expect(steps(bench).last == .address(.update(first), isValid: false))
    bench.send(.appOpened(mail))
    #expect(steps(bench).last == .address(.update(first), isValid: true))
  }

  @Test func byThePolicyATokenLastsForSoLong() {
    var limits = PhoneLimits()
    limits.activityTokenTime = .hours(1)
    var bench = bench(limits: limits)
    send(start(1), &bench)
    bench.wait(.seconds(10))
    bench.clear()
    bench.wait(.hours(1))
    bench.wait(.seconds(10))
    bench.wait(.hours(1))
    bench.wait(.seconds(10))
    let changes = steps(bench).filter { if case .address = $0 { true } else { false } }
    let once: [ActivityStep] = [
      .address(.update(first), isValid: false), .address(.update(first), isValid: true),
    ]
    #expect(changes == once + once)
    #expect(bench.phone.addresses(of: mail) == [.start("Order"), .update(first)])
    send(update(2, "done", .end), &bench)
    bench.clear()
    bench.wait(.hours(2))
    #expect(steps(bench).allSatisfy { if case .address = $0 { false } else { true } })
    #expect(limits.set("activityTokenTime", to: "0s") && !limits.relationsHold)
  }

  @Test func uninstalledNothingIsLeftAndNumbersGoOn() {
    var bench = bench()
    send(start(1), &bench)
    bench.wait(.seconds(10))
    bench.send(.appUninstalled(mail))
    #expect(bench.phone.addresses(of: mail) == [] && bench.phone[mail]?.live.activities == [])
    send(start(2), &bench)
    #expect(outcome(2, bench) == .notLaunched(.notInstalled))
    var app = AppDefinition.ordinary("com.example.shop")
    app.activities = ActivityPlan(types: ["Order"])
    bench.send(.appInstalled(app))
    send(start(3), &bench)
    #expect(bench.phone[mail]?.live.activities.map(\.id) == [ActivityID(2)])
  }

  @Test func aPowerCutLeavesThemWhatWaitsToo() throws {
    var bench = bench()
    send(start(1), &bench)
    bench.wait(.minutes(5))
    var push = update(2, "soft", at: 5)
    push.isUrgent = false
    send(push, &bench)
    try bench.powerCut(.hours(1))
    #expect(outcome(2, bench) == .shown, "switching on wakes it")
    #expect(shown(bench) == #"{"s":"soft"}"#)
    bench.wait(.hours(7))
    #expect(bench.phone[mail]?.live[first]?.state == .ended, "its eight hours go on")
  }

  @Test func partsOfTopicsAreReadAsWritten() {
    for address in [ActivityAddress.start("Order"), .start("a.B"), .update(ActivityID(12))] {
      #expect(ActivityAddress(part: address.part) == address)
    }
    for part in ["", "start", "activity.x", "activity.-1", "other.1"] {
      #expect(ActivityAddress(part: part) == nil, "\(part)")
    }
    for (name, isFine) in [
      ("Order", true), ("A.B_2", true), ("", false), ("a b", false), ("ä", false),
    ] {
      #expect(ActivityPlan.isType(name) == isFine, "\(name)")
    }
  }

  @Test func everyRefusalSaysItsReasonInTheSpaceThereIs() {
    let app = String(repeating: "a", count: 60)
    let type = String(repeating: "T", count: 64)
    let all: [ActivityRefusal] = [
      .startBudget(until: .endOfCalendar), .updateBudget(until: .endOfCalendar), .tooMany(5), .off,
      .offForAll, .lacks("attributes-type"), .wrongToken, .unknownType(type), .unknownActivity,
      .hasEnded, .outdated, .replaced(by: PushID(.max)), .otherType("fileprovider"),
    ]
    let texts = all.map { refusal in
      refusal.words(app, time: \.iso8601) { "\($0.number)" }
    }
    #expect(Set(texts).count == all.count)
    #expect(texts.allSatisfy { !$0.isEmpty && $0.utf8.count <= 200 })
    #expect(texts[0].hasSuffix("(policy live-activities: ours)"))
  }
}
