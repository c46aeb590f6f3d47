import FoundationEssentials
package import Primitives

/// The answer to `GET /v1/health` of the device API.
package struct RelayHealth: Codable, Equatable, Sendable {
  package var status = "ok"
  /// `virtual`, or nothing: the relay goes by its machine's time.
  package var clock: String?
  /// The time of a virtual clock, in UNIX milliseconds.
  package var time: Int64?

  /// - Parameter now: by a virtual clock; nil where there is none.
  package init(virtualTime now: Instant?) {
    clock = now.map { _ in "virtual" }
    time = now?.milliseconds
  }
}

/// How JSON is written for people and programs: on one line, in one order.
package enum JSONText {
  package static func bytes(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Array(try encoder.encode(value))
  }

  /// The bytes of an answer, with a line feed at the end: people read these in terminals.
  package static func line(_ value: some Encodable) -> [UInt8] {
    guard let bytes = try? bytes(value) else {
      preconditionFailure("strings and integers always encode")
    }
    return bytes + [UInt8(ascii: "\n")]
  }
}
