package import Primitives

/// A shard's requests, in the imperative, with addresses instead of channels or promises.
package enum Effect: Hashable, Sendable {
  case respond(RequestID, ProviderAnswer)
  /// Answers a request of the device API.
  indirect case answer(RequestID, DeviceAnswer)

  /// Greets a device on its new stream.
  case hello(ConnectionID)
  case send(ConnectionID, Delivery)
  /// Sends a broadcast once to each of these, without an acknowledgement.
  indirect case sendBroadcast(Broadcast, to: [ConnectionID])
  /// Says that nothing is stored for the device.
  case sendEmpty(ConnectionID)
  case sendKeepAlive(ConnectionID)
  /// Asks for a `queueChecked`: an unsent frame cannot have been acknowledged.
  case checkQueue(ConnectionID)
  /// Sends `bye` and ends the stream.
  case close(ConnectionID, CloseReason)

  /// Writes a record. `persisted` or `persistFailed` answers.
  case persist(JournalRecord)
  /// The record is no longer needed, nor need it be written if still pending.
  case forget(UInt64)

  /// Passes an event to the shard of this key, perhaps the same one, in order.
  indirect case tell(routingKey: UInt64, Event)
  /// Logs a step of a notification's life.
  case log(DeliveryEvent)
}

package enum ProviderAnswer: Hashable, Sendable {
  /// The relay is responsible for it now.
  case accepted(uniqueID: UniqueID)
  case rejected(Rejection)
  /// 410, with the moment the token became invalid.
  case gone(since: Instant)

  package var rejection: Rejection? {
    switch self {
    case .accepted: nil
    case .rejected(let rejection): rejection
    case .gone: .unregistered
    }
  }
}

package enum DeviceAnswer: Hashable, Sendable {
  case enrolled(DeviceID)
  case registered(DeviceToken)
  case unregistered
  case subscribed(ChannelID)
  case unsubscribed
  case inspected(DeviceReport)
  case refused(DeviceRefusal)
}

/// All refusals that a device can see.
package enum DeviceRefusal: UInt8, CaseIterable, Sendable {
  case unauthorized
  case unknownDevice
  case unknownApp
  case tokenTaken
  case tooManyApps
  case tooManyDevices
  case tooManyTokens
  case unavailable
  case unknownChannel
  case tooManyChannels

  package var row: (status: UInt16, reason: String, text: String) {
    switch self {
    case .unauthorized:
      (401, "Unauthorized", "send the device's secret as 'authorization: bearer <secret>'")
    case .unknownDevice: (404, "UnknownDevice", "no such device; POST /v1/devices makes one")
    case .unknownApp: (404, "UnknownApp", "the device has no app with this topic")
    case .tokenTaken: (409, "TokenTaken", "another app or device has this token")
    case .tooManyApps: (409, "TooManyApps", "a device holds at most \(Limits.appsPerDevice) apps")
    case .tooManyDevices: (503, "TooManyDevices", "the relay holds no more devices")
    case .tooManyTokens:
      (503, "TooManyTokens", "the relay holds no more tokens that devices bring along")
    case .unknownChannel:
      (404, "UnknownChannel", "the app has no such channel, or does not subscribe to it")
    case .tooManyChannels:
      (
        409, "TooManyChannels",
        "an app subscribes to at most \(Limits.channelsPerSubscriber) channels"
      )
    case .unavailable: (503, "ServiceUnavailable", "the relay cannot store it now; try later")
    }
  }
}

package struct Delivery: Hashable, Sendable {
  package var notification: Notification
  package var via: Via
  package var acceptedAt: Instant
  package var sentAt: Instant

  package init(notification: Notification, via: Via, acceptedAt: Instant, sentAt: Instant) {
    self.notification = notification
    self.via = via
    self.acceptedAt = acceptedAt
    self.sentAt = sentAt
  }
}

/// Why the relay ends a device's stream.
package enum CloseReason: UInt8, CaseIterable, Sendable {
  /// The device connected again.
  case superseded
  /// No answer to a keep-alive.
  case keepAliveTimeout
  /// A notification was sent several times and never acknowledged.
  case ackTimeout
  case shutdown
  /// Too many unusable lines.
  case unusableLines
  /// By an administrator.
  case dropped
  /// The relay was rewound to before the stream.
  case rewound
  /// The device's partition moved to another node, where it should reconnect.
  case moved

  /// The word in the `bye` line.
  package var name: String {
    switch self {
    case .superseded: "superseded"
    case .keepAliveTimeout: "keep-alive-timeout"
    case .ackTimeout: "ack-timeout"
    case .shutdown: "shutdown"
    case .unusableLines: "unusable-lines"
    case .dropped: "dropped"
    case .rewound: "rewound"
    case .moved: "moved"
    }
  }
}
