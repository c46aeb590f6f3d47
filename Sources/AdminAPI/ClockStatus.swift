import FoundationEssentials
package import Primitives

/// The answer to `GET /v1/clock`. Times are UNIX milliseconds.
package struct ClockStatus: Codable, Equatable, Sendable {
  package struct Next: Codable, Equatable, Sendable {
    package var at: Int64
    package var what: String
  }

  /// `system` or `virtual`.
  package var mode: String
  package var now: Int64
  /// Relay seconds per second of the machine; 0 when it stands.
  package var rate: Double
  /// The next event of a virtual clock.
  package var next: Next?

  package init(mode: String, now: Instant, rate: Double, next: (at: Instant, what: String)?) {
    self.mode = mode
    self.now = now.milliseconds
    self.rate = rate
    self.next = next.map { Next(at: $0.at.milliseconds, what: $0.what) }
  }
}

/// The answer to `POST /v1/clock/advance`; `now` in UNIX milliseconds.
package struct ClockAdvance: Codable, Equatable, Sendable {
  package var now: Int64
  /// Fired timers by kind.
  package var fired: [String: Int]

  package init(now: Instant, fired: [String: Int]) {
    self.now = now.milliseconds
    self.fired = fired
  }
}

/// A state that the relay can go back to; `at` in UNIX milliseconds.
package struct CheckpointStatus: Codable, Equatable, Sendable {
  package var name: String
  package var at: Int64
  /// An estimate.
  package var bytes: Int

  package init(name: String, at: Instant, bytes: Int) {
    self.name = name
    self.at = at.milliseconds
    self.bytes = bytes
  }
}

/// A recording of a running relay.
package struct RecordingStatus: Codable, Equatable, Sendable {
  package var name: String
  package var state: String
  /// Of the file and the one before it.
  package var bytes: Int
  /// nil for a recording that an earlier process made.
  package var payloads: String?

  package init(name: String, isRunning: Bool, bytes: Int, payloads: String?) {
    self.name = name
    state = isRunning ? "running" : "stopped"
    self.bytes = bytes
    self.payloads = payloads
  }
}

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
