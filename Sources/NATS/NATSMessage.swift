/// A message that came in on the inbox of a connection.
package struct NATSMessage: Sendable {
  /// What stands behind the inbox's own name: what the question was sent with.
  package var tag: String
  package var body: [UInt8]
  /// Empty where the message has none, as most answers do.
  package var headers: [String: String]

  package init(tag: String, body: [UInt8], headers: [String: String] = [:]) {
    self.tag = tag
    self.body = body
    self.headers = headers
  }

  /// The status in the first line of the headers ("NATS Protocol", "HMSG"): 503 when nobody
  /// listens to the subject.
  package var status: Int? { headers["Status"].flatMap { Int($0) } }
}

/// What went wrong, in the words of the client library.
package struct NATSError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Where to look for what is wrong.
  package enum Cause: Equatable, Sendable {
    /// None of the below: nobody answers, mostly.
    case other
    /// A file of our own cannot be used.
    case file(path: String)
    /// The server's certificate is not trusted, or is another host's.
    case certificate
    /// The server offers no TLS, and it was demanded.
    case noTLS
    /// The server hung up on our certificate, or for want of one.
    case hangup
    /// The server does not know the user, or has another password.
    case user
  }

  package var description: String
  package var cause: Cause

  package init(_ description: String, _ cause: Cause = .other) {
    (self.description, self.cause) = (description, cause)
  }
}
