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
