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
///     unsaid ── a second at most: handshakes are finished, what has just come may ask,
///       │        requests under way are answered
///       ├── quiet for long, or a phone that has asked ──▶ said
///       └──▶ announced ── the PING behind it was answered, or a second ──▶ said
enum Farewell {
  case unsaid
  /// A GOAWAY that ends nothing yet was sent, and a PING: whatever comes before its answer is from
  /// a client that did not know.
  case announced(since: Instant)
  case said

  /// A connection of a relay that ends.
  struct Occasion {
    var phase: ConnectionPhase
    var isDevice: Bool
    /// A stream was opened on it, ever.
    var hasAsked: Bool
    var openStreams: Int
    /// Nothing was written to it for `Limits.quietSweeps`.
    var isQuiet: Bool
  }

  enum Step { case wait, abort, announce, say }

  /// The next step of a relay that ends since `began`.
  func step(_ occasion: Occasion, since began: Instant, at now: Instant) -> Step {
    func isOver(_ since: Instant) -> Bool { now - since >= Limits.farewell }
    switch (self, occasion.phase) {
    case (.unsaid, .opening(let since)): return isOver(since) ? .abort : .wait
    case (.unsaid, .open(let since)) where occasion.isDevice:
      // A stream of lines lasts for ever: it has had its `bye`.
      return occasion.hasAsked || isOver(since) ? .say : .wait
    case (.unsaid, .open(let since)):
      if occasion.openStreams > 0 { return isOver(max(since, began)) ? .announce : .wait }
      if occasion.isQuiet { return .say }
      return isOver(since) ? .announce : .wait
    case (.unsaid, .answering): return .say
    case (.announced(let since), _): return isOver(since) ? .say : .wait
    case (.said, _), (.unsaid, .closing), (.unsaid, .closed): return .wait
    }
  }
}
