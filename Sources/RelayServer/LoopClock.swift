import Primitives
import RelayCore

/// The time of one loop. Loads and stores only: then the compiler leaves out the checks of accesses
/// to it, of which every push makes some.
struct LoopClock {
  /// nil when the relay goes by the machine's clock.
  private let virtual: VirtualTime?
  private let judgesTokens: Bool
  /// How far the machine's clock was set, as far as this loop has followed.
  private(set) var offset = Interval.zero
  /// The machine's time at the beginning of the batch, by which answers are timed.
  private(set) var batchTime = RelayClock.steady

  init(_ settings: ServerSettings) {
    if case .virtual(let time) = settings.clock { virtual = time } else { virtual = nil }
    judgesTokens = settings.judgesTokensByClock
  }

  var isVirtual: Bool { virtual != nil }

  /// The time for everything that belongs to one batch.
  var now: Instant { virtual?.now ?? RelayClock.steady + offset }

  /// The machine's time, where it is this in the relay.
  func wall(_ now: Instant) -> Instant { isVirtual ? RelayClock.wall : now }

  /// What lengths of time are counted by where it is this in the relay: of sockets, and (`unset`)
  /// what a virtual clock moves, too.
  func steady(_ now: Instant) -> Instant { isVirtual ? RelayClock.steady : unset(now) }
  func unset(_ now: Instant) -> Instant { now - offset }

  /// By what the age of provider tokens is judged: whoever makes them goes by the machine's time.
  func tokenTime(_ now: Instant) -> Instant { judgesTokens ? now : wall(now) }

  mutating func beginBatch(at now: Instant) { batchTime = steady(now) }

  mutating func step(by interval: Interval) { offset = offset + interval }
}
