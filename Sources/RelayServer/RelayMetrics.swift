package import Primitives
package import RelayCore
import RelayStore

package struct KindCounts: Sendable {
  package private(set) var visible = 0
  package private(set) var silent = 0

  subscript(kind: NotificationClass) -> Int {
    get { kind == .visible ? visible : silent }
    set { if kind == .visible { visible = newValue } else { silent = newValue } }
  }

  static func + (left: KindCounts, right: KindCounts) -> KindCounts {
    var sum = left
    sum.visible += right.visible
    sum.silent += right.silent
    return sum
  }
}

/// A loop's counts besides those of its shard; sums of metrics are metrics.
package struct RelayMetrics: Sendable {
  /// Answers to pushes: 200s, and refusals by `Rejection.rawValue`.
  package private(set) var accepted = 0
  package private(set) var refused = [Int](repeating: 0, count: Rejection.allCases.count)
  /// Requests whose head was too large to be read, each answered 431.
  package var headsTooLarge = 0
  package private(set) var received = KindCounts()
  /// By topic, of the first `namedTopics` topics and of all others.
  package private(set) var receivedByTopic: [Topic: KindCounts] = [:]
  package private(set) var receivedOfOthers = KindCounts()
  /// 0 for no counts by topic.
  package private(set) var namedTopics: Int
  /// Holds of pushes because the device was away, or by a limit (`BudgetLimit.rawValue`).
  package private(set) var storedOffline = 0
  package private(set) var stored = [Int](repeating: 0, count: BudgetLimit.allCases.count)
  /// By the words of `DeliveryOutcome`.
  package private(set) var outcomes: [String: Int] = [:]
  /// From a request's end to its answer, in milliseconds of the machine's time.
  package private(set) var accepting = Histogram()
  /// From acceptance to sending, by `Via.rawValue`, in milliseconds.
  package private(set) var delivering = [Histogram](
    repeating: Histogram(), count: Via.allCases.count)
  /// From the hold by a limit to sending, by `BudgetLimit.rawValue`, in milliseconds of the relay's
  /// time.
  package private(set) var holding = [Histogram](
    repeating: Histogram(), count: BudgetLimit.allCases.count)

  package init(namedTopics: Int = 0) { self.namedTopics = namedTopics }

  @inline(__always)
  mutating func answered(_ answer: ProviderAnswer, after length: Interval) {
    accepting.add(length.milliseconds)
    guard let rejection = answer.rejection else {
      accepted += 1
      return
    }
    refused[Int(rejection.rawValue)] += 1
  }

  @inline(__always)
  mutating func sent(_ delivery: Delivery) {
    delivering[Int(delivery.via.rawValue)]
      .add((delivery.sentAt - delivery.acceptedAt).milliseconds)
  }

  /// Counts a step; returns whether `count(_:after:)` has to know those before it, too.
  @inline(__always)
  mutating func count(_ step: DeliveryStep) -> Bool {
    switch step {
    case .received(let kind, _, _, let topic):
      received[kind] += 1
      if namedTopics > 0 { countTopic(topic, kind) }
    case .storedOffline: storedOffline += 1
    case .storedPower(_, let limit): stored[Int(limit.rawValue)] += 1
    case .sent(.direct, _), .sent(.connect, _), .sent(.resend, _), .discarded, .delivered,
      .decided, .faulted:
      break
    case .sent(.piggyback, _), .sent(.refill, _), .sent(.hold, _), .restored: return true
    case .outcome(let outcome): outcomes[Self.word(outcome), default: 0] += 1
    }
    return false
  }

  private mutating func countTopic(_ topic: Topic, _ kind: NotificationClass, by count: Int = 1) {
    // Each activity has a registration of its own.
    let topic = topic.whole
    let isNamed = receivedByTopic[topic] != nil || receivedByTopic.count < namedTopics
    guard isNamed else {
      receivedOfOthers[kind] += count
      return
    }
    receivedByTopic[topic, default: KindCounts()][kind] += count
  }

  /// A held notification was released, or one that an earlier run received taken over.
  mutating func count(_ event: DeliveryEvent, after earlier: [DeliveryEvent]) {
    if case .restored = event.step {
      // Of one whose app has gone nothing is told but this.
      guard case .received(let kind, _, _, let topic)? = earlier.last?.step else { return }
      self.received[kind] -= 1
      if namedTopics > 0 { countTopic(topic, kind, by: -1) }
      return
    }
    let held = earlier.last { if case .storedPower = $0.step { true } else { false } }
    guard let held, case .storedPower(_, let limit) = held.step else { return }
    holding[Int(limit.rawValue)].add((event.at - held.at).milliseconds)
  }

  private static func word(_ outcome: DeliveryOutcome) -> String {
    switch outcome {
    case .newData: "new-data"
    case .noData: "no-data"
    case .failed: "failed"
    case .notLaunched: "not-launched"
    case .shown: "shown"
    case .notShown: "not-shown"
    case .later: "later"
    }
  }

  package static func + (left: RelayMetrics, right: RelayMetrics) -> RelayMetrics {
    var sum = left
    sum.accepted += right.accepted
    sum.refused = zip(left.refused, right.refused).map(+)
    sum.headsTooLarge += right.headsTooLarge
    sum.received = left.received + right.received
    sum.namedTopics = max(left.namedTopics, right.namedTopics)
    sum.receivedByTopic.merge(right.receivedByTopic, uniquingKeysWith: +)
    sum.receivedOfOthers = left.receivedOfOthers + right.receivedOfOthers
    sum.storedOffline += right.storedOffline
    sum.stored = zip(left.stored, right.stored).map(+)
    sum.outcomes.merge(right.outcomes, uniquingKeysWith: +)
    sum.accepting = left.accepting + right.accepting
    sum.delivering = zip(left.delivering, right.delivering).map(+)
    sum.holding = zip(left.holding, right.holding).map(+)
    return sum
  }
}

