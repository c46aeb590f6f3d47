package import Primitives

/// One step in the life of a notification, in the words of Apple's delivery log where it has some
/// (Apple, "Viewing the status of push notifications using Metrics and APNs").
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

/// What happened. Exactly one of `delivered` and `discarded` ends a life; an app's outcome may
/// follow.
package enum DeliveryStep: Hashable, Sendable {
  /// Accepted from a provider, which calls it `apnsID`, for an app on this device. (The topic is
  /// last: its word also says which case it is, and what is before it moves in whole vectors.)
  case received(NotificationClass, apnsID: UniqueID, device: DeviceID, Topic)
  /// Read from the journal when the relay started; it was stored when the relay ended.
  case restored
  /// What was held says what it went along with, if it was anything.
  case sent(Via, with: Carrier? = nil)
  case storedOffline
  /// `until` is nil when only a change, not time, frees it.
  case storedPower(until: Instant?, limit: BudgetLimit)
  case discarded(DiscardReason)
  case delivered
  case outcome(DeliveryOutcome)
  /// The device has it and has decided that its app is to wait, or to run.
  case decided(PushDecision)
  /// A fault has acted on it, on purpose; before it was accepted or after.
  indirect case faulted(FaultMark)

  /// Whether this step ends the life.
  package var isTerminal: Bool {
    switch self {
    case .delivered, .discarded: true
    case .received, .restored, .sent, .storedOffline, .storedPower, .outcome, .decided, .faulted:
      false
    }
  }

  /// Whether it says nothing of where the notification is: what the phone makes of it, what went
  /// wrong on purpose.
  package var isAside: Bool {
    switch self {
    case .outcome, .decided, .faulted: true
    case .received, .restored, .sent, .storedOffline, .storedPower, .discarded, .delivered: false
    }
  }
}

/// A fault that has acted, in the words in which it was asked for.
package struct FaultMark: Hashable, Sendable {
  package var name: String
  /// Where: provider, connection, delivery.
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
  /// `apns-expiration: 0`: the one attempt could not succeed now.
  case notStored
  case replaced(by: UniqueID)
  /// Its provider has sent it again, not having heard of the first, which is still on its way.
  case repeated(of: UniqueID)
  /// The journal could not write it; the provider was answered 503.
  case journalFailed
  /// Somebody who runs the relay has emptied the slot.
  case cleared

  /// The word for logs and counters.
  package var name: String {
    switch self {
    case .expired: "expired"
    case .unregistered: "unregistered"
    case .notStored: "not stored"
    case .replaced: "replaced"
    case .repeated: "repeated"
    case .journalFailed: "journal failed"
    case .cleared: "cleared"
    }
  }
}

/// What the app made of it, as the phone reports it along with the acknowledgement.
package enum DeliveryOutcome: Hashable, Sendable {
  case newData
  case noData
  case failed
  /// The system refused to run the app, and why.
  case notLaunched(reason: String)
  /// The phone has it, its app is still to run: a second acknowledgement tells. Never logged.
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
    case .storedPower(.none, let limit): "stored (power: held by \(limit.name))"
    case .storedPower(.some(let until), let limit):
      "stored (power: held until \(until.iso8601) by \(limit.name))"
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
    case .notLaunched(let reason): "not launched: \(reason)"
    case .later: "later"
    }
  }
}
