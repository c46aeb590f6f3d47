import AdminAPI
import Foundation
import Primitives
import RelayServer
import Testing

@testable import Cockpit

@Suite struct ClockRoutesTests {
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
