import Primitives
import RelayCore
import RelayServer

/// What became of a notification, as `GET /v1/notifications/{id}` of the admin API tells it.
struct LifeBody: Encodable, Equatable, Sendable {
  private enum Key: String, CodingKey { case device, sentence, token }

  let life: NotificationLife
  let device: String
  /// What became of it, in one sentence.
  let sentence: String
  /// Of the device's app; none once that is gone.
  var token = ""

  init?(_ life: Relay.Life) {
    guard let body = NotificationLife(life.steps, note: life.note) else { return nil }
    self.life = body
    device = life.device.description
    sentence = Self.sentence(life)
  }

  func encode(to encoder: any Encoder) throws {
    try life.encode(to: encoder)
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(device, forKey: .device)
    try container.encode(sentence, forKey: .sentence)
    try container.encode(token, forKey: .token)
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
