package import Primitives

/// Writes one subject of a stream as its only owner. A value: no clock, no network.
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
/// 1. Every message names the subject's message before it, and the engine stores it only if that is
///    still the last. So at most one is on its way, and of two owners only one goes on.
/// 2. A message is repeated unchanged until known to be stored; it is stored once.
/// 3. An owner that finds another's message behind its own never writes again.
/// 4. A read may be out of date (a follower answered): it then shows less, never something wrong.
/// 5. When reads show less for long, or the server that leads the stream does, the engine may have
///    lost what it had stored. The message then names the last one that is there: if the engine has
///    more after all, it refuses it.
package struct SubjectWriter: Hashable, Sendable {
  package struct Message: Hashable, Sendable {
    package var number: UInt64
    package var bytes: [UInt8]
  }

  private enum NextStep: Hashable {
    case ask
    case publish
  }

  private enum Phase: Hashable {
    case idle
    /// Published; an answer is due by then.
    case writing(Message, until: Instant)
    /// Unknown whether stored; the next step and its time.
    case doubtful(Message, next: NextStep, at: Instant)
    /// Another owner's; nil when the writer is no relay.
    case lost(to: Stamp?)
  }

  package enum Event: Hashable, Sendable {
    case stored(number: UInt64, sequence: UInt64)
    /// The engine refused it, or may not have received it; the subject's last message as it has
    /// said, if it has.
    case refused(number: UInt64, last: UInt64? = nil)
    /// The subject's last message: sequence 0 when there is none, stamp nil when it is no relay's.
    case found(question: UInt64, sequence: UInt64, Stamp?)
    case tick
  }

  package enum Effect: Hashable, Sendable {
    /// Publish it, to be stored only behind this sequence.
    case publish(Message, after: UInt64)
    case ask(question: UInt64)
    case stored(sequence: UInt64)
    case lost(to: Stamp?)
  }

  static let answerTime = Interval.milliseconds(1000)
  /// Between two steps while doubtful.
  static let retryTime = Interval.milliseconds(100)
  /// So many reads in a row that show less are a loss: five seconds or more.
  static let shortReads = 50

  package let run: UInt64
  package private(set) var last: UInt64
  /// Of the owner, where owners follow each other: others have lower or higher ones.
  private let epoch: UInt64
  private var phase = Phase.idle
  private var questions: UInt64
  private var shortCount = 0
  /// The last message as the server that leads had it, by its refusal.
  private var leaderLast: UInt64?
  /// The last message that is there, after a loss.
  private var shortLast: UInt64?
  /// Times that the engine had lost messages, and has gone on from an earlier one.
  package private(set) var losses: Int

  /// Numbers of messages and questions begin above `first`. A new attempt begins higher, so that
  /// answers to the last one do not match.
  package init(
    run: UInt64, last: UInt64, first: UInt64 = 0, epoch: UInt64 = 0, losses: Int = 0
  ) {
    self.run = run
    self.last = last
    self.epoch = epoch
    self.losses = losses
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
    case (.refused(let number, let last), .writing(let message, _)):
      guard number == message.number else { return nil }
      leaderLast = last
      return ask(message, at: now)
    case (.found(let question, let sequence, let stamp), .doubtful(let message, .ask, _)):
      return question == questions ? found(sequence, stamp, message, at: now) : nil
    case (.tick, .writing(let message, let until)):
      guard now >= until else { return nil }
      leaderLast = nil
      return ask(message, at: now)
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
    return .publish(message, after: shortLast ?? last)
  }

  private mutating func ask(_ message: Message, at now: Instant) -> Effect {
    questions += 1
    phase = .doubtful(message, next: .ask, at: now + Self.answerTime)
    return .ask(question: questions)
  }

  private mutating func stored(_ sequence: UInt64) -> Effect {
    if shortLast != nil { losses += 1 }
    (last, shortLast, shortCount, leaderLast) = (sequence, nil, 0, nil)
    phase = .idle
    return .stored(sequence: sequence)
  }

  private mutating func found(
    _ sequence: UInt64, _ stamp: Stamp?, _ message: Message, at now: Instant
  ) -> Effect? {
    if stamp?.run == run, stamp?.number == message.number { return stored(sequence) }
    if stamp?.run != run, sequence > last || stamp.map({ $0.epoch > epoch }) ?? false {
      phase = .lost(to: stamp)
      return .lost(to: stamp)
    }
    // The last known message is still the last: ours is not stored yet. An older one, ours or not,
    // is an old view, or the rest after a loss: of all servers, or of the one that leads.
    let rest = min(sequence, leaderLast ?? sequence)
    shortCount = rest < last ? shortCount + 1 : 0
    shortLast = shortCount >= Self.shortReads ? rest : nil
    let isThere = sequence == last || shortLast != nil
    phase = .doubtful(message, next: isThere ? .publish : .ask, at: now + Self.retryTime)
    return nil
  }
}
