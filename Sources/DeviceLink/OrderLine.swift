package import Primitives
import RelayCore

/// The relay's line on a phone's stream of orders (docs/PROTOCOL.md, "Orders"): what to do, in the
/// words of a scenario; without `order` the phone is asked for its state.
///
/// ```
/// {"type":"order","number":3,"time":1790000000000,"order":{"do":"network airplane"}}
/// ```
package struct OrderLine: Equatable, Sendable {
  package let number: UInt64
  /// The relay's, which the phone may follow.
  package let time: Instant
  /// A JSON object.
  package let order: [UInt8]?

  package init(number: UInt64, time: Instant, order: [UInt8]?) {
    (self.number, self.time, self.order) = (number, time, order)
  }

  /// nil for a line that is none, or of a newer relay.
  package init?(_ line: Span<UInt8>) {
    guard let members = try? LineMembers(line), members.text("type", line) == "order",
      let number = members.number("number", line).flatMap({ UInt64(exactly: $0) }),
      let time = members.time("time", line)
    else { return nil }
    let order = members.member("order", line).map { line.extracting($0.value).array }
    self.init(number: number, time: time, order: order)
  }

  package func write(to bytes: inout [UInt8]) {
    var object = ObjectWriter()
    object.member(.type, "order", to: &bytes)
    object.member(.number, Int64(clamping: number), to: &bytes)
    object.member(.time, time.milliseconds, to: &bytes)
    if let order { object.member(.order, json: order, to: &bytes) }
    object.end(&bytes)
  }
}

/// The phone's line when it has carried an order out, or why it could not.
///
/// ```
/// {"type":"done","number":3,"told":{"lines":["08:15:00.000 anna  locked"]}}
/// {"type":"done","number":4,"error":"there is no \"fly\"; 'help' lists what there is"}
/// ```
package struct DoneLine: Equatable, Sendable {
  package enum Result: Equatable, Sendable {
    /// A JSON object.
    case told([UInt8])
    case failed(String)
  }

  package let number: UInt64
  package let result: Result

  package init(number: UInt64, _ result: Result) {
    (self.number, self.result) = (number, result)
  }

  package init?(_ line: Span<UInt8>) {
    guard let members = try? LineMembers(line), members.text("type", line) == "done",
      let number = members.number("number", line).flatMap({ UInt64(exactly: $0) })
    else { return nil }
    self.number = number
    if let told = members.member("told", line) {
      let bytes = line.extracting(told.value).array
      guard bytes.first == UInt8(ascii: "{") else { return nil }
      result = .told(bytes)
    } else {
      result = .failed(members.text("error", line) ?? "the phone does not say why")
    }
  }

  package func write(to bytes: inout [UInt8]) {
    var object = ObjectWriter()
    object.member(.type, "done", to: &bytes)
    object.member(.number, Int64(clamping: number), to: &bytes)
    switch result {
    case .told(let json): object.member(.told, json: json, to: &bytes)
    case .failed(let why): object.member(.error, why, to: &bytes)
    }
    object.end(&bytes)
  }
}
