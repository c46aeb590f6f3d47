/// A message that arrived on a connection's inbox.
package struct NATSMessage: Sendable {
  /// The tag of the question: the subject behind the inbox's name.
  package var tag: String
  package var body: [UInt8]
  package var headers: [String: String]

  package init(tag: String, body: [UInt8], headers: [String: String] = [:]) {
    self.tag = tag
    self.body = body
    self.headers = headers
  }

  /// The status in the headers' first line ("NATS Protocol", "HMSG"): 503 for a subject without
  /// subscribers.
  package var status: Int? { headers["Status"].flatMap { Int($0) } }
}

package struct NATSError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Where to look for the cause.
  package enum Cause: Equatable, Sendable {
    /// Mostly that no server answers.
    case other
    /// A file of ours is not usable.
    case file(path: String)
    /// The server's certificate is not trusted, or is another host's.
    case certificate
    case noTLS
    /// The server hung up on our certificate, or for lack of one.
    case hangup
    case user
  }

  package var description: String
  package var cause: Cause

  package init(_ description: String, _ cause: Cause = .other) {
    (self.description, self.cause) = (description, cause)
  }
}
