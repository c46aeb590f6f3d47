import DequeModule
import Primitives

package typealias SubscriptionNumber = Slab<Subscription>.Index

/// An app of a device that listens to a channel: a few words, however much is broadcast.
package struct Subscription: Hashable, Sendable {
  package var app: AppNumber
  package var channel: ChannelID
  /// Its place among the channel's subscribers.
  package var place: Int32
  /// The app's next subscription.
  package var next = SubscriptionNumber.none
  /// The journal's sequence of its record.
  package var registration: UInt64
  /// The number of the last broadcast sent to it.
  package var last: UInt64 = 0

  package static let vacant = Subscription(
    app: .none, channel: ChannelID(high: 0, low: 0), place: 0, registration: 0)

  package init(app: AppNumber, channel: ChannelID, place: Int32, registration: UInt64) {
    self.app = app
    self.channel = channel
    self.place = place
    self.registration = registration
  }
}

/// A shard's part of a channel; there is none without a subscriber or a stored broadcast.
package struct ShardChannel: Hashable, Sendable {
  package var subscribers: [SubscriptionNumber]
  /// The newest broadcast, if it is stored, for who comes later.
  package var stored: Broadcast?
  /// Broadcasts sent to subscribers.
  package var delivered: Int

  package init(
    subscribers: [SubscriptionNumber] = [], stored: Broadcast? = nil, delivered: Int = 0
  ) {
    self.subscribers = subscribers
    self.stored = stored
    self.delivered = delivered
  }
}

/// A broadcast on its way through a channel's subscribers, from the last one down. Those before
/// `rest` have yet to get it.
package struct FanOut: Hashable, Sendable {
  package var broadcast: Broadcast
  package var rest: Int

  package init(broadcast: Broadcast, rest: Int) {
    self.broadcast = broadcast
    self.rest = rest
  }
}

/// From the owner of all channels to every shard.
package enum BroadcastEvent: Hashable, Sendable {
  case published(Broadcast)
  /// The channel was deleted.
  case ended(ChannelID)
}

/// Subscriptions and broadcasts. Best effort, as at Apple: a broadcast is sent once to those
/// connected, without acknowledgement. If it is stored, a later connection or subscription gets
/// the newest one; after a restart of the relay, or when a phone was lost without a word, perhaps
/// again.
///
/// Invariants:
/// 1. A subscription is in the list of its app, and at its `place` among its channel's subscribers.
/// 2. On one connection nobody gets a broadcast twice, nor one older than the last: `last` only
///    rises there.
/// 3. A broadcast goes out in ticks of `Limits.broadcastSlice` subscribers, with other events in
///    between. A new subscriber is behind `rest`, and gets it if it is stored.
extension Shard {
  mutating func handle(_ event: BroadcastEvent, into effects: inout [Effect]) {
    switch event {
    case .published(let broadcast): publish(broadcast)
    case .ended(let channel): end(channel)
    }
  }

  mutating func subscribe(
    _ device: DeviceNumber, _ topic: Topic, _ channel: ChannelID, from request: RequestID,
    into effects: inout [Effect]
  ) {
    func refuse(_ refusal: DeviceRefusal) { effects.append(.answer(request, .refused(refusal))) }
    guard let app = appNumber(of: device, topic) else { return refuse(.unknownApp) }
    guard channel.isThere(for: apps[app].token.environment) else { return refuse(.unknownChannel) }
    let id = devices[device].id
    if let known = subscription(of: app, channel) {
      let isSafe = !isPending(subscriptions[known].registration)
      return isSafe
        ? effects.append(.answer(request, .subscribed(channel))) : refuse(.unavailable)
    }
    guard !isPending(apps[app].registration), !tokenChanges.contains(id, topic), hasRoomForPersist
    else { return refuse(.unavailable) }
    guard subscriptionNumbers(of: app).count < Limits.channelsPerSubscriber else {
      return refuse(.tooManyChannels)
    }
    let number = add(app, channel, registration: nextSequence)
    answerWhenPersisted(
      .subscribed(channel), to: request, of: id, record: .subscribed(id, topic, channel),
      into: &effects)
    sendStored(to: number, into: &effects)
  }

