import Primitives

/// Why a state or event from a file is impossible for a shard.
package struct StateFlaw: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

func require(_ holds: Bool, _ text: @autoclosure () -> String) throws(StateFlaw) {
  guard holds else { throw StateFlaw(text()) }
}

/// Checks the links and counts of devices, apps and entries.
struct Soundness {
  let devices: Slab<Device>
  let apps: Slab<App>
  let entries: Slab<AcceptedNotification>

  /// Moments allowed in a recording, up to the year 6429; `TimerWheel` reaches beyond.
  static let moments = Instant(milliseconds: 0)...Instant(milliseconds: 1 << 47)
  /// A replay's additions do not overflow.
  static let counts = 0...1 << 62

  func check() throws(StateFlaw) {
    try checkNames()
    try checkApps()
    try checkFlights()
    try checkEntries()
    try checkDevices()
  }

  private func checkNames() throws(StateFlaw) {
    for number in devices.indices {
      let device = devices[number]
      try require(apps.isLink(device.firstApp), "device \(number) has an app that is not there")
      try require(
        entries.isLink(device.firstInFlight), "device \(number) has an entry that is not there")
    }
    for number in apps.indices {
      let app = apps[number]
      try require(devices.mayBeTaken(app.device), "app \(number) is of a device that is not there")
      try require(apps.isLink(app.next), "app \(number) names an app that is not there")
      try require(
        entries.isLink(app.slots.visible) && entries.isLink(app.slots.silent),
        "app \(number) has an entry that is not there")
    }
    for number in entries.indices {
      try require(
        apps.mayBeTaken(entries[number].app), "entry \(number) is of an app that is not there")
      if case .inFlight(let next) = entries[number].phase {
        try require(entries.isLink(next), "entry \(number) names an entry that is not there")
      }
    }
  }

  /// Each registered app is in its device's list once, and no other app is.
  private func checkApps() throws(StateFlaw) {
    var isListed = [Bool](repeating: false, count: apps.placeCount)
    for number in devices.indices {
      var count: Int32 = 0
      var app = devices[number].firstApp
      while app.exists {
        try require(!isListed[Int(app)], "app \(app) is in a list twice")
        try require(apps[app].device == number, "app \(app) is in another device's list")
        isListed[Int(app)] = true
        count += 1
        app = apps[app].next
      }
      try require(count == devices[number].appCount, "device \(number) has \(count) apps")
      try require(count <= Limits.appsPerDevice, "device \(number) has too many apps")
    }
    for number in apps.indices {
      let app = apps[number]
      try require(isListed[Int(number)] == app.isRegistered, "app \(number) is in no list")
      try require(app.isRegistered || app.entryCount > 0, "app \(number) is kept for nothing")
      for notificationClass in NotificationClass.allCases {
        let slot = app.slots[notificationClass]
        guard slot.exists else { continue }
        try require(
          app.isRegistered && entries[slot].app == number && entries[slot].phase == .stored
            && entries[slot].notification.notificationClass == notificationClass,
          "app \(number) has an entry in a slot that is not its own")
      }
    }
  }

  /// Each entry in flight is in its connected device's list once.
  private func checkFlights() throws(StateFlaw) {
    var isListed = [Bool](repeating: false, count: entries.placeCount)
    for number in devices.indices {
      var count: Int32 = 0
      var entry = devices[number].firstInFlight
      while entry.exists {
        guard case .inFlight(let next) = entries[entry].phase, !isListed[Int(entry)],
          apps[entries[entry].app].device == number
        else { throw StateFlaw("entry \(entry) is not in flight to device \(number)") }
        isListed[Int(entry)] = true
        count += 1
        entry = next
      }
      try require(
        count == devices[number].inFlightCount, "device \(number) has \(count) entries in flight")
      try require(
        count == 0 || devices[number].connection != nil,
        "device \(number) is away, with entries in flight")
    }
    for number in entries.indices {
      guard case .inFlight = entries[number].phase else { continue }
      try require(isListed[Int(number)], "entry \(number) is in flight to no device")
    }
  }

  private func checkEntries() throws(StateFlaw) {
    var counts = [Int32](repeating: 0, count: apps.placeCount)
    var waiting = [PerClass<Int32>](
      repeating: PerClass(visible: 0, silent: 0), count: apps.placeCount)
    for number in entries.indices {
      let entry = entries[number]
      let notificationClass = entry.notification.notificationClass
      counts[Int(entry.app)] += 1
      switch entry.phase {
      case .waiting:
        waiting[Int(entry.app)][notificationClass] += 1
        try require(entry.isStorable, "entry \(number) waits for nothing")
      case .stored:
        try require(
          entry.isStorable && apps[entry.app].slots[notificationClass] == number,
          "entry \(number) is in no slot")
      case .inFlight: break
      }
    }
    for number in apps.indices {
      try require(
        counts[Int(number)] == apps[number].entryCount
          && waiting[Int(number)] == apps[number].waiting,
        "app \(number) has \(counts[Int(number)]) entries")
    }
  }

  private func checkDevices() throws(StateFlaw) {
    var stored = [Int32](repeating: 0, count: devices.placeCount)
    for number in apps.indices {
      let slots = apps[number].slots
      stored[Int(apps[number].device)] +=
        (slots.visible.exists ? 1 : 0) + (slots.silent.exists ? 1 : 0)
    }
    var (ids, connections): (Set<DeviceID>, Set<ConnectionID>) = ([], [])
    for number in devices.indices {
      let device = devices[number]
      try require(
        stored[Int(number)] == device.storedCount,
        "device \(number) has \(stored[Int(number)]) entries in slots")
      try require(ids.insert(device.id).inserted, "device \(device.id) is there twice")
      if let connection = device.connection {
        try require(connections.insert(connection).inserted, "two devices have one connection")
      }
    }
    var tokens: Set<DeviceToken> = []
    for number in apps.indices where apps[number].isRegistered {
      try require(tokens.insert(apps[number].token).inserted, "two apps have one token")
    }
  }

  // MARK: Timers

  /// The owner's timer for a subject; nil without an owner or anything to time.
  func timer(of subject: TimerWheel.Subject) -> TimerWheel.TimerID? {
    switch subject {
    case .expiration(let entry): entries.mayBeTaken(entry) ? entries[entry].expirationTimer : nil
    case .hold(let app):
      apps.mayBeTaken(app) && apps[app].slots.visible.exists ? apps[app].holdTimer : nil
    case .refill(let app):
      apps.mayBeTaken(app) && apps[app].slots.silent.exists ? apps[app].refillTimer : nil
    case .keepAlive(let device): isConnected(device) ? devices[device].keepAliveTimer : nil
    case .acknowledgement(let device): isConnected(device) ? devices[device].ackTimer : nil
    }
  }

  private func isConnected(_ device: DeviceNumber) -> Bool {
    devices.mayBeTaken(device) && devices[device].connection != nil
  }

  /// The number of timers that owners have.
  var timerCount: Int {
    func count(_ timers: TimerWheel.TimerID...) -> Int { timers.count { $0 != .none } }
    return devices.indices.reduce(0) {
      $0 + count(devices[$1].ackTimer, devices[$1].keepAliveTimer)
    }
      + apps.indices.reduce(0) { $0 + count(apps[$1].refillTimer, apps[$1].holdTimer) }
      + entries.indices.reduce(0) { $0 + count(entries[$1].expirationTimer) }
  }
}
