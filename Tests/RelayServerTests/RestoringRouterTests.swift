import Primitives
import RelayCore
import Testing

@testable import RelayServer

@Suite struct RestoringRouterTests {
  /// Whatever the number of shards: a device and its apps go to one of them, and what has a token
  /// to where a push for the token looks.
  @Test(arguments: [1, 2, 3, 7])
  func everythingGoesToItsShard(_ count: Int) throws {
    // As after a move: not only what the table began with.
    var table = PartitionTable(loopCount: count)
    for number in 0..<10 { table[PartitionID(UInt16(number * 25))] = number % count }
    var router = RestoringRouter(table, shardCount: count)
    var random = SeededRandom(seed: 7)
    var expected: [DeviceToken: Int] = [:]
    var batches = Array(repeating: [RestoredRecord](), count: count)
    func add(_ record: RestoredRecord) {
      if let (shard, batch) = router.add(record) { batches[shard] += batch }
    }
    var tokens: [DeviceToken] = []
    for number in 0..<2000 {
      let device = DeviceID(UniqueID(high: random.next(), low: random.next()))
      let shard = table.loop(ofRoutingKey: device.routingKey)
      add(.device(device, SecretHash(words: (0, 0, 0, 0)), budget: RateLimit.State()))
      for isOwn in [false, true] {
        let token = DeviceToken(
          random: (random.next(), random.next(), UInt64(number)),
          routingKey: isOwn ? random.next() : device.routingKey)
        expected[token] = shard
        tokens.append(token)
        let own = OwnToken(token: token, device: device, topic: Topic("com.example.\(isOwn)")!)
        add(.alias(own))
        add(
          .forwarded(
            Self.notification(token), to: device, sequence: 2,
            acceptedAt: Instant(milliseconds: 0)))
        add(.gone(token, since: Instant(milliseconds: 0)))
        add(
          .app(
            device, Topic("com.example.\(isOwn)")!, token, isOwn: isOwn, budget: RateLimit.State()))
      }
    }
    for token in tokens {
      add(
        .notification(
          Self.notification(token), sequence: 1, acceptedAt: Instant(milliseconds: 0)))
    }
    for (shard, rest) in router.popRest().enumerated() { batches[shard] += rest }
    #expect(router.popRest().allSatisfy { $0.isEmpty })
    #expect(batches.map(\.count).reduce(0, +) == 2000 + 5 * tokens.count)
    for (shard, batch) in batches.enumerated() {
      for record in batch {
        switch record {
        case .device(let device, _, _), .spent(let device, _, _), .subscription(let device, _, _):
          #expect(table.loop(ofRoutingKey: device.routingKey) == shard)
        case .app(_, _, let token, _, _): #expect(expected[token] == shard)
        case .alias(let own):
          #expect(table.loop(ofRoutingKey: own.token.routingKey) == shard)
        case .gone(let token, _):
          #expect(table.loop(ofRoutingKey: token.routingKey) == shard)
        case .notification(let notification, _, _):
          let key = notification.token.routingKey
          #expect(table.loop(ofRoutingKey: key) == shard)
        case .forwarded(_, let device, _, _):
          #expect(table.loop(ofRoutingKey: device.routingKey) == shard)
        }
      }
    }
  }

  private static func notification(_ token: DeviceToken) -> Notification {
    Notification(
      uniqueID: UniqueID(high: 1, low: 1), apnsID: UniqueID(high: 1, low: 1), token: token,
      topic: Topic("a")!, notificationClass: .visible, pushType: .alert,
      priority: .immediate, wakesApp: false, collapseID: [], expiration: .once, payload: [])
  }
}
