import Primitives
import Testing

@testable import DeviceModel

/// How many pushes of Live Activities a phone shows (`Phone+ActivityTokens.swift`).
@Suite struct ActivityTokensTests {
  private let first = ActivityID(1)

  private func bench(isFrequent: Bool = true) -> Bench {
    var app = AppDefinition.ordinary("com.example.shop")
    app.activities = ActivityPlan(types: ["Order"], isFrequent: isFrequent)
    var bench = Bench([app])
    let start = ActivityEvent.started(
      mail, type: "Order", attributes: [], content: [], channel: nil)
    bench.send(.unlocked, .appOpened(mail), .activity(start))
    return bench
  }

  private func update(_ id: UInt64, staleAt: Instant? = nil) -> PhoneEvent {
    var push = ActivityPush(id: PushID(id), app: mail, to: .update(first), .update)
    (push.timestamp, push.content, push.staleAt) = (Int64(id), Array("{}".utf8), staleAt)
    push.isUrgent = true
    return .activity(.pushed(push, rides: false))
  }

  private func updates(_ bench: Bench) -> Int64 { bench.phone.activityBudgets(of: mail).updates }

  /// The user's switch raises the budget or lowers it; what was used stays used, in pushes.
  @Test func whatWasUsedStaysUsedWhenTheUserSwitches() {
    var bench = bench()
    bench.send(.activity(.frequentAllowed(mail, isOn: false)))
    for id in UInt64(1)...5 { bench.send(update(id)) }
    #expect(updates(bench) == 10)
    bench.send(.activity(.frequentAllowed(mail, isOn: true)))
    #expect(updates(bench) == 55)
    for id in UInt64(6)...20 { bench.send(update(id)) }
    #expect(updates(bench) == 40)
    bench.send(.activity(.frequentAllowed(mail, isOn: false)))
    #expect(updates(bench) == 0, "20 of 15 are used")
    bench.wait(.minutes(4))
    #expect(updates(bench) == 1)
    bench.send(.activity(.frequentAllowed(mail, isOn: true)))
    #expect(updates(bench) == 46)
  }

  /// The time since the last one came back counts on.
  @Test func aSwitchThatChangesNoLimitChangesNothing() {
    var bench = bench(isFrequent: false)
    for id in UInt64(1)...3 { bench.send(update(id)) }
    bench.wait(.seconds(30))
    let before = bench.phone[mail]?.live.updates
    bench.send(.activity(.frequentAllowed(mail, isOn: false)))
    #expect(bench.phone[mail]?.live.updates == before && updates(bench) == 12)
  }

  @Test func anotherVersionOfTheAppMayHaveFewer() {
    var bench = bench()
    for id in UInt64(1)...5 { bench.send(update(id)) }
    var other = AppDefinition.ordinary("com.example.shop")
    (other.version, other.activities) = ("2.0", ActivityPlan(types: ["Order"]))
    bench.send(.appInstalled(other))
    #expect(updates(bench) == 10)
  }

  /// What runs reads all, and none before it runs.
  @Test func twoActivitiesHaveTheirNextTokensFromOneRun() {
    var bench = bench()
    bench.send(
      .activity(.started(mail, type: "Order", attributes: [], content: [], channel: nil)),
      .appLeft, .locked)
    bench.wait(.hours(1))
    bench.send(.memoryRanOut)
    bench.clear()
    bench.send(.activity(.renewed(mail, first)), .activity(.renewed(mail, ActivityID(2))))
    func handed() -> Int {
      bench.actions.count {
        if case .activity(_, .address(.update, isValid: true)) = $0 { true } else { false }
      }
    }
    #expect(handed() == 0)
    bench.wait(.seconds(10))
    #expect(handed() == 2 && bench.callbackSteps(of: mail).count { $0 == .began(.activity) } == 1)
  }

  /// Content of its own comes without a stale date.
  @Test func theAppsOwnUpdateIsNotStale() {
    var bench = bench()
    bench.send(update(1, staleAt: bench.now + .minutes(1)))
    bench.wait(.minutes(2))
    #expect(bench.phone[mail]?.live[first]?.state == .stale)
    bench.send(.activity(.updated(mail, first, content: Array("{}".utf8))))
    bench.wait(.minutes(2))
    #expect(bench.phone[mail]?.live[first]?.state == .active)
  }
}
