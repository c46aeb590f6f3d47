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

  func add(to router: Router<AdminContext>) {
    router.get("/health/live") { _, _ in try Response(json: ["status": "live"]) }
    router.get("/health/ready") { _, _ in
      guard relay.isServing else { throw Refusal.notReady }
      guard relay.isJournalHealthy else {
        throw Refusal(503, "JournalFails", "the journal cannot be written: the log says why")
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
    let broadcasts = await relay.channelTotals()
    text.add("channels", "Broadcast channels", Double(broadcasts.channels))
    text.add(
      "broadcasts_published_total", "Broadcasts accepted from providers",
      Double(broadcasts.published))
    text.add(
      "journal_healthy", "1 while everything that is accepted can be written",
      relay.isJournalHealthy ? 1 : 0)
    text.add(
      "memory_full", "1 while memory is at maximumMemory and pushes are refused",
      relay.isMemoryFull ? 1 : 0)
    text.add(
      "connections", "Open connections of all listeners",
      Double(relay.descriptors.connectionCount))
    text.add("faults_injected_total", "Times that a fault has acted", Double(relay.faultCount))
    text.add(
      "event_gaps_total", "Events that did not fit into the feed",
      Double(await relay.feeds.lostCount()))
    text.add(
      "recording_segments_total", "Files of recordings that were begun",
      Double(await relay.segmentCount()))
    text.add(
      "clock_offset_seconds", "How far the relay's time is ahead of the machine's",
      Double(relay.clockOffset.milliseconds) / 1000)
    text.add(
      "certificate_end_seconds", "When the server's certificate ends, UNIX time",
      relay.certificateEnd.map { Double($0.milliseconds) / 1000 })
    await relay.addClusterMetrics(to: &text)
    text.add(
      "build_info", "1, with the version and its commit",
      [([("version", Version.number), ("commit", Version.commit)], 1)])
    ProcessMetrics.add(to: &text)
    return text.text
  }

  private func addRequests(_ metrics: RelayMetrics, to text: inout MetricsText) {
    let refused =
      Rejection.allCases.map {
        ("\($0.status)", $0.reason, metrics.refused[Int($0.rawValue)])
      } + [("431", "", metrics.headsTooLarge)]
    text.add(
      "provider_requests_total", "Answers to providers, but for broadcasts and questions",
      ([("200", "", metrics.accepted)] + refused.filter { $0.2 > 0 }).map { code, reason, count in
        ([("code", code), ("reason", reason)], Double(count))
      })
  }

  private func addReceived(_ metrics: RelayMetrics, to text: inout MetricsText) {
    let (name, help) = ("notifications_received_total", "Notifications accepted from providers")
    guard metrics.namedTopics > 0 else {
      let received = metrics.received
      return text.add(
        name, help, by: "kind", [("visible", received.visible), ("silent", received.silent)])
    }
    let topics = metrics.receivedByTopic.map { ($0.key.description, $0.value) }.sorted {
      $0.0 < $1.0
    }
    let samples = (topics + [("other", metrics.receivedOfOthers)]).flatMap { topic, counts in
      [("visible", counts.visible), ("silent", counts.silent)].map { kind, count in
        ([("kind", kind), ("topic", topic)], Double(count))
      }
    }
    text.add(name, help, samples)
  }

  private func addLives(
    _ counters: ShardCounters, _ metrics: RelayMetrics, to text: inout MetricsText
  ) {
    addReceived(metrics, to: &text)
    text.add(
      "notifications_restored_total", "Notifications taken over from the journal",
      Double(counters.restored))
    text.add(
      "notifications_sent_total", "Frames sent to devices", by: "via",
      Via.allCases.map { ($0.name, counters.sent[Int($0.rawValue)]) })
    text.add(
      "notifications_stored_total", "Times that it was said why a push waits",
      [([("reason", "offline"), ("limit", "")], Double(metrics.storedOffline))]
        + BudgetLimit.allCases.map {
          ([("reason", "power"), ("limit", $0.name)], Double(metrics.stored[Int($0.rawValue)]))
        })
    text.add(
      "notifications_ended_total", "Lives that have ended", by: "end",
      [
        ("delivered", counters.delivered), ("expired", counters.expired),
        ("unregistered", counters.discardedUnregistered), ("not-stored", counters.notStored),
        ("replaced", counters.replaced), ("repeated", counters.repeated),
        ("journal-failed", counters.journalFailed),
        ("cleared", counters.cleared),
      ])
    text.add(
      "outcomes_total", "What apps said of notifications", by: "outcome",
      ["new-data", "no-data", "failed", "not-launched", "shown", "not-shown"].map {
        ($0, metrics.outcomes[$0] ?? 0)
      })
    text.add(
      "notifications_pending", "Notifications that have not ended", by: "place",
      [("journal", counters.waiting), ("slot", counters.inSlots), ("in_flight", counters.inFlight)])
    text.add(
      "devices", "Devices that are known", by: "state",
      [("connected", counters.connections), ("away", counters.devices - counters.connections)])
    text.add("apps", "Apps that are registered", Double(counters.apps))
    text.add(
      "broadcasts_delivered_total", "Broadcasts handed to connected subscribers",
      Double(counters.broadcasts))
    text.add(
      "channel_subscriptions", "Subscriptions of apps to broadcast channels",
      Double(counters.subscriptions))
    text.add(
      "counters_add_up", "1 while every accepted notification is somewhere",
      counters.addsUp ? 1 : 0)
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

/// Prometheus's process metrics (Prometheus, "Writing client libraries"), from Linux's
/// `/proc/self`; none on other systems.
enum ProcessMetrics {
  static func add(to text: inout MetricsText) {
    func add(_ name: String, _ help: String, _ value: Double?) {
      if let value { text.add(name, help, [([], value)], prefix: "process_") }
    }
    let status = read("/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
    func field(_ index: Int) -> Double? { index < status.count ? Double(status[index]) : nil }
    // Fields from the third on (proc(5)), in ticks of 10 ms and pages of 4 KiB.
    if let user = field(11), let system = field(12) {
      add("cpu_seconds_total", "Processor time", (user + system) / 100)
    }
    add("resident_memory_bytes", "Resident memory", field(21).map { $0 * 4096 })
    let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    add("open_fds", "Open file descriptors", descriptors.map(Double.init))
    let limit = read("/proc/self/limits").split(separator: "\n").first {
      $0.hasPrefix("Max open files")
    }
    add(
      "max_fds", "The most file descriptors that may be open",
      limit?.split(separator: " ").dropFirst(3).first.flatMap { Double($0) })
    if let start = field(19), let boot = bootTime {
      add("start_time_seconds", "When the process began, UNIX time", boot + start / 100)
    }
  }

  private static let bootTime: Double? = read("/proc/stat").split(separator: "\n")
    .first { $0.hasPrefix("btime ") }.flatMap { Double($0.dropFirst(6)) }

  private static func read(_ path: String) -> String {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
  }
}
