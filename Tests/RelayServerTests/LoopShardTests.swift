import Primitives
import RelayCore
import RelayRecording
import Testing

@testable import RelayServer

@Suite struct LoopShardTests {
  private let now = Instant(milliseconds: 1000)
  private let device = DeviceID(UniqueID(high: 1, low: 2))
  private let request = RequestID(loop: 0, connection: 1, stream: 1)

  private func makeShard(_ number: UInt16 = 0, _ feed: FeedOutlet) -> LoopShard {
    let start = ShardStart(
      shard: number, configuration: Shard.Configuration(), at: now,
      sequences: SequenceRanges(ofShard: Int(number)), budgets: nil)
    return LoopShard(start, feed, nil)
  }

  @Test func whatChangesAboutDevicesIsReturned() {
    var core = makeShard(FeedOutlet())
    let hash = SecretHash(words: (1, 2, 3, 4))
    let enrolled = core.decide(.enrolled(device, hash, from: request), at: now)
    #expect(enrolled?.what == .enrolled && enrolled?.device == device)
    let credential = DeviceCredential(device: device, secret: hash)
    #expect(core.decide(.connected(credential, request), at: now)?.what == .connected)
    #expect(core.decide(.disconnected(request), at: now)?.device == device)
    #expect(core.decide(.disconnected(request), at: now) == nil, "it is gone already")
    #expect(core.decide(.tick, at: now) == nil)
  }

  @Test func whatIsRefusedChangesNothing() {
    var core = makeShard(FeedOutlet())
    let stranger = DeviceCredential(device: device, secret: SecretHash(words: (0, 0, 0, 0)))
    let topic = Topic("com.example.app")!
    #expect(core.decide(.unregistered(stranger, topic, from: request), at: now) == nil)
    #expect(!core.effects.isEmpty)
  }

  @Test(arguments: [UInt16(0), 1]) func oneLoopTellsOfAPolicy(number: UInt16) async {
    let feed = FeedOutlet()
    let (stream, continuation) = AsyncStream.makeStream(of: FeedBatch.self)
    feed.open(continuation)
    var core = makeShard(number, feed)
    _ = core.decide(.policyChanged(.off, at: now), at: now)
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
    #expect(core.nextEffects() == [.forget(3)])
  }
}
