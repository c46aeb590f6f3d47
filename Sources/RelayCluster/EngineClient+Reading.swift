import Dispatch
import NATS
import RelayCore
import RelayRecording
import RelayStore

/// Reading messages from the engine's streams. Any server that has the stream answers (NATS
/// documentation, "JetStream wire API Reference", "Direct Get").
extension EngineClient {
  /// On top of a message that is cut: one entry, the forgets and what is owed.
  private static let overheadBytes = 128 << 10
  /// Leaves room for a hop of `Limits.hopMessageBytes` and one more item.
  private static let smallestPayloadBytes = 768 << 10

  /// Bytes at which a stripe's message is cut.
  var messageBytes: Int { maximumPayloadBytes - Self.overheadBytes }

  /// Throws if the engine does not accept messages of the size that relays write.
  func checkPayload() throws(StoreError) {
    guard maximumPayloadBytes >= Self.smallestPayloadBytes else {
      throw .engineRefuses(
        reason: "its max_payload is \(maximumPayloadBytes) bytes, it must be "
          + "\(Self.smallestPayloadBytes)")
    }
  }

  private static func subject(of stream: String) -> String { "$JS.API.DIRECT.GET.\(stream)" }

  /// The last message of a subject: sequence 0 when there is none.
  typealias Last = (sequence: UInt64, body: [UInt8])

  /// Calls `done` with nil when no usable answer comes in time.
  func last(
    _ stream: String, _ subject: String, _ done: @escaping @Sendable (Last?) -> Void
  ) {
    let question = #"{"last_by_subj":"\#(subject)"}"#
    ask(Self.subject(of: stream), Array(question.utf8), within: .seconds(1)) { answer in
      done(answer?.first.flatMap(Self.last))
    }
  }

  static func last(_ answer: NATSMessage) -> Last? {
    switch answer.status {
    case 404: (0, [])
    case .some: nil
    case nil: answer.sequence.map { ($0, answer.body) }
    }
  }

  func last(
    _ stream: String, _ subject: String, tries: Int = patientTries
  ) async throws(StoreError) -> Last {
    try await Self.patiently("it does not say what is last on \(subject)", tries: tries) {
      await withCheckedContinuation { continuation in
        last(stream, subject) { continuation.resume(returning: $0) }
      }
    }
  }

  /// Asks for messages; nil when the answer is missing or incomplete.
  func some(
    of stream: String, _ question: String, within length: DispatchTimeInterval = .seconds(5)
  ) async -> [NATSMessage]? {
    let answer = await ask(
      Self.subject(of: stream), Array(question.utf8), isMany: true, within: length)
    guard let answer, let end = answer.last?.status, end == 204 || end == 404 else { return nil }
    return answer.filter { $0.status == nil }
  }

  func some(
    of stream: String, _ subject: String, from first: UInt64
  ) async throws(StoreError) -> [NATSMessage] {
    try await Self.patiently("it does not say what is on \(subject)") {
      await some(of: stream, Self.next(subject, first))
    }
  }

  static func next(_ subject: String, _ first: UInt64, bytes: Int = 8 << 20) -> String {
    #"{"seq":\#(first),"next_by_subj":"\#(subject)","batch":1000,"max_bytes":\#(bytes)}"#
  }

  /// Reads a stripe from a sequence on, as much as one question gives; returns the last sequence
  /// read. Stops at a message whose predecessor is missing, unless it `mayMiss` some.
  private func readSome(
    of stripe: Int, from first: UInt64, into contents: inout StripeContents, mayMiss: Bool
  ) async throws(StoreError) -> UInt64 {
    let subject = EngineStream.subject(ofStripe: stripe)
    var next = first
    for message in try await some(of: EngineStream.name, subject, from: first) {
      guard let sequence = message.sequence, message.headers["Nats-Subject"] == subject
      else { throw .engineRefuses(reason: "it has answered with a message of another stream") }
      let previous = message.headers["Nats-Expected-Last-Subject-Sequence"].flatMap { UInt64($0) }
      do {
        guard
          try contents.read(message.body, at: sequence, after: previous, mayMiss: mayMiss)
        else { return next }
      } catch {
        throw .engineRefuses(
          reason:
            "message \(sequence) of the stream \(EngineStream.name) is damaged, of another version "
            + "of the relay, or no relay's (\(error)); if nobody needs it, 'nats stream rmm "
            + "\(EngineStream.name) \(sequence)' removes it")
      }
      next = sequence + 1
    }
    return next
  }

