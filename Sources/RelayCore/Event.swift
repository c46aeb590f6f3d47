package import Primitives

/// Everything that can happen to a shard, by who speaks: facts, in the past tense.
package enum Event: Hashable, Sendable {
  /// A provider posted a well-formed, authorized notification.
  case submitted(Notification, from: RequestID)
  /// Somebody who says that he has the device's secret wants something.
  indirect case asked(RequestEvent, DeviceCredential, from: RequestID)
  /// Something came of a device's stream.
  case stream(ConnectionID, StreamEvent)
  case journal(JournalEvent)
  /// Another shard, or this one, has something to say about a token that a device brought along.
  indirect case alias(AliasEvent)
  /// Somebody who runs the relay did something.
  indirect case operated(OperatorEvent)
  case clock(ClockEvent)
}

/// What is asked with a device's secret.
package enum RequestEvent: Hashable, Sendable {
  /// A device was made, with this secret.
  case enrolled
  /// A device announced an app. `isOwn` says that the device brought the token along.
  case registered(Topic, DeviceToken, isOwn: Bool)
  /// An app was removed from a device.
  case unregistered(Topic)
  /// How the device stands.
  case inspected
  /// A device opened its stream, which is where the request waits.
  case connected
}

/// What a device says, and what becomes of its stream.
package enum StreamEvent: Hashable, Sendable {
  /// It acknowledged a notification: by its unique id, or by the provider's id.
  case acked(UniqueID, DeliveryOutcome?)
  /// It said why a notification waits there, or that its app runs at last.
  case decided(UniqueID, PushDecision)
  /// It said how it is.
  case reported(ConditionReport)
  /// It said `keepalive`, asked or not.
  case keptAlive
  /// A sign of life that answers what was sent: the transport took the lines of a stream that
  /// acknowledges itself.
  case heard
  /// Whether everything that was sent to the device has left the relay; answers `checkQueue`.
  case queueChecked(isEmpty: Bool)
  /// The device goes by the relay's time on this stream from now on.
  case clockFollowed
  case disconnected
}

/// The journal's word.
package enum JournalEvent: Hashable, Sendable {
  /// It has everything up to this sequence on disk.
  case persisted(through: UInt64)
  /// It could not write anything up to this sequence that it had not reported as persisted.
  case persistFailed(through: UInt64)
  /// What it remembers: after a restart, or of a partition that comes from another node. In the
  /// order that `RestoredRecord` names, and before all other events of the partition but
  /// `allConfirmed`.
  indirect case restored(RestoredRecord)
  /// Another node has the partition from now on. Nothing more comes for it; it leaves when the
  /// journal has answered what waits of it.
  case partitionDropped(PartitionID)
}

/// What somebody who runs the relay has done.
package enum OperatorEvent: Hashable, Sendable {
  /// Another policy was configured at that moment, which is the same for all shards: their budgets
  /// are kept by the same clocks.
  case policyChanged(SilentPolicy, at: Instant)
  /// Something was wanted of a device.
  case administered(DeviceID, AdminAction)
  /// Something went wrong with a notification on purpose. Nothing is decided by it: it is told.
  case faulted(UniqueID, FaultMark)
  /// The state as it is now is kept under this number.
  case checkpointSaved(UInt32)
  /// The shard is as it was then, its time too. What is kept stays kept.
  case rewound(to: UInt32)
  /// A state that was kept is not needed any more.
  case checkpointDropped(UInt32)
  /// The relay is going down: say good-bye to every device.
  case shutDown
}

package enum ClockEvent: Hashable, Sendable {
  /// Time has passed.
  case tick
  /// The machine's clock was set, so far forwards (or backwards): it is the moment of this event
  /// now, and no time has passed.
  case clockStepped(by: Interval)
}

extension Event {
  /// The word for it: that of its innermost case.
  package var name: String {
    switch self {
    case .submitted: "submitted"
    case .asked(let request, _, _): caseName(request)
    case .stream(_, let event): caseName(event)
    case .journal(let event): caseName(event)
    case .alias: "alias"
    case .operated(let event): caseName(event)
    case .clock(let event): caseName(event)
    }
  }

  private func caseName(_ event: some Any) -> String {
    Mirror(reflecting: event).children.first?.label ?? "\(event)"
  }

  /// Who waits for an answer; nil for nobody.
  package var request: RequestID? {
    switch self {
    case .submitted(_, let request), .asked(_, _, let request),
      .alias(.forwarded(_, _, let request)):
      request
    case .stream, .journal, .alias, .operated, .clock: nil
    }
  }

  /// The push that comes with it; nil for none.
  package var notification: Notification? {
    switch self {
    case .submitted(let notification, _), .alias(.forwarded(let notification, _, _)),
      .journal(.restored(.notification(let notification, _, _))),
      .journal(.restored(.forwarded(let notification, _, _, _))):
      notification
    case .asked, .stream, .journal, .alias, .operated, .clock: nil
    }
  }

  /// Whether one node may tell another: what is about a device or a token, not about a whole shard.
  package var mayHop: Bool {
    switch self {
    case .submitted, .asked, .operated(.administered): true
    // No cluster has a virtual clock, so none follows one.
    case .stream(_, let event): event != .clockFollowed
    case .alias(let event): event != .allConfirmed
    case .journal, .operated, .clock: false
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
