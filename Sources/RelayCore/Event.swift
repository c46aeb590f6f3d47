package import Primitives

/// Everything that can happen to a shard: facts, in the past tense.
package enum Event: Hashable, Sendable {
  /// A provider posted a well-formed, authorized notification.
  case submitted(Notification, from: RequestID)

  /// The journal has everything up to this sequence on disk.
  case persisted(through: UInt64)
  /// The journal could not write anything up to this sequence that it had not reported as
  /// persisted.
  case persistFailed(through: UInt64)

  /// A device was made.
  indirect case enrolled(DeviceID, SecretHash, from: RequestID)
  /// A device announced an app. `isOwn` says that the device brought the token along.
  indirect case registered(DeviceCredential, Topic, DeviceToken, isOwn: Bool, from: RequestID)
  /// An app was removed from a device.
  indirect case unregistered(DeviceCredential, Topic, from: RequestID)
  /// Somebody with the device's secret asked how it stands.
  indirect case inspected(DeviceCredential, from: RequestID)

  /// Another shard, or this one, has something to say about a token that a device brought along.
  indirect case alias(AliasEvent)

  /// A device opened its stream.
  indirect case connected(DeviceCredential, ConnectionID)
  /// A device acknowledged a notification: by its unique id, or by the provider's id.
  case acked(ConnectionID, UniqueID, DeliveryOutcome?)
  /// A device said why a notification waits there, or that its app runs at last.
  case decided(ConnectionID, UniqueID, PushDecision)
  /// A device said how it is.
  case reported(ConnectionID, ConditionReport)
  /// A device said `keepalive`, asked or not.
  case keptAlive(ConnectionID)
  /// A device gave a sign of life that answers what was sent to it: its transport took the lines of
  /// a stream that acknowledges itself.
  case heard(ConnectionID)
  /// Whether everything that was sent to the device has left the relay; answers `checkQueue`.
  case queueChecked(ConnectionID, isEmpty: Bool)
  /// A device goes by the relay's time on this stream from now on.
  case clockFollowed(ConnectionID)
  /// A device's stream ended.
  case disconnected(ConnectionID)

  /// Another node has the partition from now on. Nothing more comes for it; it leaves when the
  /// journal has answered what waits of it.
  case partitionDropped(PartitionID)

  /// What the journal remembers: after a restart, or of a partition that comes from another node.
  /// In the order that `RestoredRecord` names, and before all other events of the partition but
  /// `allConfirmed`.
  indirect case restored(RestoredRecord)
  /// Somebody configured another policy at that moment, which is the same for all shards: their
  /// budgets are kept by the same clocks.
  indirect case policyChanged(SilentPolicy, at: Instant)
  /// Somebody who runs the relay wants something done to a device.
  indirect case administered(DeviceID, AdminAction)
  /// Something went wrong with a notification on purpose. Nothing is decided by it: it is told.
  indirect case faulted(UniqueID, FaultMark)
  /// The state is kept, or the shard taken back to one that was.
  case checkpoint(CheckpointEvent)
  /// The relay is going down: say good-bye to every device.
  case shutDown
  /// Time has passed.
  case tick
  /// The machine's clock was set, so far forwards (or backwards): it is the moment of this event
  /// now, and no time has passed.
  case clockStepped(by: Interval)
}

extension Event {
  /// Who waits for an answer; nil for nobody.
  package var request: RequestID? {
    switch self {
    case .submitted(_, let request), .alias(.forwarded(_, _, let request)),
      .enrolled(_, _, let request), .registered(_, _, _, _, let request),
      .unregistered(_, _, let request), .inspected(_, let request), .connected(_, let request):
      request
    case .persisted, .persistFailed, .alias, .acked, .decided, .reported, .keptAlive, .heard,
      .queueChecked, .clockFollowed, .disconnected, .partitionDropped, .restored, .policyChanged,
      .administered, .faulted, .checkpoint, .shutDown, .tick, .clockStepped:
      nil
    }
  }

  /// The push that comes with it; nil for none.
  package var notification: Notification? {
    switch self {
    case .submitted(let notification, _), .alias(.forwarded(let notification, _, _)),
      .restored(.notification(let notification, _, _)),
      .restored(.forwarded(let notification, _, _, _)):
      notification
    case .persisted, .persistFailed, .enrolled, .registered, .unregistered, .inspected, .alias,
      .connected, .acked, .decided, .reported, .keptAlive, .heard, .queueChecked, .clockFollowed,
      .disconnected, .partitionDropped, .restored, .policyChanged, .checkpoint, .administered,
      .faulted, .shutDown, .tick, .clockStepped:
      nil
    }
  }
}

/// A device and the proof that the request comes from it.
package struct DeviceCredential: Hashable, Sendable {
  package var device: DeviceID
  package var secret: SecretHash

  package init(device: DeviceID, secret: SecretHash) {
    self.device = device
    self.secret = secret
  }
}
