import Primitives
package import RelayCore
import RelayStore

/// The journal does not take an operator's change, and so nothing has changed.
package struct JournalFails: Error, CustomStringConvertible {
  /// Says what to do.
  package let description: String

  package init(description: String) { self.description = description }
}

/// The admin API's questions to all nodes of a cluster, or to a device's node. A relay on its own
/// is the only node, and nothing is ever missing.
extension Relay {
  package func report(of device: DeviceID) async throws(NodeAway) -> DeviceReport? {
    try await inbox.askOwner(NodeQuestions.report, device)
  }

  /// The reports of those that are known.
  package func reports(of devices: [DeviceID]) async -> Found<[DeviceReport]> {
    let found = await inbox.askAll(NodeQuestions.reports, devices)
    return Found(value: found.value.flatMap(\.self), missing: found.missing)
  }

  /// False when no device has this id.
  package func administer(_ device: DeviceID, _ action: AdminAction) async throws(NodeAway) -> Bool
  {
    try await inbox.askOwner(NodeQuestions.administer, Pair(device, action))
  }

  /// Sets a device's policy, and keeps it with a journal; nil returns it to that of all. Returns
  /// what is in force then, which is the common one when there are too many; nil when no device has
  /// this id.
  package func setPolicy(
    of device: DeviceID, _ policy: SilentPolicy?
  ) async throws -> DeviceReport? {
    guard try await report(of: device) != nil else { return nil }
    try await keep(policy, of: device)
    guard try await administer(device, .setPolicy(policy, at: now)),
      let report = try await report(of: device)
    else { return nil }
    if let policy, report.policy != policy.name {
      try await keep(nil, of: device)
    }
    return report
  }

  private func keep(_ policy: SilentPolicy?, of device: DeviceID) async throws(JournalFails) {
    do throws(StoreError) {
      try await inbox.journal?.setPolicy(of: device, policy)
    } catch {
      throw JournalFails(description: error.description)
    }
  }

  /// Forgets a device without apps, trying for a second; false while something of it is under way.
  package func forget(_ device: DeviceID) async throws(NodeAway) -> Bool {
    for attempt in 0..<20 {
      guard try await administer(device, .forget), try await report(of: device) != nil else {
        await forgetName(of: device)
        try? await keep(nil, of: device)
        return true
      }
      try? await Task.sleep(for: .milliseconds(attempt < 5 ? 2 : 65))
    }
    return false
  }

  /// A position in the lists of all nodes; nil is the beginning of the node's list.
  package struct DevicePlace: Hashable, Sendable {
    package var node: UInt16
    package var position: DevicePosition?

    package init(node: UInt16, position: DevicePosition?) {
      self.node = node
      self.position = position
    }
  }

  /// Devices from a place on, node by node: those whose id begins with the text, or with an app
  /// whose topic contains it. nil when the place's node is gone.
  package func devices(
    matching text: String, after place: DevicePlace?, limit: Int
  ) async -> (found: Found<[DeviceReport]>, next: DevicePlace?)? {
    guard isRunning else { return (Found(value: []), nil) }
    let (own, others) = (inbox.ownNumber, await inbox.others)
    let numbers = (others.keys + [own]).sorted()
    guard place.map({ numbers.contains($0.node) }) ?? true else { return nil }
    var found = Found<[DeviceReport]>(value: [])
    found.missing.stripes = await inbox.missingStripes
    for number in numbers.drop(while: { $0 < place?.node ?? 0 }) {
      let room = limit - found.value.count
      guard room > 0 else { return (found, DevicePlace(node: number, position: nil)) }
      let search = DeviceSearch(
        text: text, position: number == place?.node ? place?.position : nil, limit: room)
      let page =
        number == own
        ? await inbox.answer(NodeQuestions.devices, search)
        : await inbox.ask(number, NodeQuestions.devices, search)
      guard let page else {
        found.missing.nodes.append(others[number] ?? "")
        continue
      }
      found.value += page.reports
      if let next = page.next { return (found, DevicePlace(node: number, position: next)) }
    }
    return (found, nil)
  }

