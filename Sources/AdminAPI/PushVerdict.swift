package import Primitives
package import RelayCore

/// The answer to `POST /v1/push`: 200, or Apple's refusal; status 0 when a fault took the push.
package struct PushVerdict: Codable, Sendable {
  package struct Warning: Codable, Equatable, Sendable {
    package var code: String
    package var text: String
    /// The places that it is about, such as `aps.alert.titel`, where they are known.
    package var keys: [String]?

    /// - Parameter payload: nil if it is no JSON, or not as it was sent.
    package static func all(_ warnings: CaseSet<PayloadWarning>, _ payload: JSONTree?) -> [Self] {
      let places = payload.map { PayloadOddities($0).places } ?? [:]
      return PayloadWarning.allCases.filter { warnings.contains($0) || places[$0] != nil }.map {
        let keys = places[$0]
        let text = ([$0.text] + (keys.map { [$0.joined(separator: ", ")] } ?? []))
        return Self(code: $0.name, text: text.joined(separator: ": "), keys: keys)
      }
    }
  }

  package var status: Int
  package var apnsId: String?
  package var uniqueId: String?
  package var reason: String?
  package var message: String?
  package var warnings: [Warning]

  package init(
    _ status: Int, _ uniqueID: UniqueID, _ warnings: CaseSet<PayloadWarning>, _ payload: [UInt8]
  ) {
    self.status = status
    uniqueId = uniqueID.description
    self.warnings = Warning.all(warnings, try? JSONTree.read(payload))
  }
}

/// A push that has come by no connection, to be judged as if it had.
package struct PushDraft {
  package var headers: [(name: String, value: String)] = []
  package var payload: [UInt8] = []
  /// The service that is asked; nil for both.
  package var service: ProviderEnvironment?

  package init() {}

  /// The notification of a provider's request with these fields.
  package func notification(
    token: String, topic: String?, uniqueID: UniqueID, isStrict: Bool, at now: Instant,
    _ warnings: inout CaseSet<PayloadWarning>
  ) throws(Rejection) -> Notification {
    var head = ProviderRequestHead()
    head.environment = service
    var recentTopic: Topic?
    func add(_ field: FieldName, _ value: String) {
      let bytes = Array(value.utf8)
      head.parse(field, bytes.span, recentTopic: &recentTopic)
    }
    add(.method, "POST")
    add(.path, "/3/device/\(token)")
    for (name, value) in headers {
      let bytes = Array(name.utf8)
      guard let field = FieldName(bytes.span) else {
        head.parseUnknown(bytes.span)
        continue
      }
      if ![.apnsTopic, .method, .path].contains(field) { add(field, value) }
    }
    if let topic { add(.apnsTopic, topic) }
    try head.checkRequestLine()
    let known = try head.checkFields(defaultTopic: nil)
    return try head.notification(
      topic: known, body: payload, uniqueID: uniqueID, isStrict: isStrict, at: now,
      warnings: &warnings)
  }
}
