/// Where the servers are, whom to trust there, and what to show them. Paths are empty where there
/// is no file.
package struct NATSAccess: Hashable, Sendable {
  /// URLs, `nats://` or `tls://`, with user and password where these are asked for.
  package var servers: [String]
  /// Authorities in PEM for the servers' certificates; the system's count where there are none.
  package var authorities = ""
  /// The own certificate in PEM, with its chain, and its key, for servers that demand one.
  package var certificate = ""
  package var key = ""
  /// A user's JWT and the seed of its key, as NATS' tools write them.
  package var credentials = ""

  package init(servers: [String]) { self.servers = servers }

  /// Whether all connections must be encrypted: the C client by itself would go on without where a
  /// server offers no TLS, even to `tls://`.
  package var isEncrypted: Bool {
    !authorities.isEmpty || !certificate.isEmpty || servers.contains { $0.hasPrefix("tls://") }
  }
}
