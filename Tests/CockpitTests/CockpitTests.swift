import AdminAPI
import Foundation
import Hummingbird
import Logging
import RelayCore
import RelayServer
import RelaySetup
import ServiceLifecycle
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
    configuration.state = FileManager.default.temporaryDirectory.path + "/cockpit-\(UUID())"
    defer { try? FileManager.default.removeItem(atPath: configuration.state) }
    return (
      try Relay(configuration: configuration, logger: Self.silent) { _ in }, configuration
    )
  }

  /// A page that asks while a relay starts must not get a feed that is told nothing.
  @Test func thereIsNoFeedBeforeTheRelayRuns() async throws {
    let holder = try relay().0.feeds
    for _ in 0..<2 { #expect(await holder.feed() == nil) }
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
    #expect(page.count == 12, "\(page)")
    #expect(
      routed.subtracting(page).subtracting(described) == [], "in the server, not described")
    #expect(described.subtracting(routed) == [], "described, not in the server")
  }

  /// Of every route it is said whose its answer is in a cluster: that of the node that is asked, of
  /// the one that has the device, or of all.
  @Test func everyRouteSaysOfWhomItsAnswerIs() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/Cockpit/openapi.json")
    let document = try JSONSerialization.jsonObject(with: Data(contentsOf: file))
    let paths = try #require((document as? [String: Any])?["paths"] as? [String: [String: Any]])
    for (path, operations) in paths {
      for (method, operation) in operations {
        let nodes = (operation as? [String: Any])?["x-nodes"] as? String
        #expect(["own", "device", "all"].contains(nodes), "\(method) \(path)")
        // A phone takes orders where its stream is.
        let isOwn = ["/events", "/do", "/phone"].contains { path.hasSuffix($0) }
        if path.hasPrefix("/v1/devices/{id}"), !isOwn {
          #expect(nodes == "device", "\(method) \(path)")
        }
        if !path.hasPrefix("/v1/") { #expect(nodes == "own", "\(method) \(path)") }
      }
    }
  }

  @Test func anAnswerNamesWhatItLacks() throws {
    var missing = Missing()
    let whole = try JSONText.bytes(Lacking(["a": 1], missing))
    #expect(String(decoding: whole, as: UTF8.self) == #"{"a":1}"#)
    missing.nodes = ["b"]
    missing.stripes = [3]
    let part = try JSONText.bytes(Lacking(["a": 1], missing))
    #expect(
      String(decoding: part, as: UTF8.self)
        == #"{"a":1,"missingNodes":["b"],"missingStripes":[3]}"#)
    let refusal = Refusal(missing)
    #expect(refusal.status == 503 && refusal.missingNodes == ["b"])
  }

  @Test(arguments: [
    ("anna", "anna"), ("anna%20b", "anna b"), ("%E5%AE%89", "安"), ("50%", "50%"), ("%zz", "%zz"),
    ("%41%42c", "ABc"), ("", ""),
  ])
  func namesInPathsAreReadAsTheyAreMeant(part: String, name: String) {
    #expect(NamedDevices.unescaped(part) == name)
  }

  @Test func aPlaceInTheListOfAllNodesComesBack() throws {
    let place = Relay.DevicePlace(node: 7, position: .init(loop: 1, place: .init(42)))
    #expect(place.cursor == "7-1-42")
    #expect(try Relay.DevicePlace(cursor: "7-1-42") == place)
    for bad in ["", "1-2", "7-1--4", "7-1-42-3", "70000-1-2", "a-1-2"] {
      #expect(throws: Refusal.self) { _ = try Relay.DevicePlace(cursor: bad) }
    }
  }

  /// A socket's address has room for so many bytes; the relay goes on without one.
  @Test(arguments: [(0, true), (1, false)])
  func aSocketHasALongestPath(more: Int, isThere: Bool) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "s-\(UUID())")
    defer { try? FileManager.default.removeItem(at: folder) }
    let start = folder.path(percentEncoded: false)
    let rest = Cockpit.longestPathBytes + more - Cockpit.socketPath(state: start + "/").utf8.count
    try #require(rest > 0, "the folder for temporary files has a long path")
    var configuration = RelayConfiguration()
    configuration.state = start + "/" + String(repeating: "a", count: rest)
    let relay = try Relay(configuration: configuration, logger: Self.silent) { _ in }
    let (ready, isReady) = AsyncStream.makeStream(of: Void.self)
    let cockpit = Cockpit(
      relay: relay, configuration: configuration, logger: Self.silent,
      onReady: { _ in isReady.finish() })
    let group = ServiceGroup(configuration: .init(services: [cockpit], logger: Self.silent))
    async let running: Void = group.run()
    for await _ in ready {}
    let path = Cockpit.socketPath(state: configuration.state)
    #expect(path.utf8.count == Cockpit.longestPathBytes + more)
    #expect(FileManager.default.fileExists(atPath: path) == isThere)
    await group.triggerGracefulShutdown()
    try await running
  }
}