  mutating func unsubscribe(
    _ device: DeviceNumber, _ topic: Topic, _ channel: ChannelID, from request: RequestID,
    into effects: inout [Effect]
  ) {
    func refuse(_ refusal: DeviceRefusal) { effects.append(.answer(request, .refused(refusal))) }
    guard let app = appNumber(of: device, topic) else { return refuse(.unknownApp) }
    guard let number = subscription(of: app, channel) else { return refuse(.unknownChannel) }
    guard hasRoomForPersist else { return refuse(.unavailable) }
    remove(number)
    let id = devices[device].id
    // Owed: if it is not written now it comes later, for here the subscription is gone.
    answerWhenPersisted(
      .unsubscribed, to: request, of: id, record: .unsubscribed(id, topic, channel),
      mayLinger: true, into: &effects)
  }

  mutating func restoreSubscription(
    _ id: DeviceID, _ topic: Topic, _ channel: ChannelID, into effects: inout [Effect]
  ) {
    guard let app = deviceNumber(id).flatMap({ appNumber(of: $0, topic) }) else {
      // A crash came between the records of an app: the next one of its topic must not have it.
      return record(.unsubscribed(id, topic, channel), key: id.routingKey, into: &effects)
    }
    if subscription(of: app, channel) == nil { _ = add(app, channel, registration: 0) }
  }

  /// Undoes a subscription that the journal could not write.
  mutating func rollBackSubscription(_ channel: ChannelID, _ sequence: UInt64) {
    let failed = channels[channel]?.subscribers.first {
      subscriptions[$0].registration == sequence
    }
    if let failed { remove(failed) }
  }

  mutating func removeSubscriptions(of app: AppNumber) {
    while apps[app].firstSubscription.exists { remove(apps[app].firstSubscription) }
  }

  /// Records an app's subscriptions again, behind a record that may have ended them on disk.
  mutating func recordSubscriptions(of app: AppNumber, into effects: inout [Effect]) {
    let id = devices[apps[app].device].id
    for number in subscriptionNumbers(of: app) {
      record(
        .subscribed(id, apps[app].topic, subscriptions[number].channel), key: id.routingKey,
        into: &effects)
    }
  }

  /// Sends a device the stored broadcasts of its channels, when it connects.
  mutating func sendStored(to device: DeviceNumber, into effects: inout [Effect]) {
    for number in subscriptionNumbers(of: device) { sendStored(to: number, into: &effects) }
  }

  /// The phone was lost without a word: it may not have had what was sent to it, so what is stored
  /// goes again.
  mutating func doubtBroadcasts(of device: DeviceNumber) {
    for number in subscriptionNumbers(of: device) { subscriptions[number].last = 0 }
  }

  private func subscriptionNumbers(of device: DeviceNumber) -> [SubscriptionNumber] {
    guard subscriptions.count > 0 else { return [] }
    var numbers: [SubscriptionNumber] = []
    var app = devices[device].firstApp
    while app.exists {
      numbers += subscriptionNumbers(of: app)
      app = apps[app].next
    }
    return numbers
  }

  private func subscriptionNumbers(of app: AppNumber) -> [SubscriptionNumber] {
    var numbers: [SubscriptionNumber] = []
    var number = apps[app].firstSubscription
    while number.exists {
      numbers.append(number)
      number = subscriptions[number].next
    }
    return numbers
  }

  /// Sends the first unfinished broadcast to some of its subscribers.
  mutating func fanOut(into effects: inout [Effect]) {
    guard var job = fanOuts.popFirst() else { return }
    guard let subscribers = channels[job.broadcast.channel]?.subscribers else { return }
    // Some may have left.
    job.rest = min(job.rest, subscribers.count)
    var end = job.rest
    var connections: [ConnectionID] = []
    while end > 0, job.rest - end < Limits.broadcastSlice {
      end -= 1
      let number = subscribers[end]
      guard subscriptions[number].last < job.broadcast.number,
        let connection = devices[apps[subscriptions[number].app].device].connection
      else { continue }
      subscriptions[number].last = job.broadcast.number
      connections.append(connection)
    }
    send(job.broadcast, to: connections, into: &effects)
    job.rest = end
    if end > 0 { fanOuts.prepend(job) }
  }

  /// Subscribers and deliveries of each channel here.
  package var channelCounts: [ChannelID: (subscribers: Int, delivered: Int)] {
    channels.mapValues { ($0.subscribers.count, $0.delivered) }
  }

  // MARK: Details