extension Relay {
  package func metrics() async -> RelayMetrics {
    await inbox.loops?.onEach { $0.metrics }.reduce(RelayMetrics(), +) ?? RelayMetrics()
  }

  /// The durations of the journal's transactions, in microseconds; empty without a journal.
  package var commits: Histogram { inbox.journal?.statistics.commitMicroseconds ?? Histogram() }

  /// The relay's time less the machine's, which it is unless the clock is virtual.
  package var clockOffset: Interval {
    settings.clock.isVirtual ? now - RelayClock.wall : .zero
  }

  package func segmentCount() async -> Int { await recordings.segmentCount }
}

extension ShardRunner {
  var metrics: RelayMetrics { history.answers + ledger.metrics }
}

/// The text format of Prometheus (Prometheus, "Exposition formats").
package struct MetricsText {
  package typealias Labels = [(name: String, value: String)]

  package private(set) var text = ""

  package init() {}

  /// Adds a counter if the name says that it is one (`_total`), otherwise a gauge.
  ///
  /// - Parameter prefix: of the name; the names for processes have none of ours.
  package mutating func add(
    _ name: String, _ help: String, _ samples: [(labels: Labels, value: Double)],
    prefix: String = "pushrelay_"
  ) {
    let name = prefix + name
    head(name, name.hasSuffix("_total") ? "counter" : "gauge", help)
    for (labels, value) in samples { line(name, labels, value) }
  }

  /// Adds one number; nil for none.
  package mutating func add(_ name: String, _ help: String, _ value: Double?) {
    add(name, help, value.map { [([], $0)] } ?? [])
  }

  package mutating func add(
    _ name: String, _ help: String, by label: String, _ counts: [(String, Int)]
  ) {
    add(name, help, counts.map { ([(label, $0)], Double($1)) })
  }

  /// - Parameter unit: of the values, in seconds.
  package mutating func add(
    _ name: String, _ help: String, unit: Double, _ samples: [(labels: Labels, value: Histogram)]
  ) {
    let name = "pushrelay_" + name
    head(name, "histogram", help)
    for (labels, value) in samples {
      var below = 0
      for (index, count) in value.counts.enumerated() {
        below += count
        let bound = Histogram.bound(index).map { Self.number(Double($0) * unit) } ?? "+Inf"
        line(name + "_bucket", labels + [("le", bound)], Double(below))
      }
      line(name + "_sum", labels, Double(value.sum) * unit)
      line(name + "_count", labels, Double(below))
    }
  }

  private mutating func head(_ name: String, _ kind: String, _ help: String) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
  }

  private mutating func line(_ name: String, _ labels: Labels, _ value: Double) {
    let list = labels.map { "\($0.name)=\"\($0.value)\"" }.joined(separator: ",")
    text += list.isEmpty ? name : "\(name){\(list)}"
    text += " \(Self.number(value))\n"
  }

  /// Whole numbers have no fraction; others are rounded to microseconds.
  private static func number(_ value: Double) -> String {
    if let whole = Int64(exactly: value) { return String(whole) }
    return "\((value * 1e6).rounded() / 1e6)"
  }
}
