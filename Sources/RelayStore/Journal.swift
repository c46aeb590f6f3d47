package import Dispatch
import FoundationEssentials
package import Primitives
package import RelayCore
import Synchronization

/// The relay's journal on disk: append-only, in one SQLite file, with one writer.
///
/// ```
///   loops ── submit ──▶ serial queue ── group commit, fsync ──▶ relay.sqlite
///   loops ◀── report ──────┘
/// ```
///
/// Loops only enqueue. All mutable state is in `Writer`, used on the queue, and before the first
/// `submit` by the opener; its mutex is for the compiler and uncontended while the relay serves.
///
/// A record reported `persisted` is on disk (`synchronous=FULL`: the write-ahead log was synced) or
/// no longer needed. One reported `failed` was promised to nobody.
package final class Journal: DurableJournal {
  package struct Configuration: Sendable {
    /// The state directory; created if missing.
    package var directory: String
    /// How long a record that may linger waits for its forget ("commit or ack").
    package var linger: Duration = .milliseconds(2)
    /// How long forgets wait for a batch.
    package var forgetDelay: Duration = .milliseconds(50)
    /// Records and, separately, forgets per transaction.
    package var maximumBatch = 4096
    /// Unregistered tokens remembered for feedback and 410, within 2 per cent.
    package var feedbackLimit = Limits.unregisteredTokens
    /// Time without writes before the file is tidied.
    package var idleDelay: Duration = .milliseconds(500)
    /// Bytes that the file may exceed twice what is stored.
    package var slackBytes = 16 << 20
    /// Pause before forgets are retried on a failed disk.
    package var retryDelay: Duration = .seconds(1)
    /// The number of partitions of a new state directory.
    package var partitionCount = PartitionTable.defaultCount
    /// A range of sequences has two to this many; smaller ones are for tests.
    var rangeBits = SequenceRanges.defaultBits
    /// The relay's clock, for tokens that another one replaced.
    package var now: @Sendable () -> Instant = {
      Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000))
    }

    /// True for a virtual clock, which continues in the next run.
    package var keepsTime = false

    /// Asked before each batch: true makes it fail, for tests.
    package var failsWrite: @Sendable () -> Bool = { false }

    package init(directory: String) {
      self.directory = directory
    }

    var regionBits: Int { rangeBits + SequenceRanges.shardBits }
  }

  /// The result for a shard's unreported records up to a sequence.
  package enum Outcome: Hashable, Sendable {
    /// On disk, or forgotten before they were written.
    case persisted(shard: Int, through: UInt64)
    case failed(shard: Int, through: UInt64)
  }

  package struct Statistics: Hashable, Sendable {
    package var recordsWritten = 0
    /// Each with one fsync.
    package var commits = 0
    /// Forgotten before they were written.
    package var recordsSkipped = 0
    package var failedBatches = 0
    package var recordsFailed = 0
    package var commitMicroseconds = Histogram()

    package init() {}
  }

  let configuration: Configuration
  /// Fixed when the state directory was created.
  package let partitionCount: Int
  let queue: DispatchQueue
  let writer: Mutex<Writer>
  private let interruption: Interruption
  private let firstRegion: UInt64
  let path: String
  private let counters = Mutex(Statistics())
  private let report: @Sendable ([Outcome]) -> Void
  private let onProblem: @Sendable (StoreNotice) -> Void

  /// The time of the last write, to a second for the machine's clock.
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

  /// `PRAGMA user_version`.
  package static var schemaVersion: Int { Schema.steps.count }

  /// Locks the directory, opens or creates the journal, checks and migrates it. `report` and
  /// `onProblem` run on the journal's queue and must return soon.
  package static func open(
    _ configuration: Configuration, report: @escaping @Sendable ([Outcome]) -> Void,
    onProblem: @escaping @Sendable (StoreNotice) -> Void = { _ in }
  ) throws(StoreError) -> Journal {
    let directory = configuration.directory
    let lock = try StateLock.acquire(directory)
    let path = directory + "/" + Schema.fileName
    if try !Schema.check(path: path) { try Schema.create(directory: directory) }
    let file = try JournalFile(existing: path, afterFailure: false)
    if let backup = file.backupPath { onProblem(.migrated(backup: backup)) }
    let (highest, lastTime, partitionCount) = try withStoreErrors(at: path) {
      try (
        file.highestSequence(), file.storedTime(),
        file.partitionCount(new: configuration.partitionCount)
      )
    }
    // Only damage leads here: there are sequences for longer than any relay runs.
    guard highest < UInt64(Int64.max) / 2 else {
      throw .damaged(path: path, reason: "its sequences are used up")
    }
    let interruption = Interruption()
    return Journal(
      configuration, Writer(configuration, file, lock, interruption), interruption, path: path,
      highest: highest, partitionCount: partitionCount, lastTime: lastTime, report: report,
      onProblem: onProblem)
  }

  /// Reads everything back: devices, their apps, unregistered tokens oldest first, notifications in
  /// the order of acceptance, each with its checksum verified. Call before the first `submit`.
  /// Includes notifications that are expired, replaced or without their app, if the relay ended
  /// before it could forget them: the shard does now. `progress` is called about once a second.
  package func replay(
    _ item: (RestoredRecord) -> Void, progress: (Int, Int) -> Void = { _, _ in }
  ) throws(StoreError) {
    try read { file in try file.replay(item, progress: progress) }
  }

  package func sequences(ofShard shard: Int) -> SequenceRanges {
    precondition(shard < 1 << SequenceRanges.shardBits, "a region has a range for each shard")
    let bits = configuration.rangeBits
    return SequenceRanges(
      first: firstRegion << UInt64(configuration.regionBits) + UInt64(shard) << UInt64(bits),
      bits: bits)
  }

  /// The budgets under a policy in force from now on. Stored amounts keep their clocks, so only the
  /// clocks are written. On disk on return; call before shards hear of the policy.
  package func budgets(
    under policy: SilentPolicy, at now: Instant
  ) async throws(StoreError) -> SilentBudgets {
    try await onFile { try $0.budgets(under: policy, at: now) }
  }

  package func stepClocks(by interval: Interval) async throws(StoreError) {
    try await onFile { try $0.stepClocks(by: interval) }
  }

  package func submit(shard: Int, records: [JournalRecord], forgets: [UInt64]) {
    let now = DispatchTime.now().uptimeNanoseconds
    interruption.request()
    queue.async {
      self.perform { $0.append(shard: shard, records: records, forgets: forgets, at: now) }
    }
  }

  /// Unregistered tokens on disk after the cursor, oldest first, at most `limit`. Empty if
  /// `isWanted` is false when its turn comes.
  package func feedback(
    since position: Int64, limit: Int, isWanted: @escaping @Sendable () -> Bool = { true }
  ) async throws(StoreError) -> [FeedbackItem] {
    try await onFile { file in
      isWanted() ? try file.feedback(since: position, limit: max(0, limit)) : []
    }
  }

  package func feedbackCursor(of reader: String) async throws(StoreError) -> Int64 {
    try await onFile { try $0.feedbackCursor(of: reader) }
  }

  package func setFeedbackCursor(
    of reader: String, to position: Int64
  ) async throws(StoreError) {
    try await onFile { try $0.setFeedbackCursor(of: reader, to: position) }
  }

  /// The name also goes with its device.
  package func setName(of device: DeviceID, _ name: String?) async throws(StoreError) {
    try await onFile { try $0.setName(of: device, name) }
  }

  package func setPolicy(
    of device: DeviceID, _ policy: SilentPolicy?
  ) async throws(StoreError) {
    try await onFile { try $0.setPolicy(of: device, policy) }
  }

  package func devicePolicies() async throws(StoreError) -> [DeviceID: SilentPolicy] {
    try await onFile { try $0.devicePolicies() }
  }

  package func add(_ channel: ChannelRegistry.Channel) async throws(StoreError) {
    try await onFile { try $0.add(channel) }
  }

  package func removeChannel(_ id: ChannelID) async throws(StoreError) {
    try await onFile { try $0.removeChannel(id) }
  }

  package func order(
    _ broadcast: Broadcast, at now: Instant
  ) async throws(StoreError) -> UInt64? {
    if broadcast.isStored(at: now) { try await onFile { try $0.store(broadcast) } }
    return broadcast.number
  }

  package func channels() async throws(StoreError) -> [StoredChannel] {
    try await onFile { try $0.channels() }
  }

  package func deviceNames() async throws(StoreError) -> [DeviceID: String] {
    try await onFile { try $0.deviceNames() }
  }

  package func replaceProviderKeys(_ keys: [StoredProviderKey]) async throws(StoreError) {
    try await onFile { try $0.replaceProviderKeys(keys) }
  }

  package func providerKeys() async throws(StoreError) -> [StoredProviderKey] {
    try await onFile { try $0.providerKeys() }
  }

  /// Writes the time of a virtual clock, as every write does; while it passes by itself, at most
  /// once a second.
  package func keepTime(isPassing: Bool) async {
    await queue.run { self.perform { $0.keepTime(isPassing: isPassing) } }
  }

  /// Writes everything pending, without lingering, and reports it.
  package func flush() async {
    await queue.run { self.perform { $0.flush() } }
  }

  /// Writes everything pending, closes the file and releases the lock.
  package func stop() async {
    await queue.run { self.perform { $0.stop() } }
  }

  package var statistics: Statistics { counters.withLock { $0 } }

  // MARK: On the queue

  /// Runs `work` on the writer, reports its results and schedules its next steps.
  private func perform(_ work: (inout Writer) -> Void) {
    let (done, next) = writer.withLock { writer in
      work(&writer)
      return (writer.takeResults(), writer.next(at: DispatchTime.now().uptimeNanoseconds))
    }
    counters.withLock { $0 = done.statistics }
    // Whoever is refused and asks why finds that it fails.
    for problem in done.problems { onProblem(problem) }
    if !done.outcomes.isEmpty { report(done.outcomes) }
    for step in next {
      switch step {
      case .commit:
        // Queued behind earlier submissions, so that they are in the same commit.
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

  private func onFile<Value: Sendable>(
    _ work: @escaping @Sendable (JournalFile) throws -> Value
  ) async throws(StoreError) -> Value {
    try await queue.run { Result { () throws(StoreError) in try self.read(work) } }.get()
  }
}

extension DispatchQueue {
  /// Does the work behind what is queued; no thread waits for it.
  package func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
      self.async { continuation.resume(returning: work()) }
    }
  }
}
