import AdminAPI
import FoundationEssentials
import Hummingbird
import NIOCore
import Primitives
import RelayCore
import RelayServer

/// For monitoring: liveness, readiness and numbers in Prometheus's text format. Labels never hold a
/// token, a device or an id.
struct MetricsRoutes {
  let relay: Relay
  let version: String

  func add(to router: Router<AdminContext>) {
    router.get("/health/live") { _, _ in try Response(json: ["status": "live"]) }
    router.get("/health/ready") { _, _ in
      guard relay.isRunning else {
        throw Refusal.notReady
      }
      guard relay.isJournalHealthy else {
        throw Refusal(503, "JournalFails", "the journal cannot be written: look at the disk")
      }
      let stripes = await relay.unreadStripes.map(String.init).joined(separator: ", ")
      guard stripes.isEmpty else {
        throw Refusal(
          503, "StripeUnreadable",
          "what the engine has on stripe \(stripes) cannot be read: the log says what to do")
      }
      return try Response(json: ["status": "ready"])
    }
    router.get("/metrics") { request, _ in
      Response(
        status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: await text())))
    }
  }

  private func text() async -> String {
    var text = MetricsText()
    let metrics = await relay.metrics()
    addRequests(metrics, to: &text)
    addLives(await relay.counters(), metrics, to: &text)
    addTimes(metrics, to: &text)
    text.add(
      "journal_healthy", .gauge, "1 while everything that is accepted can be written",
      [([], relay.isJournalHealthy ? 1 : 0)])
    text.add(
      "faults_injected_total", .counter, "Times that a fault has acted",
      [([], Double(relay.faultCount))])
    text.add(
      "event_gaps_total", .counter, "Events that did not fit into the feed",
      [([], Double(await relay.feeds.lostCount()))])
    text.add(
      "recording_segments_total", .counter, "Files of recordings that were begun",
      [([], Double(await relay.segmentCount()))])
    text.add(
      "clock_offset_seconds", .gauge, "How far the relay's time is ahead of the machine's",
      [([], Double(relay.clockOffset.milliseconds) / 1000)])
    for metric in await relay.clusterMetrics() {
      text.add(metric.name, metric.isCounter ? .counter : .gauge, metric.help, metric.samples)
    }
    text.add(
      "build_info", .gauge, "1, with the version and its commit",
      [([("version", version), ("commit", Version.commit)], 1)])
    ProcessMetrics.add(to: &text)
    return text.text
  }

  private func addRequests(_ metrics: RelayMetrics, to text: inout MetricsText) {
    var samples: [MetricsText.Sample] = [
      ([("code", "200"), ("reason", "")], Double(metrics.accepted))
    ]
    for rejection in Rejection.allCases {
      let count = metrics.refused[Int(rejection.rawValue)]
      guard count > 0 else { continue }
      samples.append(
        ([("code", "\(rejection.status)"), ("reason", rejection.reason)], Double(count)))
    }
    text.add("provider_requests_total", .counter, "Answers to pushes", samples)
  }

  private static func received(_ metrics: RelayMetrics) -> [MetricsText.Sample] {
    guard metrics.namedTopics > 0 else {
      return [
        ([("kind", "visible")], Double(metrics.received.visible)),
        ([("kind", "silent")], Double(metrics.received.silent)),
      ]
    }
    let topics = metrics.receivedByTopic.map { ($0.key.description, $0.value) }.sorted {
      $0.0 < $1.0
    }
    return (topics + [("other", metrics.receivedOfOthers)]).flatMap { topic, counts in
      [
        ([("kind", "visible"), ("topic", topic)], Double(counts.visible)),
        ([("kind", "silent"), ("topic", topic)], Double(counts.silent)),
      ]
    }
  }

  private func addLives(
    _ counters: ShardCounters, _ metrics: RelayMetrics, to text: inout MetricsText
  ) {
    text.add(
      "notifications_received_total", .counter, "Notifications accepted from providers",
      Self.received(metrics))
    text.add(
      "notifications_restored_total", .counter, "Notifications taken over from the journal",
      [([], Double(counters.restored))])
    text.add(
      "notifications_sent_total", .counter, "Frames sent to devices",
      Via.allCases.map { ([("via", $0.name)], Double(counters.sent[Int($0.rawValue)])) })
    text.add(
      "notifications_stored_total", .counter, "Times that it was said why a push waits",
      [([("reason", "offline"), ("limit", "")], Double(metrics.storedOffline))]
        + BudgetLimit.allCases.map {
          ([("reason", "power"), ("limit", $0.name)], Double(metrics.stored[Int($0.rawValue)]))
        })
    text.add(
      "notifications_ended_total", .counter, "Lives that have ended",
      [
        ("delivered", counters.delivered), ("expired", counters.expired),
        ("unregistered", counters.discardedUnregistered), ("not-stored", counters.notStored),
        ("replaced", counters.replaced), ("repeated", counters.repeated),
        ("journal-failed", counters.journalFailed),
        ("cleared", counters.cleared),
      ].map { ([("end", $0.0)], Double($0.1)) })
    text.add(
      "outcomes_total", .counter, "What apps said of notifications",
      ["new-data", "no-data", "failed", "not-launched"].map {
        ([("outcome", $0)], Double(metrics.outcomes[$0] ?? 0))
      })
    text.add(
      "notifications_pending", .gauge, "Notifications that have not ended",
      [
        ([("place", "journal")], Double(counters.waiting)),
        ([("place", "slot")], Double(counters.inSlots)),
        ([("place", "in_flight")], Double(counters.inFlight)),
      ])
    text.add(
      "devices", .gauge, "Devices that are known",
      [
        ([("state", "connected")], Double(counters.connections)),
        ([("state", "away")], Double(counters.devices - counters.connections)),
      ])
    text.add("apps", .gauge, "Apps that are registered", [([], Double(counters.apps))])
    text.add(
      "counters_add_up", .gauge, "1 while every accepted notification is somewhere",
      [([], counters.addsUp ? 1 : 0)])
  }

  private func addTimes(_ metrics: RelayMetrics, to text: inout MetricsText) {
    text.add(
      "accept_duration_seconds", "From a push's end to its answer", unit: 1e-3,
      [([], metrics.accepting)])
    text.add(
      "delivery_duration_seconds", "From acceptance to the frame's way down, in the relay's time",
      unit: 1e-3,
      Via.allCases.map { ([("via", $0.name)], metrics.delivering[Int($0.rawValue)]) })
    text.add(
      "hold_duration_seconds", "From being held to the frame's way down, in the relay's time",
      unit: 1e-3,
      BudgetLimit.allCases.map { ([("limit", $0.name)], metrics.holding[Int($0.rawValue)]) })
    text.add(
      "journal_commit_duration_seconds", "Transactions of the journal", unit: 1e-6,
      [([], relay.commits)])
  }
}

