package import Primitives
package import RelayCore
package import RelayRecording
package import RelayStore

/// The cluster's silent policy and budget clocks, and since when.
package struct SharedBudgets: Hashable, Sendable {
  package var budgets: SilentBudgets
  package var changedAt: Instant
}

extension SharedBudgets: Composite {
  package static let fields = Fields(Self.init(budgets:changedAt:)) { ($0.budgets, $0.changedAt) }
}

/// A device and its name for people, or its policy.
package struct DeviceName: Hashable, Sendable {
  package var device: DeviceID
  package var name: String

  /// More would make the one message too large that all nodes read again and again.
  static let mostInCluster = 2_000

  static func list(_ names: [DeviceID: String]) -> [DeviceName] {
    names.map { DeviceName(device: $0, name: $1) }.sorted {
      $0.device.description < $1.device.description
    }
  }

  package static func dictionary(_ list: [DeviceName]) -> [DeviceID: String] {
    Dictionary(list.map { ($0.device, $0.name) }, uniquingKeysWith: { $1 })
  }
}

extension DeviceName: Composite {
  package static let fields = Fields(Self.init(device:name:)) { ($0.device, $0.name) }
}

/// Settings of the whole cluster, as in the bucket; nil where there are none.
package struct SharedSettings: Hashable, Sendable {
  package var budgets: SharedBudgets?
  package var providerKeys: [StoredProviderKey]?
  /// PEM of the authorities that sign providers' certificates.
  package var authorities: String?
  package var names: [DeviceName]?
  /// The time of a virtual clock.
  package var virtualTime: Instant?
  /// Only those that have changed.
  package var channels: [ChannelPlace] = []

  /// Adopts changed settings and returns them.
  mutating func follow(_ found: SharedSettings) -> SharedSettings {
    var changed = found
    if found.budgets == budgets { changed.budgets = nil }
    if found.providerKeys == providerKeys { changed.providerKeys = nil }
    if found.authorities == authorities { changed.authorities = nil }
    if found.names == names { changed.names = nil }
    if found.virtualTime == virtualTime { changed.virtualTime = nil }
    budgets = found.budgets ?? budgets
    providerKeys = found.providerKeys ?? providerKeys
    authorities = found.authorities ?? authorities
    names = found.names ?? names
    virtualTime = found.virtualTime ?? virtualTime
    return changed
  }
}

extension EngineBucket {
  func policies() async throws(StoreError) -> [DeviceID: SilentPolicy] {
    let texts = DeviceName.dictionary(try await value(of: .policies) ?? [])
    return texts.compactMapValues { try? SilentPolicy(text: $0) }
  }
}

extension ClusterJournal {
  var bucket: EngineBucket { EngineBucket(client: client) }

  package func budgets(
    under policy: SilentPolicy, at now: Instant
  ) async throws(StoreError) -> SilentBudgets {
    let stored = try await bucket.changed(.budgets, tries: EngineBucket.hastyTries) {
      (stored: SharedBudgets?) in
      var shared = stored ?? SharedBudgets(budgets: SilentBudgets(policy, at: now), changedAt: now)
      shared.budgets.change(to: policy, at: now)
      guard shared.budgets != stored?.budgets else { return nil }
      shared.changedAt = now
      return shared
    }.value
    return stored?.budgets ?? SilentBudgets(policy, at: now)
  }

  /// The cluster's budgets; set to this policy if there are none yet.
  package func budgets(
    elseFirst policy: SilentPolicy, at now: Instant
  ) async throws(StoreError) -> SilentBudgets {
    let first = SharedBudgets(budgets: SilentBudgets(policy, at: now), changedAt: now)
    return try await bucket.value(of: .budgets, elseFirst: first).budgets
  }

  /// Does nothing: machine clocks of other nodes were not set.
  package func stepClocks(by interval: Interval) async {}

  package func feedbackCursor(of reader: String) async throws(StoreError) -> Int64 {
    try await bucket.value(of: .cursor(reader: reader)) ?? 0
  }

  package func setFeedbackCursor(
    of reader: String, to position: Int64
  ) async throws(StoreError) {
    try await bucket.set(.cursor(reader: reader), to: position)
  }

  package func setName(of device: DeviceID, _ name: String?) async throws(StoreError) {
    guard try await set(name, of: device, in: .names) else {
      throw .engineRefuses(reason: "a cluster keeps \(DeviceName.mostInCluster) names of devices")
    }
  }

  /// Returns false when there are too many.
  private func set(
    _ text: String?, of device: DeviceID, in key: EngineBucket.Key
  ) async throws(StoreError) -> Bool {
    let stored = try await bucket.change(key) { (stored: [DeviceName]?) in
      var texts = DeviceName.dictionary(stored ?? [])
      guard texts[device] != text, text == nil || texts.count < DeviceName.mostInCluster else {
        return nil
      }
      texts[device] = text
      return DeviceName.list(texts)
    }
    return DeviceName.dictionary(stored ?? [])[device] == text
  }

  package func setPolicy(
    of device: DeviceID, _ policy: SilentPolicy?
  ) async throws(StoreError) {
    guard try await set(policy?.text, of: device, in: .policies) else {
      throw .engineRefuses(
        reason: "a cluster keeps \(DeviceName.mostInCluster) policies of single devices")
    }
  }

  package func devicePolicies() async throws(StoreError) -> [DeviceID: SilentPolicy] {
    try await bucket.policies()
  }

  package func deviceNames() async throws(StoreError) -> [DeviceID: String] {
    DeviceName.dictionary(try await bucket.value(of: .names) ?? [])
  }

  package func providerKeys() async throws(StoreError) -> [StoredProviderKey] {
    try await bucket.value(of: .providerKeys) ?? []
  }

  package func replaceProviderKeys(_ keys: [StoredProviderKey]) async throws(StoreError) {
    try await bucket.set(.providerKeys, to: keys.sorted { $0.keyID < $1.keyID })
  }

  /// The cluster's provider keys; set to these if there are none yet.
  package func providerKeys(
    elseFirst mine: [StoredProviderKey]
  ) async throws(StoreError) -> [StoredProviderKey] {
    try await bucket.value(of: .providerKeys, elseFirst: mine.sorted { $0.keyID < $1.keyID })
  }

  /// PEM of the authorities that sign providers' certificates; set to `mine` if there are none yet.
  package func authorities(elseFirst mine: String?) async throws(StoreError) -> String? {
    guard let mine else { return try await bucket.value(of: .authorities) }
    return try await bucket.value(of: .authorities, elseFirst: mine)
  }

  package func replaceAuthorities(_ pem: String) async throws(StoreError) {
    try await bucket.set(.authorities, to: pem)
  }

  /// Tells a run of a node to give its stripes away, or to take some again.
  package func drain(_ node: Stamp, undo: Bool) async throws(StoreError) {
    // No run has the number 0.
    let wanted = undo ? 0 : node.run
    _ = try await bucket.changed(
      .drain(node: node.node), tries: EngineBucket.hastyTries
    ) { (stored: UInt64?) in stored == wanted ? nil : wanted }
  }
}
