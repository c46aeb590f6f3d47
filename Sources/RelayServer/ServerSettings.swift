package import Primitives
package import ProviderCredentials
package import RelayCluster
package import RelayCore
import RelayRequests
package import RelaySetup

/// The settings of every loop, made once from the configuration.
package struct ServerSettings: Sendable {
  package var configuration = RelayConfiguration()
  package var clock = RelayClock.system(SystemTime())
  package var shard = Shard.Configuration()
  /// The journal's budgets; nil without a journal.
  package var budgets: SilentBudgets?
  package var keys = ProviderKeys()
  /// The source of ``keys``; nil if they do not change.
  package var keyDirectory: ProviderKeyDirectory?
  /// True if reserved device tokens (`ReservedToken`) answer their reasons.
  package var answersReservedTokens = false
  var findLife: @Sendable (UniqueID) async -> Relay.Life? = { _ in nil }
  package var handshakeTimeout = Interval.seconds(10)
  /// True while no socket can be opened.
  var areSocketsShort: @Sendable () -> Bool = { false }
  package var storage = RelayStorage.memory(MemoryFeedback(start: RelayClock.wall))
  package let names = DeviceNames()
  /// nil without the listener for their management.
  package var channels: Channels?
  /// To the loops of other nodes; nil for a relay on its own.
  package var port: HopPort?
  package var stripeCount = 1
  package var recording: Recording?
  /// nil without a limit of memory.
  var memory: MemoryWatch?
  /// Called with every step of every notification, on its loop; must be quick.
  package var onLife: (@Sendable (DeliveryEvent) -> Void)?

  package init() {}

  /// This node's number in stream addresses; 0 for a relay on its own.
  var node: UInt16 { port?.number ?? 0 }

  /// The first places of partitions: a node of a cluster has none.
  func firstTable(loopCount: Int) -> PartitionTable {
    guard port == nil else { return PartitionTable(elsewhere: shard.partitionCount) }
    return PartitionTable(partitionCount: shard.partitionCount, loopCount: loopCount)
  }

  /// A loop's part of the journal of requests; nil when none are kept.
  var requestJournal: RequestJournal? {
    guard configuration.keepRequests > 0 else { return nil }
    return RequestJournal(
      limitBytes: configuration.keepRequests / max(1, configuration.threads),
      Redaction(configuration.redact.map { PayloadPath($0) }))
  }

  /// Returns whether a request with this bearer value may create a device. Compares hashes, so that
  /// the time tells nothing about the key.
  func mayEnroll(secret: SecretHash?) -> Bool {
    switch configuration.enrolment {
    case .open: true
    case .closed: false
    case .key(let key): DeviceRequest.hash(key) == secret
    }
  }
}
