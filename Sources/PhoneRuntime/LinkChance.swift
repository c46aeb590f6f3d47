package import DeviceSimulator
import Primitives

extension LinkModel {
  /// Whether it is worse than the network that it goes over, on purpose.
  package var isBad: Bool { self != .plain }
}

/// What chance makes of one direction of a stream over a bad link. Of notifications, keep-alives
/// and the phone's answers to them some are lost: then the relay has to send again, or to find out
/// that nobody is there.
struct LinkChance {
  private let link: LinkModel
  private var random: SeededRandom
  /// When the latest of what was sent arrives.
  private var last: ContinuousClock.Instant?

  init(_ link: LinkModel, seed: UInt64) {
    self.link = link
    random = SeededRandom(seed: seed)
  }

  /// When what was sent at that time arrives: not before what was sent earlier.
  mutating func arrival(sentAt sent: ContinuousClock.Instant) -> ContinuousClock.Instant {
    let arrival = sent + .milliseconds(link.delay(using: &random))
    last = max(last ?? arrival, arrival)
    return last ?? arrival
  }

  mutating func loses() -> Bool { link.loses(using: &random) }
}
