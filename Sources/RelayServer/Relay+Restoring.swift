import Dispatch
import FoundationEssentials
import Logging
import NIOCore
import NIOPosix
import Primitives
import ProviderCredentials
import RelayCluster
import RelayCore
import RelayFaults
import RelayRecording
import RelaySetup
import RelayStore
import ServiceLifecycle
import TLS

extension Relay {
  func openStorage() async throws -> RelayStorage {
    do throws(StoreError) {
      switch configuration.store {
      case .memory: return .memory(MemoryFeedback(start: RelayClock.wall))
      case .sqlite: return .journal(try openJournal())
      case .jetstream: return .journal(try await openCluster())
      }
    } catch {
      throw RelayConfiguration.ReadingError(key: "store", description: error.description)
    }
  }

  /// Allows one relay per state directory, which has keys, certificates and a socket also without a
  /// journal. Where nothing can be written, two relays do no harm.
  static func lock(_ state: String) throws(RelayConfiguration.ReadingError) -> FileLock? {
    do {
      return try StateLock.acquire(state)
    } catch {
      guard case .locked = error else { return nil }
      throw RelayConfiguration.ReadingError(key: "store", description: error.description)
    }
  }

  private func openJournal() throws(StoreError) -> Journal {
    var options = Journal.Configuration(directory: configuration.state)
    options.linger = .milliseconds(configuration.linger.milliseconds)
    options.now = settings.clock.now
    options.failsWrite = failsWrite
    options.keepsTime = settings.clock.isVirtual
    let journal = try Journal.open(
      options, report: { [inbox] in inbox.loops?.deliver($0) },
      onProblem: { [inbox, logger] problem in
        inbox.observe(problem)
        Self.say(problem, to: logger)
      })
    if case .virtual(let time) = settings.clock, let last = journal.lastTime {
      time.advance(to: last)
    }
    return journal
  }

  /// Waits for this node's turn; throws `stopped` when the relay is told to end before.
  private func openCluster() async throws(StoreError) -> ClusterJournal {
    var options = ClusterJournal.Configuration(
      directory: configuration.state, engine: configuration.engine, node: configuration.node,
      now: settings.clock.now)
    options.linger = configuration.linger
    options.lease = configuration.lease
    options.replicas = configuration.natsReplicas
    options.stripeCount = configuration.stripes
    options.failsWrite = failsWrite
    if settings.clock.isVirtual { options.virtualStart = settings.clock.now() }
    let promise = await EnginePromise.told(by: configuration.natsMonitor)
    logger.log(level: promise.level, "\(promise.text)")
    let waiting = Task { [logger] in
      while (try? await Task.sleep(for: .seconds(5))) != nil {
        logger.notice(
          """
          still joining the cluster: it waits for the engine to answer, with a leader, or for \
          relays of its name or with other settings to be gone
          """)
      }
    }
    defer { waiting.cancel() }
    do {
      let journal = try await cancelWhenGracefulShutdown { [options, inbox, logger] in
        try await ClusterJournal.open(
          options, report: { inbox.loops?.deliver($0) },
          onProblem: { problem in
            inbox.observe(problem)
            Self.say(problem, to: logger)
          },
          onNotice: { Self.say($0, to: logger) })
      }
      if case .virtual(let time) = settings.clock, let now = journal.virtualTime {
        time.begin(at: now)
      }
      return journal
    } catch let error as StoreError {
      throw error
    } catch {
      throw .stopped
    }
  }

  private var failsWrite: @Sendable () -> Bool {
    { [board, clock = settings.clock] in
      board.set?.journalHit(failing: true, at: clock.now()) != nil
    }
  }

  func openRecording() throws(RelayConfiguration.ReadingError) -> Recording? {
    guard !configuration.record.isEmpty else { return nil }
    return try Recording(
      path: configuration.record, limit: configuration.recordLimit * 1_000_000,
      redactor: Redactor(state: configuration.state, payloads: configuration.recordPayloads),
      shardCount: configuration.threads, logger: logger)
  }

  /// The budgets under the configured policy, which may have changed since the last start.
  func storedBudgets(in storage: RelayStorage) async throws -> SilentBudgets? {
    do throws(StoreError) {
      if let cluster = storage.cluster {
        let budgets = try await cluster.budgets(
          elseFirst: configuration.policy, at: settings.clock.now())
        if budgets.policy != configuration.policy {
          logger.notice(
            "the cluster's silent policy is in force, not the configured one",
            metadata: ["policy": "\(budgets.policy.name)"])
        }
        return budgets
      }
      return try await storage.journal?.budgets(
        under: configuration.policy, at: settings.clock.now())
    } catch {
      throw RelayConfiguration.ReadingError(key: "store", description: error.description)
    }
  }

  /// Passes the journal's records to the shards, and restores provider keys that only it has.
  func restore(from journal: any DurableJournal, into loops: LoopSet) async throws {
    let begin = ContinuousClock.now
    do {
      let count = try await loops.restore(from: journal, logger: logger)
      try await restoreKeys(from: journal)
      names.all = try await journal.deviceNames()
      await loops.setPolicies(try await journal.devicePolicies())
      try await channels?.restore(from: journal, at: settings.clock.now())
      logger.info(
        "restored", metadata: ["notifications": "\(count)", "took": "\(begin.duration(to: .now))"])
    } catch let error as StoreError {
      throw RelayConfiguration.ReadingError(key: "store", description: error.description)
    }
  }

