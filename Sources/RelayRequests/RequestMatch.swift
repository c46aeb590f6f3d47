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
  /// Then or later.
  package var since: Instant?

  package init(id: UniqueID? = nil) { self.id = id }

  package func matches(_ request: SentRequest) -> Bool {
    // A payload is read only if all else fits.
    guard differencesOfHead(of: request).isEmpty else { return false }
    guard !payload.isEmpty else { return true }
    let tree = request.payload
    return payload.allSatisfy { $0.difference(in: tree) == nil }
  }

  /// Returns how the request differs from the wanted, a sentence each.
  package func differences(of request: SentRequest) -> [String] {
    guard !payload.isEmpty else { return differencesOfHead(of: request) }
    let tree = request.payload
    return differencesOfHead(of: request) + payload.compactMap { $0.difference(in: tree) }
  }

  private func differencesOfHead(of request: SentRequest) -> [String] {
    var found: [String] = []
    func compare(_ name: String, _ value: String?, _ wanted: String?) {
      guard let wanted, value != wanted else { return }
      found.append(value.map { "\(name) is \($0), not \(wanted)" } ?? "it has no \(name)")
    }
    if let id, request.uniqueID != id, request.apnsID != id { found.append("its id is another") }
    if let since, request.at < since { found.append("it is older") }
    compare("topic", request.topic, topic)
    if let tokens, !tokens.contains(where: { $0 == request.token }) {
      found.append(request.token.map { "its token is \($0.hexadecimal)" } ?? "it has no token")
    }
    compare("push type", request.pushType, pushType)
    compare("status", request.answer.map { String($0.status) }, status.map(String.init))
    compare("reason", request.answer?.refusal?.reason, reason)
    for header in headers { compare(header.name, request.header(header.name), header.value) }
    return found
  }

  /// The push that differs least, the newest of several; nil when there is none. One that was
  /// refused is further away, unless that is wanted, and so is one that lacks what another has with
  /// a wrong value. What manages channels is no push.
  package func nearest(_ requests: some Sequence<SentRequest>) -> SentRequest? {
    requests.filter { $0.source.listener != .channels }
      .map { (request: $0, distance: distance(of: $0)) }
      .min { ($0.distance, $1.request.at) < ($1.distance, $0.request.at) }?.request
  }

  private func distance(of request: SentRequest) -> Int {
    let mayBeRefused = status != nil || reason != nil
    let isRefused = request.answer?.refusal != nil
    let tree = payload.isEmpty ? nil : request.payload
    let inPayload = payload.reduce(0) { sum, condition in
      guard condition.difference(in: tree) != nil else { return sum }
      return sum + (tree.flatMap(condition.path.find) == nil ? 3 : 2)
    }
    let isAnother = id.map { request.uniqueID != $0 && request.apnsID != $0 } ?? false
    return 2 * differencesOfHead(of: request).count + inPayload + (isAnother ? 1000 : 0)
      + (isRefused && !mayBeRefused ? 2 : 0)
  }
}