  /// The app of a token, minted or own.
  package func app(with token: DeviceToken) async -> Found<OwnToken?> {
    let found = await inbox.askAll(NodeQuestions.app, token)
    return Found(value: found.value.compactMap(\.self).first, missing: found.missing)
  }

  /// The life of the notification with this unique id, or `apns-id`.
  package func life(of id: UniqueID) async -> Found<Life?> { await inbox.life(of: id) }

  /// The latest lives, newest first.
  package func lives(_ filter: LifeFilter, limit: Int) async -> Found<[Life]> {
    let heads = await inbox.askAll(NodeQuestions.heads, Pair(filter, limit))
    // A life may have begun on two nodes when its stripe moved.
    var known: Set<UniqueID> = []
    let ids = heads.value.joined().sorted { $0.at > $1.at }.map(\.uniqueID)
      .filter { known.insert($0).inserted }.prefix(limit)
    var lives = await self.lives(of: Array(ids))
    lives.missing.formUnion(heads.missing)
    return lives
  }

  /// Of these pushes, by their unique ids, as far as they are known.
  package func lives(of ids: [UniqueID]) async -> Found<[Life]> {
    let found = await inbox.steps(of: ids)
    return Found(value: found.value.compactMap { Life($0) }, missing: found.missing)
  }

  /// The latest changes of a device, oldest first.
  package func changes(of device: DeviceID) async -> Found<[DeviceChange]> {
    let found = await inbox.askAll(NodeQuestions.changes, device)
    return Found(value: found.value.joined().sorted { $0.at < $1.at }, missing: found.missing)
  }

  /// Empties the slots and refills the budgets of apps with one topic, or of all apps.
  package func reset(_ topic: Topic?) async -> Missing {
    var missing = await inbox.askAll(NodeQuestions.reset, topic).missing
    missing.stripes = await inbox.missingStripes
    return missing
  }

  /// The latest refused requests of providers, newest first.
  package func refusals(limit: Int) async -> Found<[RefusedRequest]> {
    let found = await inbox.askAll(NodeQuestions.refusals, limit)
    return Found(
      value: Array(found.value.joined().sorted { $0.at > $1.at }.prefix(limit)),
      missing: found.missing)
  }

  package func countersOfAll() async -> Found<[ShardCounters]> {
    var found = await inbox.askAll(NodeQuestions.counters, Nothing())
    found.missing.stripes = await inbox.missingStripes
    return found
  }
}

extension LoopSet {
  /// As the journal has them, for devices that are there.
  func setPolicies(_ policies: [DeviceID: SilentPolicy]) async {
    guard !policies.isEmpty else { return }
    _ = await onEach { runner in
      for (device, policy) in policies where runner.core.shard.secret(of: device) != nil {
        let action = AdminAction.setPolicy(policy, at: runner.now)
        runner.administer(.operated(.administered(device, action)))
      }
    }
  }
}

extension Inbox {
  func life(of id: UniqueID) async -> Found<Relay.Life?> {
    var (found, note) = await stepsAndNote(of: id)
    // Only the loop that accepted it knows its `apns-id`.
    guard let uniqueID = found.value.first?.first?.uniqueID else {
      return Found(value: nil, missing: found.missing)
    }
    if uniqueID != id { (found, note) = await stepsAndNote(of: uniqueID) }
    var life = Relay.Life(found.value.first ?? [])
    life?.note = note
    return Found(value: life, missing: found.missing)
  }

  /// Asks for both at once: a node that does not answer is waited for once.
  private func stepsAndNote(of id: UniqueID) async -> (Found<[[DeliveryEvent]]>, PushNote) {
    async let notes = askAll(NodeQuestions.note, id)
    let found = await steps(of: [id])
    return (found, await notes.value.first { !$0.isEmpty } ?? PushNote())
  }

  fileprivate func steps(of ids: [UniqueID]) async -> Found<[[DeliveryEvent]]> {
    let found = await askAll(NodeQuestions.steps, ids)
    let parts = found.value.filter { $0.count == ids.count }
    return Found(
      value: ids.indices.map { place in DeliveryLog.join(parts.map { $0[place] }) },
      missing: found.missing)
  }
}
