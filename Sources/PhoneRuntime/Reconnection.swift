/// How long to wait before something is tried again.
struct Backoff: Hashable, Sendable {
  let first: Duration
  let longest: Duration

  /// Doubles with each retry, from 0 on, up to the longest, of which half is left to chance: many
  /// that failed together do not come back together.
  func delay(
    before retry: Int, using random: inout some RandomNumberGenerator
  ) -> Duration {
    // No wait doubles more often: 2^20 of a millisecond are a quarter of an hour.
    let doubled = first * (1 << min(max(0, retry), 20))
    return min(doubled, longest) * Double.random(in: 0.5...1, using: &random)
  }
}

/// A connection that is made anew whenever it is lost, after longer and longer pauses: a phone's, a
/// light device's, a fleet's.
package struct Reconnection: Sendable {
  private static let backoff = Backoff(first: .milliseconds(500), longest: .seconds(30))

  private var failures = 0

  /// The connection stands: what fails from now on counts anew.
  package mutating func stands() { failures = 0 }

  /// Connects again and again.
  ///
  /// - Parameters:
  ///   - connect: connects, and returns when the connection is lost, with the reason; nil when no
  ///     other is wanted.
  ///   - isLost: told of the reason and of the pause that comes; false to give up.
  package static func keep(
    connect: (inout Reconnection) async throws -> String?,
    isLost: (_ reason: String, _ pause: Duration) async -> Bool
  ) async throws {
    var connection = Reconnection()
    var random = SystemRandomNumberGenerator()
    while !Task.isCancelled {
      guard let reason = try await connect(&connection), !Task.isCancelled else { return }
      let pause = backoff.delay(before: connection.failures, using: &random)
      connection.failures += 1
      guard await isLost(reason, pause) else { return }
      try await Task.sleep(for: pause)
    }
  }
}
