import Logging
import RelayServer
import RelaySetup
import ServiceLifecycle
import UnixSignals

/// What runs until it has ended, or a signal ends it.
enum Services {
  static func run(_ services: [ServiceGroupConfiguration.ServiceConfiguration]) async throws {
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: services, gracefulShutdownSignals: [.sigterm, .sigint],
        logger: Logger(label: "pushrelay") { _ in SwiftLogNoOpLogHandler() }))
    do {
      try await group.run()
    } catch let problem as RelayConfiguration.ReadingError {
      throw CommandError(problem.description)
    }
  }
}

extension ServiceGroupConfiguration.ServiceConfiguration {
  /// With its end all others end; a failure of it is theirs.
  static func leading(_ service: some Service) -> Self {
    .init(
      service: service, successTerminationBehavior: .gracefullyShutdownGroup,
      failureTerminationBehavior: .cancelGroup)
  }
}
