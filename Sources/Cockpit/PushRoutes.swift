import FoundationEssentials
import Hummingbird
import Primitives
import RelayCore
import RelayServer

/// Pushes as a provider would send them, and what is odd about them.
struct PushRoutes {
  let relay: Relay

  func add(to router: Router<AdminContext>) {
    router.post("/v1/push") { request, _ in
      try Response(json: try await push(try PushWish(try await request.bytes())))
    }
    router.post("/v1/lint") { request, _ in
      try Response(json: try lint(try PushWish(try await request.bytes())))
    }
    router.post("/v1/token-check") { request, _ in
      let members = try JSONMembers(try await request.bytes(), known: ["token"])
      guard let token = try members.text("token") else {
        throw Refusal.body("token is a provider token, a JWT", field: "token")
      }
      let problem = await relay.problem(ofProviderToken: token)
      return try Response(
        json: TokenVerdict(valid: problem == nil, problems: problem.map { [$0.explanation] } ?? []))
    }
  }

  private struct TokenVerdict: Encodable {
    var valid: Bool
    var problems: [String]
  }

  struct Warning: Encodable {
    var code: String
    var text: String

    init(_ warning: PayloadWarning) {
      code = warning.name
      text = warning.text
    }
  }

  private struct Verdict: Encodable {
    var kind: String?
    var warnings: [Warning]
    var refusal: Refused?
  }

  private struct Refused: Encodable {
    var status: Int
    var reason: String
    var message: String

    init(_ rejection: Rejection) {
      status = Int(rejection.status)
      reason = rejection.reason
      message = rejection.row.text
    }
  }

  private func lint(_ wish: PushWish) throws -> Verdict {
    var warnings = CaseSet<PayloadWarning>()
    do throws(Rejection) {
      let notification = try wish.notification(
        token: Self.anyToken, topic: wish.topic ?? "com.example.app",
        uniqueID: UniqueID(high: 0, low: 0), isStrict: relay.isStrict, at: relay.now, &warnings)
      return Verdict(
        kind: notification.notificationClass.name, warnings: warnings.members.map(Warning.init))
    } catch {
      return Verdict(warnings: warnings.members.map(Warning.init), refusal: Refused(error))
    }
  }

  private static let anyToken = String(repeating: "0", count: 64)

  struct Answer: Encodable {
    var status: Int
    var apnsId: String?
    var uniqueId: String?
    var reason: String?
    var message: String?
    var warnings: [Warning]
  }

  func push(_ wish: PushWish) async throws -> Answer {
    guard let to = wish.to, !to.isEmpty else {
      throw Refusal.body("to is a device's id or a device token", field: "to")
    }
    let (token, topic) = try await target(to, wish.topic)
    guard let uniqueID = await relay.makeUniqueID() else {
      throw Refusal.conflict("NotReady", "the relay is still starting; try again")
    }
    var warnings = CaseSet<PayloadWarning>()
    let notification: Notification
    do throws(Rejection) {
      notification = try wish.notification(
        token: token, topic: topic, uniqueID: uniqueID, isStrict: relay.isStrict, at: relay.now,
        &warnings)
    } catch {
      return answer(error, uniqueID, warnings)
    }
    switch await relay.submit(notification, warnings) {
    case .accepted:
      return Answer(
        status: 200, apnsId: notification.apnsID.description, uniqueId: uniqueID.description,
        warnings: warnings.members.map(Warning.init))
    case .rejected(let rejection): return answer(rejection, uniqueID, warnings)
    case .gone: return answer(.unregistered, uniqueID, warnings)
    }
  }

  private func answer(
    _ rejection: Rejection, _ uniqueID: UniqueID, _ warnings: CaseSet<PayloadWarning>
  ) -> Answer {
    let refused = Refused(rejection)
    return Answer(
      status: refused.status, uniqueId: uniqueID.description, reason: refused.reason,
      message: refused.message, warnings: warnings.members.map(Warning.init))
  }

