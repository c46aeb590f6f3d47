import HTTP2
import Logging
import NIOCore
import NIOPosix
import Primitives
import ProviderCredentials
import RelayCluster
import RelayCore
import RelaySetup
import RelayStore
import Synchronization
import SystemPackage
import TLS
import Transport

/// The listeners of a relay, named as in its configuration.
enum Listener: String {
  case provider, device
  /// Channel management.
  case channels
  /// The binary provider API and its feedback service.
  case legacy, feedback
  /// Leads to the others.
  case proxy
}

/// All event loops of a relay with their runners, seen from outside.
final class LoopSet: Sendable {
  private let group: MultiThreadedEventLoopGroup
  private let peers: [ShardRunner.Peer]
  private let sweeps: [RepeatedTask]
  private let places: Mutex<PartitionTable>
  private let isOpen = Mutex(true)
  /// For what all loops do together: follow a clock, change a policy, release a partition, save a
  /// state.
  let turns = TurnQueue()

  init(group: MultiThreadedEventLoopGroup, settings: ServerSettings, logger: Logger) async throws {
    self.group = group
    var peers: [ShardRunner.Peer] = []
    for (index, loop) in group.makeIterator().enumerated() {
      let runner = try await loop.submit {
        NIOLoopBound(
          ShardRunner(index: UInt16(index), eventLoop: loop, settings: settings, logger: logger),
          eventLoop: loop)
      }.get()
      peers.append(ShardRunner.Peer(eventLoop: loop, runner: runner))
    }
    let all = peers
    for peer in all {
      try await peer.eventLoop.submit { peer.runner.value.introduce(all) }.get()
    }
    self.peers = all
    places = Mutex(settings.firstTable(loopCount: all.count))
    sweeps = all.flatMap { peer in
      [
        peer.repeats(each: .seconds(1)) { $0.sweep() },
        settings.memory.map { memory in
          peer.repeats(each: MemoryWatch.pause) { $0.look(at: memory) }
        },
      ].compactMap(\.self)
    }
  }

