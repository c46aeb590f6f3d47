package import AdminAPI
import RelayCore
package import RelayServer

/// For tests in the relay's own process: the bodies and answers of `POST /v1/push`, `POST /v1/wait`
/// and `GET /v1/notifications/{id}`, without HTTP.
extension Cockpit {
  package func push(_ body: [UInt8]) async throws -> PushVerdict {
    try await PushRoutes(relay: relay).push(try PushWish(body))
  }

  package func wait(_ body: [UInt8]) async throws -> WaitAnswer {
    try await WaitRoutes(relay: relay, epoch: epoch).wait(try WaitWish(body))
  }

  package func life(_ id: String) async throws -> NotificationLife {
    try await NotificationRoutes(relay: relay, epoch: epoch).body(named: id).first
  }

  /// A clock's error as the routes answer it.
  package static func refusal(_ error: VirtualClock.ClockError) -> Refusal { Refusal(error) }
}
