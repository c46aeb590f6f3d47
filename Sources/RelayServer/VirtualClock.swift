package import AdminAPI
package import Primitives
import RelayCore

/// A relay's clock that moves only when told, through every timer in order.
///
/// At each instant with an event of a loop or a phone, time stands until all is done: messages
/// between loops have arrived, the journal has answered, and every phone on this clock that got a
/// line has done its part. So the consequences of an instant happen in it, and a test need not wait
/// after an advance.
package actor VirtualClock {
  package enum Goal: Equatable, Sendable {
    case by(Interval)
    case to(Instant)
    /// To the next instant with an event.
    case next
  }

  package enum Kind: String, CaseIterable, Sendable {
    case expiration, hold, refill, acknowledgement
    case keepAlive = "keep-alive"
    /// A phone acts by itself.
    case phone
    /// A fault's delay is over.
    case fault

    init(_ kind: TimerWheel.Subject.Kind) {
      switch kind {
      case .expiration: self = .expiration
      case .hold: self = .hold
      case .refill: self = .refill
      case .keepAlive: self = .keepAlive
      case .acknowledgement: self = .acknowledgement
      }
    }
  }

  /// The reasons why the clock did not move, or not as far as wanted.
  package enum ClockError: Error, Equatable, Sendable {
    case backwards(now: Instant)
    case moved(now: Instant)
    /// The consequences of this instant do not end.
    case notSettled(now: Instant, waitingFor: [String])
    case nothingNext(now: Instant)
    case noCheckpoint(name: String)
    case storeOnDisk
    /// Too many bytes, or too many checkpoints.
    case tooMuchKept(bytes: Int, limitBytes: Int)
  }

  let time: VirtualTime
  let loops: LoopSet
  /// nil when unregistered tokens are listed on disk.
  let feedback: MemoryFeedback?
  var checkpoints: [String: SavedCheckpoint] = [:]
  var lastCheckpoint: UInt32 = 0
  /// The most that an instant may take, in the machine's time.
  private let patience: Duration
  /// Relay seconds per second of the machine; 0 stands.
  package private(set) var rate = 0.0
  /// One change at a time.
  let turns = TurnQueue()
  private var pace: Task<Void, Never>?

  init(
    _ time: VirtualTime, _ loops: LoopSet, _ feedback: MemoryFeedback?,
    patience: Duration = .seconds(5)
  ) {
    self.feedback = feedback
    self.time = time
    self.loops = loops
    self.patience = patience
  }

  package nonisolated var now: Instant { time.now }

  package func next() async -> (at: Instant, kind: Kind)? {
    await loops.nextMoment().map { (max($0.at, now), $0.kind) }
  }

  /// Moves the clock; returns when everything has settled.
  ///
  /// - Parameter from: the time that the caller expects; nil for any.
  package func advance(_ goal: Goal, from: Instant? = nil) async throws(ClockError) -> ClockAdvance
  {
    let endTurn = await turns.next()
    defer { endTurn() }
    if let from, from != now { throw .moved(now: now) }
    let before = await loops.counters().fired
    try await settle()
    let target: Instant
    switch goal {
    case .by(let interval): target = now + interval
    case .to(let instant): target = instant
    case .next:
      guard let moment = await loops.nextMoment() else { throw .nothingNext(now: now) }
      target = max(moment.at, now)
    }
    guard target >= now else { throw .backwards(now: now) }
    let phones = try await move(to: target)
    let after = await loops.counters().fired
    var fired = phones > 0 ? [Kind.phone.rawValue: phones] : [:]
    for kind in TimerWheel.Subject.Kind.allCases {
      let count = after[kind.rawValue] - before[kind.rawValue]
      if count > 0 { fired[Kind(kind).rawValue] = count }
    }
    return ClockAdvance(now: now, fired: fired)
  }

  /// Returns when all work of this instant is done.
  package func settled() async throws(ClockError) {
    let endTurn = await turns.next()
    defer { endTurn() }
    try await settle()
  }

  /// Lets time pass by itself, `rate` seconds per second of the machine.
  package func setRate(_ rate: Double) {
    pace?.cancel()
    pace = nil
    self.rate = max(0, rate)
    guard self.rate > 0 else { return }
    pace = Task { [weak self] in
      var last = ContinuousClock.now
      var rest = 0.0
      while !Task.isCancelled {
        try? await Task.sleep(for: .milliseconds(20))
        let present = ContinuousClock.now
        guard let self, !Task.isCancelled else { return }
        rest += (present - last) / .milliseconds(1) * (await self.rate)
        last = present
        let step = rest.rounded(.down)
        rest -= step
        // An unsettled instant is tried again: time stands until it has settled.
        _ = try? await self.advance(.by(.milliseconds(Int64(step))))
      }
    }
  }

  func stop() {
    pace?.cancel()
    pace = nil
  }

  // MARK: Steps

  /// Moves through every instant until `target`; returns how often a phone acted by itself.
  private func move(to target: Instant) async throws(ClockError) -> Int {
    var phones = 0
    while let moment = await loops.nextMoment(), moment.at <= target {
      time.advance(to: moment.at)
      phones += await loops.timeMoved()
      try await settle()
    }
    time.advance(to: target)
    phones += await loops.timeMoved()
    _ = await loops.onEach { $0.clockStands() }
    try await settle()
    return phones
  }

  /// Returns when all loops give the same answer twice with nothing on its way: nothing happened
  /// between.
  func settle() async throws(ClockError) {
    let deadline = ContinuousClock.now + patience
    var last = -1
    while true {
      let quiets = await loops.onEach { $0.quiet() }
      let sent = quiets.reduce(0) { $0 + $1.sent }
      let isQuiet =
        sent == quiets.reduce(0) { $0 + $1.received }
        && quiets.allSatisfy { !$0.isWaiting && $0.awaited.isEmpty }
      if isQuiet, sent == last { return }
      last = isQuiet ? sent : -1
      guard ContinuousClock.now < deadline else {
        var waitingFor = quiets.flatMap(\.awaited).prefix(10).map { "device \($0)" }
        if quiets.contains(where: \.isWaiting) { waitingFor.append("journal") }
        throw .notSettled(now: now, waitingFor: waitingFor)
      }
      if !isQuiet { try? await Task.sleep(for: .microseconds(100)) }
    }
  }
}

extension LoopSet {
  func nextMoment() async -> (at: Instant, kind: VirtualClock.Kind)? {
    await onEach { $0.nextMoment }.compactMap(\.self).min { $0.at < $1.at }
  }

  func timeMoved() async -> Int { await onEach { $0.timeMoved() }.reduce(0, +) }

  func counters() async -> ShardCounters {
    await onEach {
      var counters = $0.core.shard.counters
      // A shard hears only of requests that are in order.
      counters.rejected = $0.metrics.refused
      return counters
    }.reduce(ShardCounters(), +)
  }
}
