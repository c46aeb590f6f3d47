package import Primitives
package import RelayCore

/// Which requests are meant: all conditions hold. Without any, all are.
package struct RequestMatch: Sendable {
  /// By the request's or the provider's id.
  package var id: UniqueID?
  package var topic: String?
  /// One of these, such as those of a device's apps.
  package var tokens: [DeviceToken]?
  package var pushType: String?
  /// The HTTP status and the reason of the answer.
  package var status: Int?
  package var reason: String?
  package var headers: [(name: String, value: String)] = []
  package var payload: [PayloadCondition] = []
  /// Later than this.
  package var since: Instant?

  package init() {}

  /// Returns how the request differs from the wanted, a sentence each.
  package func differences(of request: SentRequest) -> [String] {
    var found: [String] = []
    func compare(_ name: String, _ value: String?, _ wanted: String?) {
      guard let wanted, value != wanted else { return }
      found.append(value.map { "\(name) is \($0), not \(wanted)" } ?? "it has no \(name)")
    }
    if let id, request.uniqueID != id, request.apnsID != id { found.append("its id is another") }
    if let since, request.at <= since { found.append("it is older") }
    compare("topic", request.topic, topic)
    if let tokens, !tokens.contains(where: { $0 == request.token }) {
      found.append(request.token.map { "its token is \($0.hexadecimal)" } ?? "it has no token")
    }
    compare("push type", request.pushType, pushType)
    compare("status", request.answer.map { String($0.answer.status) }, status.map(String.init))
    compare("reason", request.answer?.answer.rejection?.reason, reason)
    for header in headers { compare(header.name, request.header(header.name), header.value) }
    if !payload.isEmpty {
      let tree = request.payload
      found += payload.compactMap { $0.difference(in: tree) }
    }
    return found
  }

  /// The request that differs least, the newest of several; nil when there is none.
  package func nearest(_ requests: some Sequence<SentRequest>) -> SentRequest? {
    requests.map { (request: $0, count: differences(of: $0).count) }
      .min { ($0.count, $1.request.at) < ($1.count, $0.request.at) }?.request
  }
}
