import Foundation
import Primitives
import Testing

/// Relays and engines of a cluster are killed, stopped and cut off, their clocks are put wrong and
/// strange messages are written beside theirs, one at a time, while providers
/// post and phones come and go; after each of it everything that was answered 200 must be accounted
/// for. `scripts/crash-test --cluster N` runs this for longer.
@Suite("A cluster in trouble", .timeLimit(.minutes(ClusterPlan.current.timeLimitMinutes)))
struct ClusterFaultTests {
  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func whatWasAnswered200IsDeliveredReplacedOrExpired() async throws {
    let plan = ClusterPlan.current
    CrashTests.say("cluster: \(plan.rounds.count) rounds, seed \(plan.seed)")
    let scratch = try Scratch()
    let run = try await ClusterRun(plan, in: scratch.path)
    do {
      try await run.run()
    } catch {
      run.ledger.violated("\(error)")
    }
    if !run.ledger.violations.isEmpty { CrashTests.say(run.lastWords) }
    let counts = run.ledger.counts
    CrashTests.say("cluster, seed \(plan.seed): \(counts)")
    for violation in run.ledger.violations {
      Issue.record("seed \(plan.seed), \(violation)")
    }
    // Otherwise nothing was tried.
    #expect(counts.accepted > plan.rounds.count * 10, "seed \(plan.seed)")
    #expect(counts.delivered > 0 && counts.replaced > 0, "seed \(plan.seed)")
    #expect(counts.checkpoints >= ClusterRun.phones * plan.rounds.count, "seed \(plan.seed)")
  }

  @Test func theSeedDecidesTheFaultsAndTheirOrder() {
    let plan = ClusterPlan(seed: 7, count: 15)
    #expect(plan.rounds == ClusterPlan(seed: 7, count: 15).rounds)
    #expect(plan.rounds != ClusterPlan(seed: 8, count: 15).rounds)
    #expect(Array(plan.rounds.prefix(4)) == ClusterPlan(seed: 7, count: 4).rounds)
    #expect(plan.rounds.allSatisfy { $0.length > ClusterPlan.lease })
    // All kinds before any comes again.
    let count = ClusterFault.kinds.count
    let kinds = plan.rounds.prefix(count).map { "\($0.fault)".split(separator: " ").dropFirst(2) }
    #expect(Set(kinds.map { $0.joined(separator: " ") }).count >= count - 1)
  }
}

/// One run: providers, phones, and a cluster to which things happen.
private final class ClusterRun: Sendable {
  static let phones = 300

  let ledger = CrashLedger(isOfCluster: true)
  private let plan: ClusterPlan
  private let cluster: CrashCluster
  private let fleet: CrashFleet
  private let choices: SeededRandom

  var lastWords: String { cluster.lastWords }

  init(_ plan: ClusterPlan, in folder: String) async throws {
    self.plan = plan
    var random = SeededRandom(seed: ~plan.seed)
    // Each has a connection of its own, so that one that breaks is one phone's.
    fleet = CrashFleet(of: Self.phones, perConnection: 1, ledger: ledger, random: &random)
    choices = random
    cluster = try await CrashCluster(
      in: folder,
      settings: [
        "PUSHRELAY_LEASE": "\(Int(ClusterPlan.lease / .seconds(1)))", "PUSHRELAY_THREADS": "2",
        // What no budget pays for any more would otherwise rightly stay; and what a phone in low
        // power mode has no ride for.
        "PUSHRELAY_POLICY": "unlimited", "PUSHRELAY_RIDES_PER_MINUTE": "60000",
        "PUSHRELAY_RIDE_BURST": "1000000",
      ])
  }

  func run() async throws {
    try await cluster.run {
      var random = choices
      let token = try await Program.run(
        Program.pushrelay, ["jwt", "--key", RelaySetup.keyID, "--state", cluster.state]
      ).checked("jwt").trimmingCharacters(in: .whitespacesAndNewlines)
      for (number, round) in plan.rounds.enumerated() {
        CrashTests.say("round \(number + 1) of \(plan.rounds.count): \(round.fault)")
        // Before it, and after it, another life: what was acknowledged to a relay that was away
        // may come again.
        ledger.begin(life: 2 * number)
        try await suffer(round, token, &random)
        ledger.begin(life: 2 * number + 1)
        do {
          try await account()
        } catch {
          ledger.violated("\(error)")
        }
        guard ledger.violations.isEmpty else { return CrashTests.say(await cluster.status()) }
        let counts = ledger.counts
        CrashTests.say(
          "  \(counts.posts) posts, \(counts.accepted) answered 200, \(counts.unavailable) 503, "
            + "\(counts.lost) not answered, \(counts.delivered) delivered")
      }
    }
  }

  /// Providers post and phones live while it happens, and for a lease after it.
  private func suffer(
    _ round: ClusterPlan.Round, _ token: String, _ random: inout SeededRandom
  ) async throws {
    let life = try CrashLife(
      provider: cluster.provider, device: cluster.device, state: cluster.state, weather: .rough)
    defer { life.end() }
    let (posting, phoning) = (random.branch(), random.branch())
    let providers = CrashProviders(ledger: ledger, token: token, pause: 20...120)
    try await bounded("requests are open long after all is well again") { [cluster, fleet] in
      try await withThrowingTaskGroup { group in
        group.addTask { await providers.post(life, posting) }
        group.addTask { await fleet.live(life, phoning) }
        do {
          try await Task.sleep(for: round.calm)
          try await cluster.suffer(round.fault) { try await Task.sleep(for: round.length) }
          // Whoever does not know yet that his lease has run out, learns it.
          try await Task.sleep(for: ClusterPlan.lease)
          life.windDown()
        } catch {
          life.end()
          group.cancelAll()
          throw error
        }
        try await group.waitForAll()
      }
    }
    ledger.count { $0.kills += 1 }
  }

  /// All phones come: nothing that was answered 200 is missing.
  private func account() async throws {
    let life = try CrashLife(
      provider: cluster.provider, device: cluster.device, state: cluster.state,
      weather: .clearing)
    defer { life.end() }
    try await bounded("phones do not get what waits for them, long after all is well again") {
      [fleet, ledger] in
      let done = await fleet.drain(life)
      if done < Self.phones { ledger.violated("only \(done) phones got what was theirs") }
    }
  }

  /// A minute is much more than anybody may take.
  private func bounded(
    _ complaint: String, _ body: @escaping @Sendable () async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup { group in
      group.addTask { [ledger] in
        do { try await Task.sleep(for: .seconds(60)) } catch { return }
        ledger.violated(complaint)
        throw CancellationError()
      }
      group.addTask { try await body() }
      _ = try await group.next()
      group.cancelAll()
    }
  }
}
