import Foundation
package import Logging
import NIOPosix
package import RelayClient
package import RelayServer
package import RelaySetup
package import ServiceLifecycle

/// The whole relay in the process of a test, on loopback, in plaintext and without provider tokens,
/// on ports that the system chooses.
package enum LoopbackRelay {
  /// Runs a relay for the time of `body`, then shuts it down and waits for its end. `change` has
  /// the last word on its configuration. What the relay cannot start for is thrown.
  package static func run(
    threads: Int = 2, logger: Logger? = nil,
    _ change: (inout RelayConfiguration) -> Void = { _ in },
    _ body: (Relay.Addresses, ServiceGroup) async throws -> Void
  ) async throws {
    try await runRelay(threads: threads, logger: logger, change) { _, addresses, group in
      try await body(addresses, group)
    }
  }

  /// The same, for tests that have something to say to the relay itself.
  package static func runRelay(
    threads: Int = 2, logger: Logger? = nil,
    _ change: (inout RelayConfiguration) -> Void = { _ in },
    _ body: (Relay, Relay.Addresses, ServiceGroup) async throws -> Void
  ) async throws {
    var configuration = RelayConfiguration()
    configuration.plaintext = true
    configuration.auth = .none
    configuration.store = .memory
    configuration.threads = threads
    configuration.provider = .init(host: "127.0.0.1", port: 0)
    configuration.device = .init(host: "127.0.0.1", port: 0)
    // Each relay locks its directory, whatever it keeps there.
    let state = FileManager.default.temporaryDirectory.appending(path: "relay-\(UUID())").path
    configuration.state = state
    defer { try? FileManager.default.removeItem(atPath: state) }
    change(&configuration)
    let (ready, isReady) = AsyncStream.makeStream(of: Relay.Addresses.self)
    let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let relay = try Relay(configuration: configuration, logger: logger ?? silent) {
      isReady.yield($0)
    }
    let group = ServiceGroup(configuration: .init(services: [relay], logger: silent))
    let running = Task {
      defer { isReady.finish() }
      try await group.run()
    }
    var iterator = ready.makeAsyncIterator()
    guard let addresses = await iterator.next() else { return try await running.value }
    do {
      try await body(relay, addresses, group)
    } catch {
      await group.triggerGracefulShutdown()
      try await running.value
      throw error
    }
    await group.triggerGracefulShutdown()
    try await running.value
  }

  /// A connection with one of its listeners.
  package static func connect(
    _ endpoint: RelayConfiguration.Endpoint
  ) async throws -> RelayClient {
    try await RelayClient.connect(
      host: endpoint.host, port: endpoint.port, security: .plaintext,
      on: MultiThreadedEventLoopGroup.singleton)
  }
}
