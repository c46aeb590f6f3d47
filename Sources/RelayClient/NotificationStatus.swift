/// What `GET /v1/notifications/{id}` answers. Times are UNIX milliseconds.
package struct NotificationStatus: Codable, Equatable, Sendable {
  package struct Step: Codable, Equatable, Sendable {
    package var time: Int64
    /// `received`, `restored`, `stored`, `sent`, `delivered`, `discarded` or `outcome`.
    package var step: String
    package var via: String?
    package var reason: String?
    package var limit: String?
    package var until: Int64?
    package var replacedBy: String?
    package var outcome: String?
    /// All of it as a sentence.
    package var text: String
  }

  package var uniqueId: String
  package var id: String
  package var topic: String
  package var kind: String
  package var state: String
  package var steps: [Step]
}

extension RelayClient {
  /// The life of a notification, by `apns-unique-id` or `apns-id`: 200 with the JSON of a
  /// `NotificationStatus`, or a refusal with a `ReasonBody`.
  package func life(
    of id: String, providerToken: String?
  ) async throws(ClientError) -> ClientResponse {
    var headers: [(name: String, value: String)] = []
    if let providerToken { headers.append(("authorization", "bearer \(providerToken)")) }
    return try await request(method: "GET", path: "/v1/notifications/\(id)", headers: headers)
  }
}
