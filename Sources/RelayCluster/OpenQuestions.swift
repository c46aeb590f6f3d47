import Dispatch
import NATS
import Synchronization

/// Questions whose answers have not all come yet, by the numbers that the answers carry. On the way
/// anything may be lost, so every question has an end.
final class OpenQuestions: Sendable {
  private struct Question {
    let isLast: @Sendable (NATSMessage) -> Bool
    let done: @Sendable ([NATSMessage]?) -> Void
    var messages: [NATSMessage] = []
    var bytes = 0
  }

  private struct State {
    var questions: [UInt64: Question] = [:]
    var lastNumber: UInt64 = 0
  }

  private let state = Mutex(State())
  /// Bytes that are kept of one answer: longer ones are none.
  private let limitBytes: Int

  init(limitBytes: Int = .max) { self.limitBytes = limitBytes }

  /// The number of a question that is asked now.
  ///
  /// - Parameters:
  ///   - isLast: whether the answer is complete with a message.
  ///   - done: told the answer, once, on any thread; nil when none comes in time.
  func open(
    within length: DispatchTimeInterval, isLast: @escaping @Sendable (NATSMessage) -> Bool,
    _ done: @escaping @Sendable ([NATSMessage]?) -> Void
  ) -> UInt64 {
    let number = state.withLock { state in
      state.lastNumber += 1
      state.questions[state.lastNumber] = Question(isLast: isLast, done: done)
      return state.lastNumber
    }
    DispatchQueue.global().asyncAfter(deadline: .now() + length) { self.giveUp(number) }
    return number
  }

  /// A message of an answer has come.
  func hear(_ message: NATSMessage, to number: UInt64) {
    let question = state.withLock { state -> Question? in
      guard var question = state.questions.removeValue(forKey: number) else { return nil }
      question.messages.append(message)
      question.bytes += message.body.count
      guard question.bytes <= limitBytes, !question.isLast(message) else { return question }
      state.questions[number] = question
      return nil
    }
    question.map { $0.done($0.bytes <= limitBytes ? $0.messages : nil) }
  }

  func giveUp(_ number: UInt64) {
    state.withLock { $0.questions.removeValue(forKey: number) }?.done(nil)
  }
}
