package import AdminAPI
package import Primitives
package import RelayCore

/// A relay's clock that moves only when told, through every timer in order; in a cluster the clock
/// of all nodes, any of which may be told.
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
    /// Told to stand, or the relay ends.
    case stopped(now: Instant)
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
  /// Of this relay and, in a cluster, the way to the others. It has the clock.
  weak let inbox: Inbox?
  var checkpoints: [String: SavedCheckpoint] = [:]
  var lastCheckpoint: UInt32 = 0
  /// The most that an instant may take, in the machine's time.
  let patience: Duration
  private static let fewLooks = 100
  /// Relay seconds per second of the machine; 0 stands.
  package private(set) var rate = 0.0
  /// One change at a time.
  let turns = TurnQueue()
  private var pace: Task<Void, Never>?
  /// How often the clock was told to stand: whatever moves it then ends behind its instant.
  private var stops = 0
  /// Those under way or waiting for their turn, by number; true if nobody wants it any more.
  private var advances: [UInt64: Bool] = [:]
  private var lastAdvance: UInt64 = 0
  /// A pace goes on in steps of this length of the machine's time.
  private static let step = Duration.milliseconds(20)

  init(
    _ time: VirtualTime, _ loops: LoopSet, _ feedback: MemoryFeedback?, _ inbox: Inbox,
    patience: Duration = .seconds(5)
  ) {
    self.feedback = feedback
    self.time = time
    self.loops = loops
    self.inbox = inbox
    self.patience = patience
  }

  package nonisolated var now: Instant { time.now }

  package func next() async -> (at: Instant, kind: Kind)? { await status().next }

  /// The next event, and how fast the clock moves by itself.
  package func status() async -> (next: (at: Instant, kind: Kind)?, rate: Double) {
    let state = await ask(.peek)
    return (state.next.map { (max($0.at, now), $0.kind) }, state.rate)
  }

  /// Moves the clock; returns when everything has settled. Ends behind the instant that it is at,
  /// with `stopped`, when its task is cancelled.
  ///
  /// - Parameters:
  ///   - from: the time that the caller expects; nil for any.
  ///   - isPassing: a step of many; not each is kept on disk.
  package func advance(
    _ goal: Goal, from: Instant? = nil, isPassing: Bool = false
  ) async throws(ClockError) -> ClockAdvance {
    lastAdvance += 1
    let number = lastAdvance
    advances[number] = false
    defer { advances[number] = nil }
    return try await withTaskCancellationHandler {
      await Task {
        await changeInTurn(isPassing: isPassing) { clock throws(ClockError) in
          try await clock.advanceAlone(goal, from: from, number)
        }
      }.value
    } onCancel: {
      Task { await self.giveUp(number) }
    }.get()
  }

  private func giveUp(_ number: UInt64) {
    if advances[number] != nil { advances[number] = true }
  }

  /// Changes the clock when nobody else does, on any node.
  private func inTurn<Answer: Sendable>(
    _ change: @escaping @Sendable (isolated VirtualClock) async throws(ClockError) -> Answer
  ) async throws(ClockError) -> Answer {
    // A task of its own: the clock is given back even if the caller is cancelled.
    try await Task { await changeInTurn(change) }.value.get()
  }

  private func changeInTurn<Answer: Sendable>(
    isPassing: Bool = false,
    _ change: @Sendable (isolated VirtualClock) async throws(ClockError) -> Answer
  ) async -> Result<Answer, ClockError> {
    let endTurn = await turns.next()
    defer { endTurn() }
    do throws(ClockError) {
      try await claimClusterClock()
    } catch {
      return .failure(error)
    }
    let outcome: Result<Answer, ClockError>
    do throws(ClockError) {
      outcome = .success(try await change(self))
    } catch {
      outcome = .failure(error)
    }
    _ = try? await write(now, isLast: true, isPassing: isPassing)
    return outcome
  }

  private func advanceAlone(
    _ goal: Goal, from: Instant?, _ number: UInt64
  ) async throws(ClockError) -> ClockAdvance {
    if let from, from != now { throw .moved(now: now) }
    let stopsBefore = stops
    let before = await fired()
    let present = try await settle()
    let target: Instant
    switch goal {
    case .by(let interval): target = now + interval
    case .to(let instant): target = instant
    case .next:
      guard let moment = present.next else { throw .nothingNext(now: now) }
      target = max(moment.at, now)
    }
    guard target >= now else { throw .backwards(now: now) }
    let phones = try await move(to: target, present, unlessStoppedSince: stopsBefore, number)
    let after = await fired()
    var fired = phones > 0 ? [Kind.phone.rawValue: phones] : [:]
    for kind in TimerWheel.Subject.Kind.allCases {
      let count = after[kind.rawValue] - before[kind.rawValue]
      if count > 0 { fired[Kind(kind).rawValue] = count }
    }
    return ClockAdvance(now: now, fired: fired)
  }

  private func fired() async -> [Int] {
    guard let inbox, cluster != nil else { return await loops.counters().fired }
    let counters = await inbox.askAll(NodeQuestions.counters, Nothing()).value
    return counters.reduce(ShardCounters(), +).fired
  }

  /// Returns when all work of this instant is done, of a phone that was told something, too.
  package func settled(after device: DeviceID? = nil) async throws(ClockError) {
    let endTurn = await turns.next()
    defer { endTurn() }
    if let device { _ = await ask(.touch(device)) }
    try await settle()
  }

  /// Lets time pass by itself, `rate` seconds per second of the machine, or fewer where the machine
  /// cannot keep that. An advance that is under way, on any node, ends with `stopped`.
  package func setRate(_ rate: Double) async throws(ClockError) {
    // Before its turn: an advance may take long.
    _ = await ask(.halt)
    try await inTurn { clock throws(ClockError) in await clock.begin(max(0, rate)) }
  }

  private func begin(_ rate: Double) async {
    // Another node may have begun to move it meanwhile.
    _ = await ask(.halt)
    self.rate = rate
    guard rate > 0 else { return }
    pace = Task { [weak self] in
      var last = ContinuousClock.now
      var rest = 0.0
      while !Task.isCancelled {
        try? await Task.sleep(for: Self.step)
        let present = ContinuousClock.now
        guard let self, !Task.isCancelled else { return }
        // Time that the machine has missed is not caught up on: steps would grow without end.
        rest =
          rest.truncatingRemainder(dividingBy: 1) + min(present - last, Self.step * 5)
          / .milliseconds(1) * rate
        last = present
        let step = rest.rounded(.down)
        rest -= step
        // An unsettled instant is tried again: time stands until it has settled.
        _ = try? await self.advance(.by(.milliseconds(Int64(step))), isPassing: true)
      }
    }
  }

  /// Ends whatever moves the clock by this node.
  func stop() {
    stops += 1
    pace?.cancel()
    pace = nil
    rate = 0
  }

  // MARK: Steps

  /// Moves through every instant until `target`; returns how often a phone acted by itself.
  private func move(
    to target: Instant, _ present: ClockState, unlessStoppedSince stopsBefore: Int,
    _ number: UInt64
  ) async throws(ClockError) -> Int {
    var (phones, state) = (0, present)
    while let moment = state.next, moment.at <= target {
      phones += try await go(to: moment.at)
      state = try await settle()
      if stops != stopsBefore || advances[number] == true {
        _ = await ask(.stand)
        throw .stopped(now: now)
      }
    }
    phones += try await go(to: target)
    _ = await ask(.stand)
    try await settle()
    return phones
  }

  /// No node acts at a new time before all go by it.
  private func go(to instant: Instant) async throws(ClockError) -> Int {
    try await write(instant, isLast: false)
    time.advance(to: instant)
    if cluster != nil { _ = await ask(.look(at: now)) }
    return await ask(.fire).phones
  }

  /// Returns when all loops give the same answer twice with nothing on its way: nothing happened
  /// between.
  @discardableResult
  func settle() async throws(ClockError) -> ClockState {
    let deadline = ContinuousClock.now + patience
    var last = -1
    var looks = 0
    while true {
      looks += 1
      let state = await ask(.look(at: now))
      if state.isQuiet, state.sent == last { return state }
      last = state.isQuiet ? state.sent : -1
      // Without other nodes few looks take long only where the machine has no time for them.
      let isFast = looks >= Self.fewLooks || cluster != nil
      guard ContinuousClock.now < deadline || !isFast else {
        throw .notSettled(now: now, waitingFor: Array(state.waitingFor.prefix(10)))
      }
      // More and more rarely: somebody who is silent is waited for to the end.
      let pause = Duration.microseconds(100 * min(100, 1 + looks / 20))
      if !state.isQuiet { try? await Task.sleep(for: pause) }
    }
  }
}

extension LoopSet {
  func counters() async -> ShardCounters {
    await onEach {
      var counters = $0.core.shard.counters
      // A shard hears only of requests that are in order.
      counters.rejected = $0.metrics.refused
      return counters
    }.reduce(ShardCounters(), +)
  }
}
