package import Primitives
package import ProviderCredentials
package import RelayCluster
package import RelayCore
package import RelaySetup

/// What every loop of a running server knows; made once from the configuration.
package struct ServerSettings: Sendable {
  package var clock = RelayClock.system(SystemTime())
  /// What ids, secrets and tokens are made from; nil for the system's generator.
  package var seed: UInt64?
  /// Whether the age of provider tokens is judged by `clock`, not by the machine's time.
  package var judgesTokensByClock = false
  package var shard = Shard.Configuration()
  /// What the journal's budgets are kept by; nil without a journal.
  package var budgets: SilentBudgets?
  package var keys = ProviderKeys()
  /// Where ``keys`` come from; nil if they do not change.
  package var keyDirectory: ProviderKeyDirectory?
  /// Which of Apple's two services the relay plays; nil takes both.
  package var environment: ProviderEnvironment?
  package var authenticatesProviders = true
  /// Refuse what Apple calls an error but seems to accept (docs/PROTOCOL.md, "Where Apple's text is
  /// silent").
  package var isStrict = false
  /// Whether reserved device tokens (`ReservedToken`) answer their reasons.
  package var answersReservedTokens = false
  package var enrolment = RelayConfiguration.Enrolment.open
  /// What became of a notification, asked of all loops and nodes.
  var findLife: @Sendable (UniqueID) async -> Relay.Life? = { _ in nil }
  /// Whether devices may bring tokens of their own along.
  package var takesOwnTokens = true
  package var handshakeTimeout = Interval.seconds(10)
  package var requestTimeout = Interval.seconds(30)
  package var idleTimeout = Interval.hours(1)
  /// Where what was accepted is kept.
  package var storage = RelayStorage.memory(MemoryFeedback(start: RelayClock.wall))
  /// Where the loops of other nodes are reached; nil for a relay on its own.
  package var port: HopPort?
  /// How many stripes the partitions of a cluster are on.
  package var stripeCount = 1
  /// Where everything that the shards are told is written down, if it is.
  package var recording: Recording?
  /// Of how many of its last notifications one loop remembers the lives.
  package var logNotifications = 100_000
  /// How many topics metrics tell apart on one loop; 0 for none.
  package var namedTopics = 0
  /// Told of every step of every notification's life, on the loop where it happens; must be quick.
  package var onLife: (@Sendable (DeliveryEvent) -> Void)?

  package init() {}

  /// This node in addresses of streams; 0 for a relay on its own.
  var node: UInt16 { port?.number ?? 0 }

  /// Where partitions are at first: a node of a cluster has none.
  func firstTable(loopCount: Int) -> PartitionTable {
    guard port == nil else { return PartitionTable(elsewhere: shard.partitionCount) }
    return PartitionTable(partitionCount: shard.partitionCount, loopCount: loopCount)
  }

  /// Whether a request with this bearer value may make a device; of hashes, so that the time of the
  /// comparison says nothing about the key.
  func mayEnroll(secret: SecretHash?) -> Bool {
    switch enrolment {
    case .open: true
    case .closed: false
    case .key(let key): DeviceRequest.hash(key) == secret
    }
  }
}
