import Foundation
import Hummingbird
import Logging
import RelayServer
import Testing

@testable import Cockpit

/// What the server routes is what `openapi.json` describes, no more and no less.
@Suite struct CockpitTests {
  private static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  /// One that does not run.
  private func relay() throws -> (Relay, RelayConfiguration) {
    var configuration = RelayConfiguration()
    configuration.auth = .none
    configuration.plaintext = true
    return (
      try Relay(configuration: configuration, logger: Self.silent) { _ in }, configuration
    )
  }

  /// A page that asks while a relay starts must not get a feed that is told nothing.
  @Test func thereIsNoFeedBeforeTheRelayRuns() async throws {
    let holder = FeedHolder(try relay().0)
    for _ in 0..<2 {
      await #expect(throws: Refusal.notReady) { _ = try await holder.feed() }
    }
    #expect(await holder.position() == 0)
  }

  @Test func everyRouteIsDescribedAndEveryDescriptionIsARoute() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/Cockpit/openapi.json")
    let document = try JSONSerialization.jsonObject(with: Data(contentsOf: file))
    let paths = try #require((document as? [String: Any])?["paths"] as? [String: [String: Any]])
    let described = Set(
      paths.flatMap { path, operations in
        operations.keys.map { "\($0.uppercased()) \(path)" }
      })
    let (relay, configuration) = try relay()
    let cockpit = Cockpit(
      relay: relay, configuration: configuration, logger: Self.silent, onReady: { _ in })
    let routed = Set(
      cockpit.router(guarded: nil).routes.map { route in
        "\(route.method.rawValue) \(route.path.description)"
          .replacing(/:([a-z]+)/) { "{\($0.output.1)}" }
      })
    // The page and what it loads, this description among them.
    let page = routed.filter { !$0.contains("/v1") && !described.contains($0) }
    #expect(page.count == 7, "\(page)")
    #expect(
      routed.subtracting(page).subtracting(described) == [], "in the server, not described")
    #expect(described.subtracting(routed) == [], "described, not in the server")
  }
}
