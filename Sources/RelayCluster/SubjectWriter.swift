package import Primitives

/// One subject of a stream, as written by one who believes that it is theirs alone. A value: no
/// clock, no network.
///
/// ```
///            write                answered stored
///   idle ───────────▶ writing ────────────────────▶ idle
///    ▲                  │  ▲
///    │    no answer, or │  │ it is not there: the same bytes again
///    │    one that says │  │
///    │    no            ▼  │
///    └────────────── doubtful ──── somebody else's is there ───▶ lost
///       it is there
/// ```
///
/// 1. Every message carries the sequence of the message before it on the subject, and the engine
///    takes it only when that is still the last one. So one is on its way at most, and of two
///    owners only one goes on.
/// 2. A message is what it is until it is known to be there: it may be published many times and
///    is stored once.
/// 3. Who has found a message of somebody else behind its own never writes again.
/// 4. What was read may be older than what is there (a follower may have answered). Then it says
///    less, never something wrong.
package struct SubjectWriter: Hashable, Sendable {
  package struct Message: Hashable, Sendable {
    package var number: UInt64
    package var bytes: [UInt8]

    package init(number: UInt64, bytes: [UInt8]) {
      self.number = number
      self.bytes = bytes
    }
  }

  private enum NextStep: Hashable {
    case ask
    case publish
  }

  private enum Phase: Hashable {
    case idle
    /// Published; an answer is expected until then.
    case writing(Message, until: Instant)
    /// Nobody knows whether it is there; what is done next about it, and when.
    case doubtful(Message, next: NextStep, at: Instant)
    /// Somebody else has the subject; nil when no relay did.
    case lost(to: Stamp?)
  }

  package enum Event: Hashable, Sendable {
    /// The engine has the message with this number.
    case stored(number: UInt64, sequence: UInt64)
    /// The engine does not take it now, or nobody has heard it.
    case refused(number: UInt64)
    /// The answer to a question: what is last on the subject. The sequence is 0 when nothing is,
    /// the stamp nil when it is no relay's.
    case found(question: UInt64, sequence: UInt64, Stamp?)
    /// Time has passed.
    case tick
  }

  package enum Effect: Hashable, Sendable {
    /// Publish it, to be taken only when this sequence is the last one.
    case publish(Message, after: UInt64)
    /// Ask what is last on the subject.
    case ask(question: UInt64)
    /// The message is there, at this sequence.
    case stored(sequence: UInt64)
    /// Somebody else has the subject; nil when no relay did.
    case lost(to: Stamp?)
  }

  /// How long an answer may take before it is doubtful.
  static let answerTime = Interval.milliseconds(1000)
  /// How long what is doubtful is left alone between two steps.
  static let retryTime = Interval.milliseconds(100)

  /// Whose messages these are.
  package let run: UInt64
  /// The sequence of the last message that is known.
  package private(set) var last: UInt64
  private var phase = Phase.idle
  private var questions: UInt64

  /// - Parameter first: the numbers of messages and questions begin behind it. One that tries again
  ///   begins higher up: an answer to what it asked before is none.
  package init(run: UInt64, last: UInt64, first: UInt64 = 0) {
    self.run = run
    self.last = last
    questions = first
  }

  package var isIdle: Bool { phase == .idle }

  package var isLost: Bool { if case .lost = phase { true } else { false } }

  /// When `tick` has something to do.
  package var deadline: Instant? {
    switch phase {
    case .idle, .lost: nil
    case .writing(_, let moment), .doubtful(_, _, let moment): moment
    }
  }

  /// Writes the next message. Only while idle.
  package mutating func write(_ message: Message, at now: Instant) -> Effect {
    precondition(isIdle, "one message is on its way at most")
    return publish(message, at: now)
  }

  package mutating func handle(_ event: Event, at now: Instant) -> Effect? {
    switch (event, phase) {
    case (.stored(let number, let sequence), .writing(let message, _)),
      (.stored(let number, let sequence), .doubtful(let message, _, _)):
      return number == message.number ? stored(sequence) : nil
    case (.refused(let number), .writing(let message, _)):
      return number == message.number ? ask(message, at: now) : nil
    case (.found(let question, let sequence, let stamp), .doubtful(let message, .ask, _)):
      return question == questions ? found(sequence, stamp, message, at: now) : nil
    case (.tick, .writing(let message, let until)):
      return now >= until ? ask(message, at: now) : nil
    case (.tick, .doubtful(let message, let next, let moment)):
      guard now >= moment else { return nil }
      return next == .ask ? ask(message, at: now) : publish(message, at: now)
    case (_, .idle), (_, .lost), (.refused, .doubtful), (.found, _):
      // An answer to what is settled, or from before the last question.
      return nil
    }
  }

  private mutating func publish(_ message: Message, at now: Instant) -> Effect {
    phase = .writing(message, until: now + Self.answerTime)
    return .publish(message, after: last)
  }

  private mutating func ask(_ message: Message, at now: Instant) -> Effect {
    questions += 1
    phase = .doubtful(message, next: .ask, at: now + Self.answerTime)
    return .ask(question: questions)
  }

  private mutating func stored(_ sequence: UInt64) -> Effect {
    last = sequence
    phase = .idle
    return .stored(sequence: sequence)
  }

  private mutating func found(
    _ sequence: UInt64, _ stamp: Stamp?, _ message: Message, at now: Instant
  ) -> Effect? {
    if sequence > last, stamp?.run == run, stamp?.number == message.number {
      return stored(sequence)
    }
    if sequence > last, stamp?.run != run {
      phase = .lost(to: stamp)
      return .lost(to: stamp)
    }
    // The last one that was known is still the last one: it is not there yet. What is older, or an
    // earlier one of ours, is an old view.
    phase = .doubtful(
      message, next: sequence == last ? .publish : .ask, at: now + Self.retryTime)
    return nil
  }
}
