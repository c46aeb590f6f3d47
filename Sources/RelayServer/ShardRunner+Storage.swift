import Primitives
import RelayCore
import RelayStore

extension ShardRunner {
  func journalAnswered(_ word: Event) {
    clock.beginBatch(at: now)
    hear(word)
    finishBatch()
  }

  /// With memory for storage: the records are now as safe as they get.
  func memoryAnswered(_ sequence: UInt64, _ retired: [LoopLedger.RetiredToken]) {
    if faults.inForce != nil, memoryWriteFails() {
      return hear(.journal(.persistFailed(through: sequence)))
    }
    if !retired.isEmpty, case .memory(let feedback) = settings.storage {
      Task {
        for token in retired { await feedback.append(token.token, token.topic, at: token.since) }
      }
    }
    hear(.journal(.persisted(through: sequence)))
  }

  /// Passes an answer on at once, or later because of a fault.
  @inline(__always)
  private func hear(_ word: Event) {
    if faults.mayHoldJournal, let moment = journalDelay() {
      return timers.putOff.add(at: moment) { [unowned self] in decide(word, at: now) }
    }
    decide(word, at: now)
  }

  /// Passes the journal's records to the shard, before anyone connects.
  func restore(_ records: [RestoredRecord]) {
    let now = now
    if case .virtual(let time) = settings.clock {
      // No record lies ahead of the time.
      for record in records {
        if let moment = record.acceptedAt { time.advance(to: moment) }
      }
    }
    for record in records { decide(.journal(.restored(record)), at: now) }
    finishBatch()
  }
}
