import Dispatch
import Primitives
import RelayCore
import SQLite

/// The journal's mutable state. Used on the journal's queue.
struct Writer: Sendable {
  enum Step {
    case commit
    case wake(at: UInt64)
    case tidy(at: UInt64)
  }

  struct Results {
    var outcomes: [Journal.Outcome] = []
    var problems: [StoreNotice] = []
    var statistics = Journal.Statistics()
  }

  /// How long a file may fail before it is reopened.
  private static let reopenNanoseconds: UInt64 = 10_000_000_000

  private let configuration: Journal.Configuration
  private let path: String
  private var backlog: Backlog
  /// nil when it must be reopened, and after `stop`.
  private(set) var file: JournalFile?
  private var lock: FileLock?
  private var isStopped = false
  private var plan: JournalFile.WritePlan
  /// Sequences of batches failed since the last success, by shard, one for each range of sequences.
  private var doubtful: [Int: [ClosedRange<UInt64>]] = [:]
  /// When owed and doubtful records are tried again.
  private var owedAt = UInt64.max
  private var results = Results()
  /// Whether the last write failed, and the failed batches since the last success.
  private var isFailing = false
  private var failures = 0
  private var isCommitScheduled = false
  /// The earliest scheduled wake-up.
  private var wakeAt = UInt64.max
  private var placeCheckedAt: UInt64 = 0
  /// When the file last worked or was opened.
  private var workedAt = DispatchTime.now().uptimeNanoseconds
  private var timeKeptAt: UInt64 = 0
  var compaction: Compaction

  init(
    _ configuration: Journal.Configuration, _ file: JournalFile, _ lock: FileLock,
    _ interruption: Interruption
  ) {
    self.configuration = configuration
    self.path = file.path
    self.file = file
    self.lock = lock
    backlog = Backlog(
      lingerNanoseconds: configuration.linger.nanoseconds,
      forgetDelayNanoseconds: configuration.forgetDelay.nanoseconds)
    plan = JournalFile.WritePlan(
      regionBits: configuration.regionBits, feedbackLimit: configuration.feedbackLimit,
      unregisteredSinceTrim: configuration.feedbackLimit,
      now: configuration.now(), keepsTime: configuration.keepsTime)
    compaction = Compaction(slackBytes: configuration.slackBytes, interruption: interruption)
  }

  mutating func append(shard: Int, records: [JournalRecord], forgets: [UInt64], at now: UInt64) {
    guard !isStopped else {
      if let last = records.last?.sequence {
        results.outcomes.append(.failed(shard: shard, through: last))
      }
      return
    }
    // Failed records are deleted with the next batch anyway; the shard did not know yet.
    let forgets = doubtful.isEmpty ? forgets : forgets.filter { !isDoubtful($0, shard) }
    backlog.append(shard: shard, records: records, forgets: forgets, at: now)
    results.outcomes.append(contentsOf: backlog.popSettled())
  }

  private func isDoubtful(_ sequence: UInt64, _ shard: Int) -> Bool {
    doubtful[shard]?.contains { $0.contains(sequence) } ?? false
  }

  var keptCount: Int {
    backlog.keptCount + plan.owed.count + doubtful.values.reduce(0) { $0 + $1.count }
  }

  mutating func takeResults() -> Results {
    results.statistics.recordsSkipped = backlog.skippedCount
    let taken = results
    results = Results(statistics: taken.statistics)
    return taken
  }

  /// Steps that are not scheduled yet.
  mutating func next(at now: UInt64) -> [Step] {
    guard !isStopped else { return [] }
    var steps: [Step] = []
    if let deadline = [backlog.deadline, owes ? owedAt : nil].compactMap({ $0 }).min(),
      !isCommitScheduled
    {
      if deadline <= now {
        isCommitScheduled = true
        steps.append(.commit)
      } else if deadline < wakeAt {
        wakeAt = deadline
        steps.append(.wake(at: deadline))
      }
    }
    if compaction.wantsTurn {
      compaction.turnIsComing()
      steps.append(.tidy(at: now &+ configuration.idleDelay.nanoseconds))
    }
    return steps
  }

  mutating func woken(at moment: UInt64) {
    if wakeAt == moment { wakeAt = .max }
  }

  /// Writes what is due; returns false on failure.
  @discardableResult mutating func commit(everything: Bool = false) -> Bool {
    isCommitScheduled = false
    let now = DispatchTime.now().uptimeNanoseconds
    let batch = backlog.popBatch(limit: configuration.maximumBatch, everything: everything, at: now)
    var isWritten = true
    if !batch.isEmpty || owes && (everything || owedAt <= now) {
      isWritten = write(batch, at: now)
    }
    results.outcomes.append(contentsOf: backlog.popSettled())
    return isWritten
  }

  /// Writes everything; on a broken disk, tries everything.
  mutating func flush() {
    while !isStopped, !backlog.isEmpty || owes {
      // Forgets and owed records come back when they fail: one try is enough.
      if !commit(everything: true), backlog.isEmpty || backlog.hasOnlyForgets { return }
    }
  }

  /// Time that has passed since the last write has passed: the next run begins behind it. Of one
  /// that goes on by itself once a second is enough.
  mutating func keepTime(isPassing: Bool = false) {
    let now = DispatchTime.now().uptimeNanoseconds
    plan.now = configuration.now()
    guard !isStopped, plan.keepsTime, plan.now != plan.keptTime, doubtful.isEmpty,
      !isPassing || now &- timeKeptAt > 1_000_000_000
    else { return }
    timeKeptAt = now
    // Nobody is told of a failure: what is accepted next tries again, and says so.
    try? file?.write(Batch(), &plan)
  }

