package import Primitives

/// The answer to `GET /v1/clock`.
package struct ClockStatus: Codable, Equatable, Sendable {
  package struct Next: Codable, Equatable, Sendable {
    package var at: Int64
    package var what: String
  }

  /// `system` or `virtual`.
  package var mode: String
  /// UNIX milliseconds.
  package var now: Int64
  /// How many seconds pass in one of the machine's.
  package var rate: Double
  /// When a virtual clock's relay has something to do next.
  package var next: Next?

  package init(mode: String, now: Instant, rate: Double, next: (at: Instant, what: String)?) {
    self.mode = mode
    self.now = now.milliseconds
    self.rate = rate
    self.next = next.map { Next(at: $0.at.milliseconds, what: $0.what) }
  }
}

/// The answer to `POST /v1/clock/advance`.
package struct ClockAdvance: Codable, Equatable, Sendable {
  /// UNIX milliseconds.
  package var now: Int64
  /// How many of what have come to pass.
  package var fired: [String: Int]

  package init(now: Instant, fired: [String: Int]) {
    self.now = now.milliseconds
    self.fired = fired
  }
}

/// A state that the relay can be taken back to.
package struct CheckpointStatus: Codable, Equatable, Sendable {
  package var name: String
  /// When it was, in UNIX milliseconds.
  package var at: Int64
  /// About how many bytes it may take.
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
  /// `running` or `stopped`.
  package var state: String
  /// Of the file and the one before it.
  package var bytes: Int
  /// Known of those that this process has begun.
  package var payloads: String?

  package init(name: String, isRunning: Bool, bytes: Int, payloads: String?) {
    self.name = name
    state = isRunning ? "running" : "stopped"
    self.bytes = bytes
    self.payloads = payloads
  }
}
