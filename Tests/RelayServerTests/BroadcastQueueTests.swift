import Logging
import NIOCore
import NIOEmbedded
import Primitives
import RelayCore
import Testing

@testable import RelayServer

@Suite struct BroadcastQueueTests {
  private let channel = ChannelID(high: 1, low: 2)

  private func broadcast(_ number: UInt64) -> Broadcast {
    let notification = Notification(
      uniqueID: UniqueID(high: 9, low: number), apnsID: UniqueID(high: 9, low: number),
      token: channel.token, topic: Topic("com.example.app")!, notificationClass: .visible,
      pushType: .liveactivity, priority: .immediate, wakesApp: false, collapseID: [],
      expiration: .once, payload: Array("{}".utf8))
    return Broadcast(
      channel: channel, number: number, acceptedAt: RelayClock.wall, notification: notification)
  }

  private func streams(_ count: Int) -> [StreamAddress] {
    (0..<count).map { StreamAddress(loop: 1, connection: 1, stream: Int32($0)) }
  }

  @Test func theOldestIsLeftOut() {
    var queue = BroadcastQueue()
    let half = streams(Limits.broadcastStreamsWaiting / 2)
    for number in 1...3 {
      queue.append(BroadcastSlice(broadcast: broadcast(UInt64(number)), streams: half))
    }
    #expect(queue.next().map(\.broadcast.number) == [2])
    // A step of the loop's own comes first.
    #expect(queue.next().isEmpty && !queue.isEmpty)
    #expect(queue.next().map(\.broadcast.number) == [3])
    #expect(queue.isEmpty)
  }

  /// What another loop has for this one's streams is written a step at a time, with a look at the
  /// sockets in between, and in order.
  @Test func anotherLoopsBroadcastsTakeTurns() {
    let loop = EmbeddedEventLoop()
    let runners = (0..<2).map { index in
      ShardRunner(
        index: UInt16(index), eventLoop: loop, settings: ServerSettings(),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }
    for runner in runners {
      runner.introduce(
        runners.map { .init(eventLoop: loop, runner: NIOLoopBound($0, eventLoop: loop)) })
    }
    for number in 1...4 {
      runners[0].send(broadcast(UInt64(number)), to: streams(Limits.broadcastSlice / 2))
      runners[0].finishBatch()
    }
    loop.run()
    var turns = 0
    while !runners[1].broadcasts.isEmpty {
      loop.advanceTime(by: .microseconds(Limits.broadcastPauseMicroseconds))
      turns += 1
      #expect(turns < 20)
    }
    // Four steps, and three of its own in between.
    #expect(turns == 7)
  }
}
