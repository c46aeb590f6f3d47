import Primitives
import RelayRecording

@testable import RelayCore

/// Writes a file with any number of shards.
struct Recorder {
  private(set) var bytes: [UInt8]
  private(set) var events = 0
  private let redactor: Redactor
  private var shardCount: UInt16 = 0
  /// How many chunks there are between a shard's states; nil for its beginning alone.
  private let chunksBetweenStates: Int?

  init(_ payloads: RecordedPayloads = .none, chunksBetweenStates: Int? = nil) {
    self.chunksBetweenStates = chunksBetweenStates
    redactor = Redactor(key: (17, 4), payloads: payloads)
    bytes =
      RecordingHeader(
        build: "tests", payloads: payloads, shardCount: 0, began: ShardFixture.start
      ).fileHead
  }

  /// A shard with its history, in chunks of so many batches.
  mutating func add(
    _ configuration: Shard.Configuration, at start: Instant, _ sequences: SequenceRanges,
    budgets: SilentBudgets? = nil, _ history: [(Event, Instant)], batches: Int = 5
  ) {
    var writer = RecordingWriter(shard: shardCount, redactor: redactor)
    let begin = ShardStart(
      shard: shardCount, configuration: configuration, at: start, sequences: sequences,
      budgets: budgets)
    bytes += writer.frame(of: begin).bytes
    shardCount += 1
    var shard = begin.makeShard()
    var effects: [Effect] = []
    var chunks = 0
    for (number, (event, moment)) in history.enumerated() {
      let first = effects.count
      shard.handle(event, at: moment, into: &effects)
      writer.record(event, at: moment, effects.span.extracting(first...))
      events += 1
      guard number % 3 == 2 else { continue }
      _ = writer.endBatch()
      effects.removeAll()
      guard number / 3 % batches == batches - 1 else { continue }
      bytes += writer.finishChunk()?.bytes ?? []
      chunks += 1
      guard let chunksBetweenStates, chunks % chunksBetweenStates == 0 else { continue }
      bytes += RecordedState(writer.shard, shard).frame(redactor)
      writer = RecordingWriter(shard: writer.shard, redactor: redactor)
    }
    _ = writer.endBatch()
    bytes += writer.finishChunk()?.bytes ?? []
  }

  /// All shards of a world, one after a restart of the other.
  mutating func add(_ world: World) {
    var run: [(Event, Instant)] = []
    var begin = (
      world.plan.configuration, ShardFixture.start,
      SequenceRanges(first: 1, bits: world.plan.rangeBits), SilentBudgets?.none
    )
    for happening in world.history {
      switch happening {
      case .event(let event, let moment): run.append((event, moment))
      case .restart(let restart):
        add(begin.0, at: begin.1, begin.2, budgets: begin.3, run)
        begin = (restart.configuration, restart.at, restart.sequences, restart.budgets)
        run = restart.records.map { (.journal(.restored($0)), restart.at) }
        run.append((.alias(.allConfirmed), restart.at))
      }
    }
    add(begin.0, at: begin.1, begin.2, budgets: begin.3, run)
  }

  mutating func end() -> [UInt8] { bytes + RecordingEnd.stopped.frame }

  /// Three shards, of which one partition leaves in the end.
  mutating func addShards(seed: UInt64, steps: Int) {
    var generator = SeededRandom(seed: seed)
    var world = World(seed: seed) { plan in
      plan.crashes = 0
      plan.configuration.partitionCount = 5
    }
    for _ in 0..<steps { world.step() }
    let (configuration, rangeBits) = (world.plan.configuration, world.plan.rangeBits)
    var shards = PartitionedShards(3, configuration, rangeBits: rangeBits)
    for happening in world.history {
      guard case .event(let event, let moment) = happening else { continue }
      _ = shards.play(event, at: moment)
    }
    _ = shards.drop(PartitionID(UInt16(generator.below(5))))
    for (number, shard) in shards.shards.enumerated() {
      add(
        configuration, at: ShardFixture.start, shard.sequences,
        shards.history.filter { $0.shard == number }.map { ($0.event, $0.at) })
    }
  }
}
