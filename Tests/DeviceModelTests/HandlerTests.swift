import Primitives
import Testing

@testable import DeviceModel

/// Pushes for others than the app (docs/PROTOCOL.md, "Pushes for others than the app").
@Suite struct HandlerTests {
  /// An app, and what its pushes of another type are registered as.
  private func bench(
    _ modes: BackgroundModes = .location, _ change: (inout PhoneLimits) -> Void = { _ in }
  )
    -> Bench
  {
    var limits = PhoneLimits()
    change(&limits)
    return Bench(
      [.ordinary("app", modes: []), .ordinary("app.other", modes: modes)], limits: limits)
  }

  private func push(_ id: UInt64, _ handler: PushHandler, _ subject: String? = "it") -> RemotePush {
    var push = RemotePush(id: PushID(id), app: news)
    (push.handler, push.subject, push.owner) = (handler, subject, mail)
    return push
  }

  private func handled(_ bench: Bench) -> [PushID] {
    bench.actions.compactMap { if case .app(_, .handled(let id, _, _)) = $0 { id } else { nil } }
  }

  /// Background App Refresh is about what an app does by itself: a call is the user's.
  @Test(arguments: [PushHandler.complication, .voip, .pushtotalk], [nil, mail])
  func refreshIsOffForComplications(handler: PushHandler, app: AppID?) {
    var bench = bench()
    bench.send(.refreshSwitched(app, isOn: false), .unlocked, .pushReceived(push(1, handler)))
    bench.wait(.minutes(1))
    let refusal: LaunchRefusal = app == nil ? .refreshOffForAll : .refreshOff
    #expect(
      bench.reports[PushID(1)] == [handler == .complication ? .notLaunched(refusal) : .newData])
  }

  @Test func inFrontAnAppTakesItsComplicationsPush() {
    var bench = bench()
    bench.send(.refreshSwitched(nil, isOn: false), .unlocked, .appOpened(mail))
    bench.send(.pushReceived(push(1, .complication)))
    bench.wait(.minutes(1))
    #expect(bench.reports[PushID(1)] == [.newData])
  }

  @Test(arguments: PushHandler.allCases)
  func eachTakesItsPush(handler: PushHandler) {
    var bench = bench()
    bench.send(.unlocked, .pushReceived(push(1, handler)))
    bench.wait(.minutes(1))
    let outcome: PushOutcome = handler == .widgets ? .shown : .newData
    #expect(bench.reports == [PushID(1): [outcome]])
    #expect(handled(bench) == [PushID(1)] && bench.bannersShown.isEmpty)
    let runsApp = [.complication, .voip, .pushtotalk].contains(handler)
    #expect(bench.callbackSteps(of: mail).isEmpty == !runsApp)
    #expect(bench.callbackSteps(of: news).isEmpty)
  }

  /// Without what it needs of the payload.
  @Test(arguments: PushHandler.allCases)
  func eachNeedsItsPartOfThePayload(handler: PushHandler) {
    var bench = bench()
    bench.send(.unlocked, .pushReceived(push(1, handler, nil)))
    bench.wait(.minutes(1))
    let outcome: PushOutcome =
      switch handler {
      case .widgets: .notLaunched(.nothingChanged)
      case .fileprovider: .notLaunched(.nothingNamed)
      case .pushtotalk: .noData
      case .complication, .location, .voip, .wallet: .newData
      }
    #expect(bench.reports == [PushID(1): [outcome]])
    // It has left the channel.
    #expect((bench.state(news) == .uninstalled) == (handler == .pushtotalk))
  }

  /// An extension is asked all the same; an app that was swiped away is not run.
  @Test(arguments: PushHandler.allCases)
  func aSwipeConcernsOnlyTheApp(handler: PushHandler) {
    var bench = bench()
    bench.use(mail)
    bench.send(.unlocked, .appSwipedAway(mail), .pushReceived(push(1, handler)))
    bench.wait(.minutes(1))
    let isApp = [.complication, .voip, .pushtotalk].contains(handler)
    #expect(
      (bench.reports[PushID(1)] == [.notLaunched(.forceQuit)]) == isApp, "\(bench.reports)")
    bench.send(.appUninstalled(mail), .pushReceived(push(2, handler)))
    bench.wait(.minutes(1))
    #expect((bench.reports[PushID(2)] == [.notLaunched(.notInstalled)]) == isApp)
  }

  @Test func locationNeedsToBeAllowed() {
    var bench = bench([])
    bench.send(.pushReceived(push(1, .location)))
    #expect(bench.reports == [PushID(1): [.notLaunched(.locationModeMissing)]])
  }

  @Test(arguments: [PushHandler.widgets, .complication, .location])
  func aDayHasSoMany(handler: PushHandler) {
    var bench = bench(.location) {
      ($0.widgetPushes, $0.complicationPushes, $0.locationPushes) = (2, 2, 2)
    }
    bench.send(.unlocked)
    for id in 1...3 as ClosedRange<UInt64> { bench.send(.pushReceived(push(id, handler))) }
    bench.wait(.minutes(1))
    #expect(handled(bench) == [PushID(1), PushID(2)])
    #expect(bench.reports[PushID(3)] == [.notLaunched(.pushBudget)])
    bench.wait(.hours(12))
    bench.send(.pushReceived(push(4, handler)))
    #expect(handled(bench).last == PushID(4))
  }

  @Test func widgetsWaitForWhatWakesThePhone() {
    var bench = bench()
    bench.send(.pushReceived(push(1, .widgets)), .pushReceived(push(2, .widgets)))
    bench.wait(.hours(1))
    #expect(bench.phone.wakefulness == .asleep && handled(bench).isEmpty)
    #expect(bench.actions.contains(.decision(news, PushID(1), .waits(.nextWake, until: nil))))
    #expect(bench.reports == [PushID(1): [.replaced(by: PushID(2))]])
    bench.send(.linkHeard)
    #expect(bench.reports[PushID(2)] == [.shown])
    bench.wait(.minutes(1))
    // It came along with a push that did not wake the phone either.
    bench.send(.pushRode(push(3, .widgets)))
    #expect(bench.reports[PushID(3)] == nil)
    bench.send(.linkHeard, .pushRode(push(4, .widgets)))
    #expect(bench.reports[PushID(3)] == [.shown] && bench.reports[PushID(4)] == [.shown])
  }

  @Test func nothingIsHandledBeforeTheFirstUnlock() {
    for handler in PushHandler.allCases {
      var bench = bench()
      bench.send(.rebooted, .pushReceived(push(1, handler)))
      #expect(handled(bench).isEmpty)
      bench.send(.unlocked)
      bench.wait(.minutes(1))
      #expect(handled(bench) == [PushID(1)], "\(handler)")
    }
  }

  /// The unlock for a banner hands out a push that ends the registration which the banner is of.
  @Test func aChannelMayEndWhileItsBannerIsOpened() throws {
    var bench = bench()
    bench.send(.rebooted, .pushReceived(.alert(1, news)), .pushReceived(push(2, .pushtotalk, nil)))
    let banner = try #require(bench.bannersShown.last)
    bench.send(.bannerOpened(banner.id))
    #expect(bench.actions.last { if case .ignored = $0 { true } else { false } } != nil)
    #expect(bench.state(news) == .uninstalled && bench.phone.foreground == nil)
    #expect(bench.reports == [PushID(1): [nil], PushID(2): [.noData]])
  }

  /// What was used is used over a power loss, and a clock that goes back gives nothing.
  @Test func whatWasUsedIsRemembered() throws {
    var bench = bench { $0.locationPushes = 1 }
    bench.send(.pushReceived(push(1, .location)))
    var effects: [PhoneEffect] = []
    let back = bench.now - .days(3)
    var limits = PhoneLimits()
    limits.locationPushes = 1
    bench.phone = Phone(
      restoring: bench.phone.memory(), limits: limits, at: back, into: &effects)
    bench.now = back
    bench.send(.unlocked, .pushReceived(push(2, .location)))
    #expect(bench.reports[PushID(2)] == [.notLaunched(.pushBudget)])
  }

  @Test func theWordsNameWhatThePayloadNames() {
    #expect(PushHandler.pushtotalk.words("Ada") == "Ada speaks")
    #expect(PushHandler.fileprovider.words("root").hasSuffix("changes in root"))
    #expect(Set(PushHandler.allCases.map { $0.words("x") }).count == PushHandler.allCases.count)
  }
}
