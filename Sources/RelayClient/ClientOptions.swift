/// The limits of one client connection.
package struct ClientOptions: Sendable {
  /// How long TCP may take to connect, and then TLS and the server's SETTINGS together. Whole
  /// seconds count, here and below.
  package var connectTimeout: Duration = .seconds(10)
  /// How long a request may take until its whole answer, and a stream until its head.
  package var timeout: Duration = .seconds(30)
  /// Body bytes of an answer to `request`.
  package var maximumResponseBytes = 16 << 20
  /// Received bytes of a stream that its reader has not taken, before the connection stops reading.
  package var unreadStreamBytes = 1 << 20

  package init() {}

  var connectTimeoutSeconds: Int64 { max(1, connectTimeout.components.seconds) }

  var timeoutSeconds: Int64 { max(1, timeout.components.seconds) }
}
