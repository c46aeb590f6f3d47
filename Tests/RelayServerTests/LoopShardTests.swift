import Primitives
import RelayCore
import RelayRecording
import Testing

@testable import RelayServer

@Suite struct LoopShardTests {
  private let now = Instant(milliseconds: 1000)
  private let device = DeviceID(UniqueID(high: 1, low: 2))
  private let request = RequestID(loop: 0, connection: 1, stream: 1)

  private func makeShard(_ feed: FeedOutlet, number: UInt16 = 0) -> LoopShard {
    let start = ShardStart(
      shard: number, configuration: Shard.Configuration(), at: now,
      sequences: SequenceRanges(ofShard: Int(number)), budgets: nil)
    return LoopShard(start, feed, nil)
  }

  @Test func whatChangesAboutDevicesIsReturned() {
    var core = makeShard(FeedOutlet())
    let hash = SecretHash(words: (1, 2, 3, 4))
    let enrolled = core.decide(
      .asked(.enrolled, DeviceCredential(device: device, secret: hash), from: request), at: now)
    #expect(enrolled?.what == .enrolled && enrolled?.device == device)
    let credential = DeviceCredential(device: device, secret: hash)
    let connected = core.decide(.asked(.connected, credential, from: request), at: now)
    #expect(connected?.what == .connected)
    let gone = core.decide(.stream(request, .disconnected), at: now)
    #expect(gone?.what == .disconnected && gone?.device == device)
    let again = core.decide(.stream(request, .disconnected), at: now)
    #expect(again == nil)
  }

  @Test func whatIsRefusedChangesNothing() {
    var core = makeShard(FeedOutlet())
    let stranger = DeviceCredential(device: device, secret: SecretHash(words: (0, 0, 0, 0)))
    let topic = Topic("com.example.app")!
    let change = core.decide(.asked(.unregistered(topic), stranger, from: request), at: now)
    #expect(change == nil)
    #expect(!core.effects.isEmpty)
  }

  @Test(arguments: [UInt16(0), 1]) func oneLoopTellsOfAPolicy(number: UInt16) async {
    let feed = FeedOutlet()
    let (stream, continuation) = AsyncStream.makeStream(of: FeedBatch.self)
    feed.open(continuation)
    var core = makeShard(feed, number: number)
    _ = core.decide(.operated(.policyChanged(Shard.Configuration().policy, at: now)), at: now)
    core.endBatch()
    continuation.finish()
    var told = 0
    for await batch in stream { told += batch.items.count }
    #expect(told == (number == 0 ? 1 : 0))
  }

  @Test func effectsAreTakenOutAndTheirMemoryIsUsedAgain() {
    var core = makeShard(FeedOutlet())
    core.effects = [.forget(1), .forget(2)]
    let effects = core.nextEffects()
    #expect(effects == [.forget(1), .forget(2)] && core.effects.isEmpty)
    core.reuse(effects)
    core.effects.append(.forget(3))
    let next = core.nextEffects()
    #expect(next == [.forget(3)])
  }
}
