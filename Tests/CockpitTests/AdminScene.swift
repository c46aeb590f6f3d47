import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOEmbedded
import Primitives
import RelayServer
import RelaySetup
import ServiceLifecycle
import Synchronization

@testable import Cockpit
@testable import RelayTestKit

/// The routes of a relay in this process, asked as its listeners ask them, without a socket.
struct AdminScene {
  static let token = "correct horse battery"

  struct Answer {
    let status: Int
    let headers: HTTPFields
    let body: [UInt8]

    var json: [String: Any] {
      (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:]
    }
    var reason: String? { json["reason"] as? String }
    var text: String { String(decoding: body, as: UTF8.self) }
  }

  private let known: TestRelay?
  private let responder: any HTTPResponder<AdminContext>

  /// Not of a relay whose configuration is the test's own.
  var relay: TestRelay {
    guard let known else { preconditionFailure("this relay is asked by its routes alone") }
    return known
  }

  /// - Parameter isGuarded: as on TCP, where a token is wanted; otherwise as on the socket.
  static func run(
    isGuarded: Bool = false, policy: TestRelay.Policy = .documented,
    _ body: (AdminScene) async throws -> Void
  ) async throws {
    var options = TestRelay.Options()
    (options.isEncrypted, options.wantsProviderTokens) = (false, false)
    (options.policy, options.seed) = (policy, 1)
    try await TestRelay.run(options) { relay in
      let guarded = (
        guard: Guard(token: token, connections: AdminConnections()),
        pages: OwnPages(["localhost", "::1"], aliases: ["proxy.example"])
      )
      let router = relay.cockpit.router(guarded: isGuarded ? guarded : nil)
      try await body(AdminScene(known: relay, responder: router.buildResponder()))
    }
  }

  /// At a relay with another configuration: in memory, without TLS and tokens, with the machine's
  /// clock, and with what `change` says.
  static func run(
    changing change: (inout RelayConfiguration) -> Void, _ body: (AdminScene) async throws -> Void
  ) async throws {
    let state = FileManager.default.temporaryDirectory.appending(path: "admin-\(UUID())")
    try FileManager.default.createDirectory(at: state, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: state) }
    var configuration = RelayConfiguration()
    configuration.state = state.path(percentEncoded: false)
    (configuration.store, configuration.auth, configuration.plaintext) = (.memory, .none, true)
    (configuration.threads, configuration.seed) = (1, 1)
    configuration.shutdownTimeout = .seconds(1)
    configuration.provider = .init(host: "127.0.0.1", port: 0)
    configuration.device = .init(host: "127.0.0.1", port: 0)
    change(&configuration)
    let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let (ready, isReady) = AsyncStream.makeStream(of: Void.self)
    let relay = try Relay(configuration: configuration, logger: silent) { _ in isReady.yield() }
    let group = ServiceGroup(configuration: .init(services: [relay], logger: silent))
    let running = Task {
      defer { isReady.finish() }
      try await group.run()
    }
    for await _ in ready { break }
    let cockpit = Cockpit(relay: relay, configuration: configuration, logger: silent) { _ in }
    let scene = AdminScene(known: nil, responder: cockpit.router(guarded: nil).buildResponder())
    let result: Result<Void, any Error>
    do { result = .success(try await body(scene)) } catch { result = .failure(error) }
    await group.triggerGracefulShutdown()
    try await running.value
    try result.get()
  }

  /// - Parameters:
  ///   - host: nil for none.
  ///   - headers: with JSON as the content type, and the token, where these do not say otherwise.
  func callAsFunction(
    _ method: HTTPRequest.Method, _ path: String, _ body: String = "", host: String? = "localhost",
    headers: [String: String?] = [:]
  ) async throws -> Answer {
    let response = try await respond(method, path, body, host: host, headers: headers)
    let collector = Collector()
    try await response.body.write(collector)
    return Answer(
      status: response.status.code, headers: response.headers,
      body: collector.bytes.withLock { $0 })
  }

  /// An answer whose body is not written yet.
  func respond(
    _ method: HTTPRequest.Method, _ path: String, _ body: String = "", host: String? = "localhost",
    headers: [String: String?] = [:]
  ) async throws -> Response {
    var fields: [String: String?] = [
      "content-type": "application/json", "authorization": "Bearer \(Self.token)",
    ]
    fields.merge(headers) { $1 }
    var head = HTTPRequest(method: method, scheme: "http", authority: host, path: path)
    for (name, value) in fields { head.headerFields[HTTPField.Name(name)!] = value }
    let request = Request(head: head, body: RequestBody(buffer: ByteBuffer(string: body)))
    let context = AdminContext(
      source: .init(
        channel: NIOAsyncTestingChannel(),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
    return try await respond(request, context)
  }

  func respond(_ request: Request, _ context: AdminContext) async throws -> Response {
    try await responder.respond(to: request, context: context)
  }

  private final class Collector: ResponseBodyWriter, Sendable {
    let bytes = Mutex<[UInt8]>([])

    func write(_ buffer: ByteBuffer) {
      bytes.withLock { $0 += buffer.readableBytesView }
    }

    func finish(_ trailingHeaders: HTTPFields?) {}
  }
}
