import Primitives
import RelayClient
import RelayCore
import RelayStore
import TestSupport
import Testing

@testable import RelayServer

@Suite struct QuestionsTests {
  @Test func soManyAreUnderWayAndNoMore() {
    var questions = Questions()
    let first = questions.begin(1)
    #expect(first?.isCancelled == false)
    for number in 1..<Limits.questionsPerConnection {
      #expect(questions.begin(Int32(number * 2 + 1)) != nil)
    }
    #expect(questions.begin(999) == nil)
    // A stream that was reset sets nothing else off, but what it has set off still counts.
    questions.cancel(1)
    questions.cancel(999)
    #expect(first?.isCancelled == true)
    #expect(questions.begin(999) == nil)
    questions.end(1)
    let last = questions.begin(999)
    #expect(last?.isCancelled == false)
    questions.cancelAll()
    #expect(last?.isCancelled == true)
  }

  /// The answer comes when nothing else is on the connection, such as two seconds later from a node
  /// that does not answer.
  @Test func whatCannotBeAnsweredIsSaidAtOnce() throws {
    let answers: [(QueryAnswer, Int)] = [
      (.feedback(.failure(StoreError.stopped), since: 0, of: nil), 503),
      (.feedback(.success([]), since: 0, of: nil), 200), (.life(nil), 404),
    ]
    for (answer, status) in answers {
      let peer = try ConnectionScene().connect(provider: true)
      // A request that waits as a question does; the answer itself is this test's.
      let stream = try peer.request("POST", "/3/device/00", body: [], isComplete: false)
      try peer.exchange()
      #expect(peer.statuses[stream] == nil)
      peer.handler.answer(stream, answer)
      try peer.receive()
      #expect(peer.statuses[stream] == status)
    }
  }

  /// By sockets: all are answered, whatever was too much, and the connection goes on.
  @Test func everyQuestionIsAnswered() async throws {
    try await LoopbackRelay.run { addresses, _ in
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<200 {
          group.addTask {
            let path =
              number % 2 == 0
              ? "/v1/feedback" : "/v1/notifications/00000000-0000-0000-0000-000000000000"
            return try await provider.request(method: "GET", path: path).status
          }
        }
        var found: [Int: Int] = [:]
        for try await status in group { found[status, default: 0] += 1 }
        return found
      }
      #expect(Set(statuses.keys).isSubset(of: [200, 404, 503]), "\(statuses)")
      #expect(statuses[200, default: 0] + statuses[404, default: 0] >= 16, "\(statuses)")
      let last = try await provider.request(method: "GET", path: "/v1/feedback")
      #expect(last.status == 200)
      await provider.close()
    }
  }
}

@Suite struct MemoryFeedbackTests {
  private func items(
    of run: Int64, count: UInt64, since cursor: Int64
  ) async -> [FeedbackItem] {
    let feedback = MemoryFeedback(start: Instant(unixSeconds: 1_767_225_600 + run))
    for number in 0..<count {
      let token = DeviceToken(random: (number, 1, 1), routingKey: 1)
      await feedback.append(token, Topic("a.b")!, at: Instant(milliseconds: 5))
    }
    return await feedback.feedback(since: cursor, limit: 10) { true }
  }

  /// The cursor of a run before, which had listed more than this one has.
  @Test func aCursorOfAnEarlierRunHidesNothing() async throws {
    let first = await items(of: 0, count: 7, since: 0)
    #expect(first.count == 7)
    let cursor = try #require(first.last?.position)
    #expect(await items(of: 1, count: 2, since: cursor).count == 2)
    #expect(await items(of: 0, count: 7, since: cursor).isEmpty)
  }

  /// What is listed after the relay was taken back has the positions of what was listed before.
  @Test func aReaderGoesBackWithTheListing() async throws {
    let feedback = MemoryFeedback(start: Instant(unixSeconds: 1_767_225_600))
    func append(_ number: UInt64) async {
      let token = DeviceToken(random: (number, 1, 1), routingKey: 1)
      await feedback.append(token, Topic("a.b")!, at: Instant(milliseconds: 5))
    }
    await append(1)
    let then = await feedback.checkpoint()
    await append(2)
    let all = await feedback.feedback(since: feedback.feedbackCursor(of: "a.b"), limit: 10) { true }
    #expect(all.count == 2)
    await feedback.setFeedbackCursor(of: "a.b", to: try #require(all.last).position)
    await feedback.rewind(to: then)
    #expect(
      await feedback.feedback(since: feedback.feedbackCursor(of: "a.b"), limit: 10) { true }.isEmpty
    )
    await append(3)
    #expect(
      await feedback.feedback(since: feedback.feedbackCursor(of: "a.b"), limit: 10) { true }.count
        == 1)
    #expect(
      await feedback.feedback(since: feedback.feedbackCursor(of: "c.d"), limit: 10) { true }.count
        == 2)
  }

  /// Whoever keeps a cursor of its own misses nothing, and hears nothing twice.
  @Test func noPositionIsGivenTwice() async throws {
    let feedback = MemoryFeedback(start: Instant(unixSeconds: 1_767_225_600))
    let tokens = (UInt64(0)..<2).map { DeviceToken(random: ($0, 1, 1), routingKey: 1) }
    let then = await feedback.checkpoint()
    await feedback.append(tokens[0], Topic("a.b")!, at: Instant(milliseconds: 5))
    let cursor = try #require(await feedback.feedback(since: 0, limit: 10) { true }.last?.position)
    await feedback.rewind(to: then)
    await feedback.append(tokens[1], Topic("a.b")!, at: Instant(milliseconds: 5))
    #expect(await feedback.feedback(since: cursor, limit: 10) { true }.map(\.token) == [tokens[1]])
  }

  /// The clock was set back between the runs.
  @Test func aCursorThatLiesAheadBeginsAgain() async {
    let ahead = Int64(1_767_999_999) * 1_000_000
    #expect(await items(of: 0, count: 2, since: ahead).count == 2)
  }
}
