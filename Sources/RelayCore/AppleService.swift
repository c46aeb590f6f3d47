/// The services behind Apple's documented host names and ports for pushes (Apple, "Sending
/// notification requests to APNs", "Sending channel management requests to APNs", "Binary Provider
/// API", archived).
package enum AppleService: CaseIterable, Equatable, Sendable {
  /// The provider API over HTTP/2, broadcasts included.
  case provider
  /// The management of broadcast channels.
  case channels
  /// The binary provider API and its feedback service.
  case legacy, feedback

  /// Its host names.
  package var hosts: [String] {
    switch self {
    case .provider:
      [
        "api.push.apple.com", "api.sandbox.push.apple.com", "api.development.push.apple.com",
        "api-broadcast.push.apple.com", "api-broadcast.sandbox.push.apple.com",
      ]
    case .channels:
      ["api-manage-broadcast.push.apple.com", "api-manage-broadcast.sandbox.push.apple.com"]
    case .legacy: ["gateway.push.apple.com", "gateway.sandbox.push.apple.com"]
    case .feedback: ["feedback.push.apple.com", "feedback.sandbox.push.apple.com"]
    }
  }

  /// The ports on any of these hosts.
  package var ports: [UInt16] {
    switch self {
    case .provider: [443, 2197]
    case .channels: [2195, 2196]
    case .legacy: [2195]
    case .feedback: [2196]
    }
  }

  /// The ports of a host, for people; empty when it is none of these.
  package static func ports(of host: String) -> String {
    allCases.filter { $0.hosts.contains(host) }.flatMap(\.ports).map(String.init)
      .joined(separator: " or ")
  }

  /// nil when the place is none of Apple's push service.
  package init?(at target: ConnectTarget) {
    let found = Self.allCases.first {
      $0.hosts.contains(target.host) && $0.ports.contains(target.port)
    }
    guard let found else { return nil }
    self = found
  }

  /// All names, for a certificate that programs with these names in them accept.
  package static var names: [String] { allCases.flatMap(\.hosts) }
}
