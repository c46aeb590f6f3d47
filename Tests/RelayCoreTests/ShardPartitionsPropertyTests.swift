import Primitives
import TestSeeds
import Testing

@testable import RelayCore

/// The random histories of one shard, played to several.
@Suite struct ShardPartitionsPropertyTests {
  private struct Run {
    var lives = 0
    var problems: [String] = []
  }

  /// A world whose journal has room for everything and that never crashes: the same for any number
  /// of shards.
  private func history(seed: UInt64) -> (World, [(Event, Instant)]) {
    var generator = SeededRandom(seed: ~seed)
    var world = World(seed: seed) { plan in
      plan.configuration.pendingPersists = 100_000
      plan.configuration.partitionCount = [2, 5, 256].randomElement(using: &generator)!
      plan.crashes = 0
      plan.rangeBits = SequenceRanges.defaultBits
    }
    for _ in 0..<300 { world.step() }
    let events: [(Event, Instant)] = world.history.compactMap { happening in
      guard case .event(let event, let moment) = happening else { return nil }
      // Held pushes are looked at by the numbers of their apps, which are a shard's own.
      if case .operated(.policyChanged) = event { return nil }
      return (event, moment)
    }
    return (world, events)
  }

  private func play(seed: UInt64) -> Run {
    var run = Run()
    var generator = SeededRandom(seed: seed &* 31)
    let (world, events) = history(seed: seed)
    let configuration = world.plan.configuration
    var one = PartitionedShards(1, configuration, rangeBits: world.plan.rangeBits)
    var several = PartitionedShards(
      Int.random(in: 2...4, using: &generator), configuration, rangeBits: world.plan.rangeBits)
    for (number, (event, moment)) in events.enumerated() {
      let expected = one.play(event, at: moment)
      let found = several.play(event, at: moment)
      func problem(_ text: String) { run.problems.append("step \(number), \(event): \(text)") }
      if !expected.isSame(as: found, after: event) { problem("\(expected) became \(found)") }
      if number % 8 == 0 {
        for shard in several.shards {
          for text in shard.inconsistencies { problem(text) }
        }
      }
      if several.counters != one.counters { problem("the counters are others") }
      guard run.problems.isEmpty else { return run }
    }
    if one.persistAll() != several.persistAll() { run.problems.append("the journal's last word") }
    let differences = one.portrait.symmetricDifference(several.portrait)
    if !differences.isEmpty { run.problems.append("the states at the end: \(differences)") }
    run.lives = several.counters.inSlots + several.counters.inFlight
    dropAll(&several, &run)
    return run
  }

  /// Nothing of a partition is left behind.
  private func dropAll(_ shards: inout PartitionedShards, _ run: inout Run) {
    for number in 0..<shards.table.count {
      if !shards.drop(PartitionID(UInt16(number))) { run.problems.append("\(number) stays") }
      for shard in shards.shards { run.problems += shard.inconsistencies }
    }
    run.problems += shards.portrait
    if shards.counters.handedOver != run.lives { run.problems.append("lives are not counted") }
    if shards.shards.contains(where: { $0.timers.count > 0 }) { run.problems.append("a timer") }
  }

  @Test func severalShardsDoWhatOneDoes() {
    var lives = 0
    for seed in seeds(0..<50) {
      let run = play(seed: seed)
      #expect(run.problems.isEmpty, "seed \(seed): \(run.problems.prefix(2))")
      lives += run.lives
    }
    // Worth something only if there was something to leave.
    #expect(lives >= 150, "\(lives) lives")
  }
}

extension [PartitionedShards.Outcome] {
  /// What belongs to one life, connection or request comes in the same order; for all shards at
  /// once, the order between them is not fixed.
  func isSame(as other: Self, after event: Event) -> Bool {
    guard self != other else { return true }
    guard event == .clock(.tick) || event == .operated(.shutDown) else { return false }
    return Dictionary(grouping: self, by: \.subject) == Dictionary(grouping: other, by: \.subject)
  }
}

extension PartitionedShards.Outcome {
  /// What it belongs to: a connection, a life, or nothing but itself.
  fileprivate var subject: AnyHashable {
    guard case .effect(let effect) = self else { return self }
    return switch effect {
    case .send(let connection, _), .sendKeepAlive(let connection), .checkQueue(let connection),
      .close(let connection, _), .hello(let connection), .sendEmpty(let connection):
      connection
    case .log(let event): event.uniqueID
    case .respond, .answer, .sendBroadcast, .persist, .forget, .tell: self
    }
  }
}
