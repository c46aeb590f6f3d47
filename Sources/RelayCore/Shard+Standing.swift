package import Primitives

extension Shard {
  /// A device's report and its timers, soonest first; nil if it is not here. Walks over all timers.
  package func standing(
    of id: DeviceID
  ) -> (report: DeviceReport, timers: [(at: Instant, what: String)])? {
    guard let device = deviceNumber(id) else { return nil }
    let mine = timers.state.compactMap { timer in
      name(of: timer.subject, device).map { (timer.deadline, $0) }
    }
    return (report(device), mine)
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
