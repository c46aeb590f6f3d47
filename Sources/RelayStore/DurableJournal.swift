package import Primitives
package import RelayCore

/// A relay's memory that outlives its process: on disk (`Journal`), or in a cluster's engine
/// (`ClusterJournal`). What is reported as persisted is safe by its measure.
package protocol DurableJournal: Sendable {
  /// How many partitions there are: for good.
  var partitionCount: Int { get }
  /// The sequences of shard i in this run: above all that was ever stored.
  func sequences(ofShard shard: Int) -> SequenceRanges
  /// Hands out everything that is stored, in the order that `RestoredRecord` promises, before the
  /// first `submit`; `progress` is told how many notifications of how many are done.
  func replay(
    _ item: (RestoredRecord) -> Void, progress: (Int, Int) -> Void
  ) throws(StoreError)
  /// Takes in records to be written and sequences that are not needed any more, of one shard. One
  /// call per read batch; the calls of one shard must not overlap.
  func submit(shard: Int, records: [JournalRecord], forgets: [UInt64])
  /// The budgets under a policy that is in force from now on, which is safe when this returns.
  func budgets(under policy: SilentPolicy, at now: Instant) async throws(StoreError)
    -> SilentBudgets
  /// The machine's clock was set so far forwards, and with it the clocks of the budgets.
  func stepClocks(by interval: Interval) async throws(StoreError)
  /// Unregistered tokens behind a cursor, oldest first. A cursor never skips what comes later.
  func feedback(
    since position: Int64, limit: Int, isWanted: @escaping @Sendable () -> Bool
  ) async throws(StoreError) -> [FeedbackItem]
  /// Up to where the reader of this name has read the listing; 0 for one that has not.
  func feedbackCursor(of reader: String) async throws(StoreError) -> Int64
  func setFeedbackCursor(of reader: String, to position: Int64) async throws(StoreError)
  /// The provider keys, ordered by their ids.
  func providerKeys() async throws(StoreError) -> [StoredProviderKey]
  func replaceProviderKeys(_ keys: [StoredProviderKey]) async throws(StoreError)
  /// Writes everything that waits. What is submitted afterwards is reported as failed.
  func stop() async
  /// What was done since the start.
  var statistics: Journal.Statistics { get }
}
