import HTTP2
import NIOCore
import NIOPosix

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What the errors of sockets and of HTTP/2 mean, in a few words for people.
enum ConnectProblem {
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
    case .badPreface, .excessiveResets, .arenaFull, .library, .streamClosed, .headersAlreadySent,
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