  private mutating func publish(_ broadcast: Broadcast) {
    let channel = broadcast.channel
    if broadcast.isStored(at: now) {
      if let newest = channels[channel]?.stored, newest.number > broadcast.number { return }
      channels[channel, default: ShardChannel()].stored = broadcast
    }
    guard let count = channels[channel]?.subscribers.count, count > 0 else { return }
    // The oldest one ends where it is: of a stored one, the newest counts anyway.
    if fanOuts.count >= Limits.broadcastsUnderWay { fanOuts.removeFirst() }
    fanOuts.append(FanOut(broadcast: broadcast, rest: count))
  }

  private mutating func end(_ channel: ChannelID) {
    fanOuts.removeAll { $0.broadcast.channel == channel }
    let last = channels[channel]?.subscribers ?? []
    for number in last { unlink(number) }
    channels[channel] = nil
  }

  private mutating func sendStored(
    to number: SubscriptionNumber, into effects: inout [Effect]
  ) {
    let subscription = subscriptions[number]
    guard let stored = channels[subscription.channel]?.stored, stored.isStored(at: now),
      subscription.last < stored.number,
      let connection = devices[apps[subscription.app].device].connection
    else { return }
    subscriptions[number].last = stored.number
    send(stored, to: [connection], into: &effects)
  }

  private mutating func send(
    _ broadcast: Broadcast, to connections: [ConnectionID], into effects: inout [Effect]
  ) {
    guard !connections.isEmpty else { return }
    channels[broadcast.channel]?.delivered += connections.count
    counters.broadcasts += connections.count
    effects.append(.sendBroadcast(broadcast, to: connections))
  }

  private func subscription(of app: AppNumber, _ channel: ChannelID) -> SubscriptionNumber? {
    subscriptionNumbers(of: app).first { subscriptions[$0].channel == channel }
  }

  private mutating func add(
    _ app: AppNumber, _ channel: ChannelID, registration: UInt64
  ) -> SubscriptionNumber {
    let place = Int32(channels[channel]?.subscribers.count ?? 0)
    var subscription = Subscription(
      app: app, channel: channel, place: place, registration: registration)
    subscription.next = apps[app].firstSubscription
    let number = subscriptions.insert(subscription)
    apps[app].firstSubscription = number
    channels[channel, default: ShardChannel()].subscribers.append(number)
    counters.subscriptions += 1
    return number
  }

  private mutating func remove(_ number: SubscriptionNumber) {
    let (channel, place) = (subscriptions[number].channel, Int(subscriptions[number].place))
    unlink(number)
    // The last subscriber takes its place.
    guard let last = channels[channel]?.subscribers.popLast() else { return }
    if last != number {
      channels[channel]?.subscribers[place] = last
      subscriptions[last].place = Int32(place)
    }
    if channels[channel]?.subscribers.isEmpty == true, channels[channel]?.stored == nil {
      channels[channel] = nil
    }
  }

  /// Takes a subscription from its app, and frees its place.
  private mutating func unlink(_ number: SubscriptionNumber) {
    let (app, next) = (subscriptions[number].app, subscriptions[number].next)
    if apps[app].firstSubscription == number {
      apps[app].firstSubscription = next
    } else {
      var current = apps[app].firstSubscription
      while subscriptions[current].next != number { current = subscriptions[current].next }
      subscriptions[current].next = next
    }
    subscriptions.remove(at: number)
    counters.subscriptions -= 1
  }
}

extension Soundness {
  /// Invariant 1 of `Shard+Channels.swift`, and no list without an end.
  static func check(
    _ subscriptions: Slab<Subscription>, _ channels: [ChannelID: ShardChannel],
    _ fanOuts: Deque<FanOut>, of apps: Slab<App>
  ) throws(StateFlaw) {
    var listed = 0
    for app in apps.indices {
      var number = apps[app].firstSubscription
      while number.exists {
        listed += 1
        try require(
          listed <= subscriptions.count && subscriptions.mayBeTaken(number)
            && subscriptions[number].app == app && apps[app].isRegistered,
          "app \(app) has a subscription that is not its own")
        number = subscriptions[number].next
      }
    }
    var counted = 0
    for (id, channel) in channels {
      for (place, number) in channel.subscribers.enumerated() {
        try require(
          subscriptions.mayBeTaken(number) && subscriptions[number].channel == id
            && subscriptions[number].place == Int32(clamping: place),
          "channel \(id) has a subscriber that is none")
      }
      counted += channel.subscribers.count
      try require(counts.contains(channel.delivered), "a count is none")
    }
    try require(
      listed == subscriptions.count && counted == subscriptions.count,
      "a subscription is in no list")
    try require(fanOuts.allSatisfy { counts.contains($0.rest) }, "a broadcast is nowhere")
  }
}
