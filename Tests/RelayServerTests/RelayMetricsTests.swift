import Primitives
import RelayCore
import Testing

@testable import RelayServer

@Suite struct RelayMetricsTests {
  private let start = Instant(milliseconds: 1000)
  private let id = UniqueID(high: 1, low: 2)

  private func event(_ seconds: Int64, _ step: DeliveryStep) -> DeliveryEvent {
    DeliveryEvent(at: start + .seconds(seconds), uniqueID: id, step: step)
  }

  @Test func everyStepIsCountedOnce() {
    var metrics = RelayMetrics()
    let received = DeliveryStep.received(
      .silent, apnsID: id, device: DeviceID(id), Topic("com.example.app")!)
    for step in [received, .storedOffline, .storedPower(until: nil, limit: .perApp)] {
      let isReleased = metrics.count(step)
      #expect(!isReleased)
    }
    for outcome in [DeliveryOutcome.newData, .noData, .failed, .notLaunched(reason: "x"), .newData]
    {
      let isReleased = metrics.count(.outcome(outcome))
      #expect(!isReleased)
    }
    #expect(metrics.received.silent == 1 && metrics.received.visible == 0)
    #expect(metrics.storedOffline == 1 && metrics.stored.reduce(0, +) == 1)
    #expect(metrics.stored[Int(BudgetLimit.perApp.rawValue)] == 1)
    #expect(
      metrics.outcomes == ["new-data": 2, "no-data": 1, "failed": 1, "not-launched": 1])
    let released: [Via: Bool] = [
      .direct: false, .connect: false, .resend: false, .piggyback: true, .refill: true, .hold: true,
    ]
    for via in Via.allCases {
      let isReleased = metrics.count(.sent(via, with: .push(id)))
      #expect(isReleased == released[via], "\(via)")
    }
  }

  @Test func aFrameIsMeasuredFromItsAcceptance() {
    let notification = Notification(
      uniqueID: id, apnsID: id, token: DeviceToken(random: (1, 2, 3), routingKey: 4),
      topic: Topic("com.example.app")!, notificationClass: .silent, pushType: .background,
      priority: .powerAware, wakesApp: true, collapseID: [], expiration: .once, payload: [])
    let delivery = Delivery(
      notification: notification, via: .refill, acceptedAt: start, sentAt: start + .seconds(2))
    var metrics = RelayMetrics()
    metrics.sent(delivery)
    let delivered = metrics.delivering[Int(Via.refill.rawValue)]
    #expect(delivered.count == 1 && delivered.sum == 2000)
  }

  @Test func whatWasHeldIsMeasuredFromItsLimit() {
    var metrics = RelayMetrics()
    let steps = [
      event(0, .storedOffline), event(5, .storedPower(until: nil, limit: .perDevice)),
    ]
    metrics.count(event(9, .sent(.refill)), after: steps)
    metrics.count(event(9, .sent(.refill)), after: [steps[0]])
    let held = metrics.holding[Int(BudgetLimit.perDevice.rawValue)]
    #expect(held.count == 1 && held.sum == 4000)
    let all = metrics + metrics
    #expect(all.holding.reduce(0) { $0 + $1.count } == 2)
  }

  /// Its life is told from the beginning, but it was received by an earlier run, or another node.
  @Test func whatIsTakenOverWasNotReceivedHere() {
    let topic = Topic("com.example.app")!
    for named in [0, 10] {
      var metrics = RelayMetrics(namedTopics: named)
      var steps: [DeliveryEvent] = []
      for step in [
        DeliveryStep.received(.visible, apnsID: id, device: DeviceID(id), topic), .restored,
      ] {
        let event = event(Int64(steps.count), step)
        if metrics.count(step) { metrics.count(event, after: steps) }
        steps.append(event)
      }
      #expect(metrics.received.visible == 0)
      #expect(metrics.receivedByTopic.values.allSatisfy { $0.visible == 0 })
      // Of one whose app is gone nothing else is told.
      metrics.count(event(0, .restored), after: [])
      #expect(metrics.received.visible == 0)
    }
  }

  @Test func answersAreCountedByReason() {
    var metrics = RelayMetrics()
    metrics.answered(.accepted(uniqueID: id), after: .milliseconds(3))
    metrics.answered(.rejected(.badTopic), after: .zero)
    metrics.answered(.gone(since: start), after: .zero)
    #expect(metrics.accepted == 1 && metrics.accepting.count == 3 && metrics.accepting.sum == 3)
    #expect(metrics.refused[Int(Rejection.badTopic.rawValue)] == 1)
    #expect(metrics.refused[Int(Rejection.unregistered.rawValue)] == 1)
  }
}
