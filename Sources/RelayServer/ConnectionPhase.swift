import Primitives
import RelayCore
import RelaySetup

/// The life of a connection, of any kind.
enum ConnectionPhase {
  case opening(since: Instant)
  case open(since: Instant)
  /// At this time the peer closed its direction; it may still read.
  case answering(since: Instant)
  /// All output ended at this time; the socket closes when the peer has read it.
  case closing(since: Instant)
  case closed

  func isOver(at now: Instant, _ runner: ShardRunner) -> Bool {
    switch self {
    case .opening(let since): now - since > runner.settings.handshakeTimeout
    case .answering(let since): now - since > runner.settings.configuration.requestTimeout
    case .closing(let since): now - since > .seconds(2)
    case .open, .closed: false
    }
  }
}

/// How a connection over HTTP/2 is told that the relay ends (RFC 9113 section 6.8), so that nothing
/// is cut off that a client could not know about.
///
///     unsaid ── handshakes are finished, what has just come may ask, for a second;
///       │       requests under way are answered, for three
///       ├── a moment without requests, or a phone that has asked ──▶ said
///       └──▶ announced ── a second later ──▶ said
///
/// An announcement would be for all, were it not for python-h2 and httpx. They take what comes
/// behind a GOAWAY for an error, and send a request again only if it is above the last stream.
enum Farewell {
  case unsaid
  /// A GOAWAY that ends nothing was sent: what is on its way is served.
  case announced(since: Instant)
  case said

  /// A connection of a relay that ends.
  struct Occasion {
    var phase: ConnectionPhase
    var isDevice: Bool
    /// A stream was opened on it, ever.
    var hasAsked: Bool
    var openStreams: Int
  }

  enum Step { case wait, abort, announce, say }

  /// The next step of a relay that ends since `began`.
  func step(_ occasion: Occasion, since began: Instant, at now: Instant) -> Step {
    func isOver(_ since: Instant, _ times: Int64 = 1) -> Bool {
      now - since >= Limits.farewell * times
    }
    switch (self, occasion.phase) {
    case (.unsaid, .opening(let since)): return isOver(since) ? .abort : .wait
    case (.unsaid, .open(let since)) where occasion.isDevice:
      // A stream of lines lasts for ever: it has had its `bye`.
      return occasion.hasAsked || isOver(since) ? .say : .wait
    case (.unsaid, .open(let since)):
      // A push may wait for a stripe that moves, `Limits.hopAge` at most.
      if occasion.openStreams > 0 { return isOver(max(since, began), 3) ? .announce : .wait }
      return isOver(since) ? .say : .wait
    case (.unsaid, .answering): return .say
    case (.announced(let since), _): return isOver(since) ? .say : .wait
    case (.said, _), (.unsaid, .closing), (.unsaid, .closed): return .wait
    }
  }
}
