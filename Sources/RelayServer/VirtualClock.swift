package import Primitives
import RelayCore

/// A relay's clock that moves only when it is told, through every timer in order.
///
/// At each instant in which a loop or a phone has something to do, time stands until all is done:
/// what loops have told each other has arrived, the journal has answered, and every phone that goes
/// by this clock and was spoken to has done its part. So whatever follows from an instant happens
/// in it, and a test that has advanced the clock need not wait for anything.
package actor VirtualClock {
  /// Where to.
  package enum Goal: Sendable {
    case by(Interval)
    case to(Instant)
    /// The next instant in which anything is to do.
    case next
  }

  /// What has come of an advance.
  package struct Advance: Equatable, Sendable {
    package var now: Instant
    /// How many timers of each kind have fired.
    package var fired: [Kind: Int]
  }

  /// What can be next.
  package enum Kind: String, CaseIterable, Sendable {
    case expiration, hold, refill, acknowledgement
    case keepAlive = "keep-alive"
    /// A phone has something to do by itself.
    case phone
    /// What a fault has put off.
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

  /// Why the clock was not moved, or not as far as wanted.
  package enum ClockError: Error, Equatable, Sendable {
    /// It is already later.
    case backwards(now: Instant)
    /// Somebody else has moved it meanwhile.
    case moved(now: Instant)
    /// It stands at an instant whose consequences do not come to an end.
    case notSettled(now: Instant, waitingFor: [String])
    /// There is nothing to come.
    case nothingNext(now: Instant)
    /// No state was kept under this name.
    case noCheckpoint(name: String)
    /// What was on disk cannot be taken back.
    case storeOnDisk
    /// The relay's state takes too many bytes, or too many are kept.
    case tooMuchKept(bytes: Int, limitBytes: Int)
  }

  let time: VirtualTime
  let loops: LoopSet
  /// What is listed of unregistered tokens; nil when that is on disk, as all else.
  let feedback: MemoryFeedback?
  /// What the relay can be taken back to, by name.
  var checkpoints: [String: SavedCheckpoint] = [:]
  var lastCheckpoint: UInt32 = 0
  /// How long, by the machine's time, an instant may take.
  private let patience: Duration
  /// How many seconds pass in one of the machine's; 0 stands.
  package private(set) var rate = 0.0
  /// One thing at a time.
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

  /// When there is something to do next, and what.
  package func next() async -> (at: Instant, kind: Kind)? {
    await loops.nextMoment().map { (max($0.at, now), $0.kind) }
  }

  /// Moves the clock; returns when everything has settled.
  ///
  /// - Parameter from: what the caller believes the time to be; nil moves it from wherever it is.
  package func advance(_ goal: Goal, from: Instant? = nil) async throws(ClockError) -> Advance {
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
    var fired: [Kind: Int] = phones > 0 ? [.phone: phones] : [:]
    for kind in TimerWheel.Subject.Kind.allCases {
      let count = after[kind.rawValue] - before[kind.rawValue]
      if count > 0 { fired[Kind(kind)] = count }
    }
    return Advance(now: now, fired: fired)
  }

  /// Returns when all is done that there is to do now.
  package func settled() async throws(ClockError) {
    let endTurn = await turns.next()
    defer { endTurn() }
    try await settle()
  }

  /// Lets time pass by itself, so many seconds in one of the machine's.
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
        // What does not settle is tried again: time stands until it has.
        _ = try? await self.advance(.by(.milliseconds(Int64(step))))
      }
    }
  }

  /// Time stands from now on.
  func stop() {
    pace?.cancel()
    pace = nil
  }

  // MARK: Steps

  /// Through every instant until then; answers how often a phone had something to do by itself.
  private func move(to target: Instant) async throws(ClockError) -> Int {
    var phones = 0
    while let moment = await loops.nextMoment(), moment.at <= target {
      time.advance(to: moment.at)
      phones += await loops.timeMoved()
      try await settle()
    }
    time.advance(to: target)
    phones += await loops.timeMoved()
    await loops.clockStands()
    try await settle()
    return phones
  }

  /// Twice the same answer from all loops, with nothing on its way: nothing has happened between.
  func settle() async throws(ClockError) {
    let deadline = ContinuousClock.now + patience
    var last = -1
    while true {
      let quiets = await loops.quiet()
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

/// What the clock asks of all loops.
extension LoopSet {
  func quiet() async -> [ShardRunner.Quiet] { await onEach { $0.quiet() } }

  func nextMoment() async -> ShardRunner.NextMoment? {
    await onEach { $0.nextMoment }.compactMap(\.self).min { $0.at < $1.at }
  }

  func timeMoved() async -> Int { await onEach { $0.timeMoved() }.reduce(0, +) }

  func clockStands() async { _ = await onEach { $0.clockStands() } }

  func counters() async -> ShardCounters {
    await onEach { $0.core.shard.counters }.reduce(ShardCounters(), +)
  }
}
