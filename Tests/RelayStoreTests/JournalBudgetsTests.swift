import Primitives
import RelayCore
import SQLite
import Testing

@testable import RelayStore

/// The silent policy beside the budgets that were used under it.
@Suite("Budgets in the journal") struct JournalBudgetsTests {
  private let directory: TemporaryDirectory
  private let start = Instant(unixSeconds: 1_767_225_600)

  init() throws { directory = try TemporaryDirectory() }

  private func open() throws(StoreError) -> Journal {
    try Listener().open(directory) { [start] in $0.now = { start } }
  }

  private func execute(_ sql: String) throws {
    let raw = try SQLiteConnection(path: directory.journal)
    try raw.execute(sql)
    try raw.close()
  }

  /// One device with one app that has used so much.
  private func spend(_ state: RateLimit.State, _ journal: Journal) async throws {
    let (device, topic) = (Make.device(1), try Make.topic())
    let contents: [JournalRecord.Content] = [
      .enrolled(device, Make.secret(1)), .registered(device, topic, Make.token(1), isOwn: false),
      .spent(device, topic, app: state, device: state),
    ]
    let sequences = journal.sequences(ofShard: 0)
    journal.submit(
      shard: 0,
      records: contents.enumerated().map {
        JournalRecord(sequence: sequences.sequence(UInt64($0)), content: $1)
      }, forgets: [])
    await journal.flush()
  }

  private func appBudget(_ journal: Journal) throws -> RateLimit.State? {
    try journal.everything().compactMap { record in
      if case .app(_, _, _, _, let budget) = record { budget } else { nil }
    }.first
  }

  @Test func theSamePolicyIsReadBackAsItWas() async throws {
    var journal = try open()
    let budgets = try await journal.budgets(under: .documented, at: start)
    #expect(budgets == SilentBudgets(.documented, at: start))
    #expect(try await journal.budgets(under: .documented, at: start + .hours(1)) == budgets)
    await journal.stop()
    journal = try open()
    #expect(try await journal.budgets(under: .documented, at: start + .days(400)) == budgets)
    await journal.stop()
  }

  /// The clock was set back while nothing ran: as much is used as before, however often it starts.
  @Test func aClockSetBackBetweenRunsUsesUpNothing() async throws {
    var journal = try open()
    let budgets = try await journal.budgets(under: .documented, at: start)
    let used = RateLimit.State(full: budgets.appClock.reading(at: start) + RefillClock.event)
    try await spend(used, journal)
    await journal.stop()
    try execute("INSERT OR REPLACE INTO meta VALUES ('time', \(start.milliseconds))")
    for _ in 0..<3 {
      journal = try open()
      let now = start - .hours(2)
      let found = try await journal.budgets(under: .documented, at: now)
      #expect(found.remaining(app: try #require(try appBudget(journal)), at: now) == 2)
      await journal.stop()
    }
  }

  /// Used under one policy, read under another after a restart: what was used is what was used.
  @Test func anotherPolicyAfterARestartReadsWhatWasUsed() async throws {
    var journal = try open()
    var budgets = try await journal.budgets(under: .documented, at: start)
    let used = RateLimit.State(full: budgets.appClock.reading(at: start) + RefillClock.event * 3)
    try await spend(used, journal)
    await journal.stop()
    journal = try open()
    let later = start + .minutes(10)
    budgets = try await journal.budgets(under: .strict, at: later)
    let read = try #require(try appBudget(journal))
    #expect(read == used)
    // Two and a half events, at an hour each; one may be used.
    #expect(budgets.appClock.moment(of: read.full) == later + .minutes(150))
    budgets = try await journal.budgets(under: .unlimited, at: later + .minutes(30))
    #expect(budgets.policy == .unlimited)
    #expect(budgets.appClock.moment(of: read.full) == later + .minutes(150))
    await journal.stop()
  }

  /// Where it goes into a journal of another kind, a policy in numbers has them still.
  @Test func aPolicyInNumbersIsStoredWithThem() async throws {
    let own = SilentPolicy(perApp: RateLimit(2, per: .days(1), burst: 1), perDevice: nil)
    for policy in [own, .strict, .unlimited] {
      let journal = try open()
      _ = try await journal.budgets(under: policy, at: start)
      await journal.stop()
      let stored = try StoppedJournal(path: directory.journal).commons().budgets
      #expect(stored?.policy == policy)
    }
  }

