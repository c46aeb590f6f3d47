import DequeModule
package import Primitives

/// A push that its provider gave an `apns-id`, and that its phone has taken.
package struct TakenPush: Hashable, Sendable {
  package struct Key: Hashable, Sendable {
    package var apnsID: UniqueID
    package var device: DeviceID

    package init(apnsID: UniqueID, device: DeviceID) {
      self.apnsID = apnsID
      self.device = device
    }
  }

  package var notification: Notification
  package var acceptedAt: Instant
  package var takenAt: Instant

  package init(notification: Notification, acceptedAt: Instant, takenAt: Instant) {
    self.notification = notification
    self.acceptedAt = acceptedAt
    self.takenAt = takenAt
  }
}

package typealias TakenPushes = RecentTable<TakenPush.Key, TakenPush>

/// A provider that was answered 503, or has lost its connection, sends the same again by the same
/// `apns-id`. While the first is known, in its app's slot, on its way to the phone, or for a minute
/// after the phone has taken it, the second is recognized: it is answered 200, and the phone gets
/// one.
///
/// One that says anything else, another expiration or priority, is a newer push, whatever its id.
/// Two that wait for the journal at the same time are told apart when it has them (`place`).
extension Shard {
  /// What is known of a push that is sent again.
  enum First {
    case unknown
    /// Its provider may be told that it was accepted: the journal has it, or need not.
    case promised(UniqueID)
    /// It is on its way, and waits for the journal, or the journal has failed.
    case unpromised(Int32)
  }

  /// What this, accepted at that moment, is a repetition of.
  ///
  /// Changes nothing; `mutating` as `verdict` is.
  @inline(never)
  mutating func first(
    of notification: Notification, _ app: Int32, acceptedAt moment: Instant
  ) -> First {
    let stored = apps[app].slots[notification.notificationClass]
    if stored >= 0, isRepeated(stored, by: notification, at: moment) { return known(stored) }
    let device = apps[app].device
    var entry = devices[device].firstInFlight
    while entry >= 0, case .inFlight(let next) = entries[entry].phase {
      if entries[entry].app == app, isRepeated(entry, by: notification, at: moment) {
        return known(entry)
      }
      entry = next
    }
    let key = TakenPush.Key(apnsID: notification.apnsID, device: devices[device].id)
    guard let taken = takenPushes[key], taken.takenAt + Limits.takenPushAge > now,
      taken.notification.token == notification.token,
      taken.notification.isRepeated(by: notification, accepted: taken.acceptedAt, moment)
    else { return .unknown }
    return .promised(taken.notification.uniqueID)
  }

  private mutating func isRepeated(
    _ entry: Int32, by notification: Notification, at moment: Instant
  ) -> Bool {
    entries[entry].notification.isRepeated(
      by: notification, accepted: entries[entry].acceptedAt, moment)
  }

  private mutating func known(_ entry: Int32) -> First {
    let isPromised =
      entries[entry].notification.expiration == .once
      || entries[entry].isStorable && !isPending(entry: entry)
    return isPromised ? .promised(entries[entry].notification.uniqueID) : .unpromised(entry)
  }

  /// The phone has it: for a while it is known by the name that its provider gave it.
  @inline(never)
  mutating func noteTaken(_ entry: Int32, by device: Int32) {
    while let oldest = takenPushes.oldest, oldest.value.takenAt + Limits.takenPushAge <= now {
      takenPushes.remove(oldest.key)
    }
    let notification = entries[entry].notification
    _ = takenPushes.insert(
      TakenPush(
        notification: notification, acceptedAt: entries[entry].acceptedAt, takenAt: now),
      for: TakenPush.Key(apnsID: notification.apnsID, device: devices[device].id))
  }

  /// The answer is that of the first.
  @inline(never)
  mutating func recognize(
    _ notification: Notification, _ app: Int32, asRepetitionOf id: UniqueID, _ request: RequestID,
    into effects: inout [Effect]
  ) {
    counters.received += 1
    logReceived(notification, for: app, at: now, into: &effects)
    effects.append(.respond(request, .accepted(uniqueID: id)))
    counters.count(.repeated(of: id))
    log(.discarded(.repeated(of: id)), notification.uniqueID, into: &effects)
  }

  /// The journal has a repetition of what it failed to write before, which is in flight: from now
  /// on that one has the record.
  mutating func adopt(_ repetition: Int32, by first: Int32, into effects: inout [Effect]) {
    let id = entries[first].notification.uniqueID
    entries[first].sequence = entries[repetition].sequence
    apps[entries[repetition].app].waiting[entries[repetition].notification.notificationClass] -= 1
    entries[repetition].sequence = 0
    discard(repetition, .repeated(of: id), into: &effects)
    if let request = unanswered.removeValue(forKey: first) {
      effects.append(.respond(request, .accepted(uniqueID: id)))
    }
  }
}
