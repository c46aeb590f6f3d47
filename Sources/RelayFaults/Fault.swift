package import Primitives
package import RelayCore

/// Something that goes wrong on purpose, as often as it is told to, so that a client can be tested
/// against it.
package struct Fault: Hashable, Sendable {
  /// Where it acts.
  package enum Place: String, CaseIterable, Sendable {
    /// On a provider's request that is in order, instead of the relay.
    case provider
    /// On a provider's connection, when such a request has come on it.
    case connection
    /// On a frame that is about to be sent to a device.
    case delivery
    /// On a write of the journal.
    case journal

    /// What can be done there.
    package var actions: [Action.Kind] {
      switch self {
      case .provider: [.answer, .delay, .drop, .reset]
      case .connection: [.goAway, .reset, .halfClose, .blackhole, .stall]
      case .delivery: [.delay, .drop, .duplicate, .reset]
      case .journal: [.delay, .failWrite]
      }
    }
  }

  /// What goes wrong.
  package enum Action: Hashable, Sendable {
    /// The request is refused with this reason.
    case answer(Rejection)
    /// It happens so much later, by the relay's time.
    case delay(Interval)
    /// It never happens: no answer, or a frame that is lost.
    case drop
    /// The stream, or the whole TCP connection, is reset.
    case reset
    /// The frame is sent twice.
    case duplicate
    case goAway(GoAway)
    /// The relay closes its direction of the TCP connection, without a word over TLS.
    case halfClose
    /// The connection stays open, and nothing passes any more in either direction.
    case blackhole
    /// Nothing passes for so long, by the relay's time; then all of it does.
    case stall(Interval)
    /// The journal cannot write; whoever waits for it is answered 503.
    case failWrite

    /// The words for them.
    package enum Kind: String, CaseIterable, Sendable {
      case answer, delay, drop, reset, duplicate
      case goAway = "goaway"
      case halfClose, blackhole, stall, failWrite
    }

    /// The word for it.
    package var name: String { kind.rawValue }

    private var kind: Kind {
      switch self {
      case .answer: .answer
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

  /// How the relay says that a connection takes no more requests (RFC 9113 section 6.8).
  package enum GoAway: String, CaseIterable, Sendable {
    case once
    /// Two frames, as servers do that end gracefully.
    case twice
    /// Without the debug data in which APNs gives its reason.
    case bare
  }

  /// Which notifications it is about; nil is any. The journal does not ask.
  package struct Match: Hashable, Sendable {
    package var topic: String?
    /// A device, by the tokens that the relay has made for it.
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
  }

  /// How often it acts.
  package struct When: Hashable, Sendable {
    /// So many pass first.
    package var skip = 0
    /// It acts at most so often; nil for always.
    package var times: Int?
    /// The chance of each, from 0 to 1.
    package var probability = 1.0
    /// Only what goes beyond this is hit.
    package var over: RateLimit?

    package init() {}
  }

  package var place: Place
  package var action: Action
  package var match = Match()
  package var when = When()
  /// What `probability` is drawn from.
  package var seed: UInt64 = 0
  /// How long it is there, by the relay's time; nil until it is removed.
  package var duration: Interval?

  package init(_ place: Place, _ action: Action) {
    self.place = place
    self.action = action
  }
}

/// What has come of a fault so far.
package struct FaultTally: Sendable {
  /// Requests, frames or writes that it might have hit.
  package private(set) var seen = 0
  /// Those that it has hit.
  package private(set) var hit = 0
  private var random: SeededRandom
  private var rate = RateLimit.State()

  /// It is in force until then.
  fileprivate(set) var until: Instant?

  init(seed: UInt64, until: Instant? = nil) {
    random = SeededRandom(seed: seed)
    self.until = until
  }

  /// The relay's clock was set; it lasts as long as it would have.
  mutating func stepClock(by interval: Interval) {
    rate.moveClock(by: interval)
    until = until.map { $0 + interval }
  }

  /// Decides about one more.
  mutating func decide(_ when: Fault.When, at now: Instant) -> Bool {
    if let until, now >= until { return false }
    seen += 1
    // One draw each, so that what is skipped does not shift the rest.
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
