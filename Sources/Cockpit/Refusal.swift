import FoundationEssentials
import HTTPTypes
import Hummingbird
import NIOCore
import RelayServer
import Synchronization

/// Why a request of the admin API was refused.
package struct Refusal: Error, Equatable, Sendable {
  let status: Int
  /// One word for programs.
  package let reason: String
  /// What to do, for people.
  package let message: String
  /// The member of the body that is meant.
  var field: String?
  /// Who has not come to an end.
  var waitingFor: [String]?
  /// What there is instead of what was wanted.
  var nearest: [LifeBody]?
  /// Nodes that were asked and have not answered.
  var missingNodes: [String]?
  /// Whether nothing more is read from its connection (`whileConnected`).
  var endsConnection = false

  init(
    _ status: Int, _ reason: String, _ message: String, field: String? = nil,
    waitingFor: [String]? = nil
  ) {
    self.status = status
    self.reason = reason
    self.message = message
    self.field = field
    self.waitingFor = waitingFor
  }

  /// 400: the body or a parameter is not what is wanted.
  static func body(_ message: String, field: String? = nil) -> Refusal {
    Refusal(400, "BadBody", message, field: field)
  }

  /// 503: the relay is not there yet, or not any more.
  static let notReady = Refusal(503, "NotReady", "the relay is starting or ending; try again")

  /// 503: another node has what is asked for.
  init(_ away: NodeAway) { self.init(503, "NodeAway", "\(away); try again") }

  /// 404: there is no such thing.
  static func missing(_ reason: String, _ message: String) -> Refusal {
    Refusal(404, reason, message)
  }

  /// 409: the relay is not in the state for it.
  static func conflict(
    _ reason: String, _ message: String, waitingFor: [String]? = nil
  ) -> Refusal {
    Refusal(409, reason, message, waitingFor: waitingFor)
  }
}

/// Makes an answer of every error, in the one form that all have.
struct Refusals: RouterMiddleware {
  let known: KnownRoutes

  private struct Body: Encodable {
    var reason: String
    var message: String
    var field: String?
    var waitingFor: [String]?
    var nearest: [LifeBody]?
    var missingNodes: [String]?
  }

  func handle(
    _ request: Request, context: AdminContext,
    next: (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    do {
      return try await next(request, context)
    } catch let refusal as Refusal {
      return try respond(refusal)
    } catch let away as NodeAway {
      return try respond(Refusal(away))
    } catch let error as HTTPError where error.status == .notFound {
      let methods = known.methods(of: request.uri.path)
      guard methods.isEmpty else {
        var response = try respond(
          Refusal(
            405, "MethodNotAllowed",
            "\(request.uri.path) is for \(methods.joined(separator: " and "))"))
        // RFC 9110 section 15.5.6.
        response.headers[.allow] = methods.joined(separator: ", ")
        return response
      }
      return try respond(
        Refusal(404, "NotFound", "there is no \(request.uri.path); see /openapi.json"))
    }
  }

  private func respond(_ refusal: Refusal) throws -> Response {
    var response = try Response(
      HTTPResponse.Status(code: refusal.status),
      json: Body(
        reason: refusal.reason, message: refusal.message, field: refusal.field,
        waitingFor: refusal.waitingFor, nearest: refusal.nearest,
        missingNodes: refusal.missingNodes))
    if refusal.endsConnection { response.endConnection() }
    return response
  }
}

/// All paths with their methods, to tell a wrong method from a wrong path.
final class KnownRoutes: Sendable {
  private let routes = Mutex<[(method: String, parts: [Substring])]>([])

  func set(_ known: [(method: String, path: String)]) {
    routes.withLock { $0 = known.map { ($0.method, $0.path.split(separator: "/")) } }
  }

  /// The methods with which a path exists.
  func methods(of path: String) -> [String] {
    let parts = path.split(separator: "/")
    return routes.withLock { routes in
      routes.filter { route in
        route.parts.count == parts.count
          && zip(route.parts, parts).allSatisfy { known, part in
            known == part || known.hasPrefix("{") || known.hasPrefix(":")
          }
      }.map(\.method)
    }
  }
}

extension Response {
  /// Says that no other request is read from this connection: whoever does not hear that sends its
  /// next one into it (RFC 9112 section 9.6).
  mutating func endConnection() { headers[.connection] = "close" }

  init(_ status: HTTPResponse.Status = .ok, json value: some Encodable) throws {
    self.init(
      status: status, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONText.bytes(value) + [0x0A])))
  }
}

enum JSONText {
  static func bytes(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Array(try encoder.encode(value))
  }
}

extension Request {
  /// The most that a body may have, on all routes.
  static let bodyBytes = 65_536

  /// The whole body.
  func bytes() async throws -> [UInt8] { try await Self.bytes(of: body) }

  /// Answers by what the body says; whoever hangs up meanwhile is not waited for. To see that, the
  /// connection is read to its end: no other request comes on it.
  func whileConnected(
    _ answer: ([UInt8]) async throws -> Response
  ) async throws -> Response {
    do {
      var response = try await body.consumeWithCancellationOnInboundClose { body in
        try await answer(try await Self.bytes(of: body))
      }
      response.endConnection()
      return response
    } catch is CancellationError {
      return Response(status: .noContent)
    } catch {
      var refusal = (error as? Refusal) ?? (error as? NodeAway).map { Refusal($0) }
      refusal?.endsConnection = true
      throw refusal ?? error
    }
  }

  private static func bytes(of body: RequestBody) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    for try await piece in body {
      bytes.append(contentsOf: piece.readableBytesView)
      guard bytes.count <= bodyBytes else {
        throw Refusal(413, "BodyTooLarge", "a body has at most \(bodyBytes) bytes")
      }
    }
    return bytes
  }

  /// A parameter of the query; nil when there is none or it is empty.
  func parameter(_ name: String) -> String? {
    uri.queryParameters[Substring(name)].map(String.init).flatMap { $0.isEmpty ? nil : $0 }
  }

  /// `limit`, from 1 to 500.
  func limit(_ fallback: Int = 50) throws(Refusal) -> Int {
    guard let text = parameter("limit") else { return fallback }
    guard let limit = Int(text), (1...500).contains(limit) else {
      throw .body("limit is a whole number from 1 to 500", field: "limit")
    }
    return limit
  }
}

/// What is known of a request beside itself.
struct AdminContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    channel = source.channel
  }
}

extension RequestContext {
  /// The name in a path: letters, digits and hyphens, so that it can be a file's.
  func name() throws(Refusal) -> String {
    let name = parameters.get("name") ?? ""
    let isGood = name.utf8.allSatisfy { byte in
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
    }
    guard isGood, (1...64).contains(name.utf8.count) else {
      throw Refusal(400, "BadName", "a name has 1 to 64 of the characters a-z, 0-9 and -")
    }
    return name
  }
}
