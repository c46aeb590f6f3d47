package import Primitives
package import RelayCore

/// Why a push waits, and what ends it, as data; `HeldPush` has the sentence. Times are UNIX
/// milliseconds.
package struct Waits: Codable, Equatable, Sendable {
  /// Silent pushes left of at most `burst`, and how they come back.
  package struct Budget: Codable, Equatable, Sendable {
    package var remaining: Int64
    package var burst: Int64
    /// Such as 20m.
    package var every: String
    /// When there is one more; nil when none is used.
    package var next: Int64?
    /// When the last one went; nil once the log has forgotten it, and for a phone's.
    package var last: Int64?

    package init(_ allowance: Allowance, last: Instant? = nil) {
      self.last = last?.milliseconds
      remaining = allowance.remaining
      burst = allowance.limit.burst
      every = allowance.limit.interval.text
      next = allowance.next?.milliseconds
    }
  }

  /// That it may go along with something else: at the latest with the keep-alive at `by`.
  package struct Ride: Codable, Equatable, Sendable {
    package var by: Int64?
  }

  /// `relay`, or `phone`: it is there, and its app is not run yet.
  package var by = "relay"
  /// As in its steps, or `offline`.
  package var limit: String
  package var until: Int64?
  package var app: Budget?
  package var device: Budget?
  package var policy: String?
  package var ride: Ride?
  /// When it expires, if it still waits then.
  package var expires: Int64?

  fileprivate init(limit: String, until: Instant?) {
    self.limit = limit
    self.until = until?.milliseconds
  }

  /// On the phone.
  package init(_ limit: PushLimit, until: Instant?) {
    self.init(limit: limit.rawValue, until: until)
    by = "phone"
  }
}

