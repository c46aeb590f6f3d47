import Dispatch
import NATS
import RelayCore
package import RelayRecording
package import RelayStore
import Synchronization

enum ClusterQuestion: Hashable, Sendable {
  case feedback(after: Int64, limit: Int)
  /// Which of these tokens are registered.
  case owned([DeviceToken])
  /// A question of the relay, opaque here.
  case relay([UInt8])
  /// Do the loops know the node of this number, and send to it?
  case knows(UInt16)
  /// No question, as the next: a channel's place was written.
  case place(ChannelPlace)
  /// A broadcast that is not stored.
  case broadcast(Broadcast)
}

/// Part of the listing of unregistered tokens, complete up to `end`.
package struct ListingPart: Hashable, Sendable {
  package var items: [FeedbackItem]
  package var end: Int64
}

extension ClusterQuestion: Tagged {
  func write(to writer: inout ByteWriter) {
    switch self {
    case .feedback(let position, let limit): writer.put(tag: 1, position, limit)
    case .owned(let tokens): writer.put(tag: 2, tokens)
    case .relay(let question): writer.put(tag: 3, question)
    case .knows(let number): writer.put(tag: 4, number)
    case .place(let place): writer.put(tag: 5, place)
    case .broadcast(let broadcast): writer.put(tag: 6, broadcast)
    }
  }

  static let cases: Cases<Self> = [
    1: .of(Self.feedback), 2: .of(Self.owned), 3: .of(Self.relay), 4: .of(Self.knows),
    5: .of(Self.place), 6: .of(Self.broadcast),
  ]
}

extension ListingPart: Composite {
  package static let fields = Fields(Self.init(items:end:)) { ($0.items, $0.end) }
}

/// Questions still waiting for their answers, by number. Each ends: messages may be lost.
final class OpenQuestions: Sendable {
  private struct Question {
    let isLast: @Sendable (NATSMessage) -> Bool
    let done: @Sendable ([NATSMessage]?) -> Void
    let deadline: DispatchTime
    var messages: [NATSMessage] = []
    var bytes = 0
  }

  private struct State {
    var questions: [UInt64: Question] = [:]
    var lastNumber: UInt64 = 0
    /// A sweep is coming.
    var isSwept = false
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
    let (number, isSwept) = state.withLock { state in
      state.lastNumber += 1
      state.questions[state.lastNumber] = Question(
        isLast: isLast, done: done, deadline: .now() + length)
      return (state.lastNumber, exchange(&state.isSwept, with: true))
    }
    if !isSwept { sweepSoon() }
    return number
  }

  /// One timer for all questions: there is one for each message to the journal.
  private func sweepSoon() {
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(50)) { self.sweep() }
  }

  private func sweep() {
    let overdue = state.withLock { state in
      let now = DispatchTime.now()
      let overdue = state.questions.filter { $0.value.deadline <= now }.keys.sorted()
      state.isSwept = overdue.count < state.questions.count
      return (numbers: overdue, goesOn: state.isSwept)
    }
    for number in overdue.numbers { giveUp(number) }
    if overdue.goesOn { sweepSoon() }
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

/// An answer to another node in as many messages as it needs. The last names the total length, so a
/// lost part is noticed.
enum AnswerParts {
  /// Returns the parts in order; a single empty one when the answer is too long.
  static func split(_ answer: [UInt8]) -> [[UInt8]] {
    guard answer.count <= Limits.nodeAnswerBytes else { return [[]] }
    var parts: [[UInt8]] = []
    var rest = answer[...]
    repeat {
      parts.append(Array(rest.prefix(Limits.hopMessageBytes)))
      rest = rest.dropFirst(Limits.hopMessageBytes)
    } while !rest.isEmpty
    return parts
  }

  /// Returns the whole answer; nil when a part is missing.
  static func join(_ messages: [NATSMessage]) -> [UInt8]? {
    let answer = messages.flatMap(\.body)
    return messages.last?.tag.split(separator: ".").last.map { $0 == "\(answer.count)" } == true
      ? answer : nil
  }
}
