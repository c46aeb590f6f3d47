import AdminAPI
import Hummingbird
import Primitives
import RelayCore
import RelayServer
import Testing

@testable import Cockpit

@Suite struct BodiesTests {
  private static let now = Instant(unixSeconds: 1_795_302_250)  // 2026-11-21T23:04:10Z
  private static let id = UniqueID(high: 1, low: 2)
  private static let topic = Topic("com.example.app")!
  private static let until = now + .hours(1)

  /// As clients' libraries write a query.
  @Test func aPlusInAQueryIsABlank() {
    let path = "/v1/notifications?state=token+unregistered&text=1%2B1&many=a%20b&many=&many=c&none="
    let request = Request(
      head: HTTPRequest(method: .get, scheme: nil, authority: nil, path: path),
      body: RequestBody(buffer: ByteBuffer()))
    #expect(request.parameter("state") == "token unregistered")
    #expect(request.parameter("text") == "1+1")
    #expect(request.parameters("many") == ["a b", "c"])
    #expect(request.parameter("none") == nil && request.parameter("absent") == nil)
  }

  @Test func aJournalThatFailsIsSaid() throws {
    let refusal = try #require(Refusal(for: JournalFails(description: "the disk is full")))
    #expect(refusal.status == 503 && refusal.reason == "JournalFails")
    #expect(refusal.message == "not kept: the disk is full")
  }

  private func life(_ steps: [DeliveryStep]) throws -> Relay.Life {
    let first = DeliveryStep.received(
      .silent, apnsID: Self.id, device: DeviceID(Self.id), Self.topic)
    return try #require(
      Relay.Life(([first] + steps).map { DeliveryEvent(at: Self.now, uniqueID: Self.id, step: $0) })
    )
  }

  private func report(holding id: UniqueID?) -> DeviceReport {
    let limit = RateLimit(1, per: .minutes(1), burst: 3)
    let slot = id.map {
      DeviceReport.Slot(
        uniqueID: $0, apnsID: $0, acceptedAt: Self.now, expiresAt: nil,
        decision: .held(until: nil, by: .lowPowerMode))
    }
    return DeviceReport(
      device: DeviceID(Self.id), isConnected: true, condition: DeviceCondition(power: .low),
      policy: "unlimited", allowance: nil,
      rides: Allowance(remaining: 3, limit: limit, next: nil), keepAliveAt: nil, inFlight: 0,
      apps: [
        .init(
          topic: Self.topic, token: DeviceToken(hexadecimal: "abcd")!, visible: nil, silent: slot,
          budget: .allowed, allowance: nil)
      ])
  }

  /// The log has the limit of then; what holds it now is in the report.
  @Test func whatHoldsItNowCountsNotWhatHeldItThen() throws {
    let life = try self.life([.storedPower(until: Self.until, limit: .perApp)])
    let held = try #require(NotificationLife(life, report(holding: Self.id), at: Self.now))
    #expect(held.sentence?.contains("Low Power Mode") == true && held.token == "abcd")
    #expect(held.waits?.limit == "low-power-mode" && held.waits?.until == nil)
    let other = try #require(
      NotificationLife(life, report(holding: UniqueID(high: 5, low: 6)), at: Self.now))
    #expect(other.waits == nil && other.token == "abcd")
    let alone = try #require(NotificationLife(life, at: Self.now))
    #expect(alone.waits == nil && alone.token == "")
    #expect(
      alone.sentence == "Held by app-budget, until 2026-11-22 00:04:10 or until it can ride along.")
  }

  @Test func thePhoneIsNamedWhenItIsThePhoneThatWaits() throws {
    let steps: [DeliveryStep] = [
      .sent(.direct), .delivered, .decided(.waits(.app, until: Self.until)),
    ]
    let body = try #require(
      NotificationLife(try life(steps), report(holding: nil), at: Self.now))
    #expect(
      body.sentence
        == "Delivered 0s after it was accepted; the phone, not the relay, makes it wait: it has "
        + "woken the app as often as it lets it (app-limit), until 2026-11-22 00:04:10.")
    #expect(body.waits?.by == "phone" && body.waits?.until == Self.until.milliseconds)
    let runs = try #require(NotificationLife(try life(steps + [.decided(.runs)]), at: Self.now))
    #expect(runs.waits == nil && runs.sentence == "Delivered 0s after it was accepted.")
    let outcomes: [(DeliveryOutcome, String)] = [
      (
        .notLaunched(reason: "force-quit"),
        "; the phone, not the relay, did not run the app: force-quit."
      ),
      (
        .notShown(reason: "it has ended"),
        "; the phone, not the relay, did not show it: it has ended."
      ),
      (.noData, "."),
    ]
    for (outcome, end) in outcomes {
      let life = try life([.sent(.direct), .delivered, .outcome(outcome)])
      let body = try #require(NotificationLife(life, at: Self.now))
      #expect(body.sentence == "Delivered 0s after it was accepted" + end)
    }
  }
}