  /// Connections are spread over the loops.
  func listen(
    _ endpoint: RelayConfiguration.Endpoint, _ listener: Listener, contexts: ServerContexts,
    environment: ProviderEnvironment? = nil
  ) async throws -> any Channel {
    let peers = peers
    do {
      return try await ServerBootstrap(group: group)
        .serverChannelOption(.backlog, value: 4096)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelOption(.socketOption(.so_keepalive), value: 1)
        .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
        .childChannelOption(
          .writeBufferWaterMark,
          value: .init(low: Limits.unsentBytes / 4, high: Limits.unsentBytes)
        )
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            guard let peer = peers.first(where: { $0.eventLoop === channel.eventLoop }) else {
              preconditionFailure("children live on the group's loops")
            }
            try Self.add(listener, to: channel, of: peer.runner.value, contexts, environment)
          }
        }
        .bind(host: endpoint.host, port: endpoint.port).get()
    } catch {
      throw Self.refusal(of: endpoint, listener.rawValue, error)
    }
  }

  /// Makes the channel, on its loop, a connection of that listener.
  static func add(
    _ listener: Listener, to channel: any Channel, of runner: ShardRunner,
    _ contexts: ServerContexts, _ environment: ProviderEnvironment? = nil
  ) throws {
    let context = contexts.context(of: listener)
    switch listener {
    case .provider, .channels, .device:
      // A provider may say all it has to say, and then wait for its answers.
      if listener != .device {
        try channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: true)
      }
      let transport = try makeTransport(context, isProvider: listener != .device)
      try channel.pipeline.syncOperations.addHandler(
        ConnectionHandler(runner: runner, transport: transport, listener, environment: environment))
    case .legacy, .feedback:
      // One read at a time, so that a paused connection stops at once. All the rest is read when a
      // client ends the connection: the kernel must not hold much.
      try channel.syncOptions?.setOption(.maxMessagesPerRead, value: 1)
      try channel.syncOptions?.setOption(.socketOption(.so_rcvbuf), value: Limits.binaryFrameBytes)
      try channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: true)
      try channel.pipeline.syncOperations.addHandler(
        BinaryConnectionHandler(
          runner: runner, context: context, isFeedback: listener == .feedback))
    case .proxy:
      try channel.pipeline.syncOperations.addHandler(
        ProxyHandler(runner: runner, contexts: contexts))
    }
  }

  /// Checks that an address is free, for callers with work to do before they listen. It does
  /// not listen itself, since clients that connect meanwhile must be refused, not left waiting.
  static func check(_ endpoint: RelayConfiguration.Endpoint, _ key: String) async throws {
    struct IsFree: Error {}
    do {
      let address = try SocketAddress.makeAddressResolvingHost(endpoint.host, port: endpoint.port)
      _ = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        .channelOption(.socketOption(.so_reuseaddr), value: 1)
        .channelInitializer { $0.bind(to: address).flatMapThrowing { throw IsFree() } }
        .connect(to: address).get()
    } catch is IsFree {
    } catch {
      throw refusal(of: endpoint, key, error)
    }
  }

  private static func refusal(
    of endpoint: RelayConfiguration.Endpoint, _ key: String, _ error: any Error
  ) -> RelayConfiguration.ReadingError {
    RelayConfiguration.ReadingError(
      key: key,
      description: "cannot listen on \(endpoint): \(reason(error)); choose another with --\(key)")
  }

  private static func reason(_ error: any Error) -> String {
    switch error {
    case let error as IOError where error.errnoCode == Errno.addressInUse.rawValue:
      "the port is in use"
    case let error as IOError where error.errnoCode == Errno.addressNotAvailable.rawValue:
      "this machine has no such address"
    case let error as IOError: Errno(rawValue: error.errnoCode).description
    case is SocketAddressError.UnknownHost: "there is no such host"
    default: "\(error)"
    }
  }

  static func makeTransport(_ context: TLSContext?, isProvider: Bool) throws -> Transport {
    var configuration = HTTP2Configuration()
    configuration.maximumHeaderListBytes = Limits.headerListBytes
    configuration.maximumDiscardedBytes = Limits.discardedBytes
    configuration.maximumArenaBytes = Limits.batchBytes
    if isProvider {
      configuration.maximumConcurrentStreams = Limits.unauthenticatedStreams
      // Clients open streams before they have read our SETTINGS; refusing those helps nobody.
      configuration.toleratedConcurrentStreams = Limits.providerStreams
      configuration.maximumBodyBytes = Limits.voipPayloadBytes
      configuration.maximumQueuedConnectionBytes = Limits.providerQueuedBytes
      configuration.tellsRepeatedFields = true
    } else {
      // More after a secret was accepted (`DeviceConnection.raiseStreams`).
      configuration.maximumConcurrentStreams = Limits.unauthenticatedDeviceStreams
      configuration.maximumQueuedConnectionBytes = Limits.deviceQueuedBytes
      // Lines are consumed at once: this bounds one request's body, not a stream's life.
      configuration.maximumBodyBytes = .max
      configuration.headerTableBytes = 1024
    }
    guard let context else {
      return try Transport(plaintext: .server, configuration: configuration)
    }
    return try Transport(
      TLSSession(server: context), role: .server, configuration: configuration,
      maximumPendingBytes: Limits.pendingTLSBytes)
  }

  var count: Int { peers.count }

  /// Has a loop do something; false when the loops have ended.
  @discardableResult
  func onLoop(_ index: Int, _ body: @escaping @Sendable (ShardRunner) -> Void) -> Bool {
    let peer = peers[index]
    return isOpen.withLock { isOpen in
      if isOpen { peer.eventLoop.execute { body(peer.runner.value) } }
      return isOpen
    }
  }

  /// Has one runner tell its answer, at once or later; nil when the loops have ended.
  func answer<Answer: Sendable>(
    of index: Int,
    _ body: @escaping @Sendable (ShardRunner, _ tell: @escaping @Sendable (Answer) -> Void) -> Void
  ) async -> Answer? {
    await withCheckedContinuation { continuation in
      let isAsked = onLoop(index) { body($0) { continuation.resume(returning: $0) } }
      if !isAsked { continuation.resume(returning: nil) }
    }
  }

  /// Asks one loop's runner; nil when the loops have ended.
  func ask<Answer: Sendable>(
    _ index: Int, _ body: @escaping @Sendable (ShardRunner) -> Answer
  ) async -> Answer? {
    await answer(of: index) { $1(body($0)) }
  }

  /// Asks each loop's runner; the answers are in the order of the loops. None when they have ended.
  func onEach<Answer: Sendable>(
    _ body: @escaping @Sendable (ShardRunner) -> Answer
  ) async -> [Answer] {
    let (told, teller) = AsyncStream.makeStream(of: (loop: Int, answer: Answer).self)
    let count = peers.indices.count { loop in onLoop(loop) { teller.yield((loop, body($0))) } }
    var answers: [(loop: Int, answer: Answer)] = []
    for await one in told.prefix(count) { answers.append(one) }
    return answers.sorted { $0.loop < $1.loop }.map(\.answer)
  }

  func deliver(_ outcomes: [Journal.Outcome]) {
    for outcome in outcomes {
      switch outcome {
      case .persisted(let shard, let sequence):
        onLoop(shard) { $0.journalAnswered(.journal(.persisted(through: sequence))) }
      case .failed(let shard, let sequence):
        onLoop(shard) { $0.journalAnswered(.journal(.persistFailed(through: sequence))) }
      }
    }
  }

  /// The loop of each partition when no move is under way.
  var table: PartitionTable { places.withLock { $0 } }

  func place(_ changed: [PartitionID: Int]) {
    places.withLock { table in
      for (partition, loop) in changed { table[partition] = loop }
    }
  }

  /// Releases partitions that another node has; returns when all have left.
  func release(_ gone: [PartitionID]) async {
    let endTurn = await turns.next()
    defer { endTurn() }
    let holders = table
    _ = await onEach { $0.depart(gone) }
    for partition in gone where holders[partition] != PartitionTable.elsewhere {
      await answer(of: holders[partition]) { runner, tell in
        let done = runner.eventLoop.makePromise(of: Void.self)
        done.futureResult.whenComplete { _ in tell(()) }
        runner.drop(partition, done: done)
      }
      place([partition: PartitionTable.elsewhere])
    }
  }

  /// Makes all loops follow a step of the machine's clock.
  func follow(_ step: Interval, of time: SystemTime, _ journal: (any DurableJournal)?)
    async throws(StoreError)
  {
    let endTurn = await turns.next()
    defer { endTurn() }
    time.follow(step)
    _ = await onEach { $0.stepClock(by: step) }
    try await journal?.stepClocks(by: step)
  }

  func administer(_ event: Event) {
    for loop in peers.indices { onLoop(loop) { $0.administer(event) } }
  }

  func replaceKeys(_ keys: ProviderKeys) {
    for loop in peers.indices { onLoop(loop) { $0.verifier.replaceKeys(keys) } }
  }

  /// Drains every loop and waits until all connections have ended, or for `timeout`.
  func drain(within timeout: Interval) async {
    await turns.ended()
    let deadline = ContinuousClock.now + .milliseconds(timeout.milliseconds)
    while await onEach({ $0.drain() }).contains(where: { $0 > 0 }), ContinuousClock.now < deadline {
      try? await Task.sleep(for: .milliseconds(20))
    }
    sweeps.forEach { $0.cancel() }
    _ = await onEach { $0.closeAll() }
  }

  /// The event loops are about to end: all that were asked are answered, nobody is asked any more.
  func end() {
    for loop in peers.indices { onLoop(loop) { $0.adminPeers.endAll() } }
    isOpen.withLock { $0 = false }
  }
}

