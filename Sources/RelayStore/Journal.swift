import Dispatch
import FoundationEssentials
package import Primitives
package import RelayCore
import Synchronization

/// The relay's memory on disk: an append-only journal in one SQLite file, with one writer.
///
/// ```
///   loops ── submit ──▶ serial queue ── group commit, fsync ──▶ relay.sqlite
///   loops ◀── report ──────┘
/// ```
///
/// Loops only enqueue. Everything that changes lies in `Writer` and is touched on the queue, and
/// before the first `submit` by whoever opened the journal; its mutex says so to the compiler and
/// is never waited for while the relay serves.
///
/// What is promised: a record that is reported `persisted` is on disk (`synchronous=FULL`: the
/// write-ahead log was synced), or nobody needed it any more. What is reported `failed` was
/// promised to nobody.
package final class Journal: DurableJournal {
  package struct Configuration: Sendable {
    /// The state directory; made when it is not there.
    package var directory: String
    /// How long a record that may linger waits for its forget ("commit or ack").
    package var linger: Duration = .milliseconds(2)
    /// How long forgets wait for a batch to go along with.
    package var forgetDelay: Duration = .milliseconds(50)
    /// Records and, separately, forgets of one transaction.
    package var maximumBatch = 4096
    /// Unregistered tokens that are remembered for feedback and 410, give or take 2 per cent.
    package var feedbackLimit = Limits.unregisteredTokens
    /// How long nothing must have been written before the file is tidied.
    package var idleDelay: Duration = .milliseconds(500)
    /// The file may be this much larger than twice what is stored, in bytes.
    package var slackBytes = 16 << 20
    /// How long a failed disk is left alone before forgets are tried on it again.
    package var retryDelay: Duration = .seconds(1)
    /// How many partitions a state directory gets that has no number yet.
    package var partitionCount = PartitionTable.defaultCount
    /// A range of sequences has two to this many; smaller ones are for tests.
    var rangeBits = SequenceRanges.defaultBits
    /// The relay's clock, for tokens that another one replaced.
    package var now: @Sendable () -> Instant = {
      Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000))
    }

    /// Whether that clock is a virtual one, and goes on in the next run where it was in this.
    package var keepsTime = false

    /// Asked before each batch: whether it is to fail, for tests of what comes of that.
    package var failsWrite: @Sendable () -> Bool = { false }

    package init(directory: String) {
      self.directory = directory
    }

    var regionBits: Int { rangeBits + SequenceRanges.shardBits }
  }

  /// What became of a shard's records up to a sequence that were not reported before.
  package enum Outcome: Hashable, Sendable {
    /// On disk, or forgotten before they were written.
    case persisted(shard: Int, through: UInt64)
    /// Not written, and not going to be.
    case failed(shard: Int, through: UInt64)
  }

  package struct Statistics: Hashable, Sendable {
    /// Records on disk, notifications and others.
    package var recordsWritten = 0
    /// Transactions, each with one fsync.
    package var commits = 0
    /// Notifications that were forgotten before they were written.
    package var recordsSkipped = 0
    /// Notifications that were forgotten after they were written.
    package var recordsForgotten = 0
    package var failedBatches = 0
    package var recordsFailed = 0
    /// Times that the file was written anew to make it smaller.
    package var compactions = 0
    /// How long transactions took.
    package var commitMicroseconds = Histogram()
    /// Of the file and its write-ahead log, at the time of asking.
    package var bytesOnDisk = 0

    package init() {}
  }

  let configuration: Configuration
  /// How many partitions the state directory has: decided when it was made.
  package let partitionCount: Int
  let queue: DispatchQueue
  let writer: Mutex<Writer>
  private let interruption: Interruption
  private let firstRegion: UInt64
  private let path: String
  private let counters = Mutex(Statistics())
  private let report: @Sendable ([Outcome]) -> Void
  private let onProblem: @Sendable (StoreNotice) -> Void

  /// The time of the last write, to a second when the clock was the machine's.
  package let lastTime: Instant?

  private init(
    _ configuration: Configuration, _ writer: consuming sending Writer,
    _ interruption: Interruption, path: String, highest: UInt64, partitionCount: Int,
    lastTime: Instant?,
    report: @escaping @Sendable ([Outcome]) -> Void,
    onProblem: @escaping @Sendable (StoreNotice) -> Void
  ) {
    self.configuration = configuration
    self.writer = Mutex(writer)
    self.interruption = interruption
    self.path = path
    self.partitionCount = partitionCount
    self.lastTime = lastTime
    self.firstRegion = highest >> configuration.regionBits + 1
    self.report = report
    self.onProblem = onProblem
    queue = DispatchQueue(label: "relay.journal", qos: .userInitiated)
  }

  /// Of the file (`PRAGMA user_version`).
  package static var schemaVersion: Int { Schema.steps.count }

  /// Takes the directory's lock, opens the journal or makes one, checks and migrates it.
  ///
  /// `report` and `onProblem` are called on the journal's queue and must return soon.
  package static func open(
    _ configuration: Configuration, report: @escaping @Sendable ([Outcome]) -> Void,
    onProblem: @escaping @Sendable (StoreNotice) -> Void = { _ in }
  ) throws(StoreError) -> Journal {
    let directory = configuration.directory
    let lock = try StateLock.take(directory)
    let path = directory + "/" + Schema.fileName
    if try !Schema.check(path: path) { try Schema.create(directory: directory) }
    let file = try JournalFile(existing: path, afterFailure: false)
    if let backup = file.backupPath { onProblem(.migrated(backup: backup)) }
    let highest: UInt64
    let partitionCount: Int
    let lastTime: Instant?
    do {
      highest = try file.highestSequence()
      lastTime = try file.lastTime()
      partitionCount = try file.partitionCount(new: configuration.partitionCount)
    } catch let error as StoreError {
      throw error
    } catch {
      throw StoreError(error, path: path)
    }
    // What is left lasts longer than any relay, so that only damage can bring this about.
    guard highest < UInt64(Int64.max) / 2 else {
      throw .damaged(path: path, reason: "its sequences are used up")
    }
    let interruption = Interruption()
    return Journal(
      configuration, Writer(configuration, file, lock, interruption), interruption, path: path,
      highest: highest, partitionCount: partitionCount, lastTime: lastTime, report: report,
      onProblem: onProblem)
  }

  /// Hands out everything that is stored: devices, their apps, unregistered tokens oldest first,
  /// notifications in the order of acceptance, each checked against its checksum. To be called
  /// before the first `submit`.
  ///
  /// What has expired or was replaced is among it when the relay ended before it could forget it,
  /// and notifications whose app is gone: the shard forgets those now. `progress` is told how many
  /// notifications of how many are done, about once a second.
  package func replay(
    _ item: (RestoredRecord) -> Void, progress: (Int, Int) -> Void = { _, _ in }
  ) throws(StoreError) {
    try read { file in try file.replay(item, progress: progress) }
  }

  /// The sequences of shard i in this run: above all that was ever stored.
  package func sequences(ofShard shard: Int) -> SequenceRanges {
    precondition(shard < 1 << SequenceRanges.shardBits, "a region has a range for each shard")
    let bits = configuration.rangeBits
    return SequenceRanges(
      first: firstRegion << UInt64(configuration.regionBits) + UInt64(shard) << UInt64(bits),
      bits: bits)
  }

  /// The budgets under a policy that is in force from now on. What is stored of them was used under
  /// the policy before and is kept by the same clocks, so nothing else is written. On disk when
  /// this returns; to be called before shards hear of the policy.
  package func budgets(
    under policy: SilentPolicy, at now: Instant
  ) async throws(StoreError) -> SilentBudgets {
    try await onQueue { journal throws(StoreError) in
      try journal.read { file in try file.budgets(under: policy, at: now) }
    }
  }

  package func stepClocks(by interval: Interval) async throws(StoreError) {
    try await onQueue { journal throws(StoreError) in
      try journal.read { file in try file.stepClocks(by: interval) }
    }
  }

  /// Takes in records to be written and sequences that are not needed any more, of one shard. One
  /// call per read batch; the calls of one shard must not overlap.
  package func submit(shard: Int, records: [JournalRecord], forgets: [UInt64]) {
    let now = DispatchTime.now().uptimeNanoseconds
    interruption.request()
    queue.async {
      self.perform { $0.append(shard: shard, records: records, forgets: forgets, at: now) }
    }
  }

  /// Unregistered tokens that are listed behind the cursor, oldest first, at most `limit`; of all
  /// topics or of these. Only what is on disk: a cursor never skips what comes later. Nothing when
  /// it is not wanted any more by the time its turn comes.
  package func feedback(
    since position: Int64, topics: [Topic]? = nil, limit: Int,
    isWanted: @escaping @Sendable () -> Bool = { true }
  ) async throws(StoreError) -> [FeedbackItem] {
    try await onQueue { journal throws(StoreError) in
      guard isWanted() else { return [] }
      return try journal.read { file in
        try file.feedback(since: position, topics: topics, limit: max(0, limit))
      }
    }
  }

  package func feedback(
    since position: Int64, limit: Int, isWanted: @escaping @Sendable () -> Bool
  ) async throws(StoreError) -> [FeedbackItem] {
    try await feedback(since: position, topics: nil, limit: limit, isWanted: isWanted)
  }

  /// Up to where the reader of this name has read the listing; 0 for one that has not.
  package func feedbackCursor(of reader: String) async throws(StoreError) -> Int64 {
    try await onQueue { journal throws(StoreError) in
      try journal.read { file in try file.feedbackCursor(of: reader) }
    }
  }

  /// The reader has read the listing up to there.
  package func setFeedbackCursor(
    of reader: String, to position: Int64
  ) async throws(StoreError) {
    try await onQueue { journal throws(StoreError) in
      try journal.read { file in try file.setFeedbackCursor(of: reader, to: position) }
    }
  }

  /// Replaces all provider keys.
  package func replaceProviderKeys(_ keys: [StoredProviderKey]) async throws(StoreError) {
    try await onQueue { journal throws(StoreError) in
      try journal.read { file in try file.replaceProviderKeys(keys) }
    }
  }

  /// The provider keys, ordered by their ids.
  package func providerKeys() async throws(StoreError) -> [StoredProviderKey] {
    try await onQueue { journal throws(StoreError) in
      try journal.read { file in try file.providerKeys() }
    }
  }

  /// Writes everything that waits, without lingering. When it returns, `report` has been told.
  package func flush() async {
    await onQueue { journal in
      journal.perform { $0.flush() }
    }
  }

  /// Writes everything that waits, closes the file and gives the lock back. What is submitted
  /// afterwards is reported as failed.
  package func stop() async {
    await onQueue { journal in
      journal.perform { $0.stop() }
    }
  }

  /// What was done since the start.
  package var statistics: Statistics {
    var statistics = counters.withLock { $0 }
    statistics.bytesOnDisk = JournalFile.bytesOnDisk(path: path)
    return statistics
  }

  // MARK: On the queue

  /// Lets the writer work, tells others what came of it, and sees to it that it goes on.
  private func perform(_ work: (inout Writer) -> Void) {
    let (done, next) = writer.withLock { writer in
      work(&writer)
      return (writer.takeResults(), writer.next(at: DispatchTime.now().uptimeNanoseconds))
    }
    counters.withLock { $0 = done.statistics }
    if !done.outcomes.isEmpty { report(done.outcomes) }
    for problem in done.problems { onProblem(problem) }
    for step in next {
      switch step {
      case .commit:
        // Behind what has been submitted meanwhile, so that it goes along.
        queue.async { self.perform { $0.commit() } }
      case .wake(let moment):
        queue.asyncAfter(deadline: DispatchTime(uptimeNanoseconds: moment)) { [weak self] in
          self?.perform { $0.woken(at: moment) }
        }
      case .tidy(let moment):
        queue.asyncAfter(deadline: DispatchTime(uptimeNanoseconds: moment)) { [weak self] in
          self?.perform { $0.tidy() }
        }
      }
    }
  }

  private func read<Value>(
    _ body: (JournalFile) throws -> Value
  ) throws(StoreError) -> Value {
    let file = try writer.withLock { writer throws(StoreError) in try writer.openFile() }
    do {
      return try body(file)
    } catch let error as StoreError {
      throw error
    } catch {
      writer.withLock { $0.closeFile(after: error, at: DispatchTime.now().uptimeNanoseconds) }
      throw StoreError(error, path: path)
    }
  }

  private func onQueue<Value: Sendable>(
    _ work: @escaping @Sendable (Journal) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    let result = await withCheckedContinuation { continuation in
      queue.async {
        continuation.resume(
          returning: Result { () throws(StoreError) -> Value in try work(self) })
      }
    }
    return try result.get()
  }

  private func onQueue(_ work: @escaping @Sendable (Journal) -> Void) async {
    await withCheckedContinuation { continuation in
      queue.async {
        work(self)
        continuation.resume()
      }
    }
  }
}
