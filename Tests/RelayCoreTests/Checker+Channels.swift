import Primitives

@testable import RelayCore

/// What phones are told of channels: a broadcast goes to every subscriber that is connected, to
/// nobody else, on no connection twice, and after none that is newer.
struct ChannelChecks {
  struct Subscription: Hashable {
    /// The app's registration.
    var registration: Int
    var channel: ChannelID
  }

  /// Of channels that are there.
  var topics: [ChannelID: Topic] = [:]
  /// Of the last channel or broadcast.
  var number: UInt64 = 0
  var published: [UInt64: Broadcast] = [:]
  var requests: [RequestID: Subscription] = [:]
  /// The newest request about each: answers to older ones say nothing of what is now.
  var newest: [Subscription: RequestID] = [:]
  /// Those that a device has asked for, and has not been told that they are gone.
  var possible: Set<Subscription> = []
  /// Those that a device was told of and has not asked to end.
  var certain: Set<Subscription> = []
  /// The last broadcast that each got.
  var last: [Subscription: UInt64] = [:]
  /// Who has yet to get a broadcast, and on which connection.
  var due: [UInt64: [Subscription: ConnectionID]] = [:]
  /// How many of each kind came, for `everythingHappens`.
  var sent = (atOnce: 0, stored: 0)

  mutating func drop(_ isGone: (Subscription) -> Bool) {
    for number in due.keys { due[number] = due[number]!.filter { !isGone($0.key) } }
    certain = certain.filter { !isGone($0) }
    last = last.filter { !isGone($0.key) }
  }
}

extension Checker {
  mutating func noteChannels(_ event: Event) {
    switch event {
    case .asked(.subscribed(let topic, let channel), let credential, let request):
      guard let app = alive(credential.device, topic) else { return }
      let subscription = ChannelChecks.Subscription(registration: app, channel: channel)
      channels.requests[request] = subscription
      channels.newest[subscription] = request
      channels.possible.insert(subscription)
    case .asked(.unsubscribed(let topic, let channel), let credential, let request):
      guard let app = alive(credential.device, topic) else { return }
      let subscription = ChannelChecks.Subscription(registration: app, channel: channel)
      channels.requests[request] = subscription
      channels.newest[subscription] = request
      channels.drop { $0 == subscription }
    case .broadcast(.published(let broadcast)):
      let newest =
        channels.published.values.filter { $0.channel == broadcast.channel }
        .map(\.number).max() ?? 0
      channels.published[broadcast.number] = broadcast
      guard broadcast.number > newest else { return }
      var due: [ChannelChecks.Subscription: ConnectionID] = [:]
      for subscription in channels.certain where subscription.channel == broadcast.channel {
        let device = registrations[subscription.registration].app.phone.credential.device
        let connection = live.first { $0.value == device }?.key
        if let connection, registrations[subscription.registration].isAlive {
          due[subscription] = connection
        }
      }
      channels.due[broadcast.number] = due
    case .broadcast(.ended(let channel)):
      channels.topics[channel] = nil
      channels.drop { $0.channel == channel }
      channels.possible = channels.possible.filter { $0.channel != channel }
    default: break
    }
  }

  mutating func checkChannels(_ answer: DeviceAnswer, to request: RequestID) {
    guard let subscription = channels.requests.removeValue(forKey: request) else { return }
    let isNewest = channels.newest[subscription] == request
    switch answer {
    case .subscribed(let channel):
      expect(channel == subscription.channel, "subscribed to another channel")
      if isNewest, channels.topics[channel] != nil { channels.certain.insert(subscription) }
    case .unsubscribed: if isNewest { channels.possible.remove(subscription) }
    default: channels.drop { $0 == subscription }
    }
  }

  mutating func checkBroadcast(_ broadcast: Broadcast, to connections: [ConnectionID]) {
    expect(channels.published[broadcast.number] == broadcast, "a broadcast of nobody's")
    expect(channels.topics[broadcast.channel] != nil, "on a channel that is gone")
    expect(!connections.isEmpty, "to nobody")
    let isOnItsWay = if case .clock(.tick) = eventAtHand { true } else { false }
    expect(isOnItsWay || broadcast.isStored(at: now), "late, and not stored")
    for connection in connections {
      guard let device = live[connection] else {
        expect(false, "a broadcast to a connection that is closed")
        continue
      }
      let mine = channels.possible.filter {
        $0.channel == broadcast.channel && isThere($0.registration)
          && registrations[$0.registration].app.phone.credential.device == device
      }
      expect(!mine.isEmpty, "a broadcast to a phone that does not subscribe")
      for subscription in mine {
        expect(
          channels.last[subscription, default: 0] < broadcast.number,
          "a broadcast twice, or after a newer one")
        channels.last[subscription] = broadcast.number
        for number in channels.due.keys
        where number <= broadcast.number
          && channels.published[number]!.channel == broadcast.channel
        {
          channels.due[number]![subscription] = nil
        }
      }
    }
    if isOnItsWay {
      channels.sent.atOnce += connections.count
    } else {
      channels.sent.stored += connections.count
    }
  }

  /// The phone was lost without a word: what is stored goes again.
  mutating func doubtBroadcasts(on connection: ConnectionID) {
    guard let device = live[connection] else { return }
    channels.last = channels.last.filter {
      registrations[$0.key.registration].app.phone.credential.device != device
    }
  }

  /// No broadcast is on its way any more.
  mutating func checkAllGotIt() {
    for (number, due) in channels.due {
      for (subscription, connection) in due
      where live[connection] != nil && registrations[subscription.registration].isAlive {
        expect(false, "broadcast \(number) did not come to \(connection)")
      }
    }
    channels.due = [:]
  }

  /// The next shard knows nothing of what was sent; what a device was told is on disk.
  mutating func crashChannels(_ disk: Disk) {
    channels.requests = [:]
    channels.due = [:]
    channels.last = [:]
    for subscription in channels.certain where registrations[subscription.registration].isAlive {
      let app = registrations[subscription.registration].app
      expect(
        disk.subscriptions.contains(
          Disk.Subscription(
            device: app.phone.credential.device, topic: app.topic, channel: subscription.channel)),
        "a subscription is lost")
    }
  }
}
