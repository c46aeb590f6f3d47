import Dispatch
import NATS
import RelayCore
import Synchronization
import Testing

@testable import RelayCluster

@Suite struct AnswerPartsTests {
  private static func answer(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 / 1000 + $0) }
  }

  private static func messages(_ parts: [[UInt8]], _ count: Int) -> [NATSMessage] {
    parts.enumerated().map { index, part in
      NATSMessage(tag: index + 1 < parts.count ? "part.7" : "answer.7.\(count)", body: part)
    }
  }

  @Test(arguments: [0, 1, Limits.hopMessageBytes, Limits.hopMessageBytes + 1, 3_000_000])
  func anAnswerComesWhole(_ count: Int) throws {
    let answer = Self.answer(count)
    let parts = AnswerParts.split(answer)
    #expect(parts.allSatisfy { $0.count <= Limits.hopMessageBytes })
    #expect(AnswerParts.join(Self.messages(parts, count)) == answer)
  }

  @Test func anAnswerWithAPartMissingIsNone() throws {
    let parts = AnswerParts.split(Self.answer(3_000_000))
    #expect(AnswerParts.join(Self.messages(Array(parts.dropFirst()), 3_000_000)) == nil)
  }

  @Test func whatIsTooLongIsNotSentAndNotKept() {
    #expect(AnswerParts.split(Array(repeating: 7, count: Limits.nodeAnswerBytes + 1)) == [[]])
    let done = Mutex<[[NATSMessage]?]>([])
    let questions = OpenQuestions(limitBytes: 100)
    let number = questions.open(within: .seconds(60), isLast: { _ in false }) { answer in
      done.withLock { $0.append(answer) }
    }
    for _ in 0..<5 {
      questions.hear(NATSMessage(tag: "part", body: .init(repeating: 7, count: 40)), to: number)
    }
    #expect(done.withLock { $0 }.count == 1 && done.withLock { $0[0] } == nil)
  }

  /// One timer serves all; after it has had nothing to do, the next question starts it again.
  @Test func aQuestionThatIsNotAnsweredEnds() async {
    let questions = OpenQuestions()
    for _ in 0..<2 {
      let answer = await withCheckedContinuation { done in
        _ = questions.open(within: .seconds(60), isLast: { _ in true }, { _ in })
        _ = questions.open(within: .milliseconds(1), isLast: { _ in true }) {
          done.resume(returning: $0?.count)
        }
      }
      #expect(answer == nil)
    }
    let lonely = OpenQuestions()
    for _ in 0..<2 {
      let isGivenUp = await withCheckedContinuation { done in
        _ = lonely.open(within: .milliseconds(1), isLast: { _ in true }) {
          done.resume(returning: $0 == nil)
        }
      }
      #expect(isGivenUp)
    }
  }
}
