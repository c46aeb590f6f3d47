import AdminAPI
import Primitives
import RelayCore
import RelayServer

extension NotificationLife {
  /// With what only the admin API tells: the device, and the outcome in one sentence.
  ///
  /// - Parameters:
  ///   - report: its device's; nil when that is away, as its node is, or gone.
  ///   - lastOfApp: when the app's last silent push on its budget went, if that is known.
  init?(
    _ life: Relay.Life, _ report: DeviceReport? = nil, lastOfApp: Instant? = nil, at now: Instant
  ) {
    self.init(life.steps, warnings: life.note.warnings, traceParent: life.note.traceParent)
    device = life.device.description
    phone = NamedDevices.name(of: life.device)
    token = report?.apps.first { $0.topic == life.topic }?.token.hexadecimal ?? ""
    if let held = report.flatMap({ HeldPush(life.uniqueID, in: $0, lastOfApp: lastOfApp, at: now) })
    {
      (waits, sentence) = (held.waits, held.sentence)
    } else {
      sentence = Self.sentence(life, at: now)
      if life.last.step == .delivered,
        case .decided(.waits(let limit, let until))? = life.steps.last?.step
      {
        waits = Waits(limit, until: until)
      }
    }
  }

  /// By its steps alone.
  private static func sentence(_ life: Relay.Life, at now: Instant) -> String {
    let last = life.last
    switch last.step {
    case .received: return "Accepted; it waits for the journal."
    case .restored: return "Read from the journal at the start of the relay."
    case .sent(let via, _): return "Sent (\(via.name)); the device has not acknowledged it yet."
    case .storedOffline: return "Held: the phone is not connected; it goes when it connects."
    case .storedPower(let until?, let limit):
      return "Held by \(limit.name), until \(until.text(at: now)) or until it can ride along."
    case .storedPower(nil, let limit):
      return "Held by \(limit.name), until the device's state changes."
    case .discarded(.replaced(let id)):
      return "Replaced by \(id): only the newest of its kind is kept for an app."
    case .discarded(.repeated(let id)): return "Sent again by its provider; the first is \(id)."
    case .discarded(let reason): return "Ended without delivery: \(reason.name)."
    case .delivered:
      let delivered = "Delivered \((last.at - life.steps[0].at).text) after it was accepted"
      switch life.steps.last?.step {
      case .outcome(.notShown(let reason)):
        return "\(delivered); the phone, not the relay, did not show it: \(reason.inOneLine)."
      case .outcome(.notLaunched(let reason)):
        return "\(delivered); the phone, not the relay, did not run the app: \(reason.inOneLine)."
      case .none, .some: break
      }
      guard case .decided(.waits(let limit, let until))? = life.steps.last?.step else {
        return "\(delivered)."
      }
      return "\(delivered); the phone, not the relay, makes it wait: \(limit.text) "
        + "(\(limit.rawValue))" + (until.map { ", until \($0.text(at: now))." } ?? ".")
    case .decided: return "The phone has it."
    case .faulted(let mark): return "The fault \(mark.name) has acted on it."
    case .outcome(let outcome): return "The app said \(outcome.description)."
    }
  }
}

/// One JSON object with the members of both.
struct Joined<First: Encodable, Second: Encodable>: Encodable {
  let first: First
  let second: Second

  init(_ first: First, _ second: Second) { (self.first, self.second) = (first, second) }

  func encode(to encoder: any Encoder) throws {
    try first.encode(to: encoder)
    try second.encode(to: encoder)
  }
}

/// An answer with the nodes and stripes of a cluster that it lacks.
typealias Lacking<Body: Encodable> = Joined<Body, Lacks>

extension Joined where Second == Lacks {
  init(_ body: First, _ missing: Missing) {
    self.init(body, Lacks(nodes: missing.nodes, stripes: missing.stripes))
  }
}

extension Refusal {
  /// 503: a node that has the answer, or has to act, did not answer.
  init(_ missing: Missing) {
    let nodes = missing.nodes.map { "node \($0) does not answer" }
    let stripes = missing.stripes.map { "stripe \($0) has no node" }
    self.init(503, "NodeAway", (nodes + stripes).joined(separator: ", ") + "; try again")
    if !missing.nodes.isEmpty { missingNodes = missing.nodes }
  }
}

extension Relay.DevicePlace {
  init(cursor text: String) throws(Refusal) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 3, let node = UInt16(parts[0]), let loop = Int(parts[1]),
      let place = Int32(parts[2]), loop >= 0, place >= 0
    else { throw .body("after is the cursor of a page of devices", field: "after") }
    self.init(node: node, position: .init(loop: loop, place: .init(place)))
  }

  /// The node's number, its loop and the place there, with hyphens between them.
  var cursor: String { "\(node)-\(position?.loop ?? 0)-\(position?.place.number ?? 0)" }
}
