import ArgumentParser
import Cockpit
import FoundationEssentials
import Logging
import RelayClient
import RelayCore
import RelayServer
import RelaySetup
import ServiceLifecycle

struct DemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Watch a silent push being sent, held, replaced and piggybacked.",
    discussion: """
      Examples:

        pushrelay demo
        pushrelay demo --exit

      Starts a relay and a phone in this process, pushes over HTTP/2 and TLS with a provider \
      token, and tells what happens and why. Then the relay stays up, and prints curl lines to try.
      """)

  @Option(help: "Directory for certificates and keys.")
  var state = ".pushrelay"
  @Option(help: "HOST:PORT for providers; port 0 picks a free one.")
  var provider = "127.0.0.1:2197"
  @Option(help: "HOST:PORT for devices; port 0 picks a free one.")
  var device = "127.0.0.1:5223"
  @Option(help: "HOST:PORT for the page that shows it; port 0 picks a free one.")
  var admin = "127.0.0.1:0"
  @Flag(help: "End after the story instead of staying up.")
  var exit = false

  func run() async throws {
    var configuration = RelayConfiguration()
    configuration.state = state
    guard let provider = RelayConfiguration.Endpoint(provider),
      let device = RelayConfiguration.Endpoint(device),
      let admin = RelayConfiguration.Endpoint(admin)
    else { throw CommandError("--provider, --device and --admin are HOST:PORT") }
    configuration.provider = provider
    configuration.device = device
    configuration.admin = admin
    let (pages, isAdministered) = AsyncStream.makeStream(of: RelayConfiguration.Endpoint?.self)
    let (addresses, isReady) = AsyncStream.makeStream(of: Relay.Addresses.self)
    let (life, onLife) = AsyncStream.makeStream(of: DeliveryEvent.self)
    var logger = Logger(label: "pushrelay") { StreamLogHandler.standardError(label: $0) }
    logger.logLevel = .warning
    let relay = try Relay(
      configuration: configuration, logger: logger, onLife: { onLife.yield($0) },
      onReady: { isReady.yield($0) })
    ReadyFile.removeStale(state)
    let story = Work { [configuration, logger] in
      guard let addresses = await addresses.first(where: { _ in true }),
        let page = await pages.first(where: { _ in true })
      else { return }
      try await ReadyFile(configuration, addresses, admin: page).keep(in: state, logger) {
        try await tell(addresses, page, life)
      }
    }
    let cockpit = Cockpit(
      relay: relay, configuration: configuration, logger: logger,
      onReady: { isAdministered.yield($0) })
    try await Services.run([
      .leading(relay), .init(service: cockpit),
      .init(
        service: story, successTerminationBehavior: .gracefullyShutdownGroup,
        failureTerminationBehavior: .gracefullyShutdownGroup),
    ])
  }

  private func tell(
    _ addresses: Relay.Addresses, _ page: RelayConfiguration.Endpoint?,
    _ life: AsyncStream<DeliveryEvent>
  ) async throws {
    var story = try await DemoStory(state: state, addresses: addresses, life: life)
    try await story.directAndHeld()
    try await story.piggyback()
    try await story.offline()
    try await story.printCurl()
    guard !exit else { return }
    if let page {
      let token = try AdminToken.read(Cockpit.tokenPath(state: state))
      Console.say("\nThe page that shows all of it: http://\(page)/#token=\(token)")
    }
    Console.say("\nThe relay stays up. Ctrl-C ends it.")
    try? await gracefulShutdown()
  }
}
