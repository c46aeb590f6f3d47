import AdminAPI
import Foundation
import HTTPTypes
import Primitives
import RelayServer
import Testing

@testable import Cockpit
@testable import RelayTestKit

@Suite struct ClockRoutesTests {
  /// Budgets refill without an event.
  @Test func aPastStateHasItsBudgetsAsOfThen() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      #expect(try await ask(.put, "/v1/recordings/past", "{}").status == 200)
      var last: TestRelay.Push?
      for _ in 0..<3 { last = try await ask.relay.pushSilently(to: phone) }
      try await ask.relay.wait(for: .delivered, of: try #require(last))
      let start = ask.relay.nowMilliseconds
      try await ask.relay.advance(by: .seconds(60 * 60))
      for (minutes, remaining) in [(1, 0), (19, 0), (20, 1), (44, 2), (60, 3)] {
        let moment = start + Int64(minutes * 60_000)
        let answer = try await ask(.get, "/v1/state?at=\(moment)&device=\(phone.id)")
        let apps = answer.json["apps"] as? [[String: Any]] ?? []
        let budget = apps.first?["budget"] as? [String: Any]
        #expect(budget?["remaining"] as? Int == remaining, "\(minutes): \(answer.text)")
      }
      // Nothing is known of what is to come.
      let future = start + 90 * 60_000
      let answer = try await ask(.get, "/v1/state?at=\(future)&device=\(phone.id)")
      #expect(answer.status == 400 && answer.json["field"] as? String == "at", "\(answer.text)")
    }
  }

  @Test func aChangeOfPolicyIsFollowedWhileTheClockStands() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      var last: TestRelay.Push?
      for _ in 0..<4 { last = try await ask.relay.pushSilently(to: phone) }
      let held = try #require(last).id
      let before = ask.relay.nowMilliseconds
      #expect(try await ask(.put, "/v1/policy", #"{"policy":"unlimited"}"#).status == 200)
      let wish = #"{"expect":{"what":"sent","push":"\#(held)"},"timeout":"30s"}"#
      _ = try await ask.relay.cockpit.wait(Array(wish.utf8))
      #expect(ask.relay.nowMilliseconds == before)
    }
  }

  private static let wishes: [(String, AdvanceWish)] = [
    (#"{"by":"1h30m"}"#, AdvanceWish(goal: .by(.minutes(90)))),
    (#"{"to":1795338654060}"#, AdvanceWish(goal: .to(Instant(milliseconds: 1_795_338_654_060)))),
    (#"{"next":true,"from":7}"#, AdvanceWish(goal: .next, from: Instant(milliseconds: 7))),
  ]

  @Test(arguments: wishes) func wishesAreRead(body: String, wish: AdvanceWish) throws {
    #expect(try AdvanceWish(Array(body.utf8)) == wish)
  }

  private static let refused: [(body: String, field: String?)] = [
    ("", nil), ("[]", nil), ("{}", nil), (#"{"by":{}}"#, "by"), (#"{"next":false}"#, nil),
    (#"{"by":"1h","next":true}"#, nil), (#"{"by":"1x"}"#, "by"), (#"{"by":3}"#, "by"),
    (#"{"to":"soon"}"#, "to"), (#"{"to":1.5}"#, "to"), (#"{"next":1}"#, "next"),
    (#"{"by":"1h","form":7}"#, "form"),
  ]

  @Test(arguments: refused) func whatIsNoWishIsRefused(body: String, field: String?) {
    do {
      let wish = try AdvanceWish(Array(body.utf8))
      Issue.record("\(wish)")
    } catch let refusal as Refusal {
      #expect(refusal.status == 400 && refusal.field == field, "\(refusal)")
      #expect(!refusal.message.isEmpty)
    } catch {
      Issue.record("\(error)")
    }
  }

  @Test(arguments: [
    (AdvanceWish(goal: .by(.hours(9600))), true), (AdvanceWish(goal: .next), true),
    (AdvanceWish(goal: .by(.hours(9600) + .milliseconds(1))), false),
    (AdvanceWish(goal: .to(Instant(milliseconds: 34_560_000_007))), true),
    (AdvanceWish(goal: .to(Instant(milliseconds: 34_560_000_008))), false),
    (AdvanceWish(goal: .to(Instant(milliseconds: .max))), false),
  ]) func fourHundredDaysAreTheMost(wish: AdvanceWish, isTaken: Bool) {
    let isRefused = (try? wish.check(at: Instant(milliseconds: 7))) == nil
    #expect(isRefused == !isTaken)
  }

  @Test func ratesAreFromNoneToAMillion() throws {
    for rate in [0, 0.5, 60, 1e6] {
      #expect(try RateWish(Array(#"{"rate":\#(rate)}"#.utf8)).rate == rate)
    }
    for rate in ["-1", "1000001", "true", #""fast""#, "null"] {
      #expect(throws: Refusal.self) { try RateWish(Array(#"{"rate":\#(rate)}"#.utf8)) }
    }
  }
}
