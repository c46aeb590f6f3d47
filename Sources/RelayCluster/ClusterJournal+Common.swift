package import Primitives
package import RelayCore
package import RelayRecording
package import RelayStore

/// The silent policy and the clocks by which budgets are kept, on all nodes, and since when.
package struct SharedBudgets: Hashable, Sendable {
  package var budgets: SilentBudgets
  package var changedAt: Instant
}

extension SharedBudgets: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(budgets, changedAt) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(budgets: try reader.read(), changedAt: try reader.read())
  }
}

/// Settings that belong to no partition, as they are in the bucket; nil where there are none.
package struct SharedSettings: Hashable, Sendable {
  package var budgets: SharedBudgets?
  package var providerKeys: [StoredProviderKey]?
  /// Whose certificates of providers are trusted, as PEM.
  package var authorities: String?

  /// Follows those that have changed, and returns them.
  mutating func follow(_ found: SharedSettings) -> SharedSettings {
    var changed = found
    if found.budgets == budgets { changed.budgets = nil }
    if found.providerKeys == providerKeys { changed.providerKeys = nil }
    if found.authorities == authorities { changed.authorities = nil }
    budgets = found.budgets ?? budgets
    providerKeys = found.providerKeys ?? providerKeys
    authorities = found.authorities ?? authorities
    return changed
  }
}

/// What belongs to no partition is in the bucket, the same for all nodes.
extension ClusterJournal {
  var bucket: EngineBucket { EngineBucket(client: client) }

  package func budgets(
    under policy: SilentPolicy, at now: Instant
  ) async throws(StoreError) -> SilentBudgets {
    let stored = try await bucket.change(.budgets) { (stored: SharedBudgets?) in
      var shared = stored ?? SharedBudgets(budgets: SilentBudgets(policy, at: now), changedAt: now)
      shared.budgets.change(to: policy, at: now)
      guard shared.budgets != stored?.budgets else { return nil }
      shared.changedAt = now
      return shared
    }
    return stored?.budgets ?? SilentBudgets(policy, at: now)
  }

  /// The budgets of the cluster; by this policy when it has none yet.
  package func budgets(
    elseFirst policy: SilentPolicy, at now: Instant
  ) async throws(StoreError) -> SilentBudgets {
    let first = SharedBudgets(budgets: SilentBudgets(policy, at: now), changedAt: now)
    return try await bucket.value(of: .budgets, elseFirst: first).budgets
  }

  /// The clocks are those of all nodes, whose machines' clocks nobody has set.
  package func stepClocks(by interval: Interval) async {}

  package func feedbackCursor(of reader: String) async throws(StoreError) -> Int64 {
    try await bucket.value(of: .cursor(reader: reader)) ?? 0
  }

  package func setFeedbackCursor(
    of reader: String, to position: Int64
  ) async throws(StoreError) {
    try await bucket.set(.cursor(reader: reader), to: position)
  }

  package func providerKeys() async throws(StoreError) -> [StoredProviderKey] {
    try await bucket.value(of: .providerKeys) ?? []
  }

  package func replaceProviderKeys(_ keys: [StoredProviderKey]) async throws(StoreError) {
    try await bucket.set(.providerKeys, to: keys.sorted { $0.keyID < $1.keyID })
  }

  /// The provider keys of the cluster, which are these when it has none yet.
  package func providerKeys(
    elseFirst mine: [StoredProviderKey]
  ) async throws(StoreError) -> [StoredProviderKey] {
    try await bucket.value(of: .providerKeys, elseFirst: mine.sorted { $0.keyID < $1.keyID })
  }

  /// Whose certificates of providers are trusted, as PEM; these when the cluster trusts nobody yet.
  package func authorities(elseFirst mine: String?) async throws(StoreError) -> String? {
    guard let mine else { return try await bucket.value(of: .authorities) }
    return try await bucket.value(of: .authorities, elseFirst: mine)
  }

  package func replaceAuthorities(_ pem: String) async throws(StoreError) {
    try await bucket.set(.authorities, to: pem)
  }

  /// The node of this name is to give its stripes away; false when there is none at work.
  package func drain(_ node: String) async throws(StoreError) -> Bool {
    guard let run = try await bucket.nodes().first(where: { $0.stamp.node == node })?.stamp.run
    else { return false }
    try await bucket.set(.drain(node: node), to: run)
    return true
  }
}
