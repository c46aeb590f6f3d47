import Primitives
import RelayCore

extension RecordedScenario {
  /// Before the first moment of the recording: phones connect.
  private static let lead = Interval.seconds(10)
  /// What a simulated phone takes to connect.
  private static let reconnect = Interval.milliseconds(100)
  /// A step may come so much earlier or later.
  private static let slack = Interval.seconds(1)

  /// The file.
  ///
  /// - Parameter places: which of `steps` it expects.
  package func json(expecting places: some Sequence<Int>) -> [UInt8] {
    let phones = self.phones
    var lines = [
      "{", "  \"title\": \"From a recording of \(begin.iso8601)\",",
      "  \"length\": \"\(milliseconds(end) + 60_000)ms\",",
      "  \"relay\": { \"policy\": \(Self.json(policy)), \"keepAlive\": \"\(keepAliveText)\" },",
      "  \"link\": { \"latency\": \"0s\", \"jitter\": \"0s\", "
        + "\"reconnect\": \"\(Self.reconnect.milliseconds)ms\" },",
      "  \"phones\": [",
    ]
    lines += Self.list(phones.map { json($0) })
    lines += ["  ],", "  \"events\": ["]
    lines += Self.list(events(phones))
    lines += ["  ],", "  \"expect\": ["]
    lines += Self.list(places.map { json(steps[$0]) })
    lines += ["  ]", "}", ""]
    return Array(lines.joined(separator: "\n").utf8)
  }

  // MARK: Phones

  /// A device that pushes went to, by a name of its own.
  private struct Phone {
    var name: String
    var id: DeviceID
    var topics: [Topic] = []
  }

  /// In the order of their first pushes.
  private var phones: [Phone] {
    var phones: [Phone] = []
    var places: [DeviceID: Int] = [:]
    for push in pushes {
      let place = places[push.device] ?? phones.count
      if place == phones.count {
        places[push.device] = place
        phones.append(Phone(name: "phone-\(place + 1)", id: push.device))
      }
      let topic = push.notification.topic
      if !phones[place].topics.contains(topic) { phones[place].topics.append(topic) }
    }
    return phones
  }

  private func json(_ phone: Phone) -> String {
    let condition = conditions[phone.id] ?? DeviceCondition()
    let network = connectedAtStart.contains(phone.id) ? condition.network : .airplane
    let apps = phone.topics.map { "{ \"name\": \"\($0)\" }" }.joined(separator: ", ")
    return "{ \"name\": \"\(phone.name)\", \"network\": \"\(network.rawValue)\", "
      + "\"charging\": \(condition.power == .charging), \"lowPower\": \(condition.power == .low), "
      + "\"apps\": [\(apps)] }"
  }

  // MARK: Events

