package import Primitives

/// How an app has used its background time, which decides how much of it comes: who uses little
/// time, data and energy gets more opportunities (WWDC 2013 session 204). The scale and the weights
/// are ours.
package struct Behaviour: Hashable, Codable, Sendable {
  /// 0 for the worst, 1000 for the best; new apps begin in the middle.
  package private(set) var score: Int64 = 500
  /// What one opportunity costs, as a moving average: millijoules and bytes.
  package private(set) var averageEnergy: Int64 = 0
  package private(set) var averageBytes: Int64 = 0

  package init() {}

  /// Whether its numbers are such as it makes itself: what was decoded may be anything.
  var isSound: Bool {
    (0...1000).contains(score) && averageEnergy >= 0 && averageBytes >= 0
  }

  /// An opportunity that ended with a call of the handler.
  mutating func completed(_ outcome: CallbackOutcome, taking time: Interval, limit: Interval) {
    var target: Int64 =
      switch outcome {
      case .newData: 1000
      case .noData: 400
      case .failed: 200
      }
    // Whoever needs more than half of the time is a burden even when there is something new.
    if time * 2 > limit { target /= 2 }
    score += (target - score) / 8
  }

  /// An opportunity that ended with a kill: it costs half of the standing at once.
  mutating func killed() { score /= 2 }

  /// What the opportunity cost.
  mutating func spent(energy: Int64, bytes: Int64) {
    averageEnergy += (energy - averageEnergy) / 4
    averageBytes += (bytes - averageBytes) / 4
  }

  /// What an interval becomes for this app: half for the best, the same in the middle, four times
  /// as long for the worst.
  package func stretched(_ interval: Interval) -> Interval {
    let perMille = score >= 500 ? 1500 - score : 1000 + (500 - score) * 6
    return .milliseconds(saturatingProduct(interval.milliseconds, perMille) / 1000)
  }
}
