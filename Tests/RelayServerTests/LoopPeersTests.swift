import Logging
import NIOCore
import NIOEmbedded
import Primitives
import RelayCore
import Testing

@testable import RelayServer

@Suite struct LoopPeersTests {
  private let device = DeviceID(UniqueID(high: 1, low: 2))

  private func makeRunners(_ count: Int) -> (EmbeddedEventLoop, [ShardRunner]) {
    let loop = EmbeddedEventLoop()
    let runners = (0..<count).map { index in
      ShardRunner(
        index: UInt16(index), eventLoop: loop, settings: ServerSettings(),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }
    let peers = runners.map { runner in
      ShardRunner.Peer(eventLoop: loop, runner: NIOLoopBound(runner, eventLoop: loop))
    }
    for runner in runners { runner.introduce(peers) }
    return (loop, runners)
  }

  /// An event reaches the loop that has its device, in one message with all others of the batch.
  @Test func aBatchIsOneMessage() throws {
    let (loop, runners) = makeRunners(2)
    let owner = runners[0].partitions.loop(ofRoutingKey: device.routingKey)
    let (sender, receiver) = (runners[1 - owner], runners[owner])
    let request = RequestID(loop: sender.index, connection: 9, stream: 1)
    let secret = SecretHash(words: (1, 2, 3, 4))
    sender.raise(
      .asked(.enrolled, DeviceCredential(device: device, secret: secret), from: request),
      for: device, at: sender.now)
    sender.raise(.operated(.administered(device, .disconnect)), for: device, at: sender.now)
    sender.finishBatch()
    loop.run()
    #expect(sender.peers.sentCount == 1 && receiver.peers.receivedCount == 1)
    #expect(receiver.core.shard.report(of: device) != nil)
    // The answer went back to the loop of the request.
    #expect(receiver.peers.sentCount == 1 && sender.peers.receivedCount == 1)
  }

  /// A message of another node may name a loop that there is not.
  @Test func whatIsForNoLoopIsDropped() {
    let (loop, runners) = makeRunners(2)
    let stream = StreamAddress(loop: 7, connection: 9, stream: 1)
    runners[0].peers.pass(.hello(stream), loop: 7)
    runners[0].peers.pass(.sendEmpty(stream), loop: .max)
    runners[0].finishBatch()
    loop.run()
    #expect(runners[0].peers.sentCount == 0 && runners[1].peers.receivedCount == 0)
  }

  /// What was said before the relay was taken back is not done afterwards.
  @Test func anEarlierMessageIsStale() {
    let (loop, runners) = makeRunners(2)
    runners[1].peers.epoch = 1
    let secret = SecretHash(words: (1, 2, 3, 4))
    let request = RequestID(loop: 0, connection: 9, stream: 1)
    runners[0].peers.tell(
      .asked(.enrolled, DeviceCredential(device: device, secret: secret), from: request), loop: 1)
    runners[0].finishBatch()
    loop.run()
    #expect(runners[1].core.shard.report(of: device) == nil)
  }
}
