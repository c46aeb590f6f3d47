import Foundation
import Primitives

/// What happens to a cluster in one round, and to which of its three.
enum ClusterFault: Hashable, Sendable, CustomStringConvertible {
  /// SIGKILL, and a new start.
  case relayKilled(Int)
  case engineKilled(Int)
  /// SIGSTOP for longer than the lease, and SIGCONT.
  case relayStopped(Int)
  /// The relay does not reach the engine for longer than the lease; all else goes on.
  case relayCutOff(Int)
  /// Something that is no relay writes to a stripe; after a while somebody takes it away.
  case messageUnreadable(stripe: Int)
  /// The same, by a relay of another version.
  case otherForm(stripe: Int)
  /// The relay is killed, and starts with a clock that is behind; after a while again with a right
  /// one.
  case relayClockWrong(Int)
  /// What goes between the relay and the engines is late, and connections break.
  case relayFarAway(Int)
  /// SIGKILL, bits of its files flipped and one of them cut short, and a new start.
  case engineDamaged(Int)
  /// Its disk takes nothing more; after a while there is room, and it is started again. Only where
  /// the test may mount.
  case engineFull(Int)
  /// It stands still for most of the time, as behind a slow disk.
  case engineSlow(Int)

  static let kinds: [@Sendable (Int) -> ClusterFault] =
    [
      { .relayKilled($0) }, { .engineKilled($0) }, { .relayStopped($0) }, { .relayCutOff($0) },
      { .messageUnreadable(stripe: $0) }, { .otherForm(stripe: $0) }, { .relayClockWrong($0) },
      { .relayFarAway($0) }, { .engineDamaged($0) }, { .engineSlow($0) },
    ] + (CrashCluster.mayMount ? [{ .engineFull($0) }] : [])

  var description: String {
    switch self {
    case .relayKilled(let place): "relay \(CrashCluster.names[place]) is killed"
    case .engineKilled(let place): "engine \(place + 1) is killed"
    case .relayStopped(let place): "relay \(CrashCluster.names[place]) is stopped for a while"
    case .relayCutOff(let place):
      "relay \(CrashCluster.names[place]) is cut off from the engine for a while"
    case .messageUnreadable(let stripe): "stripe \(stripe) has a message of no relay for a while"
    case .otherForm(let stripe): "stripe \(stripe) has a message of another form for a while"
    case .relayClockWrong(let place):
      "relay \(CrashCluster.names[place]) has a clock that is behind for a while"
    case .relayFarAway(let place):
      "relay \(CrashCluster.names[place]) is far from the engine for a while"
    case .engineDamaged(let place): "engine \(place + 1) is killed, and its files are damaged"
    case .engineFull(let place): "engine \(place + 1) has a full disk for a while"
    case .engineSlow(let place): "engine \(place + 1) is slow for a while"
    }
  }
}

/// Which faults, in which order. All of it comes from the seed before anything starts, so that what
/// happens meanwhile changes nothing of it.
struct ClusterPlan: Sendable {
  struct Round: Hashable, Sendable {
    var fault: ClusterFault
    /// Before it, and how long it lasts.
    var calm: Duration
    var length: Duration
  }

  /// What the suite does in passing: about half of the kinds, which ones the seed says.
  static let roundsInSuite = 4
  static let lease = Duration.seconds(2)

  var seed: UInt64
  var rounds: [Round]

  /// All kinds before any comes again.
  init(seed: UInt64, count: Int) {
    self.seed = seed
    var random = SeededRandom(seed: seed)
    rounds = []
    while rounds.count < count {
      for kind in ClusterFault.kinds.shuffled(using: &random)
      where rounds.count < count {
        let place = random.number(0...CrashCluster.names.count - 1)
        let (calm, more) = (random.milliseconds(500...1500), random.milliseconds(500...2500))
        rounds.append(Round(fault: kind(place), calm: calm, length: Self.lease + more))
      }
    }
  }

  /// From `RELAY_TEST_CLUSTER_ROUNDS` and `RELAY_TEST_CRASH_SEED`.
  static let current: ClusterPlan = {
    let environment = ProcessInfo.processInfo.environment
    let wanted = environment["RELAY_TEST_CLUSTER_ROUNDS"].flatMap { Int($0) }
    let seed = environment["RELAY_TEST_CRASH_SEED"].flatMap { UInt64($0) }
    return ClusterPlan(
      seed: seed ?? .random(in: 1...999_999_999), count: max(1, wanted ?? roundsInSuite))
  }()

  /// A round takes about fifteen seconds, on a busy machine a minute.
  var timeLimitMinutes: Int { 5 + rounds.count }
}
