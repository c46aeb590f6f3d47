package import AdminAPI
import Primitives
import RelayCluster
package import RelayCore
import RelayStore

/// The relay's channels and their one owner: every request about them comes here, so that
/// broadcasts reach all loops in one order. Off the loops, which only hear what was decided. In a
/// cluster each node has one, which follows the bucket; there the journal gives the order.
package actor Channels {
  /// A well-formed, authorized request.
  struct Request: Sendable {
    var wish: ChannelWish
    var bundle: Topic
    /// The service that was asked; nil for both.
    var environment: ProviderEnvironment?
    /// Of a new channel.
    var newID: ChannelID
    /// Of a broadcast.
    var uniqueID: UniqueID
    var now: Instant
  }

  private(set) var registry: ChannelRegistry
  private let inbox: Inbox

  /// - Parameter limit: the most channels.
  init(_ inbox: Inbox, limit: Int = Limits.channels) {
    self.inbox = inbox
    registry = ChannelRegistry(limits: (Limits.channelsPerApp, limit))
  }

  /// Before anyone connects. Stored broadcasts go to the shards, which have their subscribers.
  func restore(from journal: any DurableJournal, at now: Instant) async throws(StoreError) {
    for stored in try await journal.channels() { adopt(stored, at: now) }
  }

  private func adopt(_ stored: StoredChannel, at now: Instant) {
    registry.restore(stored.channel, lastNumber: stored.newest?.number ?? 0)
    guard let newest = stored.newest, newest.isStored(at: now) else { return }
    inbox.loops?.administer(.broadcast(.published(newest)))
  }

  /// Follows changes in a cluster's bucket.
  func adopt(_ places: [ChannelPlace], at now: Instant) {
    for place in places {
      guard let change = cluster?.adopt(place) else { continue }
      if let id = change.gone {
        registry.remove(id)
        end(id)
      }
      if let stored = change.found { adopt(stored, at: now) }
    }
  }

  private var cluster: ClusterJournal? { inbox.journal as? ClusterJournal }

  private func end(_ id: ChannelID) {
    inbox.loops?.administer(.broadcast(.ended(id)))
    cluster?.forget(id)
  }

  /// Takes all channels back, after the shards have taken back what they have of them.
  func rewind(to registry: ChannelRegistry) { self.registry = registry }

  /// Whether an app may subscribe to it.
  func has(_ id: ChannelID, for bundle: Topic) -> Bool { registry[id]?.bundle == bundle }

  /// Ends the subscriptions to a channel that is gone.
  func confirm(_ id: ChannelID) {
    if registry[id] == nil { end(id) }
  }

  var totals: (channels: Int, published: Int) { (registry.count, registry.published) }

  func channels(of bundle: Topic?) -> [ChannelRegistry.Channel] {
    registry.channels(of: bundle)
  }

  /// A refusal has changed nothing.
  func answer(_ request: Request) async -> ChannelAnswer {
    do throws(ChannelRefusal) {
      switch request.wish {
      case .create(let policy): return try await create(policy, request)
      case .read(let id):
        let channel = try registry.channel(id, of: request.bundle, in: request.environment)
        let policy = channel.policy.rawValue
        return ChannelAnswer(
          status: 200,
          body: #"{"message-storage-policy":\#(policy),"push-type":"LiveActivity"}"#)
      case .delete(let id): return try await delete(id, request)
      case .list:
        let ids = registry.channels(of: request.bundle, in: request.environment)
          .map { "\"\($0.id)\"" }
        return ChannelAnswer(status: 200, body: #"{"channels":[\#(ids.joined(separator: ","))]}"#)
      case .publish(let id, let draft): return try await publish(draft, on: id, request)
      }
    } catch {
      return ChannelAnswer(error)
    }
  }

  private func create(
    _ policy: StoragePolicy, _ request: Request
  ) async throws(ChannelRefusal) -> ChannelAnswer {
    let channel = try registry.create(request.newID, policy, of: request.bundle, at: request.now)
    do {
      try await inbox.journal?.add(channel)
    } catch {
      registry.remove(channel.id)
      throw .serviceUnavailable
    }
    return ChannelAnswer(status: 201, channel: channel.id)
  }

  private func delete(
    _ id: ChannelID, _ request: Request
  ) async throws(ChannelRefusal) -> ChannelAnswer {
    _ = try registry.channel(id, of: request.bundle, in: request.environment)
    do {
      try await inbox.journal?.removeChannel(id)
    } catch {
      throw .serviceUnavailable
    }
    registry.remove(id)
    end(id)
    return ChannelAnswer(status: 204)
  }

  private func publish(
    _ draft: BroadcastDraft, on id: ChannelID, _ request: Request
  ) async throws(ChannelRefusal) -> ChannelAnswer {
    var broadcast = try registry.publish(
      draft, on: id, of: request.bundle, in: request.environment, request.uniqueID,
      at: request.now)
    if let journal = inbox.journal {
      let number: UInt64?
      do {
        number = try await journal.order(broadcast, at: request.now)
      } catch {
        throw .serviceUnavailable
      }
      guard let number else { throw .channelNotRegistered }
      broadcast.number = number
    }
    // It may have been deleted meanwhile.
    try registry.accept(broadcast)
    inbox.loops?.administer(.broadcast(.published(broadcast)))
    return ChannelAnswer(status: 200, uniqueID: request.uniqueID)
  }
}

extension Relay {
  /// nil for a relay without channels.
  var channels: Channels? { settings.channels }

  /// The oldest channels of an app, or of all, with what all nodes have counted of them.
  package func channels(of bundle: Topic?, limit: Int) async -> Found<ChannelList> {
    let all = await channels?.channels(of: bundle) ?? []
    let asked = Array(all.prefix(limit))
    var counts = await inbox.askAll(NodeQuestions.channels, asked.map(\.id))
    counts.missing.stripes = await inbox.missingStripes
    let found = asked.enumerated().map { place, channel in
      let nodes = counts.value.compactMap { $0.dropFirst(place).first }
      return ChannelList.Channel(
        channel, published: nodes.reduce(0) { $0 + $1.first },
        delivered: nodes.reduce(0) { $0 + $1.second.first },
        subscribers: nodes.reduce(0) { $0 + $1.second.second })
    }
    return Found(value: ChannelList(channels: found, count: all.count), missing: counts.missing)
  }

  /// Channels, and broadcasts that were accepted in this run.
  package func channelTotals() async -> (channels: Int, published: Int) {
    await channels?.totals ?? (0, 0)
  }
}
