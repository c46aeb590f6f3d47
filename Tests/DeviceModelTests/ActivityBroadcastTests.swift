import Primitives
import Testing

@testable import DeviceModel

/// Live Activities that a broadcast channel updates (ActivityKit, `input-push-channel`).
@Suite struct ActivityBroadcastTests {
  private let object = Array("{}".utf8)

  private func bench() -> Bench {
    var app = AppDefinition.ordinary("com.example.scores")
    app.activities = ActivityPlan(types: ["Match"])
    return Bench([app])
  }

  private func start(_ id: UInt64, on channel: String?) -> ActivityPush {
    var push = ActivityPush(id: PushID(id), app: mail, to: .start("Match"), .start)
    (push.type, push.timestamp, push.channel) = ("Match", 1, channel)
    (push.attributes, push.content, push.alert) = (object, Array("0:0".utf8), "Go")
    return push
  }

  private func broadcast(
    _ score: String, at seconds: Int64, _ deed: ActivityPush.Deed? = .update,
    on channel: String = "one"
  ) -> ActivityPush {
    var push = ActivityPush(id: PushID(99), app: mail, to: .channel(channel), deed)
    (push.timestamp, push.content) = (seconds, Array(score.utf8))
    return push
  }

  private func send(_ push: ActivityPush, _ bench: inout Bench) {
    bench.send(.activity(.pushed(push, rides: false)))
  }

  private func scores(_ bench: Bench) -> [String] {
    (bench.phone[mail]?.live.activities ?? []).map { String(decoding: $0.content, as: UTF8.self) }
  }

  private func steps(_ bench: Bench) -> [ActivityStep] {
    bench.actions.compactMap { if case .activity(mail, let step) = $0 { step } else { nil } }
  }

  private func subscriptions(_ bench: Bench) -> [Bool] {
    steps(bench).compactMap {
      if case .address(.channel("one"), let isValid) = $0 { isValid } else { nil }
    }
  }

  @Test func allActivitiesOfTheChannelShowItAndNobodyIsAnswered() {
    var bench = bench()
    for (id, channel) in [(1, "one"), (2, "two"), (3, "one"), (4, nil)] as [(UInt64, String?)] {
      send(start(id, on: channel), &bench)
    }
    bench.clear()
    send(broadcast("1:0", at: 2), &bench)
    #expect(scores(bench) == ["1:0", "0:0", "1:0", "0:0"])
    send(broadcast("0:0", at: 1), &bench)
    #expect(scores(bench) == ["1:0", "0:0", "1:0", "0:0"], "its time is earlier")
    #expect(steps(bench).contains(.notShown(PushID(99), .outdated)))
    #expect(bench.reports[PushID(99)] == nil)
  }

  @Test func theAppSubscribesWithTheFirstAndUntilTheLastIsOver() {
    var bench = bench()
    send(start(1, on: "one"), &bench)
    send(start(2, on: "one"), &bench)
    #expect(subscriptions(bench) == [true])
    bench.send(.activity(.swipedAway(mail, ActivityID(1))))
    #expect(subscriptions(bench) == [true])
    var end = broadcast("2:1", at: 9, .end)
    end.leavesAt = bench.now + .hours(1)
    send(end, &bench)
    #expect(subscriptions(bench) == [true, false])
    #expect(bench.phone.addresses(of: mail) == [.start("Match")])
    #expect(scores(bench) == ["2:1"] && bench.phone[mail]?.live.activities[0].state == .ended)
    bench.wait(.hours(1))
    #expect(scores(bench) == [])
  }

  @Test func oneThatNobodyListensToEndsTheSubscription() {
    var bench = bench()
    send(broadcast("1:0", at: 2), &bench)
    #expect(
      steps(bench) == [
        .notShown(PushID(99), .unknownActivity), .address(.channel("one"), isValid: false),
      ])
  }

  @Test func whatIsWrongWithItIsSaid() {
    var bench = bench()
    send(start(1, on: ""), &bench)
    #expect(bench.reports[PushID(1)] == [.notShown(.lacks("input-push-channel"))])
    send(start(2, on: "one"), &bench)
    bench.clear()
    send(broadcast("1:0", at: 2, nil), &bench)
    send(broadcast("1:0", at: 2, .start), &bench)
    var other = broadcast("1:0", at: 2)
    other.app = AppID(7)
    send(other, &bench)
    #expect(
      steps(bench) == [
        .notShown(PushID(99), .lacks("event")), .notShown(PushID(99), .wrongToken),
      ])
    #expect(bench.reports.isEmpty)
  }

  @Test func itStalesAndWaitsAsAnyOther() throws {
    var bench = bench()
    send(start(1, on: "one"), &bench)
    bench.wait(.minutes(5))
    var soft = broadcast("1:0", at: 2)
    soft.isUrgent = false
    soft.staleAt = bench.now + .minutes(30)
    send(soft, &bench)
    #expect(scores(bench) == ["0:0"] && bench.phone.wakefulness == .asleep)
    try bench.powerCut(.minutes(1))
    #expect(scores(bench) == ["1:0"])
    bench.wait(.minutes(30))
    #expect(bench.phone[mail]?.live.activities[0].state == .stale)
    #expect(bench.phone.addresses(of: mail) == [.start("Match"), .channel("one")])
  }

  @Test func theAppMaySubscribeByItself() {
    var bench = bench()
    bench.send(
      .unlocked, .appOpened(mail),
      .activity(
        .started(mail, type: "Match", attributes: object, content: object, channel: "one")))
    #expect(bench.phone.addresses(of: mail) == [.start("Match"), .channel("one")])
    bench.send(.activity(.allowed(nil, isOn: false)))
    #expect(subscriptions(bench) == [true, false])
  }
}
