package import Primitives

/// All channels of a relay: a value, without I/O. Who subscribes is with the devices' shards.
package struct ChannelRegistry: Sendable {
  package struct Channel: Hashable, Sendable {
    package let id: ChannelID
    package let bundle: Topic
    package let policy: StoragePolicy
    package let createdAt: Instant
    /// Accepted broadcasts of this run.
    package var published = 0
    var publishing = RateLimit.State()

    package init(id: ChannelID, bundle: Topic, policy: StoragePolicy, createdAt: Instant) {
      self.id = id
      self.bundle = bundle
      self.policy = policy
      self.createdAt = createdAt
    }
  }

  /// An app in one of the services, or both, has an allowance of its own.
  private struct Owner: Hashable {
    let bundle: Topic
    let environment: ProviderEnvironment?
  }

  private var channels: [ChannelID: Channel] = [:]
  private var counts: [Owner: Int] = [:]
  /// Accepted broadcasts of this run, also on channels that are gone.
  package private(set) var published = 0
  /// Of the last broadcast.
  private var lastNumber: UInt64 = 0
  /// The most of an app, and of the relay.
  private let limits: (app: Int, all: Int)

  package init(limits: (app: Int, all: Int) = (Limits.channelsPerApp, Limits.channels)) {
    self.limits = limits
  }

  package var count: Int { channels.count }

  package subscript(id: ChannelID) -> Channel? { channels[id] }

  /// Oldest first; nil for all apps, and for both services.
  package func channels(
    of bundle: Topic?, in environment: ProviderEnvironment? = nil
  ) -> [Channel] {
    channels.values
      .filter { (bundle == nil || $0.bundle == bundle) && $0.id.isThere(for: environment) }
      .sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }
  }

  /// From the journal. Later broadcasts get higher numbers.
  package mutating func restore(_ channel: Channel, lastNumber number: UInt64) {
    guard channels[channel.id] == nil else { return }
    insert(channel)
    lastNumber = max(lastNumber, number)
  }

  /// Makes a channel. `id` is random: it repeats no earlier one, unless a relay with a seed was
  /// started again, and then the next one is free.
  package mutating func create(
    _ id: ChannelID, _ policy: StoragePolicy, of bundle: Topic, at now: Instant
  ) throws(ChannelRefusal) -> Channel {
    var id = id
    while channels[id] != nil { id = ChannelID(high: id.high, low: id.low &+ 1) }
    let owner = Owner(bundle: bundle, environment: id.environment)
    guard counts[owner, default: 0] < limits.app, channels.count < limits.all else {
      throw .cannotCreateChannelConfig
    }
    let channel = Channel(id: id, bundle: bundle, policy: policy, createdAt: now)
    insert(channel)
    return channel
  }

  package func channel(
    _ id: ChannelID, of bundle: Topic, in environment: ProviderEnvironment? = nil
  ) throws(ChannelRefusal) -> Channel {
    guard let channel = channels[id], channel.bundle == bundle, id.isThere(for: environment) else {
      throw .channelNotRegistered
    }
    return channel
  }

  package mutating func remove(_ id: ChannelID) {
    guard let channel = channels.removeValue(forKey: id) else { return }
    let owner = Owner(bundle: channel.bundle, environment: id.environment)
    let rest = counts[owner, default: 1] - 1
    counts[owner] = rest == 0 ? nil : rest
  }

  /// Makes a broadcast of a draft. One that is stored lasts for its expiration, and no longer than
  /// `Limits.broadcastStorage`.
  package mutating func publish(
    _ draft: BroadcastDraft, on id: ChannelID, of bundle: Topic,
    in environment: ProviderEnvironment? = nil, _ uniqueID: UniqueID, at now: Instant
  ) throws(ChannelRefusal) -> Broadcast {
    let channel = try channel(id, of: bundle, in: environment)
    guard channel.policy == .mostRecent || draft.expirationSeconds == 0 else {
      throw .badExpirationDate
    }
    let limit = channel.policy.publishing
    guard limit.allows(channel.publishing, at: now) else { throw .tooManyRequests }
    var state = channel.publishing
    limit.consume(&state, at: now)
    channels[id]?.publishing = state
    lastNumber += 1
    var expiration = Expiration(unixSeconds: draft.expirationSeconds, at: now)
    if case .at(let moment) = expiration {
      expiration = .at(min(moment, now + Limits.broadcastStorage))
    }
    return Broadcast(
      channel: id, number: lastNumber, acceptedAt: now,
      notification: Notification(
        uniqueID: uniqueID, apnsID: uniqueID, token: id.token, topic: bundle,
        notificationClass: .visible, pushType: .liveactivity, priority: draft.priority,
        wakesApp: false, collapseID: [], expiration: expiration, payload: draft.payload))
  }

  /// The broadcast is safe and goes out: throws if its channel is gone.
  package mutating func accept(_ broadcast: Broadcast) throws(ChannelRefusal) {
    guard channels[broadcast.channel] != nil else { throw .channelNotRegistered }
    channels[broadcast.channel]?.published += 1
    published += 1
  }

  private mutating func insert(_ channel: Channel) {
    channels[channel.id] = channel
    counts[Owner(bundle: channel.bundle, environment: channel.id.environment), default: 0] += 1
  }
}
