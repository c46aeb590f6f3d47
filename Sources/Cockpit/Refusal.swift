import AdminAPI
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import Primitives
import RelayCore
import RelayServer
import Synchronization

extension Refusal {
  /// Converts a text; nil for nil, 400 when it cannot be converted.
  ///
  /// - Parameters:
  ///   - field: the member or parameter; its last part is its name in the message.
  ///   - wanted: what it must be, such as "is a text".
  static func read<Value>(
    _ text: String?, _ field: String, _ wanted: String, _ make: (String) -> Value?
  ) throws(Refusal) -> Value? {
    guard let text else { return nil }
    if let value = make(text) { return value }
    throw .body("\(name(of: field)) \(wanted), not \(shown(text))", field: field)
  }

  /// A required word, one of several.
  static func read<Value: CaseIterable>(
    _ text: String?, _ field: String, oneOf name: (Value) -> String
  ) throws(Refusal) -> Value {
    if let value = Value.allCases.first(where: { name($0) == text }) { return value }
    let known = Value.allCases.map(name).joined(separator: ", ")
    let wrong = text.map { "; \(shown($0)) is none" } ?? ""
    throw .body("\(self.name(of: field)) is one of \(known)\(wrong)", field: field)
  }

  private static func name(of field: String) -> Substring { field.split(separator: ".").last ?? "" }
  private static func shown(_ text: String) -> String { "\"\(String(text.prefix(80)).inOneLine)\"" }

  static func device(_ text: String?, _ field: String = "device") throws(Refusal) -> DeviceID? {
    guard let text else { return nil }
    if let device = try NamedDevices.device(text) { return device }
    throw .body("no phone is called \(text), nor is that a device's id, a UUID", field: field)
  }

  static func token(_ text: String?, _ field: String = "token") throws(Refusal) -> DeviceToken? {
    try read(text, field, "is a device token in hexadecimal") { DeviceToken(hexadecimal: $0) }
  }

  static func topic(_ text: String?, _ field: String = "topic") throws(Refusal) -> String? {
    try read(text, field, "is a topic such as com.example.app") { Topic($0) == nil ? nil : $0 }
  }

  /// One with which a request may be refused.
  static func reason(_ text: String?, _ field: String = "reason") throws(Refusal) -> String? {
    try read(text, field, "is one that the relay refuses with, such as BadDeviceToken") { text in
      let isKnown =
        Rejection.allCases.contains { $0.reason == text }
        || ChannelRefusal.allCases.contains { $0.row.reason == text }
      return isKnown ? text : nil
    }
  }

  static func status(_ text: String?, _ field: String = "status") throws(Refusal) -> Int? {
    try read(text, field, "is an HTTP status such as 400") { text in
      Int(text).flatMap { (100...599).contains($0) ? $0 : nil }
    }
  }

  static func kind(
    _ text: String?, _ field: String = "kind"
  ) throws(Refusal) -> NotificationClass? {
    try read(text, field, "is visible or silent") { text in
      NotificationClass.allCases.first { $0.name == text }
    }
  }

  static func body(_ message: String, field: String? = nil) -> Refusal {
    Refusal(400, "BadBody", message, field: field)
  }

  static let notReady = Refusal(503, "NotReady", "the relay is starting or ending; try again")

  init(_ away: NodeAway) { self.init(503, "NodeAway", "\(away); try again") }

  /// nil for an error that is none of ours.
  init?(for error: any Error) {
    switch error {
    case let refusal as Refusal: self = refusal
    case let away as NodeAway: self.init(away)
    case let error as JournalFails: self.init(503, "JournalFails", "not kept: \(error)")
    case let error as VirtualClock.ClockError: self.init(error)
    case let error as Recordings.RecordingError: self.init(error)
    // A client that has closed one direction only reads it.
    case is CancellationError:
      self = .conflict("HungUp", "the client has closed its side of the connection")
    default: return nil
    }
  }

  static func missing(_ reason: String, _ message: String) -> Refusal {
    Refusal(404, reason, message)
  }

  static func conflict(
    _ reason: String, _ message: String, waitingFor: [String]? = nil
  ) -> Refusal {
    Refusal(409, reason, message, waitingFor: waitingFor)
  }
}

/// Turns every error into an answer of the same form.
struct Refusals: RouterMiddleware {
  let known: KnownRoutes

  func handle(
    _ request: Request, context: AdminContext,
    next: (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    let response = try await answer(request, context, next)
    // RFC 9110 section 9.3.2: a body would be taken for the next answer.
    return request.method == .head ? response.createHeadResponse() : response
  }

  private func answer(
    _ request: Request, _ context: AdminContext,
    _ next: (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    do {
      return try await next(request, context)
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
    } catch {
      guard let refusal = Refusal(for: error) else { throw error }
      return try respond(refusal)
    }
  }

  private func respond(_ refusal: Refusal) throws -> Response {
    var response = try Response(HTTPResponse.Status(code: refusal.status), json: refusal)
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
  /// Announces that this connection is read no further; without it a client would send its next
  /// request into it (RFC 9112 section 9.6).
  mutating func endConnection() { headers[.connection] = "close" }

  init(_ status: HTTPResponse.Status = .ok, json value: some Encodable) throws {
    self.init(
      status: status, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONText.bytes(value) + [0x0A])))
  }
}

extension Request {
  static let bodyBytes = 65_536

  func bytes() async throws -> [UInt8] { try await Self.bytes(of: body) }

  /// Answers by the body, and stops when the client hangs up. To notice that, the connection is
  /// read to its end: no other request comes on it.
  func whileConnected(_ answer: ([UInt8]) async throws -> Response) async throws -> Response {
    do {
      var response = try await body.consumeWithCancellationOnInboundClose { body in
        try await answer(try await Self.bytes(of: body))
      }
      response.endConnection()
      return response
    } catch {
      var refusal = Refusal(for: error)
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

  /// A query parameter; nil when it is absent or empty.
  func parameter(_ name: String) -> String? {
    parameters(name).first
  }

  /// All query parameters of this name that are not empty.
  func parameters(_ name: String) -> [String] {
    // As forms write it, a plus is a blank (WHATWG URL, "application/x-www-form-urlencoded"); most
    // clients' libraries write queries so.
    let plain = URI("/?" + (uri.query ?? "").replacing("+", with: "%20"))
    return plain.queryParameters[values: Substring(name)].map(String.init).filter { !$0.isEmpty }
  }

  /// Refuses query parameters that nobody looks at: with a name misspelt, a filter would hold for
  /// all.
  func allow(_ names: String...) throws(Refusal) {
    var seen: Set<String> = []
    for (key, _) in uri.queryParameters {
      let name = String(key)
      // Conditions add up.
      guard seen.insert(name).inserted || name == "payload" || name == "header" else {
        throw .body("\(name.inOneLine) is there twice", field: name)
      }
      guard !names.contains(name) else { continue }
      throw .body(
        "there is no parameter \(name.inOneLine): known are \(names.joined(separator: ", "))",
        field: name)
    }
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

struct AdminContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    channel = source.channel
  }
}

extension RequestContext {
  /// The name in a path: letters, digits and hyphens, so that it can be a file name.
  func name() throws(Refusal) -> String {
    let name = parameters.get("name") ?? ""
    guard name.wholeMatch(of: /[a-z0-9-]{1,64}/) != nil else {
      throw Refusal(400, "BadName", "a name has 1 to 64 of the characters a-z, 0-9 and -")
    }
    return name
  }
}
