import RelayCore

/// What happened, for people and programs: lines of time, who, what, why.
extension Simulation {
  /// What happened so far, a line each, without details such as snapshots and sleep.
  public var timeline: String { text(of: trace().filter { !$0.kind.isDetail }) }

  /// All that happened so far, in order.
  public func trace() -> [TraceLine] { entries.indices.map { line($0) } }

  /// Lines in columns.
  public func text(of lines: [TraceLine]) -> String {
    let width = lines.map(\.who.count).max() ?? 0
    let timeWidth = lines.last.map { TimeText.text(time: $0.milliseconds).count } ?? 0
    return lines.map { $0.text(timeWidth: timeWidth, whoWidth: width) + "\n" }.joined()
  }

  func line(_ index: Int) -> TraceLine {
    let entry = entries[index]
    let push = self.entry(of: entry.push)
    let phone = entry.phone >= 0 ? phones[Int(entry.phone)].name : nil
    return TraceLine(
      milliseconds: entry.at, isRelays: entry.isRelays, phone: phone,
      app: entry.app >= 0 ? apps[Int(entry.app)].name : nil,
      pushNumber: push == nil ? nil : Int(entry.push) + 1, pushName: push?.name,
      pushID: push?.id, kind: entry.kind, why: entry.why(since: start))
  }
}

/// One thing that happened.
public struct TraceLine: Hashable, Sendable {
  let milliseconds: Int64
  let isRelays: Bool
  /// The phone, the app and the push that it is about.
  public let phone: String?
  public let app: String?
  public let pushNumber: Int?
  public let pushName: String?
  /// The id that a real relay gave it.
  let pushID: UniqueID?
  /// What happened.
  public let kind: TraceKind
  /// Why, or what exactly; empty when there is nothing to say.
  public let why: String

  /// Since the start.
  public var time: Duration { .milliseconds(milliseconds) }

  /// Where it happened: `relay`, `anna`, `anna/messenger`.
  var who: String {
    isRelays ? "relay" : [phone, app].compactMap(\.self).joined(separator: "/")
  }

  func text(timeWidth: Int, whoWidth: Int) -> String {
    let time = TimeText.text(time: milliseconds)
    return padded(time, timeWidth) + "  " + padded(who, whoWidth) + "  " + what
  }

  /// Without time and place.
  var what: String {
    var text = kind.rawValue
    if let pushNumber, kind == .banner || isRelays || kind == .arrived || kind == .reported {
      text = "push \(pushNumber)" + (pushName.map { " (\($0))" } ?? "") + " " + text
    }
    if isRelays, let phone {
      let place = [phone, app].compactMap(\.self).joined(separator: "/")
      switch kind {
      case .received, .refused: text += " for \(place)"
      case .connected, .disconnected: text = "\(place) " + text
      default: break
      }
    }
    return why.isEmpty ? text : "\(text): \(why)"
  }

  private func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  /// One JSON object, its keys always in the same order; the time in milliseconds.
  public var json: String {
    let clock = TimeText.text(time: milliseconds)
    var members = ["\"at\":\(milliseconds)", "\"time\":\(quoted(clock))"]
    members.append("\"who\":\(quoted(isRelays ? "relay" : "phone"))")
    if let phone { members.append("\"phone\":\(quoted(phone))") }
    if let app { members.append("\"app\":\(quoted(app))") }
    if let pushNumber { members.append("\"push\":\(pushNumber)") }
    if let pushName { members.append("\"name\":\(quoted(pushName))") }
    if let pushID { members.append("\"uniqueId\":\"\(pushID)\"") }
    members.append("\"what\":\(quoted(kind.rawValue))")
    if !why.isEmpty { members.append("\"why\":\(quoted(why))") }
    return "{\(members.joined(separator: ","))}"
  }
}
