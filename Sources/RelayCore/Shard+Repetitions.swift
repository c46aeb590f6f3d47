import DequeModule
package import Primitives

/// An acknowledged push with an `apns-id`.
package struct TakenPush: Hashable, Sendable {
  package struct Key: Hashable, Sendable {
    package var apnsID: UniqueID
    package var device: DeviceID

    package init(apnsID: UniqueID, device: DeviceID) {
      (self.apnsID, self.device) = (apnsID, device)
    }
  }

  package var notification: Notification
  package var acceptedAt: Instant
  package var takenAt: Instant

  package init(notification: Notification, acceptedAt: Instant, takenAt: Instant) {
    (self.notification, self.acceptedAt, self.takenAt) = (notification, acceptedAt, takenAt)
  }
}

package typealias TakenPushes = RecentTable<TakenPush.Key, TakenPush>

/// After a 503 or a lost connection, a provider repeats a push with the same `apns-id`. While the
/// first is in its slot, in flight, or acknowledged within the last minute, the second is answered
/// 200 and the phone gets only one.
///
/// A push that differs, if only in expiration or priority, is a new one, whatever its id. Two that
/// wait for the journal together are compared when the journal has them (`place`).
extension Shard {
  /// The first push of a repetition.
  enum First {
    case unknown
    /// The provider may be told that it was accepted: the journal has it, or need not.
    case promised(UniqueID)
    /// On its way, but pending in the journal or failed there.
    case unpromised(EntryNumber)
  }

  /// The first push that this one, accepted at `moment`, repeats. `mutating` as `verdict` is.
  @inline(never)
  mutating func first(
    of notification: Notification, _ app: AppNumber, acceptedAt moment: Instant
  ) -> First {
    let stored = apps[app].slots[notification.notificationClass]
    if stored.exists, isRepeated(stored, by: notification, at: moment) { return known(stored) }
    let device = apps[app].device
    var entry = devices[device].firstInFlight
    while entry.exists, case .inFlight(let next) = entries[entry].phase {
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
    _ entry: EntryNumber, by notification: Notification, at moment: Instant
  ) -> Bool {
    entries[entry].notification.isRepeated(
      by: notification, accepted: entries[entry].acceptedAt, moment)
  }

  private mutating func known(_ entry: EntryNumber) -> First {
    let isPromised =
      entries[entry].notification.expiration == .once
      || entries[entry].isStorable && !isPending(entry: entry)
    return isPromised ? .promised(entries[entry].notification.uniqueID) : .unpromised(entry)
  }

  /// Remembers an acknowledged push by its `apns-id` for a while.
  @inline(never)
  mutating func rememberTaken(_ entry: EntryNumber, by device: DeviceNumber) {
    while let oldest = takenPushes.oldest, oldest.value.takenAt + Limits.takenPushAge <= now {
      takenPushes.remove(oldest.key)
    }
    let notification = entries[entry].notification
    _ = takenPushes.insert(
      TakenPush(notification: notification, acceptedAt: entries[entry].acceptedAt, takenAt: now),
      for: TakenPush.Key(apnsID: notification.apnsID, device: devices[device].id))
  }

  /// Answers as for the first.
  @inline(never)
  mutating func recognize(
    _ notification: Notification, _ app: AppNumber, asRepetitionOf id: UniqueID,
    _ request: RequestID,
    into effects: inout [Effect]
  ) {
    counters.received += 1
    logReceived(notification, for: app, at: now, into: &effects)
    effects.append(.respond(request, .accepted(uniqueID: id)))
    counters.count(.repeated(of: id))
    log(.discarded(.repeated(of: id)), notification.uniqueID, into: &effects)
  }

  /// The journal has a repetition of a failed push in flight, which takes over the record.
  mutating func adopt(
    _ repetition: EntryNumber, by first: EntryNumber, into effects: inout [Effect]
  ) {
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
