import Primitives

@testable import RelayCore

/// What phones and providers do with channels, in a world that has some. Each channel is for apps
/// of one topic, so that a phone subscribes once to each.
extension World {
  static let channelTopics = (0..<3).map { Topic("com.example.app\($0)")! }

  mutating func channelStep() {
    while checker.channels.topics.count < 2 {
      checker.channels.number += 1
      let id = ChannelID(high: 7, low: checker.channels.number)
      checker.channels.topics[id] = Self.channelTopics.randomElement(using: &generator)!
    }
    let id = checker.channels.topics.keys.sorted().randomElement(using: &generator)!
    switch Int.random(in: 0..<20, using: &generator) {
    case 0..<8: subscribe(to: id)
    case 8..<10: unsubscribe(from: id)
    case 10..<19: publish(on: id)
    default:
      handle(.broadcast(.ended(id)))
      // One that had asked a moment before.
      if generator.chance(50) { subscribe(to: id) }
    }
  }

  private mutating func subscribe(to id: ChannelID) {
    guard let app = subscriber(of: id) else { return }
    handle(.asked(.subscribed(app.topic, id), app.phone.credential, from: fixture.newRequest()))
  }

  private mutating func unsubscribe(from id: ChannelID) {
    guard let app = subscriber(of: id) else { return }
    handle(.asked(.unsubscribed(app.topic, id), app.phone.credential, from: fixture.newRequest()))
  }

  private mutating func subscriber(of id: ChannelID) -> PhoneApp? {
    let topic = checker.channels.topics[id] ?? Self.channelTopics[0]
    return checker.apps.filter { $0.topic == topic }.randomElement(using: &generator)
  }

  private mutating func publish(on id: ChannelID) {
    checker.channels.number += 1
    var number = checker.channels.number
    // Seldom one comes from another loop after a newer one.
    if number > 20, generator.chance(5) { number -= 10 }
    guard checker.channels.published[number] == nil else { return }
    var expiration = Expiration.once
    if generator.chance(60) {
      expiration = .at(fixture.now + .seconds(.random(in: 0...4000, using: &generator)))
    }
    let unique = UniqueID(high: 9, low: number)
    let broadcast = Broadcast(
      channel: id, number: number, acceptedAt: fixture.now,
      notification: Notification(
        uniqueID: unique, apnsID: unique, token: id.token, topic: checker.channels.topics[id]!,
        notificationClass: .visible, pushType: .liveactivity, priority: .immediate,
        wakesApp: false, collapseID: [], expiration: expiration, payload: Array("{}".utf8)))
    handle(.broadcast(.published(broadcast)))
  }

  /// What the owner of all channels tells a shard after its start, or of a channel that it does not
  /// have any more.
  mutating func restoreChannels() {
    guard plan.hasChannels else { return }
    for id in checker.channels.topics.keys.sorted() {
      let newest = checker.channels.published.values.filter {
        $0.channel == id && $0.isStored(at: fixture.now)
      }.max { $0.number < $1.number }
      if let newest { handle(.broadcast(.published(newest))) }
    }
  }

  mutating func endAgain(_ effects: [Effect]) {
    for case .answer(_, .subscribed(let id)) in effects where checker.channels.topics[id] == nil {
      handle(.broadcast(.ended(id)))
    }
  }

  /// Every broadcast is through; what is subscribed is what is on disk.
  mutating func settleChannels() {
    while !fixture.shard.fanOuts.isEmpty { handle(.clock(.tick)) }
  }
}
