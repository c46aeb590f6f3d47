import FoundationEssentials
package import Primitives

/// The answer to `GET /v1/health` of the device API.
package struct RelayHealth: Codable, Equatable, Sendable {
  package var status = "ok"
  /// `virtual`; nil when the relay uses the machine's time.
  package var clock: String?
  /// The time of a virtual clock, in UNIX milliseconds.
  package var time: Int64?

  package init(virtualTime now: Instant?) {
    clock = now.map { _ in "virtual" }
    time = now?.milliseconds
  }
}

/// JSON on one line, in a fixed order of members.
package enum JSONText {
  package static func bytes(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Array(try encoder.encode(value))
  }

  /// With a line feed, for terminals.
  package static func line(_ value: some Encodable) -> [UInt8] {
    guard let bytes = try? bytes(value) else {
      preconditionFailure("strings and integers always encode")
    }
    return bytes + [UInt8(ascii: "\n")]
  }
}
