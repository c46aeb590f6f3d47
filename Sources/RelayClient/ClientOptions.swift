/// The limits of one client connection.
package struct ClientOptions: Sendable {
  /// How long connecting (TCP, TLS and the server's SETTINGS together) may take, and then each
  /// request until its whole answer, each stream until its head. Whole seconds count.
  package var timeout: Duration = .seconds(30)
  /// Body bytes of an answer to `request`.
  package var maximumResponseBytes = 16 << 20
  /// Received bytes of a stream that its reader has not taken, before the connection stops reading.
  package var unreadStreamBytes = 1 << 20

  package init() {}

  var timeoutSeconds: Int64 { max(1, timeout.components.seconds) }
}
