package import Primitives
package import RelayCore

/// Keeps the listing of unregistered tokens.
package protocol FeedbackStore: Sendable {
  /// Unregistered tokens after a cursor, oldest first. A cursor never skips later ones.
  func feedback(
    since position: Int64, limit: Int, isWanted: @escaping @Sendable () -> Bool
  ) async throws(StoreError) -> [FeedbackItem]
  /// How far this reader has read the listing; 0 at first.
  func feedbackCursor(of reader: String) async throws(StoreError) -> Int64
  func setFeedbackCursor(of reader: String, to position: Int64) async throws(StoreError)
}

/// A journal that outlives the process: on disk (`Journal`) or in a cluster's engine
/// (`ClusterJournal`), each with its own measure of "persisted".
package protocol DurableJournal: FeedbackStore {
  var partitionCount: Int { get }
  /// The sequences of a shard in this run, above all that were ever stored.
  func sequences(ofShard shard: Int) -> SequenceRanges
  /// Reads everything back, in the order of `RestoredRecord`, before the first `submit`; `progress`
  /// gets the notifications done and their total.
  func replay(
    _ item: (RestoredRecord) -> Void, progress: (Int, Int) -> Void
  ) throws(StoreError)
  /// Accepts a shard's records and the sequences no longer needed. One call at a time per shard.
  func submit(shard: Int, records: [JournalRecord], forgets: [UInt64])
  /// The budgets under a new policy, persisted on return.
  func budgets(under policy: SilentPolicy, at now: Instant) async throws(StoreError)
    -> SilentBudgets
  /// Moves the budgets' clocks, after the machine's clock was set forwards.
  func stepClocks(by interval: Interval) async throws(StoreError)
  /// Ordered by id.
  func providerKeys() async throws(StoreError) -> [StoredProviderKey]
  func replaceProviderKeys(_ keys: [StoredProviderKey]) async throws(StoreError)
  /// Names a device that is there, for people; nil takes the name away. Persisted on return.
  func setName(of device: DeviceID, _ name: String?) async throws(StoreError)
  func deviceNames() async throws(StoreError) -> [DeviceID: String]
  /// Keeps a device's own silent policy; nil takes it away. Persisted on return.
  func setPolicy(of device: DeviceID, _ policy: SilentPolicy?) async throws(StoreError)
  func devicePolicies() async throws(StoreError) -> [DeviceID: SilentPolicy]
  /// Keeps a new channel. Persisted on return, as what the next two keep.
  func add(_ channel: ChannelRegistry.Channel) async throws(StoreError)
  /// Removes a channel and all its subscriptions.
  func removeChannel(_ id: ChannelID) async throws(StoreError)
  /// The number of a broadcast, above those of all earlier ones; nil when its channel is gone. One
  /// that is to be stored is kept instead of the channel's earlier one.
  func order(_ broadcast: Broadcast, at now: Instant) async throws(StoreError) -> UInt64?
  func channels() async throws(StoreError) -> [StoredChannel]
  /// Writes everything pending; later submissions are reported as failed.
  func stop() async
  var statistics: Journal.Statistics { get }
}