/// The text format of Prometheus (Prometheus, "Exposition formats").
struct MetricsText {
  enum Kind: String { case counter, gauge, histogram }

  typealias Labels = [(name: String, value: String)]
  typealias Sample = (labels: Labels, value: Double)

  private(set) var text = ""

  /// - Parameter prefix: of the name; the names for processes have none of ours.
  mutating func add(
    _ name: String, _ kind: Kind, _ help: String, _ samples: [Sample], prefix: String = "pushrelay_"
  ) {
    let name = prefix + name
    head(name, kind, help)
    for (labels, value) in samples { line(name, labels, value) }
  }

  /// - Parameter unit: of the values, in seconds.
  mutating func add(
    _ name: String, _ help: String, unit: Double, _ samples: [(labels: Labels, value: Histogram)]
  ) {
    let name = "pushrelay_" + name
    head(name, .histogram, help)
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

  private mutating func head(_ name: String, _ kind: Kind, _ help: String) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
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

/// Prometheus's process metrics (Prometheus, "Writing client libraries"), from Linux's
/// `/proc/self`; none on other systems.
enum ProcessMetrics {
  static func add(to text: inout MetricsText) {
    func gauge(_ name: String, _ kind: MetricsText.Kind, _ help: String, _ value: Double?) {
      guard let value else { return }
      text.add(name, kind, help, [([], value)], prefix: "process_")
    }
    let status = read("/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
    func field(_ index: Int) -> Double? { index < status.count ? Double(status[index]) : nil }
    // Fields from the third on (proc(5)), in ticks of 10 ms and pages of 4 KiB.
    if let user = field(11), let system = field(12) {
      gauge("cpu_seconds_total", .counter, "Processor time", (user + system) / 100)
    }
    gauge("resident_memory_bytes", .gauge, "Resident memory", field(21).map { $0 * 4096 })
    let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    gauge("open_fds", .gauge, "Open file descriptors", descriptors.map(Double.init))
    if let start = field(19), let boot = bootTime {
      gauge("start_time_seconds", .gauge, "When the process began, UNIX time", boot + start / 100)
    }
  }

  private static let bootTime: Double? = read("/proc/stat").split(separator: "\n")
    .first { $0.hasPrefix("btime ") }.flatMap { Double($0.dropFirst(6)) }

  private static func read(_ path: String) -> String {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
  }
}
