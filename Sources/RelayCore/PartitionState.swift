package import Primitives

/// Everything that a shard knows of one partition's devices and tokens, while it is on its way to
/// another shard.
///
/// Devices, apps and entries name each other as in a shard, but by their places in these arrays.
/// Timers have left the wheel: they are moments again. The same partition gives the same state,
/// whatever places it had in the shard that it leaves.
package struct PartitionState: Hashable, Sendable {
  package struct Timer: Hashable, Sendable {
    package var deadline: Instant
    package var subject: TimerWheel.Subject

    package init(deadline: Instant, subject: TimerWheel.Subject) {
      self.deadline = deadline
      self.subject = subject
    }
  }

  /// An entry in flight whose record failed, and who waits for what becomes of it.
  package struct Unanswered: Hashable, Sendable {
    package var entry: Int32
    package var request: RequestID

    package init(entry: Int32, request: RequestID) {
      self.entry = entry
      self.request = request
    }
  }

  package let partition: PartitionID
  /// By their ids.
  package var devices: [Device] = []
  package var apps: [App] = []
  package var entries: [AcceptedNotification] = []
  /// In the order in which they fire.
  package var timers: [Timer] = []
  /// By their tokens.
  package var aliases: [Alias] = []
  /// By their devices; of each in the order in which they began.
  package var tokenChanges: [TokenChanges.Change] = []
  /// Oldest first.
  package var goneTokens: [GoneTokens.Item] = []
  /// Oldest first.
  package var takenPushes: [TakenPushes.Item] = []
  /// By their devices; of each oldest first.
  package var formerBudgets: [FormerBudget] = []
  /// By their entries.
  package var unanswered: [Unanswered] = []
  /// Oldest first, with the places of the devices.
  package var awaitedOutcomes: [AwaitedOutcomes.Promise] = []
  /// By their devices.
  package var ownBudgets: [OwnBudgets] = []
  /// What comes from now on is accepted later than what is here.
  package var lastOrder: UInt64
  package var now: Instant
  /// The policy by which what is held was looked at last, if all was.
  package var policy: SilentPolicy?

  package init(
    _ partition: PartitionID, lastOrder: UInt64, at now: Instant, policy: SilentPolicy?
  ) {
    self.partition = partition
    self.lastOrder = lastOrder
    self.now = now
    self.policy = policy
  }

  /// What the counters of a shard say of this: only what is there now, not what happened to it.
  var counts: ShardCounters {
    var counts = ShardCounters()
    counts.devices = devices.count
    counts.connections = devices.count { $0.connection != nil }
    counts.apps = apps.count(where: \.isRegistered)
    counts.aliases = aliases.count
    for entry in entries {
      switch entry.phase {
      case .waiting: counts.waiting += 1
      case .stored: counts.inSlots += 1
      case .inFlight: counts.inFlight += 1
      }
    }
    return counts
  }
}
