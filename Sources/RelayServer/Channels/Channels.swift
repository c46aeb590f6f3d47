package import AdminAPI
import Primitives
package import RelayCore
import RelayStore

/// The relay's channels and their one owner: every request about them comes here, so that
/// broadcasts reach all loops in one order. Off the loops, which only hear what was decided.
package actor Channels {
  /// A well-formed, authorized request.
  struct Request: Sendable {
    var wish: ChannelWish
    var bundle: Topic
    /// Of a new channel.
    var newID: ChannelID
    /// Of a broadcast.
    var uniqueID: UniqueID
    var now: Instant
  }

  private(set) var registry = ChannelRegistry()
  private let inbox: Inbox

  init(_ inbox: Inbox) {
    self.inbox = inbox
  }

  /// Before anyone connects. Stored broadcasts go to the shards, which have their subscribers.
  func restore(from journal: any DurableJournal, at now: Instant) async throws(StoreError) {
    for stored in try await journal.channels() {
      registry.restore(stored.channel, lastNumber: stored.newest?.number ?? 0)
      guard let newest = stored.newest, newest.isStored(at: now) else { continue }
      inbox.send(.broadcast(.published(newest)))
    }
  }

  /// Takes all channels back, after the shards have taken back what they have of them.
  func rewind(to registry: ChannelRegistry) { self.registry = registry }

  /// Whether an app may subscribe to it.
  func has(_ id: ChannelID, for bundle: Topic) -> Bool { registry[id]?.bundle == bundle }

  /// Ends the subscriptions to a channel that is gone.
  func confirm(_ id: ChannelID) {
    if registry[id] == nil { inbox.send(.broadcast(.ended(id))) }
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
        let channel = try registry.channel(id, of: request.bundle)
        let policy = channel.policy.rawValue
        return ChannelAnswer(
          status: 200,
          body: #"{"message-storage-policy":\#(policy),"push-type":"LiveActivity"}"#)
      case .delete(let id): return try await delete(id, of: request.bundle)
      case .list:
        let ids = registry.channels(of: request.bundle).map { "\"\($0.id)\"" }
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
    _ id: ChannelID, of bundle: Topic
  ) async throws(ChannelRefusal) -> ChannelAnswer {
    _ = try registry.channel(id, of: bundle)
    do {
      try await inbox.journal?.removeChannel(id)
    } catch {
      throw .serviceUnavailable
    }
    registry.remove(id)
    inbox.send(.broadcast(.ended(id)))
    return ChannelAnswer(status: 204)
  }

  private func publish(
    _ draft: BroadcastDraft, on id: ChannelID, _ request: Request
  ) async throws(ChannelRefusal) -> ChannelAnswer {
    let broadcast = try registry.publish(
      draft, on: id, of: request.bundle, request.uniqueID, at: request.now)
    if broadcast.isStored(at: request.now) {
      do {
        try await inbox.journal?.store(broadcast)
      } catch {
        throw .serviceUnavailable
      }
    }
    // It may have been deleted meanwhile.
    try registry.accept(broadcast)
    inbox.send(.broadcast(.published(broadcast)))
    return ChannelAnswer(status: 200, uniqueID: request.uniqueID)
  }
}

extension Relay {
  /// nil for a relay without channels.
  var channels: Channels? { settings.channels }

  /// The oldest channels of an app, or of all.
  package func channels(of bundle: Topic?, limit: Int) async -> ChannelList {
    let all = await channels?.channels(of: bundle) ?? []
    let counts = await inbox.loops?.onEach { $0.core.shard.channelCounts } ?? []
    let found = all.prefix(limit).map { channel in
      let parts = counts.compactMap { $0[channel.id] }
      return ChannelList.Channel(
        channel, subscribers: parts.reduce(0) { $0 + $1.subscribers },
        delivered: parts.reduce(0) { $0 + $1.delivered })
    }
    return ChannelList(channels: found, count: all.count)
  }

  /// Channels, and broadcasts that were accepted in this run.
  package func channelTotals() async -> (channels: Int, published: Int) {
    await channels?.totals ?? (0, 0)
  }
}
