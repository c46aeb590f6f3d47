import DeviceModel
import Primitives

/// The life of phones beside a real relay as a scenario: what was done to them and what arrived, at
/// their times, and as expectations what came of it.
///
/// Simulated phones begin anew, and connect and work in their own time, so not everything comes of
/// it as it did. It is played once with all expectations, and written with those that held.
struct LivedScenario: Sendable {
  private struct Fact: Hashable, Sendable {
    let what: TraceKind
    let phone: String?
    let app: String?
    let why: String
  }

  /// Things that are done or arrive, and different ones that come of them; later ones are left out.
  private static let limit = 2000
  private static let kinds: Set<TraceKind> = [
    .banner, .badge, .sound, .launched, .resumed, .opened, .left, .terminated, .began, .completed,
    .abandoned, .reported, .waits, .transferEnded, .merged, .booted, .switchedOff, .locked,
    .unlocked, .audio, .asked, .notRun, .uninstalled, .ignored,
  ]

  private let phones: [Scenario.PhonePlan]
  private let start: Int64
  private var end: Int64
  private var events: [String] = []
  private var facts: [Fact] = []
  private var counts: [Fact: Int] = [:]

  init(_ phones: [Scenario.PhonePlan], at now: Int64) {
    self.phones = phones
    start = now
    end = now
  }

  /// A verb with its keys.
  mutating func did(_ members: String, at now: Int64) { add(members, at: now) }

  mutating func received(_ arrival: LiveArrival, on phone: String, at now: Int64) {
    var members = ["\"to\":\(quoted("\(phone)/\(arrival.topic)"))"]
    members.append("\"payload\":\(String(decoding: arrival.payload, as: UTF8.self))")
    if arrival.isSilent { members.append("\"type\":\"background\"") }
    if !arrival.collapseID.isEmpty { members.append("\"collapse\":\(quoted(arrival.collapseID))") }
    add("\"push\":{\(members.joined(separator: ","))}", at: now)
  }

  mutating func saw(_ lines: [TraceLine]) {
    for line in lines where Self.kinds.contains(line.kind) {
      let fact = Fact(what: line.kind, phone: line.phone, app: line.app, why: line.why)
      if counts[fact] == nil {
        guard facts.count < Self.limit else { continue }
        facts.append(fact)
      }
      counts[fact, default: 0] += 1
    }
  }

  private mutating func add(_ members: String, at now: Int64) {
    end = max(end, now)
    guard events.count < Self.limit else { return }
    events.append("{\"at\":\"\(TimeText.text(duration: max(0, now - start)))\",\(members)}")
  }

  /// The bytes of a file that passes, as it is at that time.
  func scenario(at now: Int64, file: String) throws(ScenarioError) -> [UInt8] {
    let all = expectations
    let verdicts = try Scenario(json: bytes(all, at: now), file: file).run().verdicts
    let held = zip(all, verdicts).filter { $0.1.isPassed }.map(\.0)
    return bytes(held, at: now)
  }

  private var expectations: [String] {
    facts.map { fact in
      var members = ["\"what\":\(quoted(fact.what.rawValue))"]
      if let phone = fact.phone { members.append("\"phone\":\(quoted(phone))") }
      if let app = fact.app { members.append("\"app\":\(quoted(app))") }
      if !fact.why.isEmpty { members.append("\"why\":\(quoted(fact.why))") }
      return "{\"expect\":{\(members.joined(separator: ","))},\"count\":\(counts[fact] ?? 0)}"
    }
  }

  private func bytes(_ expectations: [String], at now: Int64) -> [UInt8] {
    func list(_ items: [String]) -> String {
      items.isEmpty ? "[]" : "[\n    " + items.joined(separator: ",\n    ") + "\n  ]"
    }
    // What the last thing has set going comes to its end.
    let length = TimeText.text(duration: max(end, now) - start + 60_000)
    let text = """
      {
        "title": "What happened to \(phones.count == 1 ? "a phone" : "phones")",
        "length": "\(length)",
        "relay": {"policy": "unlimited"},
        "phones": \(list(phones.map(\.json))),
        "events": \(list(events)),
        "expect": \(list(expectations))
      }

      """
    return Array(text.utf8)
  }
}

extension Scenario.PhonePlan {
  /// As far as one made on the spot has something to say.
  fileprivate var json: String {
    let apps = apps.map { app in
      let state = app.script.interface.objects.compactMap { app.script.interface.path(of: $0.id) }
        .map { "\(quoted("\($0)")):{}" }
      return "{\"name\":\(quoted(app.name)),\"state\":{\(state.joined(separator: ","))}}"
    }
    return "{\"name\":\(quoted(name)),\"network\":\"\(network.rawValue)\","
      + "\"charging\":\(isCharging),\"lowPower\":\(isLowPower),"
      + "\"apps\":[\(apps.joined(separator: ","))]}"
  }
}
