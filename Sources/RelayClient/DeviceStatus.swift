/// What `GET /v1/devices/{device}` answers (docs/PROTOCOL.md, "Device API"). Times are UNIX
/// milliseconds.
package struct DeviceStatus: Codable, Equatable, Sendable {
  /// A notification that waits.
  package struct Slot: Codable, Equatable, Sendable {
    package var uniqueId: String
    package var id: String
    package var acceptedAt: Int64
    package var expiresAt: Int64?
  }

  /// What the device may still be sent silently, all apps together.
  package struct Budget: Codable, Equatable, Sendable {
    package var policy: String
    /// Nil: without limit.
    package var remaining: Int?
  }

  /// What an app may still be sent silently, and until when it has to wait.
  package struct AppBudget: Codable, Equatable, Sendable {
    /// Nil: without limit.
    package var remaining: Int?
    package var allowed: Bool
    package var heldUntil: Int64?
    package var limit: String?
  }

  package struct App: Codable, Equatable, Sendable {
    package var topic: String
    package var token: String
    package var visible: Slot?
    package var silent: Slot?
    package var budget: AppBudget
  }

  package var device: String
  package var connected: Bool
  package var power: String
  package var network: String
  package var screen: String
  /// Notifications sent and not yet acknowledged.
  package var inFlight: Int
  package var budget: Budget
  package var apps: [App]
}
