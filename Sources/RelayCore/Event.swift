package import Primitives

/// Everything that can happen to a shard, by source, in the past tense.
package enum Event: Hashable, Sendable {
  /// A provider posted a well-formed, authorized notification.
  case submitted(Notification, from: RequestID)
  /// A request with a device's secret, not yet verified.
  indirect case asked(RequestEvent, DeviceCredential, from: RequestID)
  case stream(ConnectionID, StreamEvent)
  case journal(JournalEvent)
  /// From a shard, perhaps the same, about a token that a device brought along.
  indirect case alias(AliasEvent)
  /// From the owner of all channels (`Shard+Channels.swift`).
  indirect case broadcast(BroadcastEvent)
  /// An administrator's action.
  indirect case operated(OperatorEvent)
  case clock(ClockEvent)
}

package enum RequestEvent: Hashable, Sendable {
  /// A new device with this secret.
  case enrolled
  /// A device announced an app. `isOwn`: it brought the token along.
  case registered(Topic, DeviceToken, isOwn: Bool)
  /// An app was removed from a device.
  case unregistered(Topic)
  /// Asks for a `DeviceReport`.
  case inspected
  /// An app of a device listens to a channel, which its caller has looked up, or no longer does.
  case subscribed(Topic, ChannelID)
  case unsubscribed(Topic, ChannelID)
  /// A device opened the stream that the request is on.
  case connected
}

package enum StreamEvent: Hashable, Sendable {
  /// Acknowledged, by unique id or the provider's id.
  case acked(UniqueID, DeliveryOutcome?)
  /// A notification waits on the phone for this reason, or its app finally runs.
  case decided(UniqueID, PushDecision)
  case reported(ConditionReport)
  /// The device said `keepalive`, asked or not.
  case keptAlive
  /// The transport received the lines of a stream that acknowledges implicitly.
  case heard
  /// Answers `checkQueue`: whether everything sent to the device has left the relay.
  case queueChecked(isEmpty: Bool)
  /// From now on the device follows the relay's clock on this stream.
  case clockFollowed
  case disconnected
}

package enum JournalEvent: Hashable, Sendable {
  /// Everything up to this sequence is on disk.
  case persisted(through: UInt64)
  /// Nothing up to this sequence that was not yet reported could be written.
  case persistFailed(through: UInt64)
  /// A stored record, at a restart or when a partition arrives from another node. In the order of
  /// `RestoredRecord`, before all other events of the partition except `allConfirmed`.
  indirect case restored(RestoredRecord)
  /// Another node has the partition now. It leaves when its pending records are answered.
  case partitionDropped(PartitionID)
}

package enum OperatorEvent: Hashable, Sendable {
  /// A new policy from that moment, the same for all shards: their budgets share clocks.
  case policyChanged(SilentPolicy, at: Instant)
  case administered(DeviceID, AdminAction)
  /// A fault was injected into a notification. It decides nothing and is only logged.
  case faulted(UniqueID, FaultMark)
  /// Keep the current state under this number.
  case checkpointSaved(UInt32)
  /// Return to that state and time. All checkpoints stay.
  case rewound(to: UInt32)
  /// The checkpoint is no longer needed.
  case checkpointDropped(UInt32)
  /// The relay shuts down: say good-bye to every device.
  case shutDown
}

package enum ClockEvent: Hashable, Sendable {
  case tick
  /// The machine's clock was set by so much, to this event's moment, without time passing.
  case clockStepped(by: Interval)
}

extension Event {
  /// The name of the innermost case.
  package var name: String {
    switch self {
    case .submitted: "submitted"
    case .asked(let request, _, _): caseName(request)
    case .stream(_, let event): caseName(event)
    case .journal(let event): caseName(event)
    case .alias: "alias"
    case .broadcast(let event): caseName(event)
    case .operated(let event): caseName(event)
    case .clock(let event): caseName(event)
    }
  }

  private func caseName(_ event: some Any) -> String {
    Mirror(reflecting: event).children.first?.label ?? "\(event)"
  }

  /// The request that waits for an answer.
  package var request: RequestID? {
    switch self {
    case .submitted(_, let request), .asked(_, _, let request),
      .alias(.forwarded(_, _, let request)):
      request
    case .stream, .journal, .alias, .broadcast, .operated, .clock: nil
    }
  }

  /// The push in the event, if any.
  package var notification: Notification? {
    switch self {
    case .submitted(let notification, _), .alias(.forwarded(let notification, _, _)),
      .journal(.restored(.notification(let notification, _, _))),
      .journal(.restored(.forwarded(let notification, _, _, _))):
      notification
    case .asked, .stream, .journal, .alias, .broadcast, .operated, .clock: nil
    }
  }

  /// Whether a node may send it to another: it concerns a device or a token, not a whole shard.
  package var mayHop: Bool {
    switch self {
    case .submitted, .asked, .stream, .operated(.administered): true
    case .alias(let event): event != .allConfirmed
    case .journal, .broadcast, .operated, .clock: false
    }
  }
}

package struct DeviceCredential: Hashable, Sendable {
  package var device: DeviceID
  package var secret: SecretHash

  package init(device: DeviceID, secret: SecretHash) {
    self.device = device
    self.secret = secret
  }
}

/// The version of the core's decisions: increased when the same events give other effects or
/// encodings (the golden recording's test then fails). A recording needs the version that made it.
package let coreVersion: UInt32 = 11
