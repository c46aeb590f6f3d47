package import Primitives

/// How relay and phones reach each other.
public struct LinkModel: Hashable, Sendable {
  /// One way, and at most so much on top, by chance.
  public var latency: Duration
  public var jitter: Duration
  /// From the loss of a connection, or from having a network again, to the attempt to connect;
  /// each time with a random half more. In real time the phone tries at once.
  public var reconnect: Duration
  /// Of a hundred pushes, keep-alives and answers to them so many are lost, by chance.
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

  /// No worse than the network that it goes over.
  package static let plain = LinkModel(latency: .zero, jitter: .zero)

  /// How long the next thing takes.
  package func delay(using random: inout SeededRandom) -> Int64 {
    latency.simulatedMilliseconds + random.below(jitter.simulatedMilliseconds + 1)
  }

  /// Whether the next thing is lost. A link that loses nothing asks no chance.
  package func loses(using random: inout SeededRandom) -> Bool {
    guard lossPercent > 0 else { return false }
    let drawn = Double(random.below(100))
    // Only a fraction of a hundredth needs a finer draw.
    return drawn + 1 <= lossPercent
      || drawn < lossPercent && Double(random.below(1000)) < (lossPercent - drawn) * 1000
  }

  /// For the timeline.
  var words: String {
    let loss = lossPercent == lossPercent.rounded() ? "\(Int(lossPercent))" : "\(lossPercent)"
    return "link: loses \(loss) %"
      + ", latency \(TimeText.text(duration: latency.simulatedMilliseconds))"
      + ", jitter \(TimeText.text(duration: jitter.simulatedMilliseconds))"
  }
}
