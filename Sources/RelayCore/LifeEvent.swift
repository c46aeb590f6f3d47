/// One step in the life of a notification, in the words of Apple's delivery log where it has some
/// (Apple, "Viewing the status of push notifications using Metrics and APNs").
package struct LifeEvent: Hashable, Sendable {
  package var at: Instant
  package var uniqueID: UniqueID
  package var step: LifeStep

  package init(at: Instant, uniqueID: UniqueID, step: LifeStep) {
    self.at = at
    self.uniqueID = uniqueID
    self.step = step
  }
}

/// What happened. Exactly one of `delivered` and `discarded` ends a life; an app's outcome may
/// follow.
package enum LifeStep: Hashable, Sendable {
  /// Accepted from a provider, which calls it `apnsID`.
  case received(NotificationClass, apnsID: UniqueID, Topic)
  /// Read from the journal when the relay started; it was stored when the relay ended.
  case restored
  case sent(Via)
  case storedOffline
  /// `until` is nil when only a change, not time, frees it.
  case storedPower(until: Instant?, limit: BudgetLimit)
  case discarded(DiscardReason)
  case delivered
  case outcome(DeliveryOutcome)

  /// Whether this step ends the life.
  package var isTerminal: Bool {
    switch self {
    case .delivered, .discarded: true
    case .received, .restored, .sent, .storedOffline, .storedPower, .outcome: false
    }
  }
}

/// Why a notification will never be delivered.
package enum DiscardReason: Hashable, Sendable {
  case expired
  case unregistered
  /// `apns-expiration: 0`: the one attempt could not succeed now.
  case notStored
  case replaced(by: UniqueID)
  /// The journal could not write it; the provider was answered 503.
  case journalFailed

  /// The word for logs and counters.
  package var name: String {
    switch self {
    case .expired: "expired"
    case .unregistered: "unregistered"
    case .notStored: "not stored"
    case .replaced: "replaced"
    case .journalFailed: "journal failed"
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

extension LifeStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .received(let notificationClass, _, _): "received (\(notificationClass.name))"
    case .restored: "restored (from the journal)"
    case .sent(let via): "sent (via: \(via.name))"
    case .storedOffline: "stored (device offline)"
    case .storedPower(.none, let limit): "stored (power: held by \(limit.name))"
    case .storedPower(.some(let until), let limit):
      "stored (power: held until \(until.iso8601) by \(limit.name))"
    case .discarded(.replaced(let id)): "discarded (replaced by \(id))"
    case .discarded(let reason): "discarded (\(reason.name))"
    case .delivered: "delivered"
    case .outcome(let outcome): "outcome (\(outcome))"
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

extension Instant {
  /// UTC in the form 2026-11-21T09:30:00.250Z (RFC 3339), by Hinnant's civil-from-days algorithm:
  /// the core has no calendar library.
  package var iso8601: String {
    let day = Int64(86_400_000)
    var days = milliseconds / day
    var rest = milliseconds % day
    if rest < 0 {
      days -= 1
      rest += day
    }
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let dayOfMonth = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfMonth, 2))"
    let seconds = rest / 1000
    let time =
      "\(padded(seconds / 3600, 2)):\(padded(seconds / 60 % 60, 2)):\(padded(seconds % 60, 2))"
    return "\(date)T\(time).\(padded(rest % 1000, 3))Z"
  }

  private func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
