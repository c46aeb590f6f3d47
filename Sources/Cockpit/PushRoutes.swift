import AdminAPI
import FoundationEssentials
import Hummingbird
import Primitives
import ProviderCredentials
import RelayCore
import RelayServer

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

  private struct Verdict: Encodable {
    var kind: String?
    var warnings: [PushVerdict.Warning]
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
    let payload = try? JSONTree.read(wish.draft.payload)
    do throws(Rejection) {
      let notification = try wish.draft.notification(
        token: Self.anyToken, topic: wish.topic ?? "com.example.app",
        uniqueID: UniqueID(high: 0, low: 0), isStrict: relay.isStrict, at: relay.now, &warnings)
      return Verdict(
        kind: notification.notificationClass.name,
        warnings: PushVerdict.Warning.all(warnings, payload))
    } catch {
      return Verdict(
        warnings: PushVerdict.Warning.all(warnings, payload), refusal: Refused(error))
    }
  }

  private static let anyToken = String(repeating: "0", count: 64)

  func push(_ wish: PushWish) async throws -> PushVerdict {
    guard let to = wish.to, !to.isEmpty else {
      throw Refusal.body("to is a phone's name or id, or a device token", field: "to")
    }
    let (token, topic) = try await target(to, wish.topic)
    // As what was sent is shown, and refusals are found.
    var wish = wish
    wish.topic = topic
    guard let uniqueID = await relay.makeUniqueID() else {
      throw Refusal.conflict("NotReady", "the relay is still starting; try again")
    }
    var warnings = CaseSet<PayloadWarning>()
    let notification: Notification
    do throws(Rejection) {
      notification = try wish.draft.notification(
        token: token, topic: topic, uniqueID: uniqueID, isStrict: relay.isStrict, at: relay.now,
        &warnings)
    } catch {
      relay.refused(
        error, uniqueID, body: wish.draft.payload,
        fields: Array(":path: /3/device/\(PushWish.line(token))\n".utf8) + wish.fields)
      return answer(error, uniqueID, warnings, wish.draft.payload)
    }
    let note = PushNote(warnings, traceParent: wish.traceParent)
    switch await relay.submit(notification, note, fields: wish.fields) {
    // Of a repetition, the first one's.
    case .accepted(let id):
      var verdict = PushVerdict(200, id, warnings, notification.payload)
      verdict.apnsId = notification.apnsID.description
      return verdict
    case .rejected(let rejection):
      return answer(rejection, uniqueID, warnings, notification.payload)
    case .gone: return answer(.unregistered, uniqueID, warnings, notification.payload)
    case nil:
      var verdict = PushVerdict(0, uniqueID, warnings, notification.payload)
      verdict.message = "a fault took the push: a provider gets no answer"
      return verdict
    }
  }

  private func answer(
    _ rejection: Rejection, _ uniqueID: UniqueID, _ warnings: CaseSet<PayloadWarning>,
    _ payload: [UInt8]
  ) -> PushVerdict {
    var verdict = PushVerdict(Int(rejection.status), uniqueID, warnings, payload)
    verdict.reason = rejection.reason
    verdict.message = rejection.row.text
    return verdict
  }

  /// The token and topic of a device's app; a token is returned as it is.
  private func target(
    _ to: String, _ topic: String?
  ) async throws -> (token: String, topic: String?) {
    // First: a phone chooses its own name, and may have enrolled with somebody's token for one.
    if DeviceToken(hexadecimal: to) != nil { return (to, topic) }
    guard let device = try NamedDevices.device(to) else {
      // A mistyped token is refused as a provider's would be.
      guard to.allSatisfy(\.isHexDigit) else {
        throw Refusal.missing(
          "UnknownDevice", "no phone is called \(to), and it is no device token in hexadecimal")
      }
      return (to, topic)
    }
    guard let report = try await relay.report(of: device) else { throw DeviceRoutes.unknown }
    let apps = report.apps.filter { topic == nil || $0.topic.description == topic }
    guard let app = apps.first, apps.count == 1 else {
      let known = report.apps.map(\.topic.description).joined(separator: ", ")
      if apps.isEmpty {
        throw Refusal.missing(
          "UnknownApp", known.isEmpty ? "the device has no app" : "the device's apps are \(known)")
      }
      throw Refusal.body("say with topic which app is meant: \(known)", field: "topic")
    }
    return (app.token.hexadecimal, app.topic.whole.description)
  }
}

