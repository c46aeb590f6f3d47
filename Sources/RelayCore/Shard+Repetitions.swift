import Primitives

/// A provider that was answered 503, or has lost its connection, sends the same again by the same
/// `apns-id`. While the first is known, in its app's slot or on its way to the phone, the second is
/// recognized: it is answered 200, and the phone gets one. What the phone has taken is not known
/// any more.
///
/// One that says anything else, another expiration or priority, is a newer push, whatever its id.
/// Two that wait for the journal at the same time are told apart when it has them (`place`).
extension Shard {
  /// What this is a repetition of, accepted at that moment.
  ///
  /// Changes nothing; `mutating` as `mayGoDirectly` is.
  @inline(never)
  mutating func first(
    of notification: Notification, _ app: Int32, acceptedAt moment: Instant
  ) -> Int32? {
    guard apps[app].entryCount > 0 else { return nil }
    let stored = apps[app].slots[notification.notificationClass]
    if stored >= 0, entries[stored].isRepeated(by: notification, at: moment) { return stored }
    var entry = devices[apps[app].device].firstInFlight
    while entry >= 0, case .inFlight(let next) = entries[entry].phase {
      if entries[entry].app == app, entries[entry].isRepeated(by: notification, at: moment) {
        return entry
      }
      entry = next
    }
    return nil
  }

  /// What an entry is a repetition of, if its provider may be told so.
  @inline(never)
  mutating func promisedFirst(of entry: Int32) -> Int32? {
    let (notification, moment) = (entries[entry].notification, entries[entry].acceptedAt)
    guard let first = first(of: notification, entries[entry].app, acceptedAt: moment),
      isPromised(first)
    else { return nil }
    return first
  }

  /// Whether its provider may be told that it was accepted: the journal has it, or need not.
  ///
  /// Changes nothing; `mutating` as `mayGoDirectly` is.
  mutating func isPromised(_ entry: Int32) -> Bool {
    guard entries[entry].notification.expiration != .once else { return true }
    return entries[entry].sequence != 0 && !isPending(entry: entry)
  }

  /// The answer is that of the first.
  @inline(never)
  mutating func recognize(
    _ notification: Notification, _ app: Int32, asRepetitionOf first: Int32, _ request: RequestID,
    into effects: inout [Effect]
  ) {
    let id = entries[first].notification.uniqueID
    counters.received += 1
    logReceived(notification, for: app, at: now, into: &effects)
    effects.append(.respond(request, .accepted(uniqueID: id)))
    counters.count(.repeated(of: id))
    log(.discarded(.repeated(of: id)), notification.uniqueID, into: &effects)
  }
}
