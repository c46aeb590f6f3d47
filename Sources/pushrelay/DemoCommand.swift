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
      token, and tells what happens and why. Then the relay stays up, and prints curl lines to \
      try. Its clock is virtual: in the story minutes pass at once, and then you may move it, on \
      the page or with 'pushrelay clock advance 20m'. Nothing but certificates and keys is kept.
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
    configuration.clock = .virtual
    // Its time is no other relay's, whose journal may be in this directory.
    configuration.store = .memory
    let (life, onLife) = AsyncStream.makeStream(of: DeliveryEvent.self)
    let own = try OwnRelay(configuration, .own(.warning), onLife: { onLife.yield($0) })
    let story = own.work { _, addresses, page in
      guard let clock = own.relay.virtualClock else { return }
      let story = try await DemoStory(
        state: state, addresses: addresses, clock: clock, life: life)
      try await tell(story, page)
    }
    try await Services.run([.leading(own), .ending(story)])
  }

  private func tell(_ story: DemoStory, _ page: RelayConfiguration.Endpoint?) async throws {
    var story = story
    try await story.directAndHeld()
    try await story.piggyback()
    try await story.offline()
    try await story.hold()
    try await story.printDevice()
    guard !exit else { return }
    story.printCurl()
    if let page {
      let token = try AdminToken.read(Cockpit.tokenPath(state: state))
      Console.say("\nThe page that shows all of it: http://\(page)/#token=\(token)")
    }
    Console.say(
      """

      The relay stays up. Its clock now runs as yours does, and can be moved: on the page, or with
      pushrelay clock advance 20m --state \(state)
      Ctrl-C ends it.
      """)
    try await story.goOn()
    // Somebody else may be that phone now.
    try? await gracefulShutdown()
  }
}
