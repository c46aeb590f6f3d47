import Primitives
import RelayCore
import RelayStore

/// The shard and its storage: records out at the end of a batch, the journal's word back in.
extension ShardRunner {
  /// Takes a record on its way to the journal; without one it is as safe as it will get.
  func persist(_ record: JournalRecord) {
    guard isInMemory else { return records.append(record) }
    lastPersist = record.sequence
    if case .unregistered(_, let topic, let token, let moment) = record.content {
      retired.append((token, topic, moment))
    }
  }

  func forget(_ sequence: UInt64) {
    if settings.storage.journal != nil { forgets.append(sequence) }
  }

  /// Hands the journal what this batch has asked for.
  func submitRecords() {
    guard let journal = settings.storage.journal, !records.isEmpty || !forgets.isEmpty else {
      return
    }
    journal.submit(shard: Int(index), records: records, forgets: forgets)
    records = []
    forgets = []
  }

  /// The journal has written, or could not.
  func journalAnswered(_ outcome: Journal.Outcome) {
    batchTime = steady(now)
    switch outcome {
    case .persisted(_, let sequence): hear(.journal(.persisted(through: sequence)))
    case .failed(_, let sequence): hear(.journal(.persistFailed(through: sequence)))
    }
    finishBatch()
  }

  /// The memory store: what is in memory is as safe as it will get.
  func memoryAnswered() {
    let sequence = lastPersist
    lastPersist = 0
    let hasFailed = faults != nil && memoryWriteFails()
    let retired = exchange(&retired, with: [])
    if !hasFailed, !retired.isEmpty, case .memory(let feedback) = settings.storage {
      Task {
        for (token, topic, moment) in retired { await feedback.append(token, topic, at: moment) }
      }
    }
    hear(
      hasFailed
        ? .journal(.persistFailed(through: sequence)) : .journal(.persisted(through: sequence)))
  }

  /// What the journal says reaches the shard, at once but for faults.
  @inline(__always)
  private func hear(_ word: Event) {
    if faults != nil || journalHeldUntil != nil, let moment = journalDelay() {
      return putOff.add(at: moment) { [unowned self] in decide(word, at: now) }
    }
    decide(word, at: now)
  }

  /// Takes over what the journal remembers, before anybody connects.
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
