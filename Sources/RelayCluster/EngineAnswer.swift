import FoundationEssentials
import NATS
import RelayCore
import RelayRecording

/// What the engine says to what was asked of it, as events.
enum EngineAnswer {
  /// What an answer is to, in the subject that it comes to.
  struct Tag: Hashable {
    enum Kind: String {
      case written = "w"
      case last = "l"
    }

    var kind: Kind
    var target: JournalNode.Target
    var number: UInt64

    init(kind: Kind, target: JournalNode.Target, number: UInt64) {
      self.kind = kind
      self.target = target
      self.number = number
    }

    init?(_ text: String) {
      let parts = text.split(separator: ".", omittingEmptySubsequences: false)
      guard parts.count == 3, let kind = Kind(rawValue: String(parts[0])),
        let number = UInt64(parts[2])
      else { return nil }
      if parts[1] == "lease" {
        self.init(kind: kind, target: .lease, number: number)
      } else {
        guard let stripe = UInt8(parts[1]) else { return nil }
        self.init(kind: kind, target: .stripe(Int(stripe)), number: number)
      }
    }

    var text: String {
      switch target {
      case .lease: "\(kind.rawValue).lease.\(number)"
      case .stripe(let stripe): "\(kind.rawValue).\(stripe).\(number)"
      }
    }
  }

  /// Any server that has the stream answers to this (NATS documentation, "JetStream wire API
  /// Reference", "Direct Get").
  static func directSubject(of stream: String) -> String { "$JS.API.DIRECT.GET.\(stream)" }

  static func lastRequest(of subject: String) -> [UInt8] {
    Array(#"{"last_by_subj":"\#(subject)"}"#.utf8)
  }

  /// What a message says; nil when it is no answer, or none that says anything.
  static func read(_ message: NATSMessage) -> (JournalNode.Target, SubjectWriter.Event)? {
    guard let tag = Tag(message.tag) else { return nil }
    switch tag.kind {
    case .written:
      guard message.status == nil, let sequence = storedSequence(message.body) else {
        return (tag.target, .refused(number: tag.number))
      }
      return (tag.target, .stored(number: tag.number, sequence: sequence))
    case .last:
      guard let found = last(message) else { return nil }
      return (
        tag.target, .found(question: tag.number, sequence: found.sequence, found.head?.stamp)
      )
    }
  }

  /// The last message of a subject: 0 when there is none, no head when it is no relay's. nil when
  /// the answer is none.
  static func last(_ message: NATSMessage) -> (sequence: UInt64, head: StripeMessage.Head?)? {
    switch message.status {
    case 404: return (0, nil)
    case .some: return nil
    case nil:
      guard let sequence = message.headers["Nats-Sequence"].flatMap({ UInt64($0) }) else {
        return nil
      }
      var reader = ByteReader(message.body)
      return (sequence, try? reader.read(StripeMessage.Head.self))
    }
  }

  /// Why a message was not taken; nil when somebody else's came before it, or nobody says.
  static func refusal(_ body: [UInt8]) -> String? {
    struct Answer: Decodable {
      struct Problem: Decodable {
        var err_code: Int?
        var description: String?
      }
      var error: Problem?
    }
    let problem = (try? JSONDecoder().decode(Answer.self, from: Data(body)))?.error
    return problem?.err_code == wrongLastSequence ? nil : problem?.description
  }

  /// `JSStreamWrongLastSequenceErrF` (nats-server, "errors.json").
  private static let wrongLastSequence = 10_071

  /// Where a message is now, by the answer to its publication; nil when it was refused.
  static func storedSequence(_ body: [UInt8]) -> UInt64? {
    guard var cursor = try? ObjectCursor(body.span) else { return nil }
    var sequence: UInt64?
    while let member = try? cursor.next(body.span) {
      let key = body[member.key]
      if key.elementsEqual("error".utf8) { return nil }
      if key.elementsEqual("seq".utf8) {
        sequence = UInt64(String(decoding: body[member.value], as: UTF8.self))
      }
    }
    return sequence == 0 ? nil : sequence
  }
}