  /// The token and topic of a device's app; a token stands for itself.
  private func target(
    _ to: String, _ topic: String?
  ) async throws -> (token: String, topic: String?) {
    guard let device = DeviceID(to) else { return (to, topic) }
    guard let report = await relay.report(of: device) else { throw DeviceRoutes.unknown }
    let apps = report.apps.filter { topic == nil || $0.topic.description == topic }
    guard let app = apps.first, apps.count == 1 else {
      let known = report.apps.map(\.topic.description).joined(separator: ", ")
      throw Refusal.body(
        report.apps.isEmpty
          ? "the device has no app" : "say with topic which app is meant: \(known)",
        field: "topic")
    }
    return (app.token.hexadecimal, app.topic.description)
  }
}

/// The body of `POST /v1/push`: `{"to":…,"topic":…,"headers":{…},"payload":{…}}`. The payload is
/// taken as it stands, byte by byte.
struct PushWish {
  private(set) var to: String?
  private(set) var topic: String?
  private var headers: [(name: String, value: String)] = []
  private var payload: [UInt8] = []

  init(_ bytes: [UInt8]) throws {
    let span = bytes.span
    do throws(PayloadError) {
      var cursor = try ObjectCursor(span)
      while let member = try cursor.next(span) {
        let name = String(decoding: bytes[member.key], as: UTF8.self)
        let text = Self.text(of: member, in: bytes)
        switch name {
        case "to": to = text
        case "topic": topic = text
        case "payload": payload = Array(bytes[member.value])
        case "headers": headers = try Self.headers(Array(bytes[member.value]))
        default: unknown = unknown ?? name
        }
      }
    } catch {
      throw Refusal.body("the body is an object with to, topic, headers and payload")
    }
    if let unknown {
      throw Refusal.body(
        "there is no \(unknown): known are to, topic, headers and payload", field: unknown)
    }
    if let named = headers.first(where: { $0.name == FieldName.apnsTopic.wireName }) {
      topic = topic ?? named.value
    }
  }

  private var unknown: String?

  private static func headers(
    _ bytes: [UInt8]
  ) throws(PayloadError) -> [(name: String, value: String)] {
    var headers: [(name: String, value: String)] = []
    var cursor = try ObjectCursor(bytes.span)
    while let member = try cursor.next(bytes.span) {
      headers.append(
        (
          String(decoding: bytes[member.key], as: UTF8.self).lowercased(),
          text(of: member, in: bytes)
        ))
    }
    return headers
  }

  /// What a string says; a number as it is written.
  private static func text(of member: ObjectCursor.Member, in bytes: [UInt8]) -> String {
    let value = Array(bytes[member.value])
    if member.isString, let text = try? JSONDecoder().decode(String.self, from: Data(value)) {
      return text
    }
    return String(decoding: value, as: UTF8.self)
  }

  /// What a provider's request with these fields would be.
  func notification(
    token: String, topic: String?, uniqueID: UniqueID, isStrict: Bool, at now: Instant,
    _ warnings: inout CaseSet<PayloadWarning>
  ) throws(Rejection) -> Notification {
    var head = ProviderRequestHead()
    var recentTopic: Topic?
    func take(_ field: FieldName, _ value: String) {
      let bytes = Array(value.utf8)
      head.take(field, bytes.span, recentTopic: &recentTopic)
    }
    take(.method, "POST")
    take(.path, "/3/device/\(token)")
    for (name, value) in headers {
      let bytes = Array(name.utf8)
      guard let field = FieldName(bytes.span), field != .apnsTopic, field != .method,
        field != .path
      else { continue }
      take(field, value)
    }
    if let topic { take(.apnsTopic, topic) }
    try head.checkRequestLine()
    let known = try head.checkFields(defaultTopic: nil)
    guard payload.count <= head.payloadLimitBytes else { throw .payloadTooLarge }
    return try head.notification(
      topic: known, body: payload, uniqueID: uniqueID, isStrict: isStrict, at: now,
      warnings: &warnings)
  }
}
