package import Primitives
package import RelayCore

/// What a device says: one JSON object a line (docs/PROTOCOL.md, "Device API"). Unknown keys are
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
  /// What is nil stays as it was.
  case state(ConditionReport)
  case keepAlive
  /// Why a push that was acknowledged with `later` waits, until when, and that its app runs.
  case decision(id: UniqueID, PushDecision)
  /// With number 0: the phone goes by the relay's time from now on. With that of a barrier: all is
  /// done until then. `next` is when the phone has something to do by itself; nil for never.
  case barrier(number: UInt64, next: Instant?)

  /// Why a line is unusable; said to the device in an `error` line.
  package enum ParsingError: Error, Equatable, Sendable {
    case notJSONObject
    case unknownType
    case missingID
    case missingNumber
    case unknownValue(key: String)
    case tooLong

    /// The text of the `error` line.
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

  /// Reads one line.
  package init(_ line: Span<UInt8>) throws(ParsingError) {
    var members = Members()
    do {
      var cursor = try ObjectCursor(line)
      while let member = try cursor.next(line) {
        members.take(member, in: line)
      }
    } catch {
      throw .notJSONObject
    }
    self = try members.line(line)
  }

  /// Writes the line with its line feed: the device's side.
  package func write(to bytes: inout [UInt8]) {
    var object = ObjectWriter(&bytes)
    switch self {
    case .ack(let id, let outcome):
      object.member("type", "ack", to: &bytes)
      object.member("id", id.description, to: &bytes)
      if let outcome { writeOutcome(outcome, &object, to: &bytes) }
    case .state(let report):
      object.member("type", "state", to: &bytes)
      if let power = report.power { object.member("power", power.rawValue, to: &bytes) }
      if let network = report.network { object.member("network", network.rawValue, to: &bytes) }
      if let screen = report.screen { object.member("screen", screen.rawValue, to: &bytes) }
    case .keepAlive:
      object.member("type", "keepalive", to: &bytes)
    case .decision(let id, let decision):
      object.member("type", "decision", to: &bytes)
      object.member("id", id.description, to: &bytes)
      switch decision {
      case .waits(let limit, let until):
        object.member("decision", "waits", to: &bytes)
        object.member("reason", limit.rawValue, to: &bytes)
        if let until { object.member("until", until.milliseconds, to: &bytes) }
      case .runs: object.member("decision", "runs", to: &bytes)
      }
    case .barrier(let number, let next):
      object.member("type", "barrier", to: &bytes)
      object.member("number", Int64(clamping: number), to: &bytes)
      if let next { object.member("next", next.milliseconds, to: &bytes) }
    }
    object.end(&bytes)
  }

  private func writeOutcome(
    _ outcome: DeliveryOutcome, _ object: inout ObjectWriter, to bytes: inout [UInt8]
  ) {
    switch outcome {
    case .newData, .noData, .failed, .later:
      object.member("outcome", outcome.description, to: &bytes)
    case .notLaunched(let reason):
      object.member("outcome", "notLaunched", to: &bytes)
      object.member("reason", reason, to: &bytes)
    }
  }

  /// The members of a line that mean something, as ranges of it.
  private struct Members {
    var type: Range<Int>?
    var id: Range<Int>?
    var outcome: Range<Int>?
    var reason: Range<Int>?
    var power: Range<Int>?
    var network: Range<Int>?
    var screen: Range<Int>?
    var number: Range<Int>?
    var next: Range<Int>?
    var decision: Range<Int>?
    var until: Range<Int>?

    mutating func take(_ member: ObjectCursor.Member, in line: Span<UInt8>) {
      guard !member.isNull else { return }
      let key = line.extracting(member.key)
      let text = member.text
      if key.says("type") {
        type = text
      } else if key.says("id") {
        id = text
      } else if key.says("outcome") {
        outcome = text
      } else if key.says("reason") {
        reason = text
      } else if key.says("power") {
        power = text
      } else if key.says("network") {
        network = text
      } else if key.says("screen") {
        screen = text
      } else if key.says("number") {
        number = member.value
      } else if key.says("next") {
        next = member.value
      } else if key.says("decision") {
        decision = text
      } else if key.says("until") {
        until = member.value
      }
    }

    func line(_ line: Span<UInt8>) throws(ParsingError) -> UpLine {
      guard let type else { throw .unknownType }
      let word = line.extracting(type)
      if word.says("ack") { return try ack(line) }
      if word.says("keepalive") { return .keepAlive }
      if word.says("barrier") { return try barrier(line) }
      if word.says("decision") { return try decision(line) }
      guard word.says("state") else { throw .unknownType }
      let report = ConditionReport(
        power: try value(power, "power", line), network: try value(network, "network", line),
        screen: try value(screen, "screen", line))
      // Whoever has none does not get here.
      guard report.network?.isConnected != false else { throw .unknownValue(key: "network") }
      return .state(report)
    }

    private func barrier(_ line: Span<UInt8>) throws(ParsingError) -> UpLine {
      guard let number, let value = UInt64(line.extracting(number).plainText) else {
        throw .missingNumber
      }
      guard let next else { return .barrier(number: value, next: nil) }
      guard let moment = Int64(line.extracting(next).plainText) else {
        throw .unknownValue(key: "next")
      }
      return .barrier(number: value, next: Instant(milliseconds: moment))
    }

    private func decision(_ line: Span<UInt8>) throws(ParsingError) -> UpLine {
      guard let id, let uniqueID = UniqueID(parsing: line.extracting(id)) else { throw .missingID }
      guard let decision else { throw .unknownValue(key: "decision") }
      let word = line.extracting(decision)
      if word.says("runs") { return .decision(id: uniqueID, .runs) }
      guard word.says("waits") else { throw .unknownValue(key: "decision") }
      guard let limit: PushLimit = try value(reason, "reason", line) else {
        throw .unknownValue(key: "reason")
      }
      guard let until else { return .decision(id: uniqueID, .waits(limit, until: nil)) }
      guard let moment = Int64(line.extracting(until).plainText) else {
        throw .unknownValue(key: "until")
      }
      return .decision(id: uniqueID, .waits(limit, until: Instant(milliseconds: moment)))
    }

    private func ack(_ line: Span<UInt8>) throws(ParsingError) -> UpLine {
      guard let id, let uniqueID = UniqueID(parsing: line.extracting(id)) else { throw .missingID }
      guard let outcome else { return .ack(id: uniqueID, outcome: nil) }
      let word = line.extracting(outcome)
      if word.says("newData") { return .ack(id: uniqueID, outcome: .newData) }
      if word.says("noData") { return .ack(id: uniqueID, outcome: .noData) }
      if word.says("failed") { return .ack(id: uniqueID, outcome: .failed) }
      if word.says("later") { return .ack(id: uniqueID, outcome: .later) }
      guard word.says("notLaunched") else { throw .unknownValue(key: "outcome") }
      let text = reason.map { line.extracting($0).unescapedText(limitBytes: 200) } ?? "unknown"
      return .ack(id: uniqueID, outcome: .notLaunched(reason: text))
    }

    private func value<Value: RawRepresentable<String>>(
      _ range: Range<Int>?, _ key: String, _ line: Span<UInt8>
    ) throws(ParsingError) -> Value? {
      guard let range else { return nil }
      guard let value = Value(rawValue: line.extracting(range).unescapedText(limitBytes: 32)) else {
        throw .unknownValue(key: key)
      }
      return value
    }
  }
}
