package import Primitives
package import RelayCore

/// A failure on purpose, to test clients against.
package struct Fault: Hashable, Sendable {
  /// The place where a fault acts.
  package enum Place: String, CaseIterable, Sendable {
    /// Instead of answering a provider's valid request.
    case provider
    /// On a provider's connection, when a valid request has come on it.
    case connection
    /// On a frame that is about to be sent to a device.
    case delivery
    case journal

    package var actions: [Action.Kind] {
      switch self {
      case .provider: [.answer, .delay, .drop, .reset]
      case .connection: [.goAway, .reset, .halfClose, .blackhole, .stall]
      case .delivery: [.delay, .drop, .duplicate, .reset]
      case .journal: [.delay, .failWrite]
      }
    }
  }

  package enum Action: Hashable, Sendable {
    case answer(Rejection)
    /// Answers only requests about channels, with a reason that pushes do not have.
    case answerChannels(ChannelRefusal)
    /// Delays it, in the relay's time.
    case delay(Interval)
    /// No answer, or a lost frame.
    case drop
    /// Resets the stream, or the whole TCP connection.
    case reset
    case duplicate
    case goAway(GoAway)
    /// Closes the relay's direction of the TCP connection, without closing TLS.
    case halfClose
    /// Keeps the connection open, but nothing passes any more in either direction.
    case blackhole
    /// Nothing passes for this long, in the relay's time; then all of it does.
    case stall(Interval)
    /// The journal cannot write; those who wait for it are answered 503.
    case failWrite

    package enum Kind: String, CaseIterable, Sendable {
      case answer, delay, drop, reset, duplicate
      case goAway = "goaway"
      case halfClose, blackhole, stall, failWrite
    }

    package var name: String { kind.rawValue }

    private var kind: Kind {
      switch self {
      case .answer, .answerChannels: .answer
      case .delay: .delay
      case .drop: .drop
      case .reset: .reset
      case .duplicate: .duplicate
      case .goAway: .goAway
      case .halfClose: .halfClose
      case .blackhole: .blackhole
      case .stall: .stall
      case .failWrite: .failWrite
      }
    }
  }

  /// The way to announce that a connection takes no more requests (RFC 9113 section 6.8).
  package enum GoAway: String, CaseIterable, Sendable {
    case once
    /// Two frames, as servers send that end gracefully.
    case twice
    /// Without the debug data in which APNs gives its reason.
    case bare
  }

  /// The notifications to act on; nil is any. Ignored at the journal.
  package struct Match: Hashable, Sendable {
    package var topic: String?
    /// A device, by the tokens that the relay made for it.
    package var device: DeviceID?
    package var token: DeviceToken?
    package var kind: NotificationClass?

    package init() {}

    func holds(_ notification: Notification) -> Bool {
      (kind ?? notification.notificationClass) == notification.notificationClass
        && (token ?? notification.token) == notification.token
        && (device?.routingKey ?? notification.token.routingKey) == notification.token.routingKey
        && (topic.map { $0 == notification.topic.description } ?? true)
    }

    /// A request about an app's channels has no device, token or class.
    func holds(channelsOf bundle: Topic) -> Bool {
      device == nil && token == nil && kind == nil && (topic ?? "\(bundle)") == "\(bundle)"
    }
  }

  package struct When: Hashable, Sendable {
    /// The number that pass first.
    package var skip = 0
    /// The most it acts; nil is no limit.
    package var times: Int?
    /// From 0 to 1, for each.
    package var probability = 1.0
    /// Hits only what exceeds this rate.
    package var over: RateLimit?

    package init() {}
  }

  package var place: Place
  package var action: Action
  package var match = Match()
  package var when = When()
  /// For draws by `probability`.
  package var seed: UInt64 = 0
  /// In the relay's time; nil until it is removed.
  package var duration: Interval?

  package init(_ place: Place, _ action: Action) {
    self.place = place
    self.action = action
  }
}

/// The counts of one fault.
package struct FaultTally: Sendable {
  /// Requests, frames or writes that it could have hit.
  package private(set) var seen = 0
  package private(set) var hit = 0
  private var random: SeededRandom
  private var rate = RateLimit.State()

  fileprivate(set) var until: Instant?

  init(seed: UInt64, until: Instant? = nil) {
    random = SeededRandom(seed: seed)
    self.until = until
  }

  /// The relay's clock was set: the fault lasts as long as before.
  mutating func stepClock(by interval: Interval) {
    rate.moveClock(by: interval)
    until = until.map { $0 + interval }
  }

  /// Counts one more and decides whether to hit it.
  mutating func decide(_ when: Fault.When, at now: Instant) -> Bool {
    if let until, now >= until { return false }
    seen += 1
    // Always one draw, so that skipped ones do not shift the rest.
    let draw = random.next()
    guard seen > when.skip, hit < when.times ?? .max else { return false }
    if let over = when.over, over.allows(rate, at: now) {
      over.consume(&rate, at: now)
      return false
    }
    guard Double(draw >> 11) < when.probability * Double(UInt64(1) << 53) else { return false }
    hit += 1
    return true
  }
}
