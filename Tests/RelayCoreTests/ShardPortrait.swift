import Primitives

@testable import RelayCore

extension Shard {
  /// What a shard knows, a line each, without its numbers for it: the same devices and tokens give
  /// the same lines, whatever shard they are in.
  func portrait(at now: Instant) -> Set<String> {
    var lines: [String] = []
    func name(_ entry: EntryNumber) -> String {
      entry == .none ? "none" : "\(entries[entry].notification.uniqueID)"
    }
    for number in devices.indices {
      var (device, inFlight) = (devices[number], [String]())
      var entry = device.firstInFlight
      while entry.exists, case .inFlight(let next) = entries[entry].phase {
        inFlight.append(name(entry))
        entry = next
      }
      (device.firstApp, device.firstInFlight) = (.none, .none)
      (device.keepAliveTimer, device.ackTimer) = (.none, .none)
      let topics = appNumbers(of: number, nil).map { apps[$0].topic }
      lines.append("\(device) has \(topics), in flight \(inFlight)")
      let all = entries.indices.filter { apps[entries[$0].app].device == number }
        .sorted { entries[$0].order < entries[$1].order }
      lines.append("\(device.id) got \(all.map(name))")
    }
    for number in apps.indices {
      var app = apps[number]
      let vacant = App.vacant.slots
      let (slots, device) = (app.slots, devices[app.device].id)
      (app.device, app.next, app.slots) = (.none, .none, vacant)
      (app.refillTimer, app.holdTimer) = (.none, .none)
      app.registration = 0
      lines.append("\(app) of \(device): \(name(slots.visible)), \(name(slots.silent))")
    }
    for number in entries.indices {
      var entry = entries[number]
      let (token, isFlying) = (apps[entry.app].token, entry.phase != .stored)
      (entry.app, entry.order, entry.sequence) = (.none, 0, min(1, entry.sequence))
      (entry.phase, entry.expirationTimer) = (.stored, .none)
      lines.append("\(entry) of \(token), \(isFlying), \(unanswered[number] as Any)")
    }
    return Set(lines + timerLines + tokenLines(at: now))
  }

  private var timerLines: [String] {
    timers.state.map { timer in
      let owner =
        switch timer.subject {
        case .expiration(let entry): "\(entries[entry].notification.uniqueID)"
        case .hold(let app), .refill(let app): "\(apps[app].token)"
        case .keepAlive(let device), .acknowledgement(let device): "\(devices[device].id)"
        }
      return "\(timer.deadline): \(timer.subject.kind) of \(owner)"
    }
  }

  private func tokenLines(at now: Instant) -> [String] {
    let awaited = awaitedOutcomes.state.compactMap { place in
      place.value.map { "\(place.key): \(devices[$0.device].id), \($0.decisions)" }
    }
    let taken = takenPushes.state.filter {
      $0.value.map { $0.takenAt + Limits.takenPushAge > now } ?? false
    }
    return aliases.indices.map { "\(aliases[$0].own), \(aliases[$0].isConfirmed)" }
      + tokenChanges.state.map { "\($0)" }
      + goneTokens.state.filter { $0.value != nil }.map { "\($0)" }
      + formerBudgets.state.map { "\($0)" } + ownBudgets.map { "\($0)" }
      + taken.map { "\($0)" } + awaited
  }
}
