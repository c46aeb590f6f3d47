import Primitives
import RelayCore
package import RelayRequests

/// A provider's request as it was sent, a push, a broadcast or one about channels, with its answer:
/// in `GET /v1/requests`. Times are UNIX milliseconds.
package struct RequestStatus: Codable, Equatable, Sendable {
  package struct Header: Codable, Equatable, Sendable {
    package var name: String
    package var value: String

    package init(name: String, value: String) { (self.name, self.value) = (name, value) }
  }

  package struct Connection: Codable, Equatable, Sendable {
    /// The client's address and port; empty for the admin API.
    package var peer: String
    /// `provider`, `binary`, `admin` or `channels`.
    package var listener: String
    /// `tls`, `plaintext` or `admin`.
    package var security: String
    package var number: UInt32
    /// The request's place on it, from 1.
    package var request: UInt32
    // The client has shown these of itself: a token's team and key, or a certificate.
    package var team: String?
    package var keyId: String?
    package var certificate: String?
  }

  package var uniqueId: String
  /// `apns-id`.
  package var id: String
  /// RFC 3339.
  package var at: String
  package var time: Int64
  package var path: String?
  package var topic: String?
  package var token: String?
  package var pushType: String?
  package var priority: Int?
  package var expiration: String?
  package var collapseId: String?
  package var kind: String?
  package var headers: [Header]
  package var payload: JSONValue?
  /// The body as text, when it is not JSON.
  package var body: String?
  /// Absent when the body was longer than that of any push.
  package var bodyBytes: Int?
  /// Places of the payload that are replaced by their kind and length, where they occur.
  package var redacted: [String]?
  package var warnings: [PushVerdict.Warning]
  package var connection: Connection
  // Absent while it has no answer.
  package var status: Int?
  package var reason: String?
  /// For people.
  package var message: String?
  /// From the complete request to its answer.
  package var milliseconds: Int64?
  /// A command that sends it again.
  package var curl: String?

  /// - Parameter places: those that the relay redacts.
  package init(_ request: SentRequest, redacted places: [String] = []) {
    uniqueId = request.uniqueID.description
    id = request.apnsID.description
    at = request.at.iso8601
    time = request.at.milliseconds
    topic = request.topic
    token = request.token?.hexadecimal
    path = request.path
    let notification = request.notification
    pushType = request.pushType
    priority = notification.map { Int($0.priority.rawValue) }
    expiration = request.header("apns-expiration")
    collapseId =
      request.header("apns-collapse-id")
      ?? notification.flatMap { notification in
        notification.collapseID.isEmpty
          ? nil : String(decoding: notification.collapseID, as: UTF8.self)
      }
    kind = notification?.notificationClass.name
    headers = request.headers.map { Header(name: $0.name, value: $0.value) }
    let tree = request.payload
    payload = tree.map { JSONValue($0) }
    let bytes = request.body
    if payload == nil, !bytes.isEmpty { body = String(decoding: bytes, as: UTF8.self) }
    bodyBytes = request.bodyBytes
    if request.isRedacted { redacted = places }
    warnings = PushVerdict.Warning.all(request.warnings, request.isRedacted ? nil : tree)
    connection = Connection(request)
    if let answer = request.answer {
      status = answer.status
      (reason, message) = (answer.refusal?.reason, answer.refusal?.text)
      if let found = answer.rejection.flatMap({ Self.finding($0, request) }) {
        message? += "; \(found)"
      }
      milliseconds = answer.after.milliseconds
    }
  }
}

extension RequestStatus {
  /// The field that a refusal is about.
  private static let fields: [Rejection: FieldName] = [
    .badCollapseID: .apnsCollapseID, .badExpirationDate: .apnsExpiration, .badMessageID: .apnsID,
    .badPriority: .apnsPriority, .badTopic: .apnsTopic, .deviceTokenNotForTopic: .apnsTopic,
    .invalidPushType: .apnsPushType, .topicDisallowed: .apnsTopic, .methodNotAllowed: .method,
    .badPath: .path,
  ]

  /// The value for which it was refused.
  private static func finding(_ rejection: Rejection, _ request: SentRequest) -> String? {
    if rejection == .badDeviceToken, let service = request.token?.environment {
      return "it is made as those of the \(service.rawValue) service are"
    }
    if rejection == .duplicateHeaders {
      let counts = Dictionary(grouping: request.headers, by: \.name).mapValues(\.count)
      let names = counts.filter { $0.value > 1 }.keys.sorted()
      return names.isEmpty ? nil : names.joined(separator: ", ")
    }
    guard let field = fields[rejection] else { return nil }
    guard let value = request.header(field.wireName) else {
      return field == .apnsPushType ? "none came" : nil
    }
    let came = "\"\(value.prefix(80))\" came"
    guard field == .apnsTopic, let type = request.pushType else { return came }
    let suffix = PushType.allCases.first { $0.wireName == type }?.topicSuffix ?? ""
    return "\(came), of type \(type)" + (suffix.isEmpty ? "" : ", whose topics end with \(suffix)")
  }
}

extension RequestStatus.Connection {
  fileprivate init(_ request: SentRequest) {
    let source = request.source
    peer = source.peer
    listener = source.listener.name
    number = source.connection
    self.request = request.ordinal
    security =
      switch source.listener {
      case .admin: "admin"
      case .provider, .binary, .channels: source.isEncrypted ? "tls" : "plaintext"
      }
    switch source.proof {
    case .none: break
    case .token(let team, let key): (self.team, keyId) = (team, key)
    case .certificate(let name): certificate = name
    }
  }
}

/// The answer to `GET /v1/requests`.
package struct RequestList: Codable, Sendable {
  /// The requests that this node keeps.
  package struct Kept: Codable, Sendable {
    package var bytes: Int
    package var limitBytes: Int
    package var count: Int

    package init(bytes: Int, limitBytes: Int, count: Int) {
      (self.bytes, self.limitBytes, self.count) = (bytes, limitBytes, count)
    }
  }

  package var cursor: String
  package var hasMore: Bool
  package var kept: Kept
  package var requests: [RequestStatus]

  package init(cursor: String, hasMore: Bool, kept: Kept, requests: [RequestStatus]) {
    (self.cursor, self.hasMore, self.kept) = (cursor, hasMore, kept)
    self.requests = requests
  }
}
