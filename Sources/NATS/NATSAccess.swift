/// The servers, and the trust and credentials for them. Paths are empty where there is no file.
package struct NATSAccess: Hashable, Sendable {
  /// URLs, `nats://` or `tls://`, with user and password if needed.
  package var servers: [String]
  /// PEM file of authorities for the servers' certificates; empty for the system's.
  package var authorities = ""
  /// PEM files of our certificate with its chain and of its key, for servers that demand one.
  package var certificate = ""
  package var key = ""
  /// File with a user's JWT and the seed of its key, as NATS' tools write it.
  package var credentials = ""

  package init(servers: [String]) { self.servers = servers }

  /// Requires TLS for all connections: the C client would go on without where a server offers none,
  /// even for `tls://`.
  package var isEncrypted: Bool {
    !authorities.isEmpty || !certificate.isEmpty || servers.contains { $0.hasPrefix("tls://") }
  }
}