/// The body of `POST /v1/push`: `{"to":…,"topic":…,"headers":{…},"payload":{…}}`. The payload is
/// used byte by byte as written.
struct PushWish {
  private(set) var to: String?
  fileprivate(set) var topic: String?
  var draft = PushDraft()

  init(to: String, topic: String?) { (self.to, self.topic) = (to, topic) }

  /// Its header fields for the journal of requests.
  var fields: [UInt8] {
    var lines = draft.headers.filter { $0.name != FieldName.authorization.wireName }
    if let topic, !lines.contains(where: { $0.name == FieldName.apnsTopic.wireName }) {
      lines.append((FieldName.apnsTopic.wireName, topic))
    }
    let text = lines.map { "\(Self.line($0.name)): \(Self.line($0.value))\n" }
    return Array(text.joined().utf8)
  }

  /// Of a field's name (RFC 9110, section 5.6.2).
  private static let nameCharacters = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~")

  /// A line feed would begin another field.
  fileprivate static func line(_ text: String) -> String {
    String(text.map { $0.isNewline ? " " : $0 })
  }

  init(_ bytes: [UInt8]) throws {
    let problem = "the body is an object with to, topic, headers and payload"
    for (name, value) in try Self.members(of: bytes, orElse: .body(problem)) {
      switch name {
      case "to": to = try value.text(name)
      case "topic": topic = try value.text(name)
      case "payload": draft.payload = value.bytes
      case "headers":
        let headers = try Self.members(
          of: value.bytes, orElse: .body("headers is an object", field: name))
        draft.headers = try headers.map { name, value in
          guard !name.isEmpty, name.allSatisfy(Self.nameCharacters.contains) else {
            throw Refusal.body("headers: '\(name.inOneLine)' is no header's name", field: "headers")
          }
          return (name.lowercased(), try value.field("headers.\(name)"))
        }
      default:
        throw Refusal.body(
          "there is no \(name): known are to, topic, headers and payload", field: name)
      }
    }
    if let named = draft.headers.first(where: { $0.name == FieldName.apnsTopic.wireName }) {
      guard topic == nil || topic == named.value else {
        throw Refusal.body("topic and the header apns-topic differ: give one", field: "topic")
      }
      topic = named.value
    }
  }

  var traceParent: TraceParent? {
    let field = draft.headers.last { $0.name == FieldName.traceParent.wireName }
    return field.flatMap { TraceParent(Array($0.value.utf8).span) }
  }

  private struct Value {
    let bytes: [UInt8]
    let isString: Bool

    func text(_ name: String) throws(Refusal) -> String {
      guard isString, let text = try? JSONDecoder().decode(String.self, from: Data(bytes)) else {
        throw .body("\(name) is a text", field: name)
      }
      return text
    }

    /// A header value: a text, or a number as written, such as a priority.
    func field(_ name: String) throws(Refusal) -> String {
      guard let first = bytes.first, first == UInt8(ascii: "-") || (0x30...0x39).contains(first)
      else {
        guard isString else { throw .body("\(name) is a text or a number", field: name) }
        return try text(name)
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  private static func members(
    of bytes: [UInt8], orElse refusal: Refusal
  ) throws(Refusal) -> [(name: String, value: Value)] {
    var members: [(name: String, value: Value)] = []
    do throws(PayloadError) {
      var cursor = try ObjectCursor(bytes.span)
      while let member = try cursor.next(bytes.span) {
        let value = Value(bytes: Array(bytes[member.value]), isString: member.isString)
        members.append((String(decoding: bytes[member.key], as: UTF8.self), value))
      }
    } catch {
      throw refusal
    }
    if let twice = members.map(\.name).repeated {
      throw .body("\(twice) stands there twice", field: refusal.field ?? twice)
    }
    return members
  }
}