  /// Budgets of a journal that knew no policy are moments; those are the same afterwards.
  @Test func momentsBecomeReadings() async throws {
    var journal = try open()
    let full = start + .minutes(50)
    try await spend(Make.state(full.milliseconds), journal)
    await journal.stop()
    for _ in 0..<2 {
      journal = try open()
      let budgets = try await journal.budgets(under: .documented, at: start)
      let read = try #require(try appBudget(journal))
      #expect(budgets.appClock.moment(of: read.full) == full)
      #expect(
        budgets.appClock.moment(of: read.full - RefillClock.event * 2) == start + .minutes(10))
      await journal.stop()
    }
  }

  /// It outlives its app until it is full again, which the shard says.
  @Test func aBudgetOutlivesItsApp() async throws {
    var journal = try open()
    try await spend(Make.state(5), journal)
    let (device, topic) = (Make.device(1), try Make.topic())
    var next = UInt64(3)
    func write(_ contents: JournalRecord.Content...) async throws -> [RestoredRecord] {
      let sequences = journal.sequences(ofShard: 0)
      journal.submit(
        shard: 0,
        records: contents.enumerated().map {
          JournalRecord(sequence: sequences.sequence(next + UInt64($0)), content: $1)
        }, forgets: [])
      next += UInt64(contents.count)
      await journal.stop()
      journal = try open()
      next = 0
      return try journal.everything()
    }
    let registered = JournalRecord.Content.registered(device, topic, Make.token(2), isOwn: false)
    let gone = try await write(.unregistered(device, topic, Make.token(1), at: start))
    #expect(gone.contains(.spent(device, topic, Make.state(5))))
    let back = try await write(registered)
    #expect(
      back.contains(.app(device, topic, Make.token(2), isOwn: false, budget: Make.state(5))))
    let full = try await write(
      .spent(device, topic, app: RateLimit.State(), device: RateLimit.State()),
      .unregistered(device, topic, Make.token(2), at: start))
    #expect(full.allSatisfy { if case .spent = $0 { false } else { true } })
    await journal.stop()
  }

  @Test func aDamagedBudgetTrapsNobody() async throws {
    var journal = try open()
    try await spend(RateLimit.State(), journal)
    for hasPolicy in [false, true] {
      for damaged in [Int64.min, -1, .max, .max / 2, RefillClock.latest.milliseconds + 1] {
        await journal.stop()
        if !hasPolicy { try execute("DELETE FROM silent_policy") }
        try execute(
          """
          INSERT OR REPLACE INTO budgets SELECT device, topic, \(damaged) FROM apps;
          UPDATE devices SET budget = \(damaged)
          """)
        journal = try open()
        let budgets = try await journal.budgets(under: .documented, at: start)
        var shard = Shard(configuration: .init(), at: start, budgets: budgets)
        var effects: [Effect] = []
        for record in try journal.everything() {
          shard.handle(.journal(.restored(record)), at: start, into: &effects)
        }
        let credential = DeviceCredential(device: Make.device(1), secret: Make.secret(1))
        let request = RequestID(loop: 0, connection: 1, stream: 1)
        shard.handle(.asked(.inspected, credential, from: request), at: start, into: &effects)
        guard case .answer(_, .inspected(let report))? = effects.last else {
          return #expect(Bool(false), "no report: \(effects)")
        }
        #expect(report.apps.count == 1)
      }
    }
    await journal.stop()
  }

  @Test(arguments: ["interval = 0", "interval = -5"])
  func aDamagedPolicyIsRefused(damage: String) async throws {
    var journal = try open()
    _ = try await journal.budgets(under: .documented, at: start)
    await journal.stop()
    try execute("UPDATE silent_policy SET \(damage)")
    journal = try open()
    await #expect(
      throws: StoreError.damaged(path: directory.journal, reason: "the silent policy")
    ) { try await journal.budgets(under: .documented, at: start) }
    await journal.stop()
  }
}
