package import Primitives

/// How an app has used its background time: apps that use little time, data and energy get more
/// opportunities (WWDC 2013 session 204). The scale and the weights are ours.
package struct Behaviour: Hashable, Codable, Sendable {
  /// 0 is the worst, 1000 the best.
  package private(set) var score: Int64 = 500
  /// Moving averages per opportunity: millijoules and bytes.
  package private(set) var averageEnergy: Int64 = 0
  package private(set) var averageBytes: Int64 = 0

  package init() {}

  var isSound: Bool {
    (0...1000).contains(score) && averageEnergy >= 0 && averageBytes >= 0
  }

  /// The handler was called.
  mutating func completed(_ outcome: CallbackOutcome, taking time: Interval, limit: Interval) {
    var target: Int64 =
      switch outcome {
      case .newData: 1000
      case .noData: 400
      case .failed: 200
      }
    // Using more than half of the time counts against the app even with new data.
    if time * 2 > limit { target /= 2 }
    score += (target - score) / 8
  }

  /// The app was killed.
  mutating func killed() { score /= 2 }

  mutating func spent(energy: Int64, bytes: Int64) {
    averageEnergy += (energy - averageEnergy) / 4
    averageBytes += (bytes - averageBytes) / 4
  }

  /// The interval for this app: half for the best score, unchanged in the middle, four times for
  /// the worst.
  package func stretched(_ interval: Interval) -> Interval {
    let perMille = score >= 500 ? 1500 - score : 1000 + (500 - score) * 6
    return .milliseconds(saturatingProduct(interval.milliseconds, perMille) / 1000)
  }
}
