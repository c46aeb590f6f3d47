package import AdminAPI
import RelayCore
package import RelayServer

/// What a test in the relay's own process asks, with the bodies and answers of the routes.
extension Cockpit {
  /// `POST /v1/push`.
  package func push(_ body: [UInt8]) async throws -> PushVerdict {
    try await PushRoutes(relay: relay).push(try PushWish(body))
  }

  /// `POST /v1/wait`.
  package func wait(_ body: [UInt8]) async throws -> WaitAnswer {
    try await WaitRoutes(relay: relay, epoch: epoch).wait(try WaitWish(body))
  }

  /// `GET /v1/notifications/{id}`.
  package func life(_ id: String) async throws -> NotificationLife {
    try await NotificationRoutes(relay: relay, epoch: epoch).body(named: id).body
  }

  /// A clock's refusal in the words of the routes.
  package static func refusal(_ error: VirtualClock.ClockError) -> Refusal { Refusal(error) }
}
