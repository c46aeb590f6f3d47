import RelayCore
import RelayStore

/// The shard and its storage: records out at the end of a batch, the journal's word back in.
extension ShardRunner {
  /// Takes a record on its way to the journal; without one it is as safe as it will get.
  func persist(_ record: JournalRecord) {
    switch settings.storage {
    case .journal:
      records.append(record)
    case .memory(let feedback):
      lastPersist = record.sequence
      if case .unregistered(_, let topic, let token, let moment) = record.content {
        Task { await feedback.append(token, topic, at: moment) }
      }
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
    switch outcome {
    case .persisted(_, let sequence):
      shard.handle(.persisted(through: sequence), at: now, into: &effects)
    case .failed(_, let sequence):
      shard.handle(.persistFailed(through: sequence), at: now, into: &effects)
    }
    finishBatch()
  }

  /// Takes over what the journal remembers, before anybody connects.
  func restore(_ records: [RestoredRecord]) {
    let now = now
    for record in records { shard.restore(record, at: now, into: &effects) }
    finishBatch()
  }
}
