import Cockpit
import Logging
import RelayCore
import RelayServer
import RelaySetup
import ServiceLifecycle
import UnixSignals

/// Runs services until they end or a signal comes.
enum Services {
  static func run(
    _ services: [ServiceGroupConfiguration.ServiceConfiguration],
    endedBy signals: [UnixSignal] = [.sigterm, .sigint]
  ) async throws {
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: services, gracefulShutdownSignals: signals,
        logger: Logger(label: "pushrelay") { _ in SwiftLogNoOpLogHandler() }))
    do {
      try await group.run()
    } catch let problem as RelayConfiguration.ReadingError {
      throw CommandError(problem.description)
    }
  }
}

/// Runs the work of a command until it is done or a signal comes.
struct Work: Service {
  private let work: @Sendable () async throws -> Void

  init(_ work: @escaping @Sendable () async throws -> Void) { self.work = work }

  func run() async throws {
    try await cancelWhenGracefulShutdown {
      do {
        try await work()
      } catch  where Task.isCancelled {
        // Ctrl-C: any error is due to it.
      }
    }
  }
}

extension ServiceGroupConfiguration.ServiceConfiguration {
  /// Ends all others with it.
  static func ending(_ work: Work) -> Self {
    .init(
      service: work, successTerminationBehavior: .gracefullyShutdownGroup,
      failureTerminationBehavior: .gracefullyShutdownGroup)
  }

  /// Ends or fails all others with it.
  static func leading(_ service: some Service) -> Self {
    .init(
      service: service, successTerminationBehavior: .gracefullyShutdownGroup,
      failureTerminationBehavior: .cancelGroup)
  }
}

/// A relay in this process, with its page, and the file by which commands find it.
struct OwnRelay: Service {
  let relay: Relay
  private let cockpit: Cockpit
  private let configuration: RelayConfiguration
  private let logger: Logger
  private let addresses: AsyncStream<Relay.Addresses>
  private let admins: AsyncStream<RelayConfiguration.Endpoint?>

  init(
    _ configuration: RelayConfiguration, _ logger: Logger,
    onLife: (@Sendable (DeliveryEvent) -> Void)? = nil,
    onReady: @escaping @Sendable (Relay.Addresses) -> Void = { _ in }
  ) throws {
    ReadyFile.removeStale(configuration.state)
    let (addresses, isReady) = AsyncStream.makeStream(of: Relay.Addresses.self)
    let (admins, isAdministered) = AsyncStream.makeStream(of: RelayConfiguration.Endpoint?.self)
    relay = try Relay(
      configuration: configuration, logger: logger, onLife: onLife,
      onReady: {
        isReady.yield($0)
        onReady($0)
      })
    cockpit = Cockpit(
      relay: relay, configuration: configuration, logger: logger,
      onReady: { isAdministered.yield($0) })
    (self.configuration, self.logger) = (configuration, logger)
    (self.addresses, self.admins) = (addresses, admins)
  }

  /// Both begin to end when told: a page that somebody leaves unread must not keep the relay from
  /// its good-byes. When the relay has ended, what is left of the page's connections is cut.
  func run() async throws {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        try await relay.run()
        return true
      }
      group.addTask {
        try await cockpit.run()
        return false
      }
      while let isRelay = try await group.next(), !isRelay {}
      group.addTask {
        try? await Task.sleep(for: .milliseconds(200))
        return true
      }
      _ = try? await group.next()
      group.cancelAll()
    }
  }

  /// Begins once the relay listens and its admin socket exists or has failed; until it ends,
  /// commands find the relay.
  func work(
    _ body:
      @escaping @Sendable (
        ReadyFile, Relay.Addresses, _ admin: RelayConfiguration.Endpoint?
      ) async throws -> Void
  ) -> Work {
    Work {
      guard let addresses = await addresses.first(where: { _ in true }),
        let admin = await admins.first(where: { _ in true })
      else { return }
      let file = ReadyFile(configuration, addresses, admin: admin)
      try await file.keep(in: configuration.state, logger) {
        try await body(file, addresses, admin)
      }
    }
  }
}

extension Logger {
  /// To standard error.
  static func own(_ level: Logger.Level) -> Logger {
    var logger = Logger(label: "pushrelay") { StreamLogHandler.standardError(label: $0) }
    logger.logLevel = level
    return logger
  }
}
