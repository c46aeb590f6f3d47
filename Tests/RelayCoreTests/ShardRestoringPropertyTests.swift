import Primitives
import TestSeeds
import Testing

@testable import RelayCore

/// A partition comes out of the journal to a shard that is at work with another one: from then on
/// it decides about both as two shards would, one of which has never had anything but what was
/// restored.
@Suite struct ShardRestoringPropertyTests {
  private struct Run {
    var restored = 0
    var sent = 0
    var isAmidst = false
    var problems: [String] = []
  }

  /// One of two worlds that have nothing in common but the time.
  private func world(seed: UInt64, node: UInt16, _ configuration: Shard.Configuration?) -> World {
    World(seed: seed) { plan in
      plan.configuration = configuration ?? plan.configuration
      plan.configuration.pendingPersists = 100_000
      plan.configuration.partitionCount = 2
      plan.crashes = 0
      plan.rangeBits = SequenceRanges.defaultBits
      plan.node = node
      plan.partition = PartitionID(node)
    }
  }

  private typealias Happening = (event: Event, at: Instant)

  private func events(_ history: some Sequence<World.Happening>) -> [Happening] {
    history.compactMap { happening in
      guard case .event(let event, let moment) = happening else { return nil }
      // Held pushes are looked at by the numbers of their apps, which are a shard's own.
      if case .operated(.policyChanged) = event { return nil }
      return (event, moment)
    }
  }

  /// What happens at the restart and after it to the world that crashes, and from the beginning to
  /// the other one; nil when they do not go by the same policy.
  private func histories(
    seed: UInt64
  ) -> (here: World, restart: World.Restart, timeline: [Happening?])? {
    var here = world(seed: seed, node: 0, nil)
    var there = world(seed: ~seed, node: 1, here.plan.configuration)
    for _ in 0..<150 {
      here.step()
      there.step()
    }
    there.crash()
    for _ in 0..<150 {
      here.step()
      there.step()
    }
    let place = there.history.lastIndex { if case .restart = $0 { true } else { false } }
    guard let place, case .restart(let restart) = there.history[place],
      restart.budgets == SilentBudgets(here.plan.configuration.policy, at: ShardFixture.start)
    else { return nil }
    let all: [(at: Instant, happening: Happening?)] =
      events(here.history).map { ($0.at, $0) } + [(restart.at, nil)]
      + events(there.history[place...]).map { ($0.at, $0) }
    let timeline = all.enumerated()
      .sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
    return (here, restart, timeline.map(\.element.happening))
  }

  private func play(seed: UInt64) -> Run? {
    guard let (here, restart, timeline) = histories(seed: seed) else { return nil }
    var run = Run()
    var generator = SeededRandom(seed: seed &* 31)
    let (configuration, bits) = (here.plan.configuration, here.plan.rangeBits)
    var one = PartitionedShards(1, configuration, rangeBits: bits)
    var two = PartitionedShards(2, configuration, rangeBits: bits)
    // Of another run: of the same shard's range in a region above, or of none that this shard has.
    let offset = ([1 << 32, 1 << 40, 5 << 24] as [UInt64]).randomElement(using: &generator)!
    let records = restart.records.map { $0.renumbered(by: offset) }
    run.restored = records.count { $0.acceptedAt != nil }
    let place = timeline.firstIndex { $0 == nil } ?? 0
    run.isAmidst = place > 30 && timeline.count - place > 30
    for (number, happening) in timeline.enumerated() {
      func problem(_ text: String) {
        run.problems.append("step \(number), \(happening?.event as Any): \(text)")
      }
      let (found, expected): ([PartitionedShards.Outcome], [PartitionedShards.Outcome])
      if let happening {
        let event = journal(happening.event, one.askedCount, &generator)
        (found, expected) = (
          one.play(event, at: happening.at), two.play(event, at: happening.at)
        )
        if !found.isSame(as: expected, after: event) { problem("\(expected) became \(found)") }
      } else {
        (found, expected) = (
          one.restore(records, at: restart.at), two.restore(records, at: restart.at)
        )
        if found != expected { problem("\(expected) became \(found)") }
      }
      run.sent += found.count { if case .effect(.send) = $0 { true } else { false } }
      if happening == nil || number % 8 == 0 {
        for text in one.shards[0].inconsistencies { problem(text) }
      }
      if one.counters != two.counters { problem("the counters are others") }
      guard run.problems.isEmpty else { return run }
    }
    if one.persistAll() != two.persistAll() { run.problems.append("the journal's last word") }
    if one.portrait != two.portrait { run.problems.append("the states at the end") }
    return run
  }

  /// The worlds had journals of their own; here there is one, which answers almost everything that
  /// it was asked.
  private func journal(
    _ event: Event, _ askedCount: Int, _ generator: inout SeededRandom
  ) -> Event {
    let end = UInt64(max(0, askedCount - Int.random(in: 0...3, using: &generator)))
    return switch event {
    case .journal(.persisted): .journal(.persisted(through: end))
    case .journal(.persistFailed): .journal(.persistFailed(through: end))
    case .submitted, .asked, .stream, .journal, .alias, .broadcast, .operated, .clock: event
    }
  }

  @Test func aPartitionThatComesToAShardAtWorkIsAsIfItHadAlwaysBeenThere() {
    var (restored, sent, amidst) = (0, 0, 0)
    for seed in seeds(0..<60) {
      guard let run = play(seed: seed) else { continue }
      #expect(run.problems.isEmpty, "seed \(seed): \(run.problems.prefix(2))")
      restored += run.restored
      sent += run.sent
      amidst += run.isAmidst ? 1 : 0
    }
    // Worth something only if there was something to restore, and something going on.
    #expect(amidst >= 15 && restored >= 30 && sent >= 600, "\(amidst), \(restored), \(sent)")
  }
}

extension RestoredRecord {
  /// The same with a sequence that is so much higher.
  fileprivate func renumbered(by offset: UInt64) -> RestoredRecord {
    switch self {
    case .notification(let notification, let sequence, let moment):
      .notification(notification, sequence: sequence + offset, acceptedAt: moment)
    case .forwarded(let notification, let device, let sequence, let moment):
      .forwarded(notification, to: device, sequence: sequence + offset, acceptedAt: moment)
    case .device, .app, .spent, .subscription, .alias, .gone: self
    }
  }
}
