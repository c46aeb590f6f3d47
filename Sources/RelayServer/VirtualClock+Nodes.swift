import Primitives
import RelayCluster
import RelayCore
import RelayRecording
import RelayStore

/// Orders of the node that moves the clock to every node, itself included.
enum ClockStep: Sendable {
  /// Go by this time, and say what is unfinished.
  case look(at: Instant)
  /// Act at this time.
  case fire
  /// The clock stands again.
  case stand
  /// A phone was told something.
  case touch(DeviceID)
  /// Move the clock no more by yourself.
  case halt
  /// Say what comes next.
  case peek
}

/// A node's answer to `ClockStep`, and that of all nodes together.
struct ClockState: Sendable {
  /// Messages that have left a loop so far; when it stays the same, nothing has happened.
  var sent = 0
  /// Everybody with unfinished work.
  var waitingFor: [String] = []
  var next: (at: Instant, kind: VirtualClock.Kind)?
  /// How many phones acted by themselves.
  var phones = 0
  /// Relay seconds per second of the machine.
  var rate = 0.0

  var isQuiet: Bool { waitingFor.isEmpty }

  mutating func add(_ other: ClockState) {
    sent += other.sent
    waitingFor += other.waitingFor
    next = [next, other.next].compactMap(\.self).min { $0.at < $1.at }
    phones += other.phones
    rate = max(rate, other.rate)
  }
}

extension VirtualClock {
  /// nil for a relay on its own.
  var cluster: ClusterJournal? { inbox?.journal as? ClusterJournal }

  func ask(_ step: ClockStep) async -> ClockState {
    // On its own each look is one turn of its loops.
    guard let inbox, cluster != nil else { return await answer(step) }
    let found = await inbox.askAll(NodeQuestions.clock, step)
    var state = found.value.reduce(into: ClockState()) { $0.add($1) }
    // While a node or a stripe is away, its timers cannot fire.
    state.waitingFor += found.missing.nodes.map { "node \($0)" }
    state.waitingFor += await inbox.missingStripes.map { "stripe \($0)" }
    return state
  }

  /// This node's part.
  func answer(_ step: ClockStep) async -> ClockState {
    var state = ClockState()
    switch step {
    case .look(let now):
      time.advance(to: now)
      await look(&state)
    case .fire: state.phones = await loops.onEach { $0.timeMoved() }.reduce(0, +)
    case .stand: _ = await loops.onEach { $0.clockStands() }
    case .touch(let device): _ = await loops.onEach { $0.timers.followers.touch(device) }
    case .halt: stop()
    case .peek: await peek(&state)
    }
    return state
  }

  private func look(_ state: inout ClockState) async {
    let quiets = await loops.onEach { $0.quiet() }
    state.sent = quiets.reduce(0) { $0 + $1.sent }
    state.waitingFor = quiets.flatMap(\.awaited).prefix(10).map { "device \($0)" }
    if quiets.contains(where: \.isWaiting) { state.waitingFor.append("journal") }
    if state.sent != quiets.reduce(0, { $0 + $1.received }) { state.waitingFor.append("loops") }
    if let port = cluster?.port {
      let statistics = port.statistics(at: RelayClock.wall)
      state.sent += statistics.sent
      if statistics.outstandingBytes > 0 { state.waitingFor.append("hops") }
      port.acknowledgeNow()
    }
    state.next = quiets.compactMap(\.next).min { $0.at < $1.at }
  }

  private func peek(_ state: inout ClockState) async {
    state.next = await loops.onEach { $0.nextMoment }.compactMap(\.self).min { $0.at < $1.at }
    state.rate = rate
  }

  // MARK: One node moves it

  /// Waits until no other node moves the cluster's clock, and goes by its time.
  func claimClusterClock() async throws(ClockError) {
    guard let cluster else { return }
    let deadline = ContinuousClock.now + patience
    do throws(StoreError) {
      while let others = await inbox?.others.keys,
        !(try await cluster.claimClock(unless: Array(others)))
      {
        guard ContinuousClock.now < deadline else { throw .stopped }
        try? await Task.sleep(for: .milliseconds(5))
      }
    } catch {
      guard error != .stopped else { throw .moved(now: now) }
      throw .notSettled(now: now, waitingFor: ["engine"])
    }
  }

  /// A node that starts now begins at this time, and a relay of its own, killed now, at the last.
  func write(
    _ instant: Instant, isLast: Bool, isPassing: Bool = false
  ) async throws(ClockError) {
    guard let cluster else {
      if isLast { await (inbox?.journal as? Journal)?.keepTime(isPassing: isPassing) }
      return
    }
    let isDone: Bool
    do throws(StoreError) {
      isDone = try await cluster.moveClock(to: max(instant, now), isLast: isLast)
    } catch {
      throw .notSettled(now: now, waitingFor: ["engine"])
    }
    guard isDone else { throw .moved(now: now) }
  }
}

extension VirtualClock.Kind: BinaryCodable {}

extension ClockStep: Tagged {
  func write(to writer: inout ByteWriter) {
    switch self {
    case .look(let now): writer.put(tag: 1, now)
    case .fire: writer.put(tag: 2)
    case .stand: writer.put(tag: 3)
    case .halt: writer.put(tag: 4)
    case .peek: writer.put(tag: 5)
    case .touch(let device): writer.put(tag: 6, device)
    }
  }

  static let cases: Cases<Self> = [
    1: .of(Self.look), 2: .just(.fire), 3: .just(.stand), 4: .just(.halt), 5: .just(.peek),
    6: .of(Self.touch),
  ]
}

extension ClockState: BinaryCodable {
  func write(to writer: inout ByteWriter) {
    let moment = next.map { Pair($0.at, $0.kind) }
    writer.put(sent, waitingFor, moment, phones, rate.bitPattern)
  }

  init(from reader: inout ByteReader) throws(CodecError) {
    sent = try reader.read()
    waitingFor = try reader.read()
    let moment: Pair<Instant, VirtualClock.Kind>? = try reader.read()
    next = moment.map { ($0.first, $0.second) }
    phones = try reader.read()
    rate = Double(bitPattern: try reader.read())
  }
}
