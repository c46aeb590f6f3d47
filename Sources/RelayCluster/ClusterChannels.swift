import Dispatch
package import Primitives
package import RelayCore
package import RelayRecording
package import RelayStore
import Synchronization

/// One of the bucket's places for broadcast channels, as its last message has it. Places are used
/// again, so that channels that are gone leave nothing behind.
package struct ChannelPlace: Hashable, Sendable {
  package var number: UInt16
  /// Of that message; also the number of the broadcast that came with it. 0 inside the message.
  package var revision: UInt64 = 0
  /// nil for a free place.
  package var stored: StoredChannel?

  func written(at revision: UInt64) -> ChannelPlace {
    var place = self
    place.revision = revision
    place.stored?.newest?.number = revision
    return place
  }
}

/// The places as far as a node knows them. A value.
package struct ChannelPlaces: Sendable {
  private var places: [UInt16: (revision: UInt64, channel: ChannelID?)] = [:]

  package func number(of channel: ChannelID) -> UInt16? {
    places.first { $0.value.channel == channel }?.key
  }

  /// Any that seems free, so that two nodes seldom want the same one.
  package var free: UInt16? {
    (0..<UInt16(Limits.channelsInCluster)).filter { places[$0]?.channel == nil }.randomElement()
  }

  /// Adopts a place, unless it is known: returns the channel that is gone from it, and the one that
  /// is there.
  package mutating func adopt(_ place: ChannelPlace) -> (gone: ChannelID?, found: StoredChannel?)? {
    let (revision, before) = places[place.number] ?? (0, nil)
    guard place.revision > revision else { return nil }
    places[place.number] = (place.revision, place.stored?.channel.id)
    return (before == place.stored?.channel.id ? nil : before, place.stored)
  }
}

/// Channels in the bucket, which every node follows as it does the other settings; what one node
/// changes it also tells the others at once.
extension ClusterJournal {
  /// They come with the first look.
  package func channels() async throws(StoreError) -> [StoredChannel] { [] }

  package func adopt(_ place: ChannelPlace) -> (gone: ChannelID?, found: StoredChannel?)? {
    core.withLock { $0.channels.adopt(place) }
  }

  package func add(_ channel: ChannelRegistry.Channel) async throws(StoreError) {
    while let number = core.withLock(\.channels.free) {
      let place = try await change(number) { place in
        if place.stored == nil { place.stored = StoredChannel(channel: channel) }
      }
      // Otherwise another node has just taken it.
      guard place.stored?.channel.id == channel.id else { continue }
      for told in share(place) { await told.value }
      return
    }
    throw .engineRefuses(reason: "a cluster has \(Limits.channelsInCluster) channels")
  }

  package func removeChannel(_ id: ChannelID) async throws(StoreError) {
    guard let number = core.withLock({ $0.channels.number(of: id) }) else { return }
    let place = try await change(number) { place in
      if place.stored?.channel.id == id { place.stored = nil }
    }
    // Otherwise another node has removed it, and used the place.
    if place.stored == nil { for told in share(place) { await told.value } }
  }

  /// The revision of its write in the bucket, or of a mark there if it is not stored: so all nodes
  /// order broadcasts alike.
  package func order(_ broadcast: Broadcast, at now: Instant) async throws(StoreError) -> UInt64? {
    guard broadcast.isStored(at: now) else {
      var broadcast = broadcast
      broadcast.number = try await bucket.mark()
      _ = tellOthers(.broadcast(broadcast))
      return broadcast.number
    }
    let (channel, mine) = (broadcast.channel, broadcast.notification.uniqueID)
    guard let number = core.withLock({ $0.channels.number(of: channel) }) else { return nil }
    let place = try await change(number) { place in
      // After a lost answer it may be there already.
      guard place.stored?.channel.id == channel, place.stored?.newest?.notification.uniqueID != mine
      else { return }
      place.stored?.newest = broadcast
    }
    guard place.stored?.newest?.notification.uniqueID == mine else { return nil }
    _ = share(place)
    return place.revision
  }

  /// Changes a place; returns it as it is then.
  private func change(
    _ number: UInt16, _ make: (inout ChannelPlace) -> Void
  ) async throws(StoreError) -> ChannelPlace {
    let changed = try await bucket.changed(.channel(number), tries: EngineBucket.hastyTries) {
      (found: ChannelPlace?) in
      var place = found ?? ChannelPlace(number: number)
      if port.isLeaseHeld { make(&place) }
      return place == found ? nil : place
    }
    guard port.isLeaseHeld else { throw .engineRefuses(reason: "this node's lease has run out") }
    return (changed.value ?? ChannelPlace(number: number)).written(at: changed.revision)
  }

  private func share(_ place: ChannelPlace) -> [Task<Void, Never>] {
    _ = adopt(place)
    return tellOthers(.place(place))
  }

  /// A channel is gone, and with it the subscriptions to it in this node's stripes.
  package func forget(_ channel: ChannelID) {
    queue.async { self.core.withLock { $0.node.forget(channel) } }
  }
}

extension StoragePolicy: BinaryCodable {}

extension ChannelRegistry.Channel: Composite {
  package static let fields = Fields(Self.init(id:bundle:policy:createdAt:)) {
    ($0.id, $0.bundle, $0.policy, $0.createdAt)
  }
}

extension StoredChannel: Composite {
  package static let fields = Fields(Self.init(channel:newest:)) { ($0.channel, $0.newest) }
}

extension ChannelPlace: Composite {
  package static let fields = Fields(Self.init(number:revision:stored:)) {
    ($0.number, $0.revision, $0.stored)
  }
}
