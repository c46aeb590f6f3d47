import Foundation
import Hummingbird
import Logging
import RelayServer
import Testing

@testable import Cockpit

/// What the server routes is what `openapi.json` describes, no more and no less.
@Suite struct CockpitTests {
  @Test func everyRouteIsDescribedAndEveryDescriptionIsARoute() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/Cockpit/openapi.json")
    let document = try JSONSerialization.jsonObject(with: Data(contentsOf: file))
    let paths = try #require((document as? [String: Any])?["paths"] as? [String: [String: Any]])
    let described = Set(
      paths.flatMap { path, operations in
        operations.keys.map { "\($0.uppercased()) \(path)" }
      })
    var configuration = RelayConfiguration()
    configuration.auth = .none
    configuration.plaintext = true
    let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let relay = try Relay(configuration: configuration, logger: silent) { _ in }
    let cockpit = Cockpit(
      relay: relay, configuration: configuration, logger: silent, onReady: { _ in })
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