  /// Reads a stripe to its last message, now or later, while others may write to it. Detects
  /// missing messages, also at the end (`reach`). If the owner purges after a snapshot, reads the
  /// snapshot instead.
  /// `onProgress` gets the next sequence and the last one.
  func read(
    _ stripe: Int, empty: StripeState, reach: (reach: StripeReach, node: String)? = nil,
    onProgress: (UInt64, UInt64) -> Void = { _, _ in }
  ) async throws(StoreError) -> StripeContents {
    var contents = StripeContents(empty: empty)
    let (last, body) = try await last(EngineStream.name, EngineStream.subject(ofStripe: stripe))
    let short = reach.flatMap { $0.reach.isBehind(last, Stamp(ofMessage: body)) ? nil : $0 }
    let end = short.map { max(last + 1, $0.reach.sequence) } ?? last
    var next: UInt64 = 1
    var tries = 0
    while next <= end || !contents.isWhole {
      onProgress(next, end)
      // A server whose files were damaged leaves messages out, and any server may answer.
      let read = try await readSome(
        of: stripe, from: next, into: &contents, mayMiss: tries >= Self.patientTries / 2)
      tries = read == next ? tries + 1 : 0
      guard tries < Self.patientTries else {
        throw .engineRefuses(
          reason: contents.isWhole
            ? short.map { Self.loss(of: stripe, last, $0.reach, $0.node) }
              ?? "the stream cannot be read behind its message \(next)"
            : "messages of stripe \(stripe) are missing on all its servers: their files were "
              + "damaged, or somebody else has purged the stream")
      }
      // A follower may lag behind its leader.
      if read == next { try? await Task.sleep(for: .milliseconds(100)) }
      next = read
    }
    return contents
  }

  private static func loss(
    of stripe: Int, _ last: UInt64, _ reach: StripeReach, _ node: String
  ) -> String {
    "it has lost what it had stored: node \(node) knows of message \(reach.sequence) of stripe "
      + "\(stripe), and \(last) is the last that is there; its files were damaged, or come from a "
      + "backup. Give it the right ones; if there are none, 'nats kv del pushrelay reach.\(node)' "
      + "has relays go on without what is lost"
  }
}

/// How far a stripe goes: its owner's epoch, and the last message that the engine has stored.
struct StripeReach: Hashable, Sendable {
  var epoch: UInt64
  var sequence: UInt64

  /// True if that message, with its stamp, is the last one meant here or a later one. After a loss
  /// sequences begin again from an earlier one, epochs do not.
  func isBehind(_ last: UInt64, _ stamp: Stamp?) -> Bool {
    guard let stamp else { return false }
    return stamp.epoch == epoch ? last >= sequence : stamp.epoch > epoch
  }
}

extension StripeReach: Composite {
  static let fields = Fields(Self.init(epoch:sequence:)) { ($0.epoch, $0.sequence) }
}

extension NATSMessage {
  var sequence: UInt64? { headers["Nats-Sequence"].flatMap { UInt64($0) } }

  /// The sequence in the answer to a publication; nil when refused.
  var storedSequence: UInt64? {
    guard status == nil, var cursor = try? ObjectCursor(body.span) else { return nil }
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

extension Stamp {
  /// Reads who wrote a message; nil when no relay did.
  init?(ofMessage body: [UInt8]) {
    var reader = ByteReader(body)
    guard let head = try? reader.read(StripeMessage.Head.self) else { return nil }
    self = head.stamp
  }
}
