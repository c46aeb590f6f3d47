package import Primitives
package import RelayCore

/// A line from a device: one JSON object (docs/PROTOCOL.md, "Device API"). Unknown keys are
/// ignored.
///
/// ```
/// {"type":"ack","id":"<the notification's id or uniqueId>","outcome":"newData"}
/// {"type":"state","power":"low","network":"wifi","screen":"off"}
/// {"type":"keepalive"}
/// {"type":"decision","id":"<as of an ack>","decision":"waits","reason":"app-limit","until":…}
/// ```
package enum UpLine: Equatable, Sendable {
  case ack(id: UniqueID, outcome: DeliveryOutcome?)
  /// nil leaves a value as it was.
  case state(ConditionReport)
  case keepAlive
  /// Why a push acknowledged with `later` waits and until when, or that its app runs.
  case decision(id: UniqueID, PushDecision)
  /// Number 0: the phone follows the relay's time from now on. A barrier's: all work until then is
  /// done. `next` is the phone's next own work; nil for never.
  case barrier(number: UInt64, next: Instant?)

  /// Why a line is unusable; sent back in an `error` line.
  package enum ParsingError: Error, Equatable, Sendable {
    case notJSONObject
    case unknownType
    case missingID
    case missingNumber
    case unknownValue(key: String)
    case tooLong

    package var text: String {
      switch self {
      case .notJSONObject: "a line is one JSON object"
      case .unknownType: "type is ack, state, keepalive, decision or barrier"
      case .missingID: "an ack or a decision needs the id of a notification"
      case .missingNumber: "a barrier needs a number"
      case .unknownValue(let key): "\(key) has no such value"
      case .tooLong: "a line has at most \(Limits.lineBytes) bytes"
      }
    }
  }

  package init(_ line: Span<UInt8>) throws(ParsingError) {
    let members: LineMembers
    do {
      members = try LineMembers(line)
    } catch {
      throw .notJSONObject
    }
    self = try members.upLine(line)
  }

  package func write(to bytes: inout [UInt8]) {
    var object = ObjectWriter()
    switch self {
    case .ack(let id, let outcome):
      object.member(.type, "ack", to: &bytes)
      object.member(.id, id.description, to: &bytes)
      if let outcome { writeOutcome(outcome, &object, to: &bytes) }
    case .state(let report):
      object.member(.type, "state", to: &bytes)
      if let power = report.power { object.member(.power, power.rawValue, to: &bytes) }
      if let network = report.network { object.member(.network, network.rawValue, to: &bytes) }
      if let screen = report.screen { object.member(.screen, screen.rawValue, to: &bytes) }
    case .keepAlive: object.member(.type, "keepalive", to: &bytes)
    case .decision(let id, let decision):
      object.member(.type, "decision", to: &bytes)
      object.member(.id, id.description, to: &bytes)
      switch decision {
      case .waits(let limit, let until):
        object.member(.decision, "waits", to: &bytes)
        object.member(.reason, limit.rawValue, to: &bytes)
        if let until { object.member(.until, until.milliseconds, to: &bytes) }
      case .runs: object.member(.decision, "runs", to: &bytes)
      }
    case .barrier(let number, let next):
      object.member(.type, "barrier", to: &bytes)
      object.member(.number, Int64(clamping: number), to: &bytes)
      if let next { object.member(.next, next.milliseconds, to: &bytes) }
    }
    object.end(&bytes)
  }

  private func writeOutcome(
    _ outcome: DeliveryOutcome, _ object: inout ObjectWriter, to bytes: inout [UInt8]
  ) {
    switch outcome {
    case .newData, .noData, .failed, .shown, .later:
      object.member(.outcome, outcome.description, to: &bytes)
    case .notLaunched(let reason):
      object.member(.outcome, "notLaunched", to: &bytes)
      object.member(.reason, reason, to: &bytes)
    case .notShown(let reason):
      object.member(.outcome, "notShown", to: &bytes)
      object.member(.reason, reason, to: &bytes)
    }
  }
}

extension LineMembers {
  fileprivate func upLine(_ line: Span<UInt8>) throws(UpLine.ParsingError) -> UpLine {
    guard let type = member("type", line) else { throw .unknownType }
    let word = line.extracting(type.text)
    if word.says("ack") {
      return .ack(id: try notification(line), outcome: try outcome(line))
    }
    if word.says("keepalive") { return .keepAlive }
    if word.says("barrier") { return try barrier(line) }
    if word.says("decision") { return try decision(line) }
    guard word.says("state") else { throw .unknownType }
    let report = ConditionReport(
      power: try value("power", line), network: try value("network", line),
      screen: try value("screen", line))
    // A phone without a network does not get here.
    guard report.network?.isConnected != false else { throw .unknownValue(key: "network") }
    return .state(report)
  }

  private func notification(_ line: Span<UInt8>) throws(UpLine.ParsingError) -> UniqueID {
    guard let id = member("id", line), let value = UniqueID(parsing: line.extracting(id.text))
    else {
      throw .missingID
    }
    return value
  }

  private func barrier(_ line: Span<UInt8>) throws(UpLine.ParsingError) -> UpLine {
    guard let number = member("number", line),
      let value = UInt64(line.extracting(number.value).plainText)
    else { throw .missingNumber }
    return .barrier(number: value, next: try moment("next", line))
  }

  private func decision(_ line: Span<UInt8>) throws(UpLine.ParsingError) -> UpLine {
    let id = try notification(line)
    guard let decision = member("decision", line) else { throw .unknownValue(key: "decision") }
    let word = line.extracting(decision.text)
    if word.says("runs") { return .decision(id: id, .runs) }
    guard word.says("waits") else { throw .unknownValue(key: "decision") }
    guard let limit: PushLimit = try value("reason", line) else {
      throw .unknownValue(key: "reason")
    }
    return .decision(id: id, .waits(limit, until: try moment("until", line)))
  }

  private func outcome(_ line: Span<UInt8>) throws(UpLine.ParsingError) -> DeliveryOutcome? {
    guard let outcome = member("outcome", line) else { return nil }
    let word = line.extracting(outcome.text)
    if word.says("newData") { return .newData }
    if word.says("noData") { return .noData }
    if word.says("failed") { return .failed }
    if word.says("later") { return .later }
    if word.says("shown") { return .shown }
    let isShowing = word.says("notShown")
    guard isShowing || word.says("notLaunched") else { throw .unknownValue(key: "outcome") }
    let reason = member("reason", line).map {
      line.extracting($0.text).unescapedText(limitBytes: 200)
    }
    return isShowing
      ? .notShown(reason: reason ?? "unknown") : .notLaunched(reason: reason ?? "unknown")
  }

  private func moment(_ key: String, _ line: Span<UInt8>) throws(UpLine.ParsingError) -> Instant? {
    guard member(key, line) != nil else { return nil }
    guard let moment = time(key, line) else { throw .unknownValue(key: key) }
    return moment
  }

  private func value<Value: RawRepresentable<String>>(
    _ key: String, _ line: Span<UInt8>
  ) throws(UpLine.ParsingError) -> Value? {
    guard let member = member(key, line) else { return nil }
    let text = line.extracting(member.text).unescapedText(limitBytes: 32)
    guard let value = Value(rawValue: text) else { throw .unknownValue(key: key) }
    return value
  }
}
