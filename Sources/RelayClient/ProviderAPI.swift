/// A push as a provider sends it (Apple, "Sending notification requests to APNs"). nil or empty
/// values are left out.
package struct PushRequest: Equatable, Sendable {
  /// Hexadecimal.
  package var token: String
  package var topic: String?
  package var pushType: String?
  /// 10, 5 or 1.
  package var priority: Int?
  /// UNIX seconds; 0: try once, never store.
  package var expirationSeconds: Int64?
  package var collapseID: String?
  /// A UUID; the relay makes one if nil.
  package var id: String?
  package var payload: [UInt8]

  package init(token: String, payload: [UInt8]) {
    self.token = token
    self.payload = payload
  }

  func head(_ providerToken: String?) -> RequestHead {
    var headers: [(name: String, value: String)] = []
    if let topic { headers.append(("apns-topic", topic)) }
    if let pushType { headers.append(("apns-push-type", pushType)) }
    if let priority { headers.append(("apns-priority", String(priority))) }
    if let expirationSeconds { headers.append(("apns-expiration", String(expirationSeconds))) }
    if let collapseID { headers.append(("apns-collapse-id", collapseID)) }
    if let id { headers.append(("apns-id", id)) }
    if let providerToken { headers.append(("authorization", "bearer \(providerToken)")) }
    return RequestHead(method: "POST", path: "/3/device/\(token)", headers: headers)
  }
}

/// The relay's answer to a push (Apple, "Handling notification responses from APNs").
package struct PushAnswer: Equatable, Sendable {
  /// 200 when the relay now owns the notification.
  package var status: Int
  /// `apns-id`: the provider's, or made by the relay.
  package var id: String?
  /// `apns-unique-id`: the key of the relay's log.
  package var uniqueID: String?
  package var reason: String?
  /// With 410: since when the token is invalid, in UNIX milliseconds.
  package var timestamp: Int64?

  init(_ response: ClientResponse) {
    status = response.status
    id = response.headers["apns-id"]
    uniqueID = response.headers["apns-unique-id"]
    let refusal = ReasonBody(response.body)
    reason = refusal?.reason
    timestamp = refusal?.timestamp
  }
}

extension RelayClient {
  /// Sends a push. `providerToken` is the JWT for `authorization: bearer`, nil if not needed. A
  /// refusal is an answer, not an error.
  package func push(
    _ push: PushRequest, providerToken: String?
  ) async throws(ClientError) -> PushAnswer {
    let head = push.head(providerToken)
    return PushAnswer(
      try await request(
        method: head.method, path: head.path, headers: head.headers, body: push.payload))
  }

  /// The same without a task: `onAnswer` is called on the connection's loop, once.
  func push(
    _ push: PushRequest, providerToken: String?,
    onAnswer: @escaping @Sendable (Result<PushAnswer, ClientError>) -> Void
  ) {
    request(push.head(providerToken), body: push.payload) { onAnswer($0.map { PushAnswer($0) }) }
  }

  /// The life of a notification, by `apns-unique-id` or `apns-id`: 200 with a `NotificationLife`,
  /// or a refusal with a `ReasonBody`.
  package func life(
    of id: String, providerToken: String?
  ) async throws(ClientError) -> ClientResponse {
    var headers: [(name: String, value: String)] = []
    if let providerToken { headers.append(("authorization", "bearer \(providerToken)")) }
    return try await request(method: "GET", path: "/v1/notifications/\(id)", headers: headers)
  }
}
