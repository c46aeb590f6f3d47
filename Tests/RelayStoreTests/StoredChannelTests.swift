import Primitives
import RelayCore
import Testing

@testable import RelayStore

@Suite("Stored channels") struct StoredChannelTests {
  private let directory: TemporaryDirectory
  private let bundle = Topic("com.example.app")!
  private let now = Instant(milliseconds: 1_790_000_000_000)

  init() throws { directory = try TemporaryDirectory() }

  private func channel(_ number: UInt64) -> ChannelRegistry.Channel {
    ChannelRegistry.Channel(
      id: ChannelID(high: .max, low: number), bundle: bundle, policy: .mostRecent, createdAt: now)
  }

  private func broadcast(_ number: UInt64, on channel: ChannelRegistry.Channel) -> Broadcast {
    let id = UniqueID(high: 3, low: number)
    return Broadcast(
      channel: channel.id, number: number, acceptedAt: now,
      notification: Notification(
        uniqueID: id, apnsID: id, token: channel.id.token, topic: bundle,
        notificationClass: .visible, pushType: .liveactivity, priority: .powerAware,
        wakesApp: false, collapseID: [], expiration: .at(now + .hours(1)),
        payload: Array(#"{"aps":{}}"#.utf8)))
  }

  @Test func channelsAndTheirNewestBroadcastComeBack() async throws {
    let journal = try Listener().open(directory)
    for number in [1, 2] as [UInt64] { try await journal.add(channel(number)) }
    for number in [5, 7, 6] as [UInt64] {
      #expect(try await journal.order(broadcast(number, on: channel(1)), at: now) == number)
    }
    _ = try await journal.order(broadcast(9, on: channel(3)), at: now)
    await journal.stop()
    let again = try Listener().open(directory)
    let found = try await again.channels().sorted { $0.channel.id < $1.channel.id }
    #expect(found.map(\.channel) == [channel(1), channel(2)])
    #expect(found.map(\.newest) == [broadcast(7, on: channel(1)), nil])
    try await again.removeChannel(channel(1).id)
    #expect(try await again.channels().map(\.channel) == [channel(2)])
    await again.stop()
  }

  /// With the app, and with the channel.
  @Test func aSubscriptionIsThereUntilItIsGone() async throws {
    let journal = try Listener().open(directory)
    for number in [1, 2] as [UInt64] { try await journal.add(channel(number)) }
    let device = DeviceID(UniqueID(high: 8, low: 8))
    let token = DeviceToken(random: (1, 2, 3), routingKey: device.routingKey)
    let first = journal.sequences(ofShard: 0).first
    let contents: [JournalRecord.Content] = [
      .enrolled(device, SecretHash(words: (1, 2, 3, 4))),
      .registered(device, bundle, token, isOwn: false),
      .subscribed(device, bundle, channel(1).id), .subscribed(device, bundle, channel(2).id),
      .subscribed(device, bundle, channel(9).id), .unsubscribed(device, bundle, channel(2).id),
    ]
    let records = contents.enumerated().map { place, content in
      JournalRecord(sequence: first + UInt64(place), content: content)
    }
    journal.submit(shard: 0, records: records, forgets: [])
    await journal.stop()
    #expect(try await subscriptions() == [channel(1).id])
    let next = try Listener().open(directory)
    let gone = JournalRecord(
      sequence: next.sequences(ofShard: 0).first,
      content: .unregistered(device, bundle, token, at: now))
    next.submit(shard: 0, records: [gone], forgets: [])
    await next.stop()
    #expect(try await subscriptions() == [])
  }

  @Test func channelsAndSubscriptionsComeAlongToAnotherJournal() async throws {
    let journal = try Listener().open(directory)
    _ = try await journal.budgets(under: .strict, at: now)
    for number in [1, 2] as [UInt64] { try await journal.add(channel(number)) }
    _ = try await journal.order(broadcast(5, on: channel(1)), at: now)
    let device = DeviceID(UniqueID(high: 8, low: 8))
    let token = DeviceToken(random: (1, 2, 3), routingKey: device.routingKey)
    let first = journal.sequences(ofShard: 0).first
    let contents: [JournalRecord.Content] = [
      .enrolled(device, SecretHash(words: (1, 2, 3, 4))),
      .registered(device, bundle, token, isOwn: false),
      .subscribed(device, bundle, channel(1).id),
    ]
    let written = contents.enumerated().map { place, content in
      JournalRecord(sequence: first + UInt64(place), content: content)
    }
    journal.submit(shard: 0, records: written, forgets: [])
    await journal.stop()
    let old = try StoppedJournal(path: directory.journal)
    var records: [RestoredRecord] = []
    try old.replay { records.append($0) }
    let commons = try old.commons()
    let copy = directory.path + "/copy.sqlite"
    let new = try NewJournal(path: copy)
    try new.add(records, listing: [])
    #expect(try new.finish(commons).channels == 2)
    let read = try StoppedJournal(path: copy)
    var found: [ChannelID] = []
    try read.replay { record in
      if case .subscription(device, bundle, let channel) = record { found.append(channel) }
    }
    #expect(found == [channel(1).id])
    #expect(try read.commons().channels == commons.channels && commons.channels.count == 2)
  }

  /// Those that a start finds.
  private func subscriptions() async throws -> [ChannelID] {
    let journal = try Listener().open(directory)
    var found: [ChannelID] = []
    try journal.replay { record in
      if case .subscription(_, _, let channel) = record { found.append(channel) }
    } progress: { _, _ in
    }
    await journal.stop()
    return found
  }
}
