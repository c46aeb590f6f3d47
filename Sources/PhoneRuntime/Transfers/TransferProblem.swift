import AsyncHTTPClient
import NIOHTTP1
import NIOSSL
import SystemPackage

/// Why a transfer, or one attempt at it, did not finish.
enum TransferProblem: Error, Hashable {
  /// Whoever wanted it wants it no more.
  case cancelled
  case challenged
  /// It may work another time.
  case interrupted(String)
  /// It will not.
  case failed(String)

  /// What the client library or a file has thrown.
  init(_ error: any Error) {
    switch error {
    case let problem as TransferProblem: self = problem
    case is CancellationError: self = .cancelled
    case let errno as Errno: self = TransferProblem(errno)
    case let error as HTTPClientError: self = TransferProblem(error)
    // The end of the connection amid an answer.
    case HTTPParserError.invalidEOFState: self = .interrupted("the connection broke off")
    case let error as HTTPParserError: self = .failed("the answer is no HTTP: \(error)")
    case let error as NIOSSLError: self = TransferProblem(error)
    case is NIOSSLExtraError:
      self = .failed("the server's certificate is for another host: check the address")
    default: self = .interrupted("the connection failed: \(error)")
    }
  }

  private init(_ error: HTTPClientError) {
    switch error {
    case .cancelled: self = .cancelled
    case .remoteConnectionClosed, .uncleanShutdown: self = .interrupted("the connection broke off")
    case .readTimeout, .writeTimeout: self = .interrupted("the server was silent for too long")
    case .connectTimeout, .getConnectionFromPoolTimeout, .tlsHandshakeTimeout:
      self = .interrupted("no connection in time")
    case .invalidURL, .emptyHost, .emptyScheme:
      self = .failed("the address cannot be read: it is written as https://host/path")
    case .bodyLengthMismatch:
      self = .failed("the file changed its size while it was sent")
    case .alreadyShutdown: self = .failed("the transfers were shut down")
    default: self = .failed("the request was not possible: \(error.shortDescription)")
    }
  }

  private init(_ error: NIOSSLError) {
    switch error {
    case .handshakeFailed:
      // The libraries' words for what people meet.
      let words = "\(error)"
      let why =
        words.contains("CERTIFICATE_VERIFY_FAILED")
        ? "the server's certificate is not trusted; give its authority as one that is"
        : words.contains("WRONG_VERSION_NUMBER") || words.contains("EOF during handshake")
          ? "the server does not seem to speak TLS; is the address one of http://?" : words
      self = .failed("no TLS connection: \(why)")
    case .uncleanShutdown: self = .interrupted("the connection broke off")
    default: self = .interrupted("the TLS connection failed: \(error)")
    }
  }

  private init(_ errno: Errno) {
    switch errno {
    case .noSpace: self = .failed("no space is left for the file: make some, and try again")
    default: self = .failed("the file cannot be used: \(errno)")
    }
  }

  /// What an answer with such a status means; nil for one that may be what was wanted.
  init?(_ status: HTTPResponseStatus) {
    switch status.code {
    case ..<300: return nil
    case 401, 407: self = .challenged
    // Timeout and overload: temporary by what they say.
    case 408, 429, 500...: self = .interrupted("the server answered \(Self.text(status))")
    default: self = .failed("the server answered \(Self.text(status))")
    }
  }

  /// A phrase of the server's own may hold anything.
  private static func text(_ status: HTTPResponseStatus) -> String {
    let phrase = status.reasonPhrase.unicodeScalars.filter { (0x20...0x7E).contains($0.value) }
    return "\(status.code) " + String(String.UnicodeScalarView(phrase.prefix(60)))
  }
}
