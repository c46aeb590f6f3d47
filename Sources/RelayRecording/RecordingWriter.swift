package import Primitives
package import RelayCore

/// Records one shard: events in, frames of a file out. A value without I/O.
///
/// ```
/// chunk: shard, number of the chunk, number of its first batch, base time, then batches:
///   events: event, milliseconds since the one before, check of the digest so far (1 byte)
///   0, digest of the batch's effects (8 bytes)
/// ```
///
/// Invariants:
/// 1. A chunk holds whole batches, so a file can be replayed up to the end of any chunk.
/// 2. Digests are of effects redacted as the events are, so a replay computes the same.
package struct RecordingWriter: Sendable {
  package let shard: UInt16
  /// The size from which a chunk should be written.
  package static let chunkBytes = 65_536

  private var body: ByteWriter
  private var digest: EffectDigest
  private var chunkNumber: UInt64 = 0
  private var batchNumber: UInt64 = 0
  private var lastTime = Instant(milliseconds: 0)
  private var isInBatch = false

  package init(shard: UInt16, redactor: Redactor) {
    self.shard = shard
    body = ByteWriter(redactor: redactor)
    digest = EffectDigest(redactor: redactor)
  }

  /// The shard's first frame.
  package func frame(of start: ShardStart) -> RecordingFrame {
    var writer = ByteWriter()
    writer.put(start)
    return RecordingFrame(kind: .start, body: writer.bytes)
  }

  /// Records an event and its effects.
  package mutating func record(_ event: Event, at moment: Instant, _ effects: Span<Effect>) {
    if body.count == 0 { beginChunk(at: moment) }
    if !isInBatch { digest.reset() }
    isInBatch = true
    digest.add(effects)
    let passed = moment - lastTime
    lastTime = moment
    if case .submitted(let notification, let request) = event {
      body.put(submitted: notification, request, passed, digest.check)
    } else {
      body.put(event, passed, digest.check)
    }
  }

  /// Ends the batch. True if the chunk should be written.
  package mutating func endBatch() -> Bool {
    guard isInBatch else { return false }
    isInBatch = false
    body.put(tag: Event.noTag)
    body.put(word: digest.value)
    batchNumber += 1
    return body.count >= Self.chunkBytes
  }

  /// The batches since the last call; nil without any, and within a batch.
  package mutating func finishChunk() -> RecordingFrame? {
    guard body.count > 0, !isInBatch else { return nil }
    chunkNumber += 1
    return RecordingFrame(chunk: body.takeBytes())
  }

  private mutating func beginChunk(at moment: Instant) {
    body.put(shard, chunkNumber, batchNumber, moment)
    lastTime = moment
  }
}

extension ByteWriter {
  /// The most frequent event in one run: the same bytes as field by field.
  @inline(__always)
  fileprivate mutating func put(
    submitted notification: Notification, _ request: RequestID, _ passed: Interval, _ check: UInt8
  ) {
    guard isLast(payload: notification.payload) else {
      return put(Event.submitted(notification, from: request), passed, check)
    }
    let count = StreamAddress.mostBytes &+ 12
    notification.write(to: &self, behind: Event.submittedTag, before: count) { output in
      output.append(0)
      request.append(to: &output)
      output.append(folded: passed.milliseconds)
      output.append(check)
    }
  }
}
