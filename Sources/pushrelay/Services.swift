import Logging
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
  /// Ends or fails all others with it.
  static func leading(_ service: some Service) -> Self {
    .init(
      service: service, successTerminationBehavior: .gracefullyShutdownGroup,
      failureTerminationBehavior: .cancelGroup)
  }
}
