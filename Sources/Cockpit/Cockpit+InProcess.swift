/// What a test in the relay's own process asks, with the bodies and answers of the routes.
extension Cockpit {
  /// `POST /v1/push`.
  package func push(_ body: [UInt8]) async throws -> [UInt8] {
    try JSONText.bytes(try await PushRoutes(relay: relay).push(try PushWish(body)))
  }

  /// `POST /v1/wait`.
  package func wait(_ body: [UInt8]) async throws -> [UInt8] {
    let routes = WaitRoutes(relay: relay, epoch: epoch)
    return try JSONText.bytes(try await routes.wait(try WaitWish(body)))
  }

  /// `GET /v1/notifications/{id}`.
  package func life(_ id: String) async throws -> [UInt8] {
    let routes = NotificationRoutes(relay: relay, epoch: epoch)
    return try JSONText.bytes(try await routes.body(named: id))
  }
}
