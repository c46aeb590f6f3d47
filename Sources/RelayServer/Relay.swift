import FoundationEssentials
package import Logging
import NIOCore
import NIOPosix
import Primitives
import ProviderCredentials
import RelayCluster
package import RelayCore
import RelayFaults
package import RelaySetup
import RelayStore
import ServiceLifecycle
import Synchronization
import TLS
import Transport

/// A running relay: listeners, loops and their end. A `Service`, so that signals and other services
/// are handled elsewhere.
package final class Relay: Service {
  package struct Addresses: Equatable, Sendable {
    package var provider: RelayConfiguration.Endpoint
    package var device: RelayConfiguration.Endpoint
    /// nil when they are not configured.
    package var legacy: RelayConfiguration.Endpoint?
    package var feedback: RelayConfiguration.Endpoint?
    /// Listeners that play one service only.
    package var environments: [ProviderEnvironment: RelayConfiguration.Endpoint] = [:]
    package var proxy: RelayConfiguration.Endpoint?
    package var channels: RelayConfiguration.Endpoint?
    package var environmentChannels: [ProviderEnvironment: RelayConfiguration.Endpoint] = [:]
  }

  let configuration: RelayConfiguration
  let settings: ServerSettings
  let contexts: ServerContexts
  let logger: Logger
  private let onReady: @Sendable (Addresses) -> Void
  private let opened = Mutex<Addresses?>(nil)
  let inbox: Inbox
  let board = FaultBoard()
  package let descriptors: Descriptors
  /// All recordings, from the start on or begun while the relay runs.
  package let recordings: Recordings
  /// The events of the relay, for observers.
  package let feeds: FeedHolder
  /// Released for the journal's own; without one kept to the end.
  private let lock: FileLock?

  /// Reads keys and certificates; does not listen yet.
  ///
  /// - Parameters:
  ///   - onLife: called with every step of every notification.
  ///   - onReady: called with the real addresses once all listeners are open.
  package init(
    configuration: RelayConfiguration, logger: Logger,
    onLife: (@Sendable (DeliveryEvent) -> Void)? = nil,
    onReady: @escaping @Sendable (Addresses) -> Void
  ) throws {
    self.configuration = configuration
    self.logger = logger
    self.onReady = onReady
    inbox = Inbox(settings: configuration.alike.map { "\($0.key)=\($0.value)" })
    descriptors = Descriptors(logger)
    var settings = try ServerSettings(configuration, onLife: onLife)
    settings.areSocketsShort = { [descriptors] in descriptors.areShort }
    settings.findLife = { [inbox] in await inbox.life(of: $0).value }
    if configuration.maximumMemory > 0 {
      settings.memory = MemoryWatch(limitBytes: configuration.maximumMemory, logger)
    }
    // Phones and providers of every node of a cluster reach channels that others manage.
    let isNode = configuration.store == .jetstream
    if configuration.channels != nil || isNode {
      settings.channels = Channels(
        inbox, limit: isNode ? Limits.channelsInCluster : Limits.channels)
    }
    self.settings = settings
    recordings = Recordings(state: configuration.state, inbox: inbox, logger: logger)
    feeds = FeedHolder(inbox)
    // Before files are made or renewed that another relay uses.
    lock = try Self.lock(configuration.state)
    contexts = try ServerContexts(
      configuration.plaintext ? nil : IdentityFiles.prepare(configuration, logger))
  }

  /// Checks that all addresses are free: a failed start must not use up a node number of a cluster.
  package func checkEndpoints() async throws {
    let services = configuration.environmentProviders.values.map { ("provider", Optional($0)) }
    let management = configuration.environmentChannels.values.map { ("channels", Optional($0)) }
    let endpoints =
      services + management + [
        ("provider", configuration.provider), ("device", configuration.device),
        ("legacy", configuration.legacy), ("feedback", configuration.feedback),
        ("channels", configuration.channels), ("proxy", configuration.proxy),
        ("admin", configuration.admin),
      ]
    for case (let key, let endpoint?) in endpoints where endpoint.port != 0 {
      try await LoopSet.check(endpoint, key)
    }
  }

  /// Listens until it is told to stop, then drains: no new connections, GOAWAY `Shutdown`, `bye`,
  /// streams finish, and after `shutdownTimeout` the rest is closed.
  package func run() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: configuration.threads)
    do {
      try await serve(on: group)
    } catch {
      inbox.close()
      try? await group.shutdownGracefully()
      throw error
    }
    inbox.close()
    try await group.shutdownGracefully()
  }

  /// Changes the silent policy. The journal has it before any decision uses it, so that every
  /// budget is read as it was written; when it cannot be written, nothing changes.
  package func change(to policy: SilentPolicy) async throws(JournalFails) {
    let endTurn = await inbox.loops?.turns.next()
    defer { endTurn?() }
    let now = settings.clock.now()
    do throws(StoreError) {
      _ = try await inbox.journal?.budgets(under: policy, at: now)
    } catch {
      throw JournalFails(description: error.description)
    }
    inbox.loops?.administer(.operated(.policyChanged(policy, at: now)))
  }

  /// nil unless the clock is virtual and the relay runs.
  package var virtualClock: VirtualClock? { inbox.clock }

  private func serve(on group: MultiThreadedEventLoopGroup) async throws {
    if configuration.store != .memory { lock?.release() }
    defer { lock?.release() }
    var settings = settings
    do {
      settings.storage = try await openStorage()
    } catch let error where Task.isShuttingDownGracefully {
      // It was told to end while it waited for its turn.
      return logger.info("stopped", metadata: ["before": "\(error)"])
    }
    if let journal = settings.storage.journal {
      settings.shard.partitionCount = journal.partitionCount
    }
    if let cluster = settings.storage.cluster {
      settings.port = cluster.port
      settings.stripeCount = cluster.stripeCount
    }
    do {
      settings.budgets = try await storedBudgets(in: settings.storage)
      settings.recording = try openRecording()
      if let recording = settings.recording { await recordings.adopt(recording) }
      try await serve(on: group, settings)
      await recordings.end()
    } catch {
      await recordings.end()
      await settings.storage.journal?.stop()
      throw error
    }
    // Last, so that all late answers are on disk.
    if let journal = settings.storage.journal {
      await journal.stop()
      let done = journal.statistics
      logger.info(
        "journal closed",
        metadata: [
          "recordsWritten": "\(done.recordsWritten)", "commits": "\(done.commits)",
          "recordsSkipped": "\(done.recordsSkipped)", "recordsFailed": "\(done.recordsFailed)",
        ])
    }
    logger.info("stopped")
  }

  private func serve(
    on group: MultiThreadedEventLoopGroup, _ settings: ServerSettings
  ) async throws {
    let loops = try await LoopSet(group: group, settings: settings, logger: logger)
    let clock: VirtualClock? =
      switch settings.clock {
      case .system: nil
      case .virtual(let time):
        // Until others have taken the stripes of a node that is gone.
        VirtualClock(
          time, loops, settings.storage.feedback, inbox,
          patience: .seconds(settings.storage.cluster == nil ? 5 : 15))
      }
    inbox.open(loops, settings.storage.journal, clock)
    if let journal = settings.storage.journal { try await restore(from: journal, into: loops) }
    let keys = try await agree(on: try firstKeys(), settings.storage.cluster)
    loops.replaceKeys(keys)
    try await agreeOnAuthorities(settings.storage.cluster)
    await join(settings.storage.cluster, loops)
    var listeners: [any Channel] = []
    do {
      let addresses = try await listen(loops, &listeners)
      await inbox.director?.announce(
        provider: "\(addresses.provider)",
        device: "\(configuration.advertised(addresses.device))",
        // A port that is not chosen yet is no address.
        admin: configuration.admin.flatMap { $0.port == 0 ? nil : "\($0)" } ?? "")
      _ = inbox.phase.compareExchange(expected: .starting, desired: .serving, ordering: .relaxed)
      announce(addresses, await policy())
    } catch {
      for listener in listeners { try? await listener.close() }
      await inbox.director?.end()
      throw error
    }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.followKeys(keys, loops, settings.storage.journal) }
      group.addTask { await self.followCertificates() }
      group.addTask { await self.followClock(loops, settings.storage.journal) }
      await self.untilTold()
      announceEnd()
      group.cancelAll()
    }
    await clock?.stop()
    await leave()
    logger.info("draining", metadata: ["timeoutSeconds": "\(shutdownSeconds)"])
    for listener in listeners { try? await listener.close() }
    await loops.drain(within: configuration.shutdownTimeout)
    await inbox.director?.end()
    if let strangeness = await inbox.director?.strangeness { throw strangeness }
  }

  /// Waits until the relay is told to end, or finds what it cannot read.
  private func untilTold() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { try? await gracefulShutdown() }
      if let director = inbox.director { group.addTask { await director.untilStrange() } }
      await group.next()
      group.cancelAll()
    }
  }

  private func listen(
    _ loops: LoopSet, _ listeners: inout [any Channel]
  ) async throws -> Addresses {
    func open(
      _ endpoint: RelayConfiguration.Endpoint, _ listener: Listener,
      _ environment: ProviderEnvironment? = nil
    ) async throws -> RelayConfiguration.Endpoint {
      let channel = try await loops.listen(
        endpoint, listener, contexts: contexts, environment: environment)
      listeners.append(channel)
      try await descriptors.watch(channel)
      return .init(host: endpoint.host, port: channel.localAddress?.port ?? 0)
    }
    var addresses = Addresses(
      provider: try await open(
        configuration.provider, .provider, configuration.providerEnvironment),
      device: try await open(configuration.device, .device))
    if let environment = configuration.providerEnvironment {
      addresses.environments[environment] = addresses.provider
    }
    for (environment, endpoint) in configuration.environmentProviders {
      addresses.environments[environment] = try await open(endpoint, .provider, environment)
    }
    if let legacy = configuration.legacy { addresses.legacy = try await open(legacy, .legacy) }
    if let feedback = configuration.feedback {
      addresses.feedback = try await open(feedback, .feedback)
    }
    if let proxy = configuration.proxy { addresses.proxy = try await open(proxy, .proxy) }
    if let channels = configuration.channels {
      addresses.channels = try await open(channels, .channels, configuration.channelsEnvironment)
    }
    if let environment = configuration.channelsEnvironment {
      addresses.environmentChannels[environment] = addresses.channels
    }
    for (environment, endpoint) in configuration.environmentChannels {
      addresses.environmentChannels[environment] = try await open(endpoint, .channels, environment)
    }
    return addresses
  }

  /// The keys at the start, restored ones included. A development relay makes one if there is none.
  private func firstKeys() throws -> ProviderKeys {
    guard configuration.auth == .token else { return ProviderKeys() }
    if configuration.profile == .dev, let key = try keyDirectory.createFirst() {
      logger.notice(
        "made a provider key: there was none",
        metadata: ["key": "\(key.keyID)", "directory": "\(keyDirectory.path)"])
    }
    return try keyDirectory.load()
  }

  /// Checks once a second for changed or removed keys and logs what is wrong with them. An added
  /// key is found at once: see `ShardRunner.readKeysAgain`.
  private func followKeys(_ first: ProviderKeys, _ loops: LoopSet, _ journal: (any DurableJournal)?)
    async
  {
    guard configuration.auth == .token else { return }
    var known: ProviderKeys?
    var problem: CredentialFileError?
    var keys = first
    // The nodes of a cluster agreed on these at the start.
    var isCopied = journal is ClusterJournal
    var uncopied: String?
    // At least once, so that a relay that ends at once has the keys in its backup.
    repeat {
      if known?.areSame(as: keys) != true || keys.notices != known?.notices {
        tell(keys, since: known ?? ProviderKeys())
        if known != nil { isCopied = false }
        known = keys
      }
      if !isCopied {
        let before = uncopied
        uncopied = await copy(keys, to: journal)
        isCopied = uncopied == nil
        if let uncopied, uncopied != before {
          logger.warning(
            "provider keys not copied to the journal: tried again",
            metadata: ["problem": "\(uncopied)"])
        }
      }
      try? await Task.sleep(for: .seconds(1))
      do throws(CredentialFileError) {
        keys = try keyDirectory.load(after: keys)
        if known?.areSame(as: keys) != true {
          loops.replaceKeys(keys)
          logger.info("provider keys", metadata: ["count": "\(keys.keys.count)"])
        }
        if problem != nil { logger.notice("provider keys can be read again") }
        problem = nil
      } catch {
        // Half-written or damaged: the meant keys are unknown.
        if error != problem, descriptors.areLeft() {
          logger.error(
            "provider keys cannot be read: those in force stay",
            metadata: ["problem": "\(error)"])
          problem = error
        }
      }
    } while !Task.isCancelled
  }

  /// Checks once a second whether the machine's clock was set.
  private func followClock(_ loops: LoopSet, _ journal: (any DurableJournal)?) async {
    guard case .system(let time) = settings.clock else { return }
    repeat {
      try? await Task.sleep(for: .seconds(1))
      guard let step = time.step() else { continue }
      do {
        try await loops.follow(step, of: time, journal)
      } catch {
        logger.error(
          "the journal does not know that the clock was set: the next start may find budgets used",
          metadata: ["problem": "\(error)"])
      }
      for rule in board.rules { rule.stepClock(by: step) }
      logger.notice(
        "the machine's clock was set: expirations go by it, all else takes as long as before",
        metadata: ["stepMilliseconds": "\(step.milliseconds)", "now": "\(time.now.iso8601)"])
    } while !Task.isCancelled
  }

  /// Logs each new problem and notice once.
  private func tell(_ keys: ProviderKeys, since known: ProviderKeys) {
    let (broken, notices) = (Set(known.broken), Set(known.notices))
    for key in keys.broken where !broken.contains(key) {
      logger.error(
        "provider key not used", metadata: ["key": "\(key.keyID)", "problem": "\(key.problem)"])
    }
    for notice in keys.notices where !notices.contains(notice) {
      logger.notice("\(notice)")
    }
    if keys.keys.isEmpty {
      logger.warning(
        "no provider key: nobody can push with a token; add one with 'pushrelay key'",
        metadata: ["directory": "\(keyDirectory.path)"])
    }
  }

  var keyDirectory: ProviderKeyDirectory {
    ProviderKeyDirectory(path: configuration.state + "/keys")
  }

  private var shutdownSeconds: Int64 { configuration.shutdownTimeout.milliseconds / 1000 }

  private func announce(_ addresses: Addresses, _ policy: SilentPolicy) {
    var metadata: Logger.Metadata = [
      "provider": "\(addresses.provider)", "device": "\(addresses.device)",
      "threads": "\(configuration.threads)", "policy": "\(policy.name)",
      "profile": "\(configuration.profile)", "store": "\(configuration.store)",
      "version": "\(Version.number) \(Version.commit)",
    ]
    if let legacy = addresses.legacy { metadata["legacy"] = "\(legacy)" }
    if let feedback = addresses.feedback { metadata["feedback"] = "\(feedback)" }
    if let proxy = addresses.proxy { metadata["proxy"] = "\(proxy)" }
    if let channels = addresses.channels { metadata["channels"] = "\(channels)" }
    logger.info("listening", metadata: metadata)
    descriptors.raise()
    for notice in configuration.notices { logger.log(level: notice.level, "\(notice.text)") }
    if CredentialFiles.isOpenToOthers(configuration.state) {
      logger.warning(
        "other users can enter or read the state directory: chmod 700 it",
        metadata: ["state": "\(configuration.state)"])
    }
    opened.withLock { $0 = addresses }
    onReady(addresses)
  }

  /// The real addresses; nil until all listeners are open.
  package var addresses: Addresses? { opened.withLock { $0 } }
}

extension ServerSettings {
  /// The loops' settings from the configuration.
  package init(
    _ configuration: RelayConfiguration, onLife: (@Sendable (DeliveryEvent) -> Void)?
  ) throws {
    self.init()
    self.configuration = configuration
    shard = Shard.Configuration(
      policy: configuration.policy, keepAlive: configuration.keepAlive,
      keepAliveTimeout: configuration.keepAliveTimeout,
      ackTimeout: configuration.ackTimeout, rides: configuration.rides,
      lowPriorityHold: configuration.lowPriorityHold,
      requestsPerToken: configuration.requestsPerToken)
    if configuration.auth == .token {
      let directory = ProviderKeyDirectory(path: configuration.state + "/keys")
      keys = try directory.load()
      keyDirectory = directory
    }
    if configuration.clock == .virtual {
      clock = .virtual(VirtualTime(start: configuration.at ?? RelayClock.wall))
      shard.deadlinesNeedClock = true
    }
    answersReservedTokens = configuration.profile == .dev
    self.onLife = onLife
  }
}
