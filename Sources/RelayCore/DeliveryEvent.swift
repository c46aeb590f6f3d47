package import Primitives

/// A step in a notification's life, in the terms of Apple's delivery log where it has some (Apple,
/// "Viewing the status of push notifications using Metrics and APNs").
package struct DeliveryEvent: Hashable, Sendable {
  package var at: Instant
  package var uniqueID: UniqueID
  package var step: DeliveryStep

  package init(at: Instant, uniqueID: UniqueID, step: DeliveryStep) {
    self.at = at
    self.uniqueID = uniqueID
    self.step = step
  }
}

/// Exactly one of `delivered` and `discarded` ends a life; an app's outcome may follow.
package enum DeliveryStep: Hashable, Sendable {
  /// Accepted from a provider for an app on this device. (The topic is last: its word also holds
  /// the case, and what is before it moves in whole vectors.)
  case received(NotificationClass, apnsID: UniqueID, device: DeviceID, Topic)
  /// Read from the journal at the relay's start.
  case restored
  /// `with` is what a held push was sent along with.
  case sent(Via, with: Carrier? = nil)
  case storedOffline
  /// `until` is nil when only a change, not time, releases it.
  case storedPower(until: Instant?, limit: BudgetLimit)
  case discarded(DiscardReason)
  case delivered
  case outcome(DeliveryOutcome)
  /// The device has it and decided that its app waits, or runs.
  case decided(PushDecision)
  /// An injected fault affected it, before or after acceptance.
  indirect case faulted(FaultMark)

  package var isTerminal: Bool {
    switch self {
    case .delivered, .discarded: true
    case .received, .restored, .sent, .storedOffline, .storedPower, .outcome, .decided, .faulted:
      false
    }
  }

  /// Whether it leaves the notification where it was: the phone's reports and injected faults.
  package var isAside: Bool {
    switch self {
    case .outcome, .decided, .faulted: true
    case .received, .restored, .sent, .storedOffline, .storedPower, .discarded, .delivered: false
    }
  }
}

/// A fault that occurred, in the words of its request.
package struct FaultMark: Hashable, Sendable {
  package var name: String
  /// `provider`, `connection` or `delivery`.
  package var place: String
  package var action: String

  package init(name: String, place: String, action: String) {
    self.name = name
    self.place = place
    self.action = action
  }
}

/// Why a notification will never be delivered.
package enum DiscardReason: Hashable, Sendable {
  case expired
  case unregistered
  /// `apns-expiration: 0`: the only attempt could not succeed.
  case notStored
  case replaced(by: UniqueID)
  /// The provider sent it again, unsure of the first, which is still on its way.
  case repeated(of: UniqueID)
  /// The journal could not write it; the provider got a 503.
  case journalFailed
  /// An administrator emptied the slot.
  case cleared

  package var name: String {
    switch self {
    case .expired: "expired"
    case .unregistered: "token unregistered"
    case .notStored: "not stored"
    case .replaced: "replaced"
    case .repeated: "repeated"
    case .journalFailed: "journal failed"
    case .cleared: "cleared"
    }
  }
}

/// The result on the phone, reported with the acknowledgement.
package enum DeliveryOutcome: Hashable, Sendable {
  case newData
  case noData
  case failed
  /// The system refused to run the app.
  case notLaunched(reason: String)
  /// Of a push for a Live Activity.
  case shown
  case notShown(reason: String)
  /// The app is still to run; a second acknowledgement has the outcome. Never logged.
  case later
}

extension DeliveryStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .received(let notificationClass, _, _, _): "received (\(notificationClass.name))"
    case .restored: "restored (from the journal)"
    case .sent(let via, .push(let id)): "sent (via: \(via.name), with \(id))"
    case .sent(let via, .line(let line)): "sent (via: \(via.name), with \(line.name))"
    case .sent(let via, nil): "sent (via: \(via.name))"
    case .storedOffline: "stored (device offline)"
    case .storedPower(.none, let limit): "stored (power considerations: held by \(limit.name))"
    case .storedPower(.some(let until), let limit):
      "stored (power considerations: held until \(until.iso8601) by \(limit.name))"
    case .discarded(.replaced(let id)): "discarded (replaced by \(id))"
    case .discarded(.repeated(let id)): "discarded (a repetition of \(id))"
    case .discarded(let reason): "discarded (\(reason.name))"
    case .delivered: "delivered"
    case .outcome(let outcome): "outcome (\(outcome))"
    case .decided(let decision): "on the phone (\(decision))"
    case .faulted(let mark): "fault (\(mark.name): \(mark.action) at \(mark.place))"
    }
  }
}

extension DeliveryOutcome: CustomStringConvertible {
  package var description: String {
    switch self {
    case .newData: "newData"
    case .noData: "noData"
    case .failed: "failed"
    case .notLaunched(let reason): "not launched: \(reason.inOneLine)"
    case .shown: "shown"
    case .notShown(let reason): "not shown: \(reason.inOneLine)"
    case .later: "later"
    }
  }
}
