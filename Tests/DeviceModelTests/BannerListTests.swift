import Primitives
import Testing

@testable import DeviceModel

/// What is on the lock screen, and in which order it comes there.
@Suite struct BannerListTests {
  private func push(
    _ id: UInt64, _ bench: Bench, badge: Int? = nil, collapse: String = "", wakes: Bool = false
  ) -> PhoneEvent {
    var push = RemotePush.alert(id, wakesApp: wakes)
    (push.badge, push.collapseID, push.acceptedAt) = (badge, collapse, bench.now)
    return .pushReceived(push)
  }

  /// An app works for its push until a later one is on the screen.
  @Test(arguments: ["score", ""]) func aLaterPushIsNotReplacedByAnEarlierOne(collapse: String) {
    var bench = Bench([.ordinary { $0.onPush.work = .seconds(10) }])
    bench.send(push(1, bench, badge: 1, collapse: collapse, wakes: true))
    bench.wait(.seconds(3))
    bench.send(push(2, bench, badge: 2, collapse: collapse))
    bench.wait(.minutes(1))
    let shown = bench.phone.banners.banners.map(\.text)
    #expect(shown == (collapse.isEmpty ? ["message 2", "message 1"] : ["message 2"]))
    #expect(bench.phone[mail]?.badge == 2)
    #expect(bench.reports[PushID(1)] == [.newData])
  }

  @Test func aBadgeThatWasClearedStaysCleared() {
    var bench = Bench([.ordinary { $0.onPush.work = .seconds(10) }])
    bench.send(push(1, bench, badge: 5, wakes: true))
    bench.wait(.seconds(3))
    bench.send(push(2, bench, badge: 0))
    bench.wait(.minutes(1))
    #expect(bench.phone[mail]?.badge == 0)
    bench.send(push(3, bench, badge: 4))
    #expect(bench.phone[mail]?.badge == 4)
  }

  /// As with a phone that starts at an earlier time than it ended.
  @Test func aClockThatWasSetBackHidesNothing() {
    var bench = Bench([.ordinary()])
    bench.send(push(1, bench, badge: 1, collapse: "score"))
    bench.now = bench.now - .days(1)
    let memory = bench.phone.memory()
    bench.phone = Phone(restoring: memory, at: bench.now, into: &bench.effects)
    bench.send(push(2, bench, badge: 2, collapse: "score"))
    #expect(bench.phone.banners.banners.map(\.text) == ["message 2"])
    #expect(bench.phone[mail]?.badge == 2)
  }

  @Test func ofAnAppThatGoesNothingIsShown() {
    var bench = Bench([.ordinary()])
    bench.send(push(1, bench, badge: 3, wakes: true))
    bench.send(.appUninstalled(mail))
    #expect(bench.bannersShown.isEmpty)
    #expect(!bench.actions.contains(.badge(mail, 3)))
    #expect(bench.reports[PushID(1)] == [.failed])
  }
}