  /// Copies the public halves of all provider keys, so that the journal alone is a whole backup.
  /// - Returns: the problem, if there is one.
  func copy(_ keys: ProviderKeys, to journal: (any DurableJournal)?) async -> String? {
    guard let journal else { return nil }
    do {
      try await journal.replaceProviderKeys(keys.stored)
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// Restores the public halves when there is no key directory, as after a restored backup. An
  /// empty directory stays: removing a key from it revokes the key, even while no relay runs.
  private func restoreKeys(from journal: any DurableJournal) async throws {
    guard configuration.auth == .token, !FileManager.default.fileExists(atPath: keyDirectory.path)
    else { return }
    for key in try await journal.providerKeys() {
      try keyDirectory.add(.init(key), publicKeyPEM: key.publicKey)
      logger.notice("provider key restored from the journal", metadata: ["key": "\(key.keyID)"])
    }
  }

  private static func say(_ problem: StoreNotice, to logger: Logger) {
    switch problem {
    case .writingFailed(let reason):
      logger.error(
        "the journal cannot write: new notifications are answered 503 until it can",
        metadata: ["reason": "\(reason)"])
    case .recovered(let failedBatches):
      logger.notice("the journal writes again", metadata: ["failedBatches": "\(failedBatches)"])
    case .leftUnwritten(let count):
      logger.error(
        "the journal ends with unwritten records: budgets or pushes may come back",
        metadata: ["records": "\(count)"])
    case .migrated(let backup):
      logger.notice(
        "the journal was of an earlier version and is of this one now",
        metadata: ["copy of what it was": "\(backup)"])
    case .compactionFailed(let reason):
      logger.warning("the journal could not be made smaller", metadata: ["reason": "\(reason)"])
    case .rewritten(let stripe):
      logger.error(
        "the engine had lost some of a stripe, which was all written again: see its disks",
        metadata: ["stripe": "\(stripe)"])
    }
  }
}

/// The start with a journal: its records go to the shards that own them now.
extension LoopSet {
  /// Replays the journal into the shards; returns the number of restored notifications. All shards
  /// learn the owners of devices' own tokens before the first notification.
  func restore(from journal: any DurableJournal, logger: Logger) async throws -> Int {
    try await NIOThreadPool.singleton.runIfActive { [self] in
      var router = RestoringRouter(table, shardCount: count)
      let permits = makePermits()
      var restored = 0
      var isConfirmed = false
      try journal.replay(
        { record in
          if record.acceptedAt != nil {
            restored += 1
            if !isConfirmed { confirmAliases(&router, permits) }
            isConfirmed = true
          }
          if let (shard, batch) = router.add(record) {
            hand(batch, to: shard, permits[shard])
          }
        },
        progress: { done, total in
          logger.info("restoring", metadata: ["done": "\(done)", "of": "\(total)"])
        })
      if !isConfirmed { confirmAliases(&router, permits) }
      handRest(&router, permits)
      return restored
    }
  }

  /// Passes the records of some partitions to the loops in a table, and waits until they have them.
  /// The owners of devices' own tokens are not confirmed: the devices may be on another node.
  func restore(into table: PartitionTable, _ replay: ((RestoredRecord) -> Void) -> Void) {
    var router = RestoringRouter(table, shardCount: count)
    let permits = makePermits()
    replay { record in
      if let (shard, batch) = router.add(record) { hand(batch, to: shard, permits[shard]) }
    }
    handRest(&router, permits)
  }

  private func confirmAliases(_ router: inout RestoringRouter, _ permits: [DispatchSemaphore]) {
    handRest(&router, permits)
    for shard in 0..<count { onLoop(shard) { $0.administer(.alias(.allConfirmed)) } }
  }

  /// Hands out all remaining records and waits. Messages that the shards then send each other
  /// arrive before anything later.
  private func handRest(_ router: inout RestoringRouter, _ permits: [DispatchSemaphore]) {
    for (shard, batch) in router.popRest().enumerated() { hand(batch, to: shard, permits[shard]) }
    for permit in permits {
      for _ in 0..<Self.batchesAtOnce { permit.wait() }
      for _ in 0..<Self.batchesAtOnce { permit.signal() }
    }
  }

  /// Batches of a shard that may wait for it while the next is read.
  private static let batchesAtOnce = 8

  private func makePermits() -> [DispatchSemaphore] {
    (0..<count).map { _ in DispatchSemaphore(value: Self.batchesAtOnce) }
  }

  /// Waits until the shard has room for the batch.
  private func hand(_ batch: [RestoredRecord], to shard: Int, _ permit: DispatchSemaphore) {
    guard !batch.isEmpty else { return }
    permit.wait()
    onLoop(shard) { runner in
      runner.restore(batch)
      permit.signal()
    }
  }
}

/// Routes a record to the shard with the partition of its routing key. The number of shards may
/// have changed since it was written.
struct RestoringRouter {
  private static let batchCount = 512

  private let table: PartitionTable
  private var batches: [[RestoredRecord]]

  init(_ table: PartitionTable, shardCount: Int) {
    self.table = table
    batches = Array(repeating: [], count: shardCount)
  }

  /// Hands over all remaining records and empties the batches.
  mutating func popRest() -> [[RestoredRecord]] {
    var rest: [[RestoredRecord]] = Array(repeating: [], count: batches.count)
    swap(&rest, &batches)
    return rest
  }

  /// Adds a record; returns a batch and its shard when it is full.
  mutating func add(_ record: RestoredRecord) -> (shard: Int, batch: [RestoredRecord])? {
    let shard = table.loop(ofRoutingKey: record.routingKey)
    // A record of a token whose partition is on another stripe.
    guard shard != PartitionTable.elsewhere else { return nil }
    batches[shard].append(record)
    guard batches[shard].count >= Self.batchCount else { return nil }
    var full: [RestoredRecord] = []
    full.reserveCapacity(Self.batchCount)
    swap(&full, &batches[shard])
    return (shard, full)
  }
}
