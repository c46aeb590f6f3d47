package import Primitives

/// Everything a shard may ask for: requests, in the imperative. They carry addresses, never
/// channels or promises, so that tests compare them and the simulator performs them against a world
/// of its own.
package enum Effect: Hashable, Sendable {
  /// Answer a provider.
  case respond(RequestID, ProviderAnswer)
  /// Answer a request of the device API.
  indirect case answer(RequestID, DeviceAnswer)

  /// Greet a device: its stream is open.
  case hello(ConnectionID)
  /// Send a notification down a device's stream.
  case send(ConnectionID, Delivery)
  /// Say that nothing is stored for the device.
  case sendEmpty(ConnectionID)
  /// Ask the device for a sign of life.
  case sendKeepAlive(ConnectionID)
  /// Say with `queueChecked` whether frames for the device still wait here to be written: what has
  /// not left cannot be acknowledged.
  case checkQueue(ConnectionID)
  /// Say good-bye and end the stream.
  case close(ConnectionID, CloseReason)

  /// Write a record. `persisted` or `persistFailed` answers.
  case persist(JournalRecord)
  /// The record with this sequence is not needed any more; if it still waits, it need not be
  /// written.
  case forget(UInt64)

  /// Hand an event to the shard that this key names, which may be the one that asks. What one
  /// shard tells another arrives in order.
  indirect case tell(routingKey: UInt64, Event)
  /// Note a step of a notification's life.
  case log(DeliveryEvent)
}

/// The answer to a submission.
package enum ProviderAnswer: Hashable, Sendable {
  /// The relay owns it now.
  case accepted(uniqueID: UniqueID)
  case rejected(Rejection)
  /// 410, with the moment from which the token has been invalid.
  case gone(since: Instant)

  /// Why it was refused; nil when it was not.
  package var rejection: Rejection? {
    switch self {
    case .accepted: nil
    case .rejected(let rejection): rejection
    case .gone: .unregistered
    }
  }
}

/// The answer to a request of the device API.
package enum DeviceAnswer: Hashable, Sendable {
  case enrolled(DeviceID)
  case registered(DeviceToken)
  case unregistered
  case inspected(DeviceReport)
  case refused(DeviceRefusal)
}

/// Every refusal that a device can see.
package enum DeviceRefusal: UInt8, CaseIterable, Sendable {
  case unauthorized
  case unknownDevice
  case unknownApp
  case tokenTaken
  case tooManyApps
  case tooManyDevices
  case tooManyTokens
  case unavailable

  /// The HTTP status and the text.
  package var row: (status: UInt16, reason: String, text: String) {
    switch self {
    case .unauthorized:
      (401, "Unauthorized", "send the device's secret as 'authorization: bearer <secret>'")
    case .unknownDevice: (404, "UnknownDevice", "no such device; POST /v1/devices makes one")
    case .unknownApp: (404, "UnknownApp", "the device has no app with this topic")
    case .tokenTaken: (409, "TokenTaken", "another app or device has this token")
    case .tooManyApps:
      (409, "TooManyApps", "a device holds at most \(Limits.appsPerDevice) apps")
    case .tooManyDevices: (503, "TooManyDevices", "the relay holds no more devices")
    case .tooManyTokens:
      (503, "TooManyTokens", "the relay holds no more tokens that devices bring along")
    case .unavailable: (503, "ServiceUnavailable", "the relay cannot store it now; try later")
    }
  }
}

/// A notification on its way down.
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
  /// The relay is going down.
  case shutdown
  /// Too many unusable lines.
  case unusableLines
  /// Somebody who runs the relay wanted it.
  case dropped
  /// The relay was taken back to a time before the stream.
  case rewound
  /// The device's partition went to another node: who connects again reaches it there.
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
