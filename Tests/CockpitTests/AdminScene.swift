import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOEmbedded
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

  let relay: TestRelay
  private let responder: any HTTPResponder<AdminContext>

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
      try await body(AdminScene(relay: relay, responder: router.buildResponder()))
    }
  }

  /// - Parameters:
  ///   - host: nil for none.
  ///   - headers: with JSON as the content type, and the token, where these do not say otherwise.
  func callAsFunction(
    _ method: HTTPRequest.Method, _ path: String, _ body: String = "", host: String? = "localhost",
    headers: [String: String?] = [:]
  ) async throws -> Answer {
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
    let response = try await responder.respond(to: request, context: context)
    let collector = Collector()
    try await response.body.write(collector)
    return Answer(
      status: response.status.code, headers: response.headers,
      body: collector.bytes.withLock { $0 })
  }

  private final class Collector: ResponseBodyWriter, Sendable {
    let bytes = Mutex<[UInt8]>([])

    func write(_ buffer: ByteBuffer) {
      bytes.withLock { $0 += buffer.readableBytesView }
    }

    func finish(_ trailingHeaders: HTTPFields?) {}
  }
}
