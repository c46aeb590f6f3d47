package import Primitives

/// One provider's connection in the binary provider API: bytes in, pushes out, one at a time.
///
/// ```
/// idle ──bytes──▶ reading ──a whole frame──▶ awaiting ──accepted──▶ idle or reading
///   │                │                          │
///   └── idle for long, drained ──▶ closed ◀─────┘ refused, drained
/// ```
///
/// 1. A frame is read only after the verdict on the one before, so nothing after a refused frame
///    has been accepted.
/// 2. The only output is the `Ending`.
/// 3. The caller passes the time, for both timeouts.
package struct BinaryConversation: Sendable {
  package enum Step: Equatable, Sendable {
    /// Until more bytes or the verdict.
    case wait
    /// The caller must give a verdict.
    case judge(BinaryRequest)
    /// The frame is no push: report it and close.
    case refuse(BinaryRefusal, Ending)
    case end(Ending)
  }

  /// An error packet, or none.
  package struct Ending: Equatable, Sendable {
    package let packet: [UInt8]

    static let silent = Ending(packet: [])

    fileprivate init(packet: [UInt8]) { self.packet = packet }

    /// A push without identifier gets no packet ("Legacy Notification Format").
    fileprivate init(_ status: BinaryStatus, _ identifier: UInt32?) {
      packet = identifier.map(status.packet) ?? []
    }
  }

  private enum Phase: Sendable {
    case idle(since: Instant)
    /// Part of a frame has arrived.
    case reading(since: Instant)
    /// A verdict is pending.
    case awaiting(identifier: UInt32?, thenCloses: Bool)
    case closed
  }

  private var phase: Phase
  private var reader = BinaryFrameReader()
  private var peerHasClosed = false
  /// The last accepted identifier; 0 before.
  private var lastAccepted: UInt32 = 0

  package init(at now: Instant) { phase = .idle(since: now) }

  /// False while a verdict is pending and a full frame is buffered.
  package var wantsBytes: Bool {
    switch phase {
    case .idle, .reading, .closed: true
    case .awaiting: reader.count < Limits.binaryFrameBytes
    }
  }

  package var isAwaiting: Bool { if case .awaiting = phase { true } else { false } }

  package mutating func receive(_ bytes: some Collection<UInt8>) {
    switch phase {
    case .idle, .reading, .awaiting: reader.append(bytes)
    case .closed: break
    }
  }

  /// The peer sends nothing more; what it has sent is still processed.
  package mutating func peerClosed() { peerHasClosed = true }

  /// Call after `receive`, `peerClosed` and each verdict.
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

  /// Gives the pending verdict. Returns how the connection ends, if it does.
  package mutating func judged(
    _ rejection: Rejection?, isDropped: Bool = false, at now: Instant
  ) -> Ending? {
    guard case .awaiting(let identifier, let thenCloses) = phase else { return nil }
    if let rejection, rejection != .shutdown {
      return close(.init(BinaryStatus(rejection), identifier))
    }
    if rejection == nil, !isDropped, let identifier { lastAccepted = identifier }
    guard rejection == nil, !thenCloses else { return close(farewell) }
    // The timeout for a partial frame starts now: it was not read before.
    phase = reader.count > 0 ? .reading(since: now) : .idle(since: now)
    return nil
  }

  /// Returns how the connection ends, unless a verdict is pending.
  package mutating func shutDown() -> Ending? {
    switch phase {
    case .idle, .reading: return close(farewell)
    case .awaiting(let identifier, _):
      phase = .awaiting(identifier: identifier, thenCloses: true)
      return nil
    case .closed: return nil
    }
  }

  /// Returns how the connection ends if a timeout has passed.
  package mutating func sweep(
    at now: Instant, requestTimeout: Interval, idleTimeout: Interval
  ) -> Ending? {
    switch phase {
    case .idle(let since) where now - since > idleTimeout: close(farewell)
    case .reading(let since) where now - since > requestTimeout: close(farewell)
    case .idle, .reading, .awaiting, .closed: nil
    }
  }

  /// Everything up to the last accepted push is the relay's, the rest is not.
  private var farewell: Ending { .init(.shutdown, lastAccepted) }

  private mutating func close(_ ending: Ending) -> Ending {
    phase = .closed
    reader.clear()
    return ending
  }
}
