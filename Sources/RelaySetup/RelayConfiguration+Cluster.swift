import NATS
import Primitives
import RelayCluster
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

extension RelayConfiguration {
  /// Settings that go together, or do not.
  func checkCluster() throws(ReadingError) {
    func fail(_ key: String, _ text: String) -> ReadingError {
      ReadingError(key: key, description: text)
    }
    guard store == .jetstream else {
      guard engine == NATSAccess(servers: []), node.isEmpty else {
        throw fail("nats", "nats, node, natsCA and the like need store jetstream")
      }
      guard advertiseDevice == nil else {
        throw fail("advertiseDevice", "advertiseDevice needs store jetstream")
      }
      return
    }
    guard !nats.isEmpty else { throw fail("nats", "store jetstream needs nats, one URL or more") }
    guard ClusterJournal.isNodeName(node) else {
      throw fail("node", "store jetstream needs node: 1 to 64 letters, digits, - or _")
    }
    guard natsCertificate.isEmpty == natsKey.isEmpty else {
      throw fail("natsKey", "natsCertificate and natsKey go together")
    }
    guard advertiseDevice?.isWildcard != true else {
      throw fail("advertiseDevice", "advertiseDevice is one address that phones can connect to")
    }
    guard lease >= .seconds(1) else { throw fail("lease", "lease must be 1 second or more") }
  }
}
