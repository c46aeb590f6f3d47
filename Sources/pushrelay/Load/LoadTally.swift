import Histogram
import RelayClient
import Synchronization

actor LoadTally {
  /// The answers that providers' connections hear, on their loops.
  private struct Answers {
    var counts: [String: Int] = [:]
    var acceptedVisible = 0
    /// In microseconds, up to an hour.
    var lengths = LoadTally.histogram()
  }

  private(set) var listening = 0
  private nonisolated let answers = Mutex(Answers())
  private var deliveredCount = 0
  private var delivering = LoadTally.histogram()

  private var broadcasting = LoadTally.histogram()
  private var broadcastsDue = 0
  private var broadcastsAccepted = 0
  /// When the last phone had a broadcast, by its number, in microseconds.
  private var lasts: [UInt64: Int] = [:]

  private static func histogram() -> Histogram<UInt64> {
    Histogram(highestTrackableValue: 3_600_000_000, numberOfSignificantValueDigits: .three)
  }

  func listens() { listening += 1 }

  nonisolated func answered(_ answer: PushAnswer, isSilent: Bool, after length: Duration) {
    let word = answer.reason.map { "\(answer.status) \($0)" } ?? "\(answer.status)"
    answers.withLock { answers in
      answers.counts[word, default: 0] += 1
      if answer.status == 200, !isSilent { answers.acceptedVisible += 1 }
      Self.record(Int(length / .microseconds(1)), in: &answers.lengths)
    }
  }

  func delivered(_ delays: [Int]) {
    deliveredCount += delays.count
    for delay in delays { Self.record(delay, in: &delivering) }
  }

  /// A broadcast was answered; if it was accepted, so many phones will get it.
  func broadcast(status: Int, to devices: Int) {
    guard status == 200 else {
      return answers.withLock { $0.counts["broadcast \(status)", default: 0] += 1 }
    }
    broadcastsAccepted += 1
    broadcastsDue += devices
  }

  func delivered(_ number: UInt64, to phones: Int, after delay: Int) {
    Self.record(delay, count: phones, in: &broadcasting)
    lasts[number] = max(lasts[number] ?? 0, delay)
  }

  /// Throttled pushes may take an hour.
  var isWaiting: Bool {
    deliveredCount < answers.withLock { $0.acceptedVisible }
      || broadcasting.totalCount < UInt64(broadcastsDue)
  }

  private static func record(
    _ microseconds: Int, count: Int = 1, in histogram: inout Histogram<UInt64>
  ) {
    let value = UInt64(min(max(microseconds, 0), 3_600_000_000))
    _ = histogram.record(value, count: UInt64(count))
  }

  func report(_ seconds: Double, devices: Int, rate: Double) -> LoadReport {
    let answers = answers.withLock { $0 }
    return LoadReport(
      devices: devices, wantedPerSecond: rate,
      pushesPerSecond: Double(answers.lengths.totalCount) / max(seconds, 0.001),
      answers: answers.counts,
      delivered: deliveredCount,
      broadcasts: broadcastsAccepted == 0
        ? nil
        : LoadReport.Broadcasts(
          accepted: broadcastsAccepted, due: broadcastsDue,
          delivered: Int(broadcasting.totalCount), lastMicroseconds: lasts.values.sorted()),
      broadcastMicroseconds: Self.times(broadcasting),
      answerMicroseconds: Self.times(answers.lengths),
      deliveryMicroseconds: Self.times(delivering))
  }

  private static func times(_ histogram: Histogram<UInt64>) -> LoadReport.Times? {
    guard histogram.totalCount > 0 else { return nil }
    return LoadReport.Times(
      p50: histogram.valueAtPercentile(50), p90: histogram.valueAtPercentile(90),
      p99: histogram.valueAtPercentile(99), p999: histogram.valueAtPercentile(99.9),
      max: histogram.max)
  }
}

struct LoadReport: Encodable, Equatable, Sendable {
  struct Times: Encodable, Equatable, Sendable {
    var p50: UInt64
    var p90: UInt64
    var p99: UInt64
    var p999: UInt64
    var max: UInt64
  }

  struct Broadcasts: Encodable, Equatable, Sendable {
    var accepted: Int
    /// Phones times broadcasts, and how many of these arrived.
    var due: Int
    var delivered: Int
    /// Of each broadcast, when the last phone had it; in order.
    var lastMicroseconds: [Int]
  }

  var devices: Int
  var wantedPerSecond: Double
  var pushesPerSecond: Double
  /// By status and reason.
  var answers: [String: Int]
  var delivered: Int
  var broadcasts: Broadcasts?
  /// From a broadcast's due time to its line at each phone.
  var broadcastMicroseconds: Times?
  /// From a push's due time to its answer.
  var answerMicroseconds: Times?
  /// From a push's due time to its line at the phone.
  var deliveryMicroseconds: Times?

  func show() {
    Console.say("\(devices) phones, \(Int(pushesPerSecond.rounded())) pushes a second answered")
    for (answer, count) in answers.sorted(by: { $0.key < $1.key }) {
      Console.say("  \(count)  \(answer)")
    }
    Console.say("  \(delivered)  delivered")
    if let broadcasts {
      Console.say(
        "  \(broadcasts.accepted) broadcasts: \(broadcasts.delivered) of \(broadcasts.due) arrived")
    }
    var rows = [["", "p50", "p90", "p99", "p99.9", "max"]]
    for (name, times) in [
      ("answer", answerMicroseconds), ("delivery", deliveryMicroseconds),
      ("broadcast", broadcastMicroseconds),
    ] {
      guard let times else { continue }
      rows.append(
        [name] + [times.p50, times.p90, times.p99, times.p999, times.max].map(Self.milliseconds))
    }
    if rows.count > 1 { Console.say(table: rows) }
  }

  private static func milliseconds(_ microseconds: UInt64) -> String {
    let tenths = (microseconds + 50) / 100
    return "\(tenths / 10).\(tenths % 10) ms"
  }
}
