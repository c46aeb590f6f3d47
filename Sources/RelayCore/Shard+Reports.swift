package import Primitives

/// What people ask about the devices of a shard. Reads only.
extension Shard {
  /// A part of the list of devices.
  package struct DevicePage: Sendable {
    package var reports: [DeviceReport]
    /// Where the next part begins; nil when there is none.
    package var next: Int32?
  }

  /// The silent policy in force.
  package var policy: SilentPolicy { budgets.policy }

  /// How a device stands; nil when it is not here.
  package func report(of id: DeviceID) -> DeviceReport? {
    deviceNumber(id).map { report($0) }
  }

  /// Silent pushes that an app of a device may still get at once; nil for no limit.
  package func remaining(_ topic: Topic, of id: DeviceID) -> Int64? {
    guard let device = deviceNumber(id), let app = appNumber(of: device, topic) else { return nil }
    return budgets(of: device).remaining(app: apps[app].budget, at: now)
  }

  /// Devices in the order of their places, from one on. Looks at `Limits.listedDevices` at most, so
  /// that a loop is not held up; then the page ends early and says where to go on.
  ///
  /// - Parameter isWanted: of a device's id and the topics of its apps.
  package func devices(
    from first: Int32, limit: Int, where isWanted: (DeviceID, [Topic]) -> Bool
  ) -> DevicePage {
    var page = DevicePage(reports: [], next: nil)
    let end = min(Int(first) + Limits.listedDevices, devices.placeCount)
    for number in first..<max(first, Int32(end)) where devices.isTaken(number) {
      guard isWanted(devices[number].id, topics(of: number)) else { continue }
      guard page.reports.count < limit else {
        page.next = number
        return page
      }
      page.reports.append(report(number))
    }
    if end < devices.placeCount { page.next = Int32(end) }
    return page
  }

  /// The device that listens on this stream.
  package func device(on connection: ConnectionID) -> DeviceID? {
    deviceNumber(of: connection).map { devices[$0].id }
  }

  /// Whose app has this token.
  package func app(with token: DeviceToken) -> (device: DeviceID, topic: Topic)? {
    appNumber(token).map { (devices[apps[$0].device].id, apps[$0].topic) }
  }

  /// The hash of a device's secret.
  package func secret(of id: DeviceID) -> SecretHash? {
    deviceNumber(id).map { devices[$0].secret }
  }

  /// How a device says that it is.
  package func condition(of id: DeviceID) -> DeviceCondition? {
    deviceNumber(id).map { devices[$0].condition }
  }

  /// Whether the device listens on this stream.
  package func isConnected(_ id: DeviceID, on connection: ConnectionID) -> Bool {
    deviceNumber(id).map { devices[$0].connection == connection } ?? false
  }

  private func topics(of device: Int32) -> [Topic] {
    var topics: [Topic] = []
    var app = devices[device].firstApp
    while app >= 0 {
      topics.append(apps[app].topic)
      app = apps[app].next
    }
    return topics
  }
}
