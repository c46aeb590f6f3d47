import Glibc
import HTTP2
import NIOCore
import NIOPosix
package import TLS

/// Why a connection, request or stream failed; `description` says what to do.
package enum ClientError: Error, Equatable, Sendable {
  /// No TCP connection: no listener, or the way there is closed.
  case cannotConnect(address: String, problem: String)
  case tls(address: String, TLSError)
  /// The peer closed before it spoke HTTP/2: mostly TLS against a plaintext port.
  case noHTTP2(address: String, problem: String)
  case timedOut(what: String, seconds: Int64)
  /// The server sent GOAWAY (RFC 9113 section 6.8); `reason` is that of APNs' JSON debug data, or
  /// the data itself.
  case goAway(reason: String?, errorCode: UInt32)
  case connectionLost(problem: String)
  /// `close` was called, or the client was released.
  case closed
  /// By the server, with this code (RFC 9113 section 7).
  case streamReset(errorCode: UInt32)
  case streamEnded
  case responseTooLarge(limitBytes: Int)
  case lineTooLong(limitBytes: Int)
  /// The request's head or body exceeds the connection's limits.
  case requestTooLarge
  case unexpectedAnswer(what: String)
  /// By the device API.
  case refused(DeviceRefusal)
  case cancelled
}

extension ClientError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .cannotConnect(let address, let problem):
      "cannot connect to \(address): \(problem); is 'pushrelay serve' running?"
    case .tls(let address, let error):
      "no TLS connection to \(address): \(error); \(Self.advice(error))"
    case .noHTTP2(let address, let problem):
      "\(address) does not speak HTTP/2 as asked: \(problem); does it want TLS, or --plaintext?"
    case .timedOut(let what, let seconds):
      "\(what) took more than \(seconds) s; is the relay overloaded or stopped?"
    case .goAway(let reason?, _): "the relay ends the connection: \(reason); connect again"
    case .goAway(nil, let errorCode):
      "the relay ends the connection (HTTP/2 error \(errorCode)); connect again"
    case .connectionLost(let problem): "the connection was lost: \(problem); connect again"
    case .closed: "the connection is closed on this side; connect again"
    case .streamReset(let errorCode):
      "the relay broke the stream off (HTTP/2 error \(errorCode)); "
        + (errorCode == 0x7 ? "it was not looked at, send it again" : "see its log")
    case .streamEnded: "the stream has ended; open a new one"
    case .responseTooLarge(let limitBytes):
      "the answer has more than \(limitBytes) bytes; is this a relay?"
    case .lineTooLong(let limitBytes): "a line has more than \(limitBytes) bytes; is this a relay?"
    case .requestTooLarge: "the request is too large for one HTTP/2 stream; send less at once"
    case .unexpectedAnswer(let what): "\(what); is this a relay of the same version?"
    case .refused(let refusal): refusal.description
    case .cancelled: "cancelled"
    }
  }

  private static func advice(_ error: TLSError) -> String {
    switch error {
    case .certificateRejected:
      "trust the relay's ca.pem (--state DIR), or give --insecure on a closed network"
    case .handshakeFailed, .truncated, .connectionFailed:
      "if the relay runs with --plaintext, give it here too"
    case .alertReceived: "the relay's log says why"
    case .invalidCertificate, .invalidPrivateKey, .invalidPublicKey, .privateKeyMismatch,
      .invalidApplicationProtocol, .invalidServerName, .notEstablished, .library:
      "check certificate and name"
    }
  }
}

enum ConnectErrorText {
  static func text(_ error: any Error) -> String {
    switch error {
    case let error as NIOConnectionError:
      if let first = error.connectionErrors.last { return text(first.error) }
      return "the host name is not known"
    case let error as IOError: return text(errorNumber: error.errnoCode) ?? error.description
    case ChannelError.connectTimeout: return "nobody answers there"
    case let error as HTTP2Error: return text(error)
    default: return "\(error)"
    }
  }

  static func text(_ error: HTTP2Error) -> String {
    switch error {
    case .connection(_, let reason): reason
    case .flooded, .tooManyQueuedFrames: "too many control frames"
    case .badPreface, .arenaFull, .library, .streamClosed, .headersAlreadySent,
      .headersTooLarge, .notWritable, .queueFull, .wrongRole, .noNewStreams:
      "HTTP/2 error \(error)"
    }
  }

  private static func text(errorNumber: CInt) -> String? {
    switch errorNumber {
    case ECONNREFUSED: "connection refused"
    case ECONNRESET, EPIPE: "connection reset"
    case ETIMEDOUT: "nobody answers there"
    case ENETUNREACH: "the network cannot be reached"
    case EHOSTUNREACH: "the host cannot be reached"
    case EMFILE, ENFILE: "too many open files (see ulimit -n)"
    case EADDRNOTAVAIL: "no local port is free"
    case EACCES, EPERM: "not permitted"
    default: nil
    }
  }
}
