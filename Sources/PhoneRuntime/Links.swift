package import DeviceSimulator
import Primitives

extension LinkModel {
  /// Made worse on purpose.
  package var isBad: Bool { self != .plain }
}

/// Simulates one direction of a stream over a bad link. It loses some notifications, keep-alives
/// and their answers: the relay has to send again, or to find out that the phone is gone.
struct LinkChance {
  private let link: LinkModel
  private var random: SeededRandom
  /// Arrival of the latest item.
  private var last: ContinuousClock.Instant?

  init(_ link: LinkModel, seed: UInt64) {
    self.link = link
    random = SeededRandom(seed: seed)
  }

  /// Keeps the order of sending.
  mutating func arrival(sentAt sent: ContinuousClock.Instant) -> ContinuousClock.Instant {
    let arrival = sent + .milliseconds(link.delay(using: &random))
    last = max(last ?? arrival, arrival)
    return last ?? arrival
  }

  mutating func loses() -> Bool { link.loses(using: &random) }
}

/// Pauses between retries.
struct Backoff: Hashable, Sendable {
  let first: Duration
  let longest: Duration

  /// Doubles with each retry, counted from 0, up to `longest`; half of it is random, so that
  /// clients that failed together do not return together.
  func delay(before retry: Int, using random: inout some RandomNumberGenerator) -> Duration {
    // No wait doubles more often: 2^20 ms is a quarter of an hour.
    let doubled = first * (1 << min(max(0, retry), 20))
    return min(doubled, longest) * Double.random(in: 0.5...1, using: &random)
  }
}

/// A connection opened again whenever it is lost, after growing pauses.
package struct Reconnection: Sendable {
  private static let backoff = Backoff(first: .milliseconds(500), longest: .seconds(30))

  private var failures = 0

  /// Resets the pauses once connected.
  package mutating func stands() { failures = 0 }

  /// - Parameters:
  ///   - connect: returns the reason when the connection is lost; nil to stop.
  ///   - isLost: called with the reason and the coming pause; false to stop.
  package static func keep(
    connect: (inout Reconnection) async throws -> String?,
    isLost: (_ reason: String, _ pause: Duration) async -> Bool
  ) async throws {
    var connection = Reconnection()
    var random = SystemRandomNumberGenerator()
    while !Task.isCancelled {
      let began = ContinuousClock.now
      guard let reason = try await connect(&connection), !Task.isCancelled else { return }
      // One that lasted was none that failed.
      if began.duration(to: .now) > backoff.longest { connection.stands() }
      let pause = backoff.delay(before: connection.failures, using: &random)
      connection.failures += 1
      guard await isLost(reason, pause) else { return }
      try await Task.sleep(for: pause)
    }
  }
}
