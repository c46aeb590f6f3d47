package import Primitives

/// An administrator's actions on a device; nil stands for all its apps.
package enum AdminAction: Hashable, Sendable {
  /// Its stream ends; it may connect again.
  case disconnect
  /// Stored pushes end undelivered.
  case emptySlots(Topic?)
  /// Budgets are full again; held pushes are sent.
  case refillBudget(Topic?)
  /// Sets the device's own silent policy, nil for the shared one.
  case setPolicy(SilentPolicy?, at: Instant)
  /// Removes a device without apps, unless records or token changes of it are pending.
  case forget
}

extension Shard {
  mutating func handle(_ event: OperatorEvent, into effects: inout [Effect]) {
    switch event {
    case .policyChanged(let policy, let moment): change(to: policy, at: moment)
    case .administered(let device, let action): administer(action, device, into: &effects)
    case .faulted(let id, let mark): log(.faulted(mark), id, into: &effects)
    case .checkpointSaved(let number): save(number)
    case .rewound(let number): rewind(to: number)
    case .checkpointDropped(let number): checkpoints[number] = nil
    case .shutDown: shutDown(into: &effects)
    }
  }

  private mutating func administer(
    _ action: AdminAction, _ id: DeviceID, into effects: inout [Effect]
  ) {
    guard let device = deviceNumber(id) else { return }
    switch action {
    case .disconnect:
      guard let connection = devices[device].connection else { return }
      effects.append(.close(connection, .dropped))
      end(connection, device, into: &effects)
    case .emptySlots(let topic):
      for app in appNumbers(of: device, topic) {
        for notificationClass in NotificationClass.allCases {
          let entry = apps[app].slots[notificationClass]
          if entry.exists { discard(entry, .cleared, into: &effects) }
        }
      }
    case .refillBudget(let topic):
      let numbers = appNumbers(of: device, topic)
      devices[device].budget = RateLimit.State()
      for app in numbers { apps[app].budget = RateLimit.State() }
      dropFormerBudgets(of: id, topic, into: &effects)
      for app in numbers {
        recordBudget(of: app, into: &effects)
        releaseHeld(app, .silent, into: &effects)
      }
    case .setPolicy(let policy, let moment):
      change(to: policy, of: device, at: moment, into: &effects)
    case .forget: forget(device, into: &effects)
    }
  }

  /// Pushes in flight end with the stream: their apps are gone.
  private mutating func forget(_ device: DeviceNumber, into effects: inout [Effect]) {
    let id = devices[device].id
    guard !devices[device].firstApp.exists, tokenChanges.changes(of: id).isEmpty, hasRoomForPersist
    else { return }
    if let connection = devices[device].connection {
      effects.append(.close(connection, .dropped))
      end(connection, device, into: &effects)
    }
    guard !apps.indices.contains(where: { apps[$0].device == device }) else { return }
    _ = formerBudgets.remove(of: id) { _ in true }
    record(.forgotten(id), key: id.routingKey, into: &effects)
    timers.cancel(&devices[device].keepAliveTimer)
    timers.cancel(&devices[device].ackTimer)
    awaitedOutcomes.removeAll { $0.value.device == device }
    removeDevice(device)
  }

  package var topics: Set<Topic> { Set(apps.indices.map { apps[$0].topic }) }

  /// Devices with an app of this topic, or all.
  package func deviceIDs(with topic: Topic?) -> [DeviceID] {
    devices.indices.filter { !appNumbers(of: $0, topic).isEmpty }.map { devices[$0].id }
  }

  func appNumbers(of device: DeviceNumber, _ topic: Topic?) -> [AppNumber] {
    var numbers: [AppNumber] = []
    var app = devices[device].firstApp
    while app.exists {
      if topic == nil || apps[app].topic == topic { numbers.append(app) }
      app = apps[app].next
    }
    // Oldest first.
    return numbers.reversed()
  }
}
