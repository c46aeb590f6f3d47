import Foundation
import RelayCore
import Testing

@Suite("Rejections, from outside", .timeLimit(.minutes(3))) struct RejectionTests {
  /// What a sender can bring about, but not as a response of its own: a relay that shuts down says
  /// so in GOAWAY, see `ShutdownTests`.
  static let saidByGoAway: Set<Rejection> = [.shutdown]

  /// No sender can cause these. The relay never sends `ExpiredToken`, `Forbidden` and
  /// `InternalServerError`, which exist for clients' decoders, and `ServiceUnavailable` only when
  /// its journal fails or falls behind, which one in memory does not, or memory is at its limit.
  private static let notOfSenders: Set<Rejection> = [
    .expiredToken, .forbidden, .internalServerError, .serviceUnavailable,
  ]

  @Test func everyOneThatSendersCauseIsInTheTable() {
    let causable = Set(Rejection.allCases).subtracting(Self.notOfSenders)
    let caused = Set(RejectionTable.causes.keys).union(Self.saidByGoAway)
    #expect(caused.symmetricDifference(causable).isEmpty)
  }

  @Test func eachComesWithStatusReasonAndID() async throws {
    try await RelayProcess.run(RejectionScene.setup) { relay in
      let scene = try await RejectionScene(relay)
      for rejection in Rejection.allCases {
        for (number, cause) in (RejectionTable.causes[rejection] ?? []).enumerated() {
          let answers = try await relay.send(cause(scene))
          let answer = try #require(answers.last)
          check(answer, rejection, "\(rejection) \(number): \(answer)")
        }
      }
      // After all this the relay serves a good push, to a token that has not had one.
      let push = scene.push { $0.path = "/3/device/\(scene.tokens[2])" }
      let answer = try await relay.send(push)
      #expect(answer.status == 200, "\(answer)")
      #expect(answer.fields["apns-id"] == RejectionScene.apnsID)
      #expect(answer.body.isEmpty)
    }
  }

  private func check(_ answer: CurlAnswer, _ rejection: Rejection, _ place: Comment) {
    #expect(answer.status == Int(rejection.status), place)
    #expect(answer.reason == rejection.reason, place)
    #expect(answer.fields["content-type"] == "application/json", place)
    #expect(answer.fields["apns-unique-id"].flatMap { UUID(uuidString: $0) } != nil, place)
    if rejection == .badMessageID {
      let fresh = answer.fields["apns-id"]
      #expect(fresh.flatMap { UUID(uuidString: $0) } != nil, place)
      #expect(fresh == answer.fields["apns-unique-id"], place)
    } else {
      #expect(answer.fields["apns-id"] == RejectionScene.apnsID, place)
    }
    if rejection == .unregistered || rejection == .expiredToken {
      let now = Int64(Date().timeIntervalSince1970 * 1000)
      #expect(answer.timestamp.map { ((now - 600_000)...now).contains($0) } == true, place)
    } else {
      #expect(answer.timestamp == nil, place)
    }
  }
}
