package import Primitives

/// Queries about a shard's devices.
extension Shard {
  /// A part of the list of devices.
  package struct DevicePage: Sendable {
    package var reports: [DeviceReport]
    /// Start of the next part, if any.
    package var next: DeviceNumber?
  }

  package var policy: SilentPolicy { budgets.policy }

  /// As of a moment, or of the last event: budgets refill without one.
  package func report(of id: DeviceID, at moment: Instant? = nil) -> DeviceReport? {
    guard let device = deviceNumber(id) else { return nil }
    var shard = self
    shard.now = max(now, moment ?? now)
    return shard.report(device)
  }

  /// Silent pushes that the app may still get at once; nil for no limit.
  package func remaining(_ topic: Topic, of id: DeviceID) -> Int64? {
    guard let device = deviceNumber(id), let app = appNumber(of: device, topic) else { return nil }
    return budgets(of: device).remaining(app: apps[app].budget, at: now)
  }

  /// Devices by place. Looks at no more than `Limits.listedDevices`, so as not
  /// to block the loop; the page may end early. `isWanted` gets a device's id and its apps' topics.
  package func devices(
    from first: DeviceNumber, limit: Int, at moment: Instant,
    where isWanted: (DeviceID, [Topic]) -> Bool
  ) -> DevicePage {
    var page = DevicePage(reports: [], next: nil)
    var shard = self
    shard.now = max(now, moment)
    let end = min(Int(first) + Limits.listedDevices, devices.placeCount)
    for number in (Int(first)..<max(Int(first), end)).lazy.map({ DeviceNumber(Int32($0)) })
    where devices.isTaken(number) {
      let topics = appNumbers(of: number, nil).map { apps[$0].topic }
      guard isWanted(devices[number].id, topics) else { continue }
      guard page.reports.count < limit else {
        page.next = number
        return page
      }
      page.reports.append(shard.report(number))
    }
    if end < devices.placeCount { page.next = DeviceNumber(Int32(end)) }
    return page
  }

  package func device(on connection: ConnectionID) -> DeviceID? {
    deviceNumber(of: connection).map { devices[$0].id }
  }

  package func app(with token: DeviceToken) -> (device: DeviceID, topic: Topic)? {
    appNumber(token).map { (devices[apps[$0].device].id, apps[$0].topic) }
  }

  package func secret(of id: DeviceID) -> SecretHash? {
    deviceNumber(id).map { devices[$0].secret }
  }

  /// The reported condition.
  package func condition(of id: DeviceID) -> DeviceCondition? {
    deviceNumber(id).map { devices[$0].condition }
  }

  package func isConnected(_ id: DeviceID, on connection: ConnectionID) -> Bool {
    deviceNumber(id).map { devices[$0].connection == connection } ?? false
  }
}

extension Shard {
  /// A device's report and its timers, soonest first; nil if it is not here. Walks over all timers.
  package func standing(
    of id: DeviceID, at moment: Instant? = nil
  ) -> (report: DeviceReport, timers: [(at: Instant, what: String)])? {
    guard let device = deviceNumber(id) else { return nil }
    let mine = timers.state.compactMap { timer in
      name(of: timer.subject, device).map { (timer.deadline, $0) }
    }
    return report(of: id, at: moment).map { ($0, mine) }
  }

  private func name(of subject: TimerWheel.Subject, _ device: DeviceNumber) -> String? {
    switch subject {
    case .expiration(let entry):
      apps[entries[entry].app].device == device
        ? "expiration of \(entries[entry].notification.uniqueID)" : nil
    case .hold(let app): apps[app].device == device ? "hold of \(apps[app].topic)" : nil
    case .refill(let app): apps[app].device == device ? "refill for \(apps[app].topic)" : nil
    case .keepAlive(let number): number == device ? "keep-alive" : nil
    case .acknowledgement(let number): number == device ? "acknowledgement" : nil
    }
  }
}
