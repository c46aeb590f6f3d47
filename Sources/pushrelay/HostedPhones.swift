import ArgumentParser
import DeviceSimulator
import RelayServer
import RelaySetup

/// Simulated phones in the relay's process, so that a container alone has some.
struct HostedPhones: Sendable {
  private let scenario: Scenario
  private let command: DeviceCommand
  private let addresses: AsyncStream<Relay.Addresses>
  private let ready: AsyncStream<Relay.Addresses>.Continuation

  init(_ file: String, _ configuration: RelayConfiguration) throws {
    var scenario = try PhonePlayer.scenario(in: file)
    scenario.isEndless = true
    self.scenario = scenario
    var command = try DeviceCommand.parse(["--scenario", file, "--state", configuration.state])
    command.connection.plaintext = configuration.plaintext
    // The other end is this process, whatever its certificate is for.
    command.connection.insecure = !configuration.plaintext
    command.enrolmentKey = configuration.enrolmentKey
    self.command = command
    (addresses, ready) = AsyncStream.makeStream(of: Relay.Addresses.self)
  }

  func relayIsReady(_ addresses: Relay.Addresses) { ready.yield(addresses) }

  /// Plays them from when the relay listens until the task is cancelled.
  func run() async throws {
    guard let addresses = await addresses.first(where: { _ in true }) else { return }
    var command = command
    var device = addresses.device
    // Where it listens on all addresses, this one is among them.
    if device.isWildcard { device.host = "127.0.0.1" }
    command.device = device
    do {
      try await PhonePlayer(command: command, given: scenario, isHosted: true).run()
    } catch  where !Task.isCancelled {
      // The relay goes on without them.
      Console.log("the phones of \(scenario.file) have ended: \(error)")
    }
  }
}