  mutating func stop() {
    guard !isStopped else { return }
    flush()
    keepTime()
    isStopped = true
    let unwritten = keptCount
    if unwritten > 0 { results.problems.append(.leftUnwritten(unwritten)) }
    if let file { compaction.truncateLog(file) }
    closeFile()
    lock?.release()
    lock = nil
  }

  mutating func tidy() {
    guard !isStopped, let file else { return compaction.turnIsOver() }
    let isIdle = backlog.isEmpty && !isCommitScheduled
    let now = DispatchTime.now().uptimeNanoseconds
    if let problem = compaction.tidy(file, isIdle: isIdle, at: now) {
      results.problems.append(.compactionFailed(problem))
    }
  }

  /// Whether something must be written that is in no batch.
  private var owes: Bool { !plan.owed.isEmpty || !doubtful.isEmpty }

  // MARK: The file

  mutating func openFile() throws(StoreError) -> JournalFile {
    guard !isStopped else { throw .stopped }
    if let file { return file }
    let opened = try JournalFile(existing: path, afterFailure: true)
    file = opened
    workedAt = DispatchTime.now().uptimeNanoseconds
    return opened
  }

  mutating func closeFile() {
    try? file?.connection.close()
    file = nil
  }

  private mutating func write(_ batch: Batch, at now: UInt64) -> Bool {
    plan.now = configuration.now()
    plan.doubtful = doubtful.values.flatMap { $0 }
    do {
      if configuration.failsWrite() { throw StoreError.fault }
      if now &- placeCheckedAt > 1_000_000_000 {
        placeCheckedAt = now
        // Writes to an unlinked file are lost with the process.
        if let file, !file.isInPlace { closeFile() }
      }
      try openFile().write(batch, &plan)
      workedAt = now
      succeeded(batch, since: now)
      return true
    } catch {
      failed(batch, error, at: now)
      closeFile(after: error, at: now)
      return false
    }
  }

  /// Closes the file when only reopening can help: it is damaged, gone, or has failed for long.
  /// Otherwise the connection stays: it knows the log's valid end and overwrites the rest.
  mutating func closeFile(after error: any Error, at now: UInt64) {
    switch (error as? SQLiteError)?.code {
    case nil, .corrupt, .notADatabase, .cannotOpen, .misuse: closeFile()
    default:
      if now &- workedAt > Self.reopenNanoseconds { closeFile() }
    }
  }

  private mutating func succeeded(_ batch: Batch, since startedAt: UInt64) {
    doubtful = [:]
    backlog.removeForgets(of: batch)
    results.statistics.commits += 1
    let took = DispatchTime.now().uptimeNanoseconds &- startedAt
    results.statistics.commitMicroseconds.add(Int64(clamping: took / 1000))
    results.statistics.recordsWritten += batch.notifications.count + batch.others.count
    for end in batch.ends {
      results.outcomes.append(.persisted(shard: end.shard, through: end.last))
    }
    if isFailing { results.problems.append(.recovered(failedBatches: failures)) }
    (isFailing, failures) = (false, 0)
    compaction.record(batch)
    if let file, let problem = compaction.trimWhileBusy(file) {
      results.problems.append(.compactionFailed(problem))
    }
  }

  private mutating func failed(_ batch: Batch, _ error: any Error, at now: UInt64) {
    // A retry of owed and doubtful records is no batch.
    if !batch.isEmpty {
      failures += 1
      results.statistics.failedBatches += 1
    }
    results.statistics.recordsFailed += batch.notifications.count + batch.others.count
    for end in batch.ends {
      results.outcomes.append(.failed(shard: end.shard, through: end.last))
      doubt(end.first...end.last, of: end.shard)
    }
    owedAt = now &+ configuration.retryDelay.nanoseconds
    backlog.postponeForgets(until: owedAt)
    owe(batch)
    if !isFailing {
      isFailing = true
      let error = StoreError(error, path: path)
      results.problems.append(.writingFailed(error.description))
    }
  }

  /// One range for each range of sequences, however long the disk fails: everything between two
  /// failed batches was skipped.
  private mutating func doubt(_ failed: ClosedRange<UInt64>, of shard: Int) {
    let bits = UInt64(configuration.rangeBits)
    if let last = doubtful[shard]?.last, last.lowerBound >> bits == failed.lowerBound >> bits {
      doubtful[shard]?.removeLast()
      doubtful[shard, default: []].append(last.lowerBound...failed.upperBound)
    } else {
      doubtful[shard, default: []].append(failed)
    }
  }

  /// Bounded, as a disk may fail for long: the oldest budgets are dropped first.
  private mutating func owe(_ batch: Batch) {
    plan.owed += batch.others.filter(\.isOwed).map(\.content)
    var surplus = plan.owed.count - configuration.maximumBatch
    guard surplus > 0 else { return }
    plan.owed.removeAll { content in
      guard surplus > 0, content.isSpent else { return false }
      surplus -= 1
      return true
    }
    if surplus > 0 { plan.owed.removeFirst(surplus) }
  }
}

extension Duration {
  /// Rounded down; at most the longest that fits.
  var nanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    let (whole, overflow) = UInt64(max(0, seconds)).multipliedReportingOverflow(by: 1_000_000_000)
    return overflow ? UInt64.max / 2 : whole + UInt64(max(0, attoseconds) / 1_000_000_000)
  }
}

extension JournalRecord.Content {
  fileprivate var isSpent: Bool {
    if case .spent = self { true } else { false }
  }
}
