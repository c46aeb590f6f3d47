import NIOCore
import NIOHTTP1
import SystemPackage
import TLS

/// Why a transfer, or one attempt, did not finish.
enum TransferError: Error, Hashable, CustomStringConvertible {
  case cancelled
  case challenged
  /// Temporary: worth another attempt.
  case interrupted(String)
  /// Permanent.
  case failed(String)

  var description: String {
    switch self {
    case .cancelled: "cancelled"
    case .challenged: "the server wants credentials"
    case .interrupted(let why), .failed(let why): why
    }
  }

  static let ended = Self.interrupted("the connection broke off")

  init(_ error: any Error) {
    switch error {
    case let problem as TransferError: self = problem
    case is CancellationError: self = .cancelled
    case let errno as Errno: self = TransferError(errno)
    case HTTPParserError.invalidEOFState, ChannelError.inputClosed, ChannelError.eof,
      ChannelError.ioOnClosedChannel:
      self = .ended
    case ChannelError.connectTimeout: self = .interrupted("no connection in time")
    case let error as HTTPParserError: self = .failed("the answer is no HTTP: \(error)")
    case let error as TLSError: self = TransferError(error)
    default: self = .interrupted("the connection failed: \(error)")
    }
  }

  private init(_ error: TLSError) {
    switch error {
    case .certificateRejected(let reason) where reason.contains("mismatch"):
      self = .failed("the server's certificate is for another host: check the address")
    case .certificateRejected(let reason):
      self = .failed(
        "no TLS connection: the server's certificate is not trusted; give its authority as one "
          + "that is (\(reason))")
    case .handshakeFailed(let reason) where reason == "wrong version number":
      self = .failed(Self.noTLS)
    case .handshakeFailed, .alertReceived, .invalidServerName:
      self = .failed("no TLS connection: \(error)")
    case .truncated: self = .ended
    case .connectionFailed, .invalidApplicationProtocol, .invalidCertificate, .invalidPrivateKey,
      .invalidPublicKey, .library, .notEstablished, .privateKeyMismatch:
      self = .interrupted("the TLS connection failed: \(error)")
    }
  }

  /// The server answers or closes instead of a handshake.
  static let noTLS =
    "no TLS connection: the server does not seem to speak TLS; is the address one of http://?"

  private init(_ errno: Errno) {
    switch errno {
    case .noSpace: self = .failed("no space is left for the file: make some, and try again")
    default: self = .failed("the file cannot be used: \(errno)")
    }
  }

  /// Nil for a status that may be a success.
  init?(_ status: HTTPResponseStatus) {
    switch status.code {
    case ..<300: return nil
    case 401, 407: self = .challenged
    // Timeout and overload: temporary by definition.
    case 408, 429, 500...: self = .interrupted("the server answered \(Self.text(status))")
    default: self = .failed("the server answered \(Self.text(status))")
    }
  }

  /// Filters the server's phrase, which may hold anything.
  private static func text(_ status: HTTPResponseStatus) -> String {
    let phrase = status.reasonPhrase.unicodeScalars.filter { (0x20...0x7E).contains($0.value) }
    return "\(status.code) " + String(String.UnicodeScalarView(phrase.prefix(60)))
  }
}
