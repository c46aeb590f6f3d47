import Primitives
import RelayCore
import RelayStore

/// The storage's word reaches the shard.
extension ShardRunner {
  /// The journal has written, or could not.
  func journalAnswered(_ word: Event) {
    clock.beginBatch(at: now)
    hear(word)
    finishBatch()
  }

  /// The memory store: what is in memory is as safe as it will get.
  func memoryAnswered(_ sequence: UInt64, _ retired: [LoopLedger.RetiredToken]) {
    if faults.inForce != nil, memoryWriteFails() { return hear(.journal(.persistFailed(through: sequence))) }
    if !retired.isEmpty, case .memory(let feedback) = settings.storage {
      Task {
        for token in retired { await feedback.append(token.token, token.topic, at: token.since) }
      }
    }
    hear(.journal(.persisted(through: sequence)))
  }

  /// What the journal says reaches the shard, at once but for faults.
  @inline(__always)
  private func hear(_ word: Event) {
    if faults.mayHoldJournal, let moment = journalDelay() {
      return timers.putOff.add(at: moment) { [unowned self] in decide(word, at: now) }
    }
    decide(word, at: now)
  }

  /// Hands the shard what the journal remembers, before anybody connects.
  func restore(_ records: [RestoredRecord]) {
    let now = now
    if case .virtual(let time) = settings.clock {
      // Nothing that is remembered lies ahead.
      for record in records {
        if let moment = record.acceptedAt { time.advance(to: moment) }
      }
    }
    for record in records { decide(.journal(.restored(record)), at: now) }
    finishBatch()
  }
}
