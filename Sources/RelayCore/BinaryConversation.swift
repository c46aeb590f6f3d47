package import Primitives

/// One provider's connection in the binary provider API: bytes in, pushes out, one at a time.
///
/// ```
/// idle ──bytes──▶ reading ──a whole frame──▶ awaiting ──accepted──▶ idle or reading
///   │                │                          │
///   └── idle for long, drained ──▶ closed ◀─────┘ refused, drained
/// ```
///
/// 1. A frame is taken only after the verdict on the one before. So of what follows a refused frame
///    nothing has been taken.
/// 2. Nothing is said but the last word: `Ending`.
/// 3. Time is that of the caller, for both limits on silence.
package struct BinaryConversation: Sendable {
  /// What there is to do next.
  package enum Step: Equatable, Sendable {
    /// Nothing until more bytes come, or the verdict.
    case wait
    /// A verdict on this one is wanted.
    case judge(BinaryRequest)
    /// The frame is no push: say so and close.
    case refuse(BinaryRefusal, Ending)
    /// Close.
    case end(Ending)
  }

  /// How the connection ends: with an error packet, or without a word.
  package struct Ending: Equatable, Sendable {
    package let packet: [UInt8]

    static let silent = Ending(packet: [])

    fileprivate init(packet: [UInt8]) { self.packet = packet }

    /// A push that was refused; one without a name is told nothing ("Legacy Notification Format").
    fileprivate init(_ status: BinaryStatus, _ identifier: UInt32?) {
      packet = identifier.map(status.packet) ?? []
    }
  }

  private enum Phase: Sendable {
    /// Nothing of a frame is there.
    case idle(since: Instant)
    /// Half a frame is there.
    case reading(since: Instant)
    /// A frame has been taken.
    case awaiting(identifier: UInt32?, thenCloses: Bool)
    case closed
  }

  private var phase: Phase
  private var reader = BinaryFrameReader()
  private var peerHasClosed = false
  /// The last push with a name that was accepted; 0 before.
  private var lastAccepted: UInt32 = 0

  package init(at now: Instant) { phase = .idle(since: now) }

  /// Whether bytes of the peer are of use now. While a verdict is awaited no more is kept than a
  /// frame may have.
  package var wantsBytes: Bool {
    switch phase {
    case .idle, .reading, .closed: true
    case .awaiting: reader.count < Limits.binaryFrameBytes
    }
  }

  /// Whether the verdict on a frame is awaited.
  package var isAwaiting: Bool { if case .awaiting = phase { true } else { false } }

  package mutating func receive(_ bytes: some Collection<UInt8>) {
    switch phase {
    case .idle, .reading, .awaiting: reader.append(bytes)
    case .closed: break
    }
  }

  /// The peer sends nothing more. What it has sent is still taken.
  package mutating func peerClosed() { peerHasClosed = true }

  /// What there is to do now; to be asked after `receive`, `peerClosed` and each verdict.
  package mutating func next(at now: Instant) -> Step {
    switch phase {
    case .awaiting, .closed: return .wait
    case .idle, .reading: break
    }
    do throws(BinaryRefusal) {
      if let request = try reader.next() {
        phase = .awaiting(identifier: request.identifier, thenCloses: false)
        return .judge(request)
      }
    } catch {
      return .refuse(error, close(.init(error.problem.row.status, error.identifier)))
    }
    if peerHasClosed { return .end(close(.silent)) }
    switch phase {
    case .idle: phase = reader.count > 0 ? .reading(since: now) : .idle(since: now)
    case .reading: if reader.count == 0 { phase = .idle(since: now) }
    case .awaiting, .closed: break
    }
    return .wait
  }

  /// The verdict on the push that was to be judged. How the connection ends, if it does; if not,
  /// there may be a next frame.
  package mutating func judged(_ rejection: Rejection?, at now: Instant) -> Ending? {
    guard case .awaiting(let identifier, let thenCloses) = phase else { return nil }
    if let rejection, rejection != .shutdown {
      return close(.init(BinaryStatus(rejection), identifier))
    }
    if rejection == nil, let identifier { lastAccepted = identifier }
    guard rejection == nil, !thenCloses else { return close(farewell) }
    // Since when half a frame is there counts from now: before, it was not asked for.
    phase = reader.count > 0 ? .reading(since: now) : .idle(since: now)
    return nil
  }

  /// The relay shuts down. How the connection ends, unless a verdict comes first.
  package mutating func shutDown() -> Ending? {
    switch phase {
    case .idle, .reading: return close(farewell)
    case .awaiting(let identifier, _):
      phase = .awaiting(identifier: identifier, thenCloses: true)
      return nil
    case .closed: return nil
    }
  }

  /// Time has passed. How the connection ends, if nothing came for too long.
  package mutating func sweep(
    at now: Instant, requestTimeout: Interval, idleTimeout: Interval
  ) -> Ending? {
    switch phase {
    case .idle(let since) where now - since > idleTimeout: close(farewell)
    case .reading(let since) where now - since > requestTimeout: close(farewell)
    case .idle, .reading, .awaiting, .closed: nil
    }
  }

  /// Nothing is wrong with what came: everything up to this one is the relay's, the rest is not.
  private var farewell: Ending { .init(.shutdown, lastAccepted) }

  private mutating func close(_ ending: Ending) -> Ending {
    phase = .closed
    reader.clear()
    return ending
  }
}
