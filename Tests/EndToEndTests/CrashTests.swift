import Foundation
import Primitives
import Testing

/// The relay is killed at random moments while providers post and phones come and go, again and
/// again on one state directory; then everything that was answered 200 must be accounted for.
///
/// SIGKILL loses what the process held, not what the system holds: power cuts are the journal's
/// own tests. `scripts/crash-test N` runs this for longer.
@Suite("Killed at random moments", .timeLimit(.minutes(CrashPlan.current.timeLimitMinutes)))
struct CrashTests {
  @Test func whatWasAnswered200IsDeliveredReplacedOrExpired() async throws {
    let plan = CrashPlan.current
    Self.say("\(plan.rounds) rounds, seed \(plan.seed)")
    let scratch = try Scratch()
    let run = try await CrashRun(plan, state: scratch.path + "/state")
    do {
      try await run.crash()
      if run.ledger.violations.isEmpty { try await run.finish() }
    } catch {
      run.ledger.violated("\(error)")
    }
    let counts = run.ledger.counts
    Self.say("seed \(plan.seed): \(counts)")
    for violation in run.ledger.violations {
      Issue.record("seed \(plan.seed), \(violation)")
    }
    // Otherwise nothing was tried.
    // A busy machine gets through few between two kills.
    #expect(counts.accepted > counts.kills, "seed \(plan.seed)")
    #expect(counts.delivered > 0 && counts.replaced > 0, "seed \(plan.seed)")
    #expect(counts.checkpoints > counts.kills, "seed \(plan.seed)")
  }

  /// Progress, where whoever runs it for long sees it at once.
  static func say(_ text: String) {
    FileHandle.standardError.write(Data("crash-test: \(text)\n".utf8))
  }
}

/// One run: providers, phones, and a relay that dies.
private final class CrashRun: Sendable {
  let ledger = CrashLedger()
  private let plan: CrashPlan
  private let relay: CrashRelay
  private let fleet: CrashFleet
  private let choices: SeededRandom

  init(_ plan: CrashPlan, state: String) async throws {
    self.plan = plan
    var random = SeededRandom(seed: plan.seed)
    fleet = CrashFleet(ledger: ledger, random: &random)
    choices = random
    relay = CrashRelay(state: state)
    _ = try await command("key", "new", "--key", RelaySetup.keyID, "--team", RelaySetup.teamID)
  }

  /// All the lives that end with SIGKILL.
  func crash() async throws {
    var random = choices
    var token = ""
    for round in 0..<plan.rounds {
      // Provider tokens are good for an hour.
      if round % 200 == 0 { token = try await command("jwt", "--key", RelaySetup.keyID) }
      if round > 0, random.chance(10) {
        try await relay.killWhileStarting(
          after: random.milliseconds(0...150), CrashRelay.settings(&random))
        ledger.count { counts in
          counts.kills += 1
          counts.killsWhileStarting += 1
        }
      }
      try await liveAndDie(round, token, &random)
      guard ledger.violations.isEmpty else { return }
      if (round + 1) % 10 == 0 {
        let counts = ledger.counts
        CrashTests.say(
          "round \(round + 1) of \(plan.rounds): \(counts.posts) posts, \(counts.accepted) "
            + "answered 200, \(counts.delivered) delivered, \(counts.lost) not answered")
      }
    }
  }

  private func liveAndDie(_ round: Int, _ token: String, _ random: inout SeededRandom) async throws
  {
    ledger.begin(life: round)
    let (posting, phoning) = (random.branch(), random.branch())
    let pause = random.milliseconds(20...1500)
    let settings = CrashRelay.settings(&random)
    let end = random.chance(8) ? CrashRelay.End.terminated : .killed
    let duration = try await relay.live(until: end, settings) { life, signal in
      try await withThrowingTaskGroup { group in
        let providers = CrashProviders(ledger: ledger, token: token)
        group.addTask { await providers.post(life, posting) }
        group.addTask { [fleet] in await fleet.live(life, phoning) }
        // Where every second life is long enough for something, the others may be too short for it.
        if !round.isMultiple(of: 2) { await somethingIsAnswered() }
        try await Task.sleep(for: pause)
        life.end()
        try signal()
        // At SIGTERM the relay finishes what is under way, and says good-bye.
        if end == .killed { group.cancelAll() }
        try await group.waitForAll()
      }
    }
    if duration > .seconds(5) {
      CrashTests.say("the start of round \(round + 1) took \(duration), with \(settings)")
    }
    ledger.count { counts in
      if end == .killed { counts.kills += 1 } else { counts.terminations += 1 }
      counts.starts.append(duration)
    }
  }

  /// The last life: all phones come, the relay is asked what it knows, and ends in peace.
  func finish() async throws {
    var random = SeededRandom(seed: ~plan.seed)
    let token = try await command("jwt", "--key", RelaySetup.keyID)
    ledger.begin(life: plan.rounds)
    let (posting, phoning) = (random.branch(), random.branch())
    let providers = CrashProviders(ledger: ledger, token: token)
    // What no budget pays for any more would otherwise rightly stay.
    let settings = ["PUSHRELAY_POLICY": "unlimited"]
    let duration = try await relay.live(until: .terminated, settings) { life, _ in
      try await withThrowingTaskGroup { group in
        group.addTask { await providers.post(life, posting) }
        group.addTask { [fleet] in await fleet.live(life, phoning) }
        await somethingIsAnswered()
        try await Task.sleep(for: .milliseconds(500))
        life.windDown()
        try await group.waitForAll()
      }
      await fleet.drain(life)
      try await providers.compareLives(life)
    }
    let checked = try await command("store", "check", "--json")
    ledger.count { [relay] counts in
      counts.starts.append(duration)
      counts.journalBytes = Self.journalBytes(relay.state)
    }
    if !checked.contains(#""problems":[]"#) { ledger.violated("store check: \(checked)") }
  }

  /// Until the relay has answered 200 more often than there are lanes, however long that takes on a
  /// busy machine; not when something has gone wrong, nor for more than half a minute.
  private func somethingIsAnswered() async {
    let (before, deadline) = (ledger.counts.accepted, ContinuousClock.now + .seconds(30))
    while ledger.counts.accepted <= before + CrashProviders.lanes, ledger.violations.isEmpty,
      ContinuousClock.now < deadline
    {
      do { try await Task.sleep(for: .milliseconds(20)) } catch { return }
    }
  }

  private static func journalBytes(_ state: String) -> Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: state)) ?? []
    return names.filter { $0.contains(".sqlite") }.reduce(0) { sum, name in
      let attributes = try? FileManager.default.attributesOfItem(atPath: "\(state)/\(name)")
      return sum + (attributes?[.size] as? Int ?? 0)
    }
  }

  private func command(_ arguments: String...) async throws -> String {
    try await Program.run(Program.pushrelay, arguments + ["--state", relay.state])
      .checked("\(arguments)").trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
