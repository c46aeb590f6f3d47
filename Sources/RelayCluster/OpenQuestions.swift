import Dispatch
import NATS
import Synchronization

/// Questions still waiting for their answers, by number. Each ends: messages may be lost.
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
  /// Longer answers count as none.
  private let limitBytes: Int

  init(limitBytes: Int = .max) { self.limitBytes = limitBytes }

  /// Registers a question and returns its number. `isLast` tells whether a message completes the
  /// answer; `done` is called once, on any thread, with nil when no answer comes in time.
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
