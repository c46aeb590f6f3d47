import AdminAPI
import Primitives
import RelayCore
import RelayServer

extension NotificationLife {
  /// With what only the admin API tells: the device, and the outcome in one sentence.
  init?(_ life: Relay.Life) {
    self.init(life.steps, warnings: life.note.warnings, traceParent: life.note.traceParent)
    device = life.device.description
    sentence = Self.sentence(life)
    token = ""
  }

  private static func sentence(_ life: Relay.Life) -> String {
    let last = life.last
    switch last.step {
    case .received: return "Accepted; it waits for the journal."
    case .restored: return "Read from the journal at the start of the relay."
    case .sent(let via, _):
      return "Sent (\(via.name)); the device has not acknowledged it yet."
    case .storedOffline: return "Held because the device is not connected, until it connects."
    case .storedPower(let until?, let limit):
      return "Held because of \(limit.name), until \(until.iso8601) or until it can ride along."
    case .storedPower(nil, let limit):
      return "Held because of \(limit.name), until the device's state changes."
    case .discarded(.replaced(let id)):
      return "Replaced by \(id): only the newest of its kind is kept for an app."
    case .discarded(.repeated(let id)): return "Sent again by its provider; the first is \(id)."
    case .discarded(let reason): return "Ended without delivery: \(reason.name)."
    case .delivered:
      let seconds = Double((last.at - life.steps[0].at).milliseconds) / 1000
      let delivered = "Delivered \(seconds) s after it was accepted."
      guard case .decided(.waits(let limit, let until))? = life.steps.last?.step else {
        return delivered
      }
      return "\(delivered) The phone makes it wait because of \(limit.rawValue)"
        + (until.map { ", until \($0.iso8601)." } ?? ".")
    case .decided: return "The phone has it."
    case .faulted(let mark): return "The fault \(mark.name) has acted on it."
    case .outcome(let outcome): return "The app said \(outcome.description)."
    }
  }
}
