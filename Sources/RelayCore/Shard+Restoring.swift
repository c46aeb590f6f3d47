import Primitives

/// What the journal remembers becomes a shard's state again: after a restart, or when partitions
/// come to a shard that is at work with others, whose devices it does not touch.
///
/// What was in flight when the relay ended is stored like the rest: nobody acknowledged it. Two of
/// one app and class can come back, the one that was in flight and the one in the slot; then the
/// newer one replaces the older, as after any lost connection.
///
/// Nothing is taken for granted of the records' numbers but that they are not this shard's own:
/// other runs may have begun above this one.
extension Shard {
  /// Takes one record over.
  mutating func restore(_ record: RestoredRecord, into effects: inout [Effect]) {
    switch record {
    case .device(let id, let secret, let budget):
      restoreDevice(id, secret, budget)
    case .app(let device, let topic, let token, let isOwn, let budget):
      restoreApp(device, topic, token, isOwn: isOwn, budget, into: &effects)
    case .alias(let own):
      restoreAlias(own)
    case .gone(let token, let moment):
      // One that two devices have had in turn is on the stripes of both.
      if goneTokens[token].map({ $0 <= moment }) ?? true {
        _ = goneTokens.insert(moment, for: token)
      }
    case .spent(let device, let topic, let budget):
      guard deviceNumber(device) != nil else { return }
      keepBudget(
        budgets.restored(app: budget, at: now), of: BudgetKey(device: device, topic: topic),
        into: &effects)
    case .notification(let notification, let sequence, let acceptedAt):
      restoreNotification(notification, sequence, acceptedAt, into: &effects)
    case .forwarded(let notification, let device, let sequence, let acceptedAt):
      restoreForwarded(notification, to: device, sequence, acceptedAt, into: &effects)
    }
  }

  private mutating func restoreDevice(
    _ id: DeviceID, _ secret: SecretHash, _ budget: RateLimit.State
  ) {
    guard deviceNumber(id) == nil else { return }
    var device = Device(id: id, secret: secret)
    device.budget = budgets.restored(device: budget, at: now)
    deviceIndex.insert(devices.insert(device), KeyedHash.hash(id))
    counters.devices += 1
  }

  private mutating func restoreApp(
    _ id: DeviceID, _ topic: Topic, _ token: DeviceToken, isOwn: Bool, _ budget: RateLimit.State,
    into effects: inout [Effect]
  ) {
    guard let device = deviceNumber(id), appNumber(token) == nil else { return }
    var app = App(token: token, topic: topic, device: device, registration: 0, isOwn: isOwn)
    app.budget = budgets.restored(app: budget, at: now)
    attach(app, to: device)
    if isOwn {
      let own = OwnToken(token: token, device: id, topic: topic)
      effects.append(.tell(routingKey: token.routingKey, .alias(.confirmed(own))))
    }
  }

  private mutating func restoreNotification(
    _ notification: Notification, _ sequence: UInt64, _ acceptedAt: Instant,
    into effects: inout [Effect]
  ) {
    if let alias = aliasNumber(notification.token) {
      let device = aliases[alias].own.device
      let event = AliasEvent.restored(
        notification, to: device, sequence: sequence, acceptedAt: acceptedAt)
      return effects.append(.tell(routingKey: device.routingKey, .alias(event)))
    }
    guard let app = appNumber(notification.token) else {
      return discardRestored(notification, sequence, into: &effects)
    }
    restore(notification, to: app, sequence, acceptedAt, into: &effects)
  }

  /// Its device is here, if anywhere: a token that went to another device since leads nowhere.
  mutating func restoreForwarded(
    _ notification: Notification, to device: DeviceID, _ sequence: UInt64, _ acceptedAt: Instant,
    into effects: inout [Effect]
  ) {
    guard let app = ownApp(notification.token, of: device) else {
      return discardRestored(notification, sequence, into: &effects)
    }
    restore(notification, to: app, sequence, acceptedAt, into: &effects)
  }

  /// Its app was removed, and the relay ended before the journal heard of its end.
  private mutating func discardRestored(
    _ notification: Notification, _ sequence: UInt64, into effects: inout [Effect]
  ) {
    counters.restored += 1
    counters.count(.unregistered)
    log(.restored, notification.uniqueID, into: &effects)
    log(.discarded(.unregistered), notification.uniqueID, into: &effects)
    effects.append(.forget(sequence))
  }

  /// The app is here.
  private mutating func restore(
    _ notification: Notification, to app: Int32, _ sequence: UInt64, _ acceptedAt: Instant,
    into effects: inout [Effect]
  ) {
    // What waits here for the journal is here.
    guard !isPending(sequence) else { return }
    guard apps[app].topic == notification.topic, case .at(let moment) = notification.expiration
    else {
      // Its token is that of another app by now.
      return discardRestored(notification, sequence, into: &effects)
    }
    counters.restored += 1
    counters.waiting += 1
    lastOrder += 1
    apps[app].entryCount += 1
    apps[app].waiting[notification.notificationClass] += 1
    let entry = entries.insert(
      AcceptedNotification(
        notification: notification, order: lastOrder, sequence: sequence, acceptedAt: acceptedAt,
        app: app, phase: .waiting))
    entries[entry].expirationTimer = timers.set(moment, .expiration(entry: entry))
    logReceived(notification, for: app, at: acceptedAt, into: &effects)
    log(.restored, notification.uniqueID, into: &effects)
    place(entry, into: &effects)
  }
}