  /// All that happens, in order; at one time in the order in which a relay would hear of it.
  private func events(_ phones: [Phone]) -> [String] {
    var names: [DeviceID: String] = [:]
    for phone in phones { names[phone.id] = phone.name }
    var events: [(at: Int64, text: String)] = []
    for (at, policy) in policies where SilentPolicy.named.contains(policy) {
      events.append((milliseconds(at), #""do": "policy", "to": "\#(policy.name)""#))
    }
    var known = conditions
    for change in changes {
      guard let name = names[change.device] else { continue }
      let condition = known[change.device] ?? DeviceCondition()
      for (verb, to) in Self.deeds(change.kind, condition) {
        let isEarly = change.kind == .connected
        let at = milliseconds(change.at) - (isEarly ? Self.reconnect.milliseconds : 0)
        let value = to.map { #", "to": "\#($0)""# } ?? ""
        events.append((max(0, at), #""do": "\#(verb)", "phone": "\#(name)"\#(value)"#))
      }
      if case .reported(let report) = change.kind {
        known[change.device, default: DeviceCondition()].take(report)
      }
    }
    for (place, push) in pushes.enumerated() {
      events.append((milliseconds(push.at), "\"push\": " + json(push, place, names)))
    }
    return events.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
      .map { #"{ "at": "\#($0.element.at)ms", \#($0.element.text) }"# }
  }

  /// What a user does for the relay to hear that.
  private static func deeds(
    _ kind: Change.Kind, _ condition: DeviceCondition
  ) -> [(verb: String, to: String?)] {
    switch kind {
    case .connected:
      let network = condition.network.isConnected ? condition.network : .cellular
      return [("network", network.rawValue)]
    case .disconnected: return [("network", Network.airplane.rawValue)]
    case .reported(let report):
      var deeds: [(String, String?)] = []
      if let power = report.power, power != condition.power {
        if condition.power == .low { deeds.append(("low power", "off")) }
        if condition.power == .charging { deeds.append(("charger", "off")) }
        if power == .low { deeds.append(("low power", "on")) }
        if power == .charging { deeds.append(("charger", "on")) }
      }
      if let network = report.network, network != condition.network {
        deeds.append(("network", network.rawValue))
      }
      if let screen = report.screen, screen != condition.screen {
        deeds.append((screen == .on ? "unlock" : "lock", nil))
      }
      return deeds
    }
  }

  private func json(_ push: Push, _ place: Int, _ names: [DeviceID: String]) -> String {
    let notification = push.notification
    var members = [
      "\"name\": \"p\(place + 1)\"",
      "\"to\": \"\(names[push.device] ?? "")/\(notification.topic)\"",
      "\"type\": \"\(notification.pushType.wireName)\"",
      "\"priority\": \(notification.priority.rawValue)",
    ]
    switch notification.expiration {
    case .once: members.append("\"expires\": \"0s\"")
    case .at(let moment):
      let after = moment - push.at
      if after > .zero, after < Limits.storage {
        members.append("\"expires\": \"\(Self.text(after))\"")
      }
    }
    if let collapse = String(validating: notification.collapseID, as: UTF8.self), !collapse.isEmpty
    {
      members.append("\"collapse\": \(Self.quoted(collapse))")
    }
    members.append("\"payload\": " + Self.payload(of: notification, place))
    return "{ " + members.joined(separator: ", ") + " }"
  }

  /// As recorded; else one that is the same to a relay.
  private static func payload(of notification: Notification, _ place: Int) -> String {
    if isPayload(notification.payload),
      let text = String(validating: notification.payload, as: UTF8.self)
    {
      return text
    }
    switch notification.notificationClass {
    case .silent: return "\"silent\""
    case .visible:
      let wake = notification.wakesApp ? ", \"content-available\": 1" : ""
      return "{ \"aps\": { \"alert\": \"push \(place + 1)\"\(wake) } }"
    }
  }

  private static func isPayload(_ bytes: [UInt8]) -> Bool {
    do throws(PayloadError) {
      _ = try scanPayload(bytes.span)
      return true
    } catch {
      return false
    }
  }

  // MARK: Expectations

  private func json(_ step: Step) -> String {
    let at = milliseconds(step.at)
    let (after, before) = (max(0, at - Self.slack.milliseconds), at + Self.slack.milliseconds)
    let why = step.why.map { #", "why": "\#($0)""# } ?? ""
    return #"{ "expect": { "what": "\#(step.what)", "push": "p\#(step.push + 1)"\#(why) }, "#
      + #""after": "\#(after)ms", "before": "\#(before)ms" }"#
  }

  // MARK: Details

  /// In the scenario's time.
  private func milliseconds(_ moment: Instant) -> Int64 {
    (moment - begin + Self.lead).milliseconds
  }

  private var keepAliveText: String {
    "\(min(max(keepAlive, .minutes(1)), .days(3650)).milliseconds)ms"
  }

  private static func text(_ interval: Interval) -> String { "\(interval.milliseconds)ms" }

  private static func json(_ policy: SilentPolicy) -> String {
    if SilentPolicy.named.contains(policy) { return "\"\(policy.name)\"" }
    let limits = [("perApp", policy.perApp), ("perPhone", policy.perDevice)].compactMap {
      name, limit in
      limit.map {
        "\"\(name)\": { \"count\": 1, \"per\": \"\(text($0.interval))\", "
          + "\"burst\": \(min($0.burst, 1000)) }"
      }
    }
    return "{ " + limits.joined(separator: ", ") + " }"
  }

  private static func list(_ items: [String]) -> [String] {
    items.enumerated().map { "    \($1)" + ($0 < items.count - 1 ? "," : "") }
  }

  /// A string as JSON (RFC 8259, section 7).
  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\" + String(scalar)
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}