/// Runs one thing after the other.
final class TurnQueue: Sendable {
  private let last = Mutex<Task<Void, Never>?>(nil)

  /// Waits for earlier turns. Later ones wait until the returned closure is called.
  func next() async -> @Sendable () -> Void {
    let (gate, holder) = AsyncStream.makeStream(of: Void.self)
    let before = last.withLock { last in
      let before = last
      last = Task {
        await before?.value
        for await _ in gate {}
      }
      return before
    }
    await before?.value
    return { holder.finish() }
  }

  func ended() async { await last.withLock { $0 }?.value }
}

/// The running loops and what belongs to them, once there are any.
final class Inbox: Sendable {
  private struct Running {
    let loops: LoopSet
    let journal: (any DurableJournal)?
    let clock: VirtualClock?
    var director: ClusterDirector?
  }

  /// `NodeStanding.settings` of this node.
  let settings: [String]
  private let running = Mutex<Running?>(nil)
  private let isJournalFailing = Atomic(false)
  enum Phase: UInt8, AtomicRepresentable {
    case starting
    /// From when the listeners are open.
    case serving
    /// From when the relay is told to end.
    case ending
  }

  let phase = Atomic(Phase.starting)

  init(settings: [String] = []) { self.settings = settings }

  func open(_ loops: LoopSet, _ journal: (any DurableJournal)?, _ clock: VirtualClock?) {
    running.withLock { $0 = Running(loops: loops, journal: journal, clock: clock) }
  }

  /// Ends the loops for all who hold them, and forgets them.
  func close() { running.withLock { $0.take() }?.loops.end() }

  /// nil for the system's clock.
  var clock: VirtualClock? { running.withLock { $0 }?.clock }

  var director: ClusterDirector? {
    get { running.withLock { $0?.director } }
    set { running.withLock { $0?.director = newValue } }
  }

  var journal: (any DurableJournal)? { running.withLock { $0 }?.journal }

  var loops: LoopSet? { running.withLock { $0 }?.loops }

  /// The journal reports by itself that it cannot write, or can again, also when nobody asks it to.
  func observe(_ notice: StoreNotice) {
    switch notice {
    case .writingFailed: isJournalFailing.store(true, ordering: .relaxed)
    case .recovered: isJournalFailing.store(false, ordering: .relaxed)
    case .leftUnwritten, .compactionFailed, .rewritten, .migrated: break
    }
  }

  /// True if the journal could not write its last batch.
  var journalFails: Bool { isJournalFailing.load(ordering: .relaxed) }
}
