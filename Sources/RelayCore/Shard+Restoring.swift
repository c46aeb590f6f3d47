import Primitives

/// Restores state from the journal: after a restart, or for arriving partitions, without touching
/// the devices of others.
///
/// Pushes in flight when the relay ended are stored like the rest. Two of one app and class may
/// come back, from flight and from the slot; then the newer replaces the older, as after a lost
/// connection.
///
/// Sequences are only assumed not to be this shard's own: other runs may have begun above this one.
extension Shard {
  mutating func restore(_ record: RestoredRecord, into effects: inout [Effect]) {
    switch record {
    case .device(let id, let secret, let budget): restoreDevice(id, secret, budget)
    case .app(let device, let topic, let token, let isOwn, let budget):
      restoreApp(device, topic, token, isOwn: isOwn, budget, into: &effects)
    case .alias(let own): restoreAlias(own)
    case .gone(let token, let moment):
      // A token that two devices had in turn is on the stripes of both.
      if goneTokens[token].map({ $0 <= moment }) ?? true {
        _ = goneTokens.insert(moment, for: token)
      }
    case .spent(let device, let topic, let budget):
      guard deviceNumber(device) != nil else { return }
      var spent = budgets.restored(app: budget, at: now)
      if let own = ownBudgets[device] {
        spent = budgets.appClock.state(spent, on: own.appClock, at: now)
      }
      keepBudget(spent, of: BudgetKey(device: device, topic: topic), into: &effects)
    case .subscription(let device, let topic, let channel):
      restoreSubscription(device, topic, channel, into: &effects)
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
    deviceIndex.insert(devices.insert(device).number, KeyedHash.hash(id))
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

  /// A token that has moved to another device since leads nowhere.
  mutating func restoreForwarded(
    _ notification: Notification, to device: DeviceID, _ sequence: UInt64, _ acceptedAt: Instant,
    into effects: inout [Effect]
  ) {
    guard let app = ownApp(notification.token, of: device) else {
      return discardRestored(notification, sequence, into: &effects)
    }
    restore(notification, to: app, sequence, acceptedAt, into: &effects)
  }

  /// Its app was removed, and the relay ended before its record was forgotten.
  private mutating func discardRestored(
    _ notification: Notification, _ sequence: UInt64, into effects: inout [Effect]
  ) {
    counters.restored += 1
    counters.count(.unregistered)
    log(.restored, notification.uniqueID, into: &effects)
    log(.discarded(.unregistered), notification.uniqueID, into: &effects)
    effects.append(.forget(sequence))
  }

  private mutating func restore(
    _ notification: Notification, to app: AppNumber, _ sequence: UInt64, _ acceptedAt: Instant,
    into effects: inout [Effect]
  ) {
    // A record pending here is already present.
    guard !isPending(sequence) else { return }
    guard apps[app].topic == notification.topic, case .at(let moment) = notification.expiration
    else {
      // The token is another app's by now.
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
