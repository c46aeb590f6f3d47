import DeviceSimulator
package import Primitives

/// A link that is worse than the network that it goes over, on purpose: to see what becomes of
/// pushes on the way to a phone in a lift.
///
/// What the relay says and what the phone says takes longer, in order. Of notifications,
/// keep-alives and the phone's answers to them some are lost: then the relay has to send again, or
/// to find out that nobody is there.
package struct BadLink: Hashable, Sendable {
  /// One way.
  package var latency = Interval.zero
  /// At most so much on top, by chance.
  package var jitter = Interval.zero
  /// So many of a hundred are lost.
  package var lossPercent = 0.0

  package init(
    latency: Interval = .zero, jitter: Interval = .zero, lossPercent: Double = 0
  ) {
    self.latency = latency
    self.jitter = jitter
    self.lossPercent = lossPercent
  }

  init(_ link: LinkModel) {
    self.init(
      latency: .milliseconds(link.latency.simulatedMilliseconds),
      jitter: .milliseconds(link.jitter.simulatedMilliseconds),
      lossPercent: Double(link.lossPercent))
  }

  package var isBad: Bool { self != BadLink() }
}

/// What chance makes of one direction of a stream.
struct LinkChance {
  private let link: BadLink
  private var random: SeededRandom
  /// When the latest of what was sent arrives.
  private var last: ContinuousClock.Instant?

  init(_ link: BadLink, seed: UInt64) {
    self.link = link
    random = SeededRandom(seed: seed)
  }

  /// When what was sent at that time arrives: so long after it as the next one takes, and not
  /// before what was sent earlier.
  mutating func arrival(sentAt sent: ContinuousClock.Instant) -> ContinuousClock.Instant {
    let jitter = link.jitter.milliseconds
    let more = jitter > 0 ? Int64.random(in: 0...jitter, using: &random) : 0
    let arrival = sent + .milliseconds(link.latency.milliseconds + more)
    last = max(last ?? arrival, arrival)
    return last ?? arrival
  }

  /// Whether the next one is lost.
  mutating func loses() -> Bool {
    link.lossPercent > 0 && Double.random(in: 0..<100, using: &random) < link.lossPercent
  }
}