/// A push in a slot of its device, and all that the relay knows of why it is there.
package struct HeldPush {
  private let report: DeviceReport
  private let app: DeviceReport.AppReport
  private let slot: DeviceReport.Slot
  private let isSilent: Bool
  private let now: Instant
  private let lastOfApp: Instant?

  /// nil when the device holds no such push.
  ///
  /// - Parameter lastOfApp: when the app's last silent push on its budget went, if that is known.
  package init?(
    _ id: UniqueID, in report: DeviceReport, lastOfApp: Instant? = nil, at now: Instant
  ) {
    self.lastOfApp = lastOfApp
    for app in report.apps {
      guard
        let slot = [app.silent, app.visible].compactMap(\.self).first(where: { $0.uniqueID == id })
      else { continue }
      (self.report, self.app, self.slot, self.now) = (report, app, slot, now)
      isSilent = slot.uniqueID == app.silent?.uniqueID
      return
    }
    return nil
  }

  /// nil when it is about to be sent.
  package var waits: Waits? {
    guard slot.decision != .allowed else { return nil }
    var waits = Waits(limit: "offline", until: nil)
    if case .held(let until, let limit)? = slot.decision {
      waits = Waits(limit: limit.name, until: until)
      if mayRide { waits.ride = Waits.Ride(by: report.keepAliveAt?.milliseconds) }
    }
    waits.expires = slot.expiresAt?.milliseconds
    if isSilent, !slot.isPaid {
      waits.app = app.allowance.map { Waits.Budget($0, last: lastOfApp) }
      waits.device = report.allowance.map { Waits.Budget($0) }
      waits.policy = report.policy
    }
    return waits
  }

  /// In exact words, with the arithmetic of the budgets (docs/PROTOCOL.md, "Why it waits").
  package var sentence: String {
    let (why, until): (String, Instant?) =
      switch slot.decision {
      case nil: (offline, nil)
      case .allowed: ("nothing holds it any more, and it is about to be sent", nil)
      case .held(let until, .perApp), .held(let until, .perDevice):
        ("\(budgets); or it goes along with \(carriers(until))", until)
      case .held(_, .lowPowerMode):
        (
          "the phone is in Low Power Mode, where silent pushes wait and nothing carries them, "
            + "until it reports another state of its power", nil
        )
      case .held(_, .inFlight): (inFlight, nil)
      case .held(let until, .lowPriority): (lowPriority(until), until)
      }
    guard let end = slot.expiresAt, end <= until ?? now + .days(1) else { return "Held: \(why)." }
    return "Held: \(why). It expires at \(end.text(at: now))."
  }

  /// Whether something else may carry it, though it is held.
  private var mayRide: Bool {
    switch slot.decision {
    case .held(_, .perApp), .held(_, .perDevice), .held(_, .lowPriority): true
    // With its budget it goes by itself when the window opens.
    case .held(_, .inFlight):
      isSilent && !slot.isPaid && !report.condition.withholdsSilent && app.budget != .allowed
    case nil, .allowed, .held(_, .lowPowerMode): false
    }
  }

  private var budgets: String {
    let all = [("app", app.allowance, lastOfApp), ("phone", report.allowance, nil)]
    let parts = all.compactMap { name, budget, last in
      budget.map { budget in
        let left = "\(name) budget: \(budget.remaining) of \(budget.limit.burst) left"
        guard budget.remaining == 0, let next = budget.next else { return left }
        let went = last.map { " the last on it went at \($0.text(at: now))," } ?? ""
        return "\(left),\(went) one comes back every \(budget.limit.interval.afterEvery), "
          + "the next at \(next.text(at: now))"
      }
    }
    return "\(parts.joined(separator: "; ")) (policy \(report.policy))"
  }

  /// All that opens a ride (docs/PROTOCOL.md, "Rides"), before `until`.
  private func carriers(_ until: Instant?) -> String {
    var carriers = ["the next push that shows something"]
    let phoneBudget = report.allowance.map { $0.remaining > 0 ? now : $0.next ?? .never } ?? now
    if report.apps.count > 1, phoneBudget < until ?? .never {
      carriers.append("another app's silent push on its own budget")
    }
    if report.rides.remaining > 0 { carriers += ["a new connection", "a change of its state"] }
    var latest = ""
    if let due = report.keepAliveAt, due < until ?? .never {
      carriers.append("a keep-alive")
      latest = ", at \(due.text(at: now)) at the latest if the phone stays connected"
    }
    let last = carriers.removeLast()
    return (carriers.isEmpty ? last : "\(carriers.joined(separator: ", ")) or \(last)") + latest
  }

  private var offline: String {
    let away = "the phone is not connected"
    guard isSilent else { return "\(away); it goes when the phone connects" }
    guard !report.condition.withholdsSilent else {
      return "\(away), and was in Low Power Mode when it last was: silent pushes wait until it "
        + "reports another state of its power"
    }
    guard !slot.isPaid, app.budget != .allowed, report.rides.remaining == 0,
      let next = report.rides.next
    else { return "\(away); it goes when the phone connects" }
    return "\(away); it goes when the phone connects after \(next.text(at: now)), as it has "
      + "connected too often to carry it before, or by its budget: \(budgets)"
  }

  private var inFlight: String {
    let full = "\(report.inFlight) pushes are on their way to the phone, the most at once; "
    guard isSilent, !slot.isPaid, case .held(let until, let limit) = app.budget else {
      return full + "it goes when the phone acknowledges one"
    }
    guard limit != .lowPowerMode else {
      return full + "and silent ones wait while the phone is in Low Power Mode"
    }
    return full + "when the phone acknowledges one, its budget decides: \(budgets); "
      + "or it goes along with \(carriers(until))"
  }

  /// Only priority 5 has an end of its own.
  private func lowPriority(_ until: Instant?) -> String {
    guard let until else {
      return "a push of priority 1 wakes no phone, and waits while the screen is off; it goes "
        + "along with \(isSilent ? "" : "the phone's next line, or with ")\(carriers(nil))"
    }
    let latest = min(until, report.keepAliveAt ?? .never).text(at: now)
    return "a push of priority 5 waits while the phone is in Low Power Mode with its screen off; "
      + "it goes with the phone's next line or the next push sent, at \(latest) at the latest"
  }
}

extension PushLimit {
  /// Why the phone does not run the app yet (docs/PROTOCOL.md, "Lines up").
  package var text: String {
    switch self {
    case .app: "it has woken the app as often as it lets it"
    case .phone: "it has woken all apps together as often as it lets them"
    case .firstUnlock: "it was not unlocked since it started"
    case .lowPower: "it is in Low Power Mode"
    case .energyBudget: "the day's energy is used up, and it waits for the charger"
    case .nextWake: "it must not wake the phone, and goes on with what next does"
    case .dataBudget: "the day's data is used up, and it waits for the charger"
    }
  }
}
