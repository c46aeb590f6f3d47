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
    let stored = try await bucket.change(.budgets) { (stored: SharedBudgets?) in
      stored == nil ? first : nil
    }
    return (stored ?? first).budgets
  }

  /// The clocks are those of all nodes, whose machines' clocks nobody has set.
  package func stepClocks(by interval: Interval) async {}

  package func feedbackCursor(of reader: String) async throws(StoreError) -> Int64 {
    try await bucket.value(of: .cursor(reader: reader)) ?? 0
  }

  package func setFeedbackCursor(
    of reader: String, to position: Int64
  ) async throws(StoreError) {
    _ = try await bucket.change(.cursor(reader: reader)) { (stored: Int64?) in
      stored == position ? nil : position
    }
  }

  package func providerKeys() async throws(StoreError) -> [StoredProviderKey] {
    let keys: [StoredProviderKey]? = try await bucket.value(of: .providerKeys)
    return keys ?? []
  }

  package func replaceProviderKeys(_ keys: [StoredProviderKey]) async throws(StoreError) {
    let sorted = keys.sorted { $0.keyID < $1.keyID }
    // One message has them all; what is too much for one is not kept.
    var writer = ByteWriter()
    writer.put(sorted)
    guard writer.count < client.maximumPayloadBytes / 4 else {
      throw .engineRefuses(reason: "\(keys.count) provider keys are too many for one message")
    }
    _ = try await bucket.change(.providerKeys) { (stored: [StoredProviderKey]?) in
      stored == sorted ? nil : sorted
    }
  }

  /// The provider keys of the cluster, which are these when it has none yet.
  package func providerKeys(
    elseFirst mine: [StoredProviderKey]
  ) async throws(StoreError) -> [StoredProviderKey] {
    let sorted = mine.sorted { $0.keyID < $1.keyID }
    let stored = try await bucket.change(.providerKeys) { (stored: [StoredProviderKey]?) in
      stored == nil ? sorted : nil
    }
    return stored ?? sorted
  }

  /// Whose certificates of providers are trusted, as PEM; these when the cluster trusts nobody yet.
  package func authorities(elseFirst mine: String?) async throws(StoreError) -> String? {
    try await bucket.change(.authorities) { (stored: String?) in stored == nil ? mine : nil }
  }

  package func replaceAuthorities(_ pem: String) async throws(StoreError) {
    guard pem.utf8.count < client.maximumPayloadBytes / 4 else {
      throw .engineRefuses(
        reason: "\(pem.utf8.count) bytes of authorities are too many for one message")
    }
    _ = try await bucket.change(.authorities) { (stored: String?) in stored == pem ? nil : pem }
  }

  /// The node of this name is to give its stripes away; false when there is none at work.
  package func drain(_ node: String) async throws(StoreError) -> Bool {
    guard let run = try await bucket.nodes().first(where: { $0.stamp.node == node })?.stamp.run
    else { return false }
    _ = try await bucket.change(.drain(node: node)) { (stored: UInt64?) in
      stored == run ? nil : run
    }
    return true
  }
}
