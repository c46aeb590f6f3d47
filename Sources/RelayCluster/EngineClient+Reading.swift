import NATS
import RelayStore

/// What is in the engine's streams, for nodes and for those who only look.
extension EngineClient {
  /// What comes on top of a message that is cut: one entry, the forgets and what is owed.
  private static let overheadBytes = 128 << 10
  /// And so room for a hop of `Limits.hopMessageBytes` with one more item.
  private static let smallestPayloadBytes = 768 << 10

  /// Bytes at which a message of a stripe is cut.
  var messageBytes: Int { maximumPayloadBytes - Self.overheadBytes }

  /// The engine must take messages of the size that relays write.
  func checkPayload() throws(StoreError) {
    guard maximumPayloadBytes >= Self.smallestPayloadBytes else {
      throw .engineRefuses(
        reason: "its max_payload is \(maximumPayloadBytes) bytes, it must be "
          + "\(Self.smallestPayloadBytes)")
    }
  }

  typealias Last = (sequence: UInt64, head: StripeMessage.Head?)

  func last(_ stream: String, _ subject: String) async throws(StoreError) -> Last {
    for _ in 0..<ClusterJournal.patientTries {
      guard !Task.isCancelled else { throw .stopped }
      let answer = await ask(
        EngineAnswer.directSubject(of: stream), EngineAnswer.lastRequest(of: subject))
      if let message = answer?.first, let found = EngineAnswer.last(message) { return found }
      try? await Task.sleep(for: .milliseconds(100))
    }
    throw .engineRefuses(reason: "it does not say what is last on \(subject)")
  }

  /// The messages of a subject from a sequence on, as many as one question gives; none when there
  /// are none.
  func some(
    of stream: String, _ subject: String, from first: UInt64
  ) async throws(StoreError) -> [NATSMessage] {
    let question =
      #"{"seq":\#(first),"next_by_subj":"\#(subject)","batch":1000,"max_bytes":8388608}"#
    for _ in 0..<ClusterJournal.patientTries {
      guard !Task.isCancelled else { throw .stopped }
      let answer = await ask(
        EngineAnswer.directSubject(of: stream), Array(question.utf8), isMany: true)
      if let answer, let end = answer.last?.status, end == 204 || end == 404 {
        return answer.filter { $0.status == nil }
      }
      try? await Task.sleep(for: .milliseconds(100))
    }
    throw .engineRefuses(reason: "it does not say what is on \(subject)")
  }

  /// Reads what there is of a stripe from a sequence on, as much as one question gives; returns
  /// behind what.
  func readSome(
    of stripe: Int, from first: UInt64, into replay: inout StripeReplay
  ) async throws(StoreError) -> UInt64 {
    let subject = EngineStream.subject(ofStripe: stripe)
    var next = first
    for message in try await some(of: EngineStream.name, subject, from: first) {
      guard let sequence = message.headers["Nats-Sequence"].flatMap({ UInt64($0) }),
        message.headers["Nats-Subject"] == subject
      else { throw .engineRefuses(reason: "it has answered with a message of another stream") }
      let previous = message.headers["Nats-Expected-Last-Subject-Sequence"].flatMap { UInt64($0) }
      do {
        try replay.read(message.body, at: sequence, after: previous)
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

  /// Reads a stripe up to the last message at this moment or a later one, whoever writes to it
  /// meanwhile. A message that is missing is noticed.
  ///
  /// What was not read yet may be purged when its owner has written a snapshot; then that is read.
  ///
  /// - Parameter onProgress: told which sequence of which comes next.
  func read(
    _ stripe: Int, empty: StripeState,
    onProgress: (UInt64, UInt64) -> Void = { _, _ in }
  ) async throws(StoreError) -> StripeReplay {
    var replay = StripeReplay(empty: empty)
    let end = try await last(EngineStream.name, EngineStream.subject(ofStripe: stripe)).sequence
    var next: UInt64 = 1
    var tries = 0
    while next <= end || !replay.isWhole {
      onProgress(next, end)
      let read = try await readSome(of: stripe, from: next, into: &replay)
      tries = read == next ? tries + 1 : 0
      guard tries < ClusterJournal.patientTries else {
        throw .engineRefuses(
          reason: replay.isWhole
            ? "the stream cannot be read behind its message \(next)"
            : "messages of stripe \(stripe) are missing: somebody else has purged the stream")
      }
      // A follower may lag behind its leader.
      if read == next { try? await Task.sleep(for: .milliseconds(100)) }
      next = read
    }
    return replay
  }
}
