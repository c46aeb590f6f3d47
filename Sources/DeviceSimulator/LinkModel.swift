package import Primitives

/// The quality of the connection between relay and phones.
public struct LinkModel: Hashable, Sendable {
  /// One way: at least `latency`, at most `jitter` more.
  public var latency: Duration
  public var jitter: Duration
  /// From losing the connection or regaining a network to the attempt to connect, plus up to half
  /// of it by chance. In real time the phone tries at once.
  public var reconnect: Duration
  /// Applies to pushes, keep-alives and their answers.
  public var lossPercent: Double

  public init() { self.init(lossPercent: 0) }

  public init(
    latency: Duration = .milliseconds(40), jitter: Duration = .milliseconds(20),
    reconnect: Duration = .seconds(2), lossPercent: Double = 0
  ) {
    self.latency = latency
    self.jitter = jitter
    self.reconnect = reconnect
    self.lossPercent = lossPercent
  }

  /// Adds nothing to the real network.
  package static let plain = LinkModel(latency: .zero, jitter: .zero)

  package func delay(using random: inout SeededRandom) -> Int64 {
    latency.simulatedMilliseconds + random.below(jitter.simulatedMilliseconds + 1)
  }

  /// Draws no random number if the link loses nothing.
  package func loses(using random: inout SeededRandom) -> Bool {
    guard lossPercent > 0 else { return false }
    let drawn = Double(random.below(100))
    // Only a fraction of a percent needs a finer draw.
    return drawn + 1 <= lossPercent
      || drawn < lossPercent && Double(random.below(1000)) < (lossPercent - drawn) * 1000
  }

  var words: String {
    let loss = lossPercent == lossPercent.rounded() ? "\(Int(lossPercent))" : "\(lossPercent)"
    return "link: loses \(loss) %"
      + ", latency \(TimeText.text(duration: latency.simulatedMilliseconds))"
      + ", jitter \(TimeText.text(duration: jitter.simulatedMilliseconds))"
  }
}
