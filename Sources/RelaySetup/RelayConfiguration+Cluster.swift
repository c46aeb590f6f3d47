import Primitives
import RelayCore

extension RelayConfiguration {
  /// Settings that all nodes of a cluster should have alike, as text: what a phone or a provider
  /// notices when its stripe moves. Policy, provider keys and authorities are shared anyway.
  package var alike: [(key: String, value: String)] {
    func text(_ interval: Interval) -> String { "\(Double(interval.milliseconds) / 1000) s" }
    func text(_ rate: RateLimit?) -> String {
      rate.map { "\($0.burst) at once, one in \(text($0.interval))" } ?? ""
    }
    return [
      ("profile", profile.rawValue), ("plaintext", "\(plaintext)"), ("auth", auth.rawValue),
      ("environment", environment?.rawValue ?? ""), ("strict", "\(strict)"),
      ("ownTokens", "\(ownTokens)"), ("keepAlive", text(keepAlive)),
      ("keepAliveTimeout", text(keepAliveTimeout)), ("ackTimeout", text(ackTimeout)),
      ("rides", text(rides)), ("lowPriorityHold", text(lowPriorityHold)),
      ("tokenRequests", text(requestsPerToken)), ("lease", text(lease)),
      ("keepRequests", "\(keepRequests)"),
    ]
  }
}
