import Hummingbird
import NIOCore
import Primitives
import RelayCore
import RelayServer

/// What monitoring asks: whether it lives, whether it is ready, and its numbers in the text format
/// of Prometheus. No token, device or id is ever a label.
struct MetricsRoutes {
  let relay: Relay
  let version: String

  func add(to router: Router<AdminContext>) {
    router.get("/health/live") { _, _ in try Response(json: ["status": "live"]) }
    router.get("/health/ready") { _, _ in
      guard relay.isRunning else {
        throw Refusal(503, "NotReady", "the relay is starting or ending")
      }
      guard relay.isJournalHealthy else {
        throw Refusal(503, "JournalFails", "the journal cannot be written: look at the disk")
      }
      return try Response(json: ["status": "ready"])
    }
    router.get("/metrics") { _, _ in
      Response(
        status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: text(await relay.counters()))))
    }
  }

  func text(_ counters: ShardCounters) -> String {
    var text = MetricsText()
    text.add(
      "notifications_received_total", .counter, "Notifications accepted from providers",
      [([], counters.received)])
    text.add(
      "notifications_restored_total", .counter, "Notifications taken over from the journal",
      [([], counters.restored)])
    text.add(
      "notifications_sent_total", .counter, "Frames sent to devices",
      Via.allCases.map { ([("via", $0.name)], counters.sent[Int($0.rawValue)]) })
    text.add(
      "notifications_stored_total", .counter, "Times that a slot was taken",
      [([], counters.stored)])
    text.add(
      "notifications_ended_total", .counter, "Lives that have ended",
      [
        ([("end", "delivered")], counters.delivered), ([("end", "expired")], counters.expired),
        ([("end", "unregistered")], counters.discardedUnregistered),
        ([("end", "not-stored")], counters.notStored), ([("end", "replaced")], counters.replaced),
        ([("end", "journal-failed")], counters.journalFailed),
        ([("end", "cleared")], counters.cleared),
      ])
    text.add(
      "notifications_refused_total", .counter, "Pushes that a shard has refused",
      Rejection.allCases.map {
        ([("reason", $0.reason)], counters.rejected[Int($0.rawValue)])
      }.filter { $0.1 > 0 })
    text.add(
      "notifications_pending", .gauge, "Notifications that have not ended",
      [
        ([("place", "journal")], counters.waiting), ([("place", "slot")], counters.inSlots),
        ([("place", "in_flight")], counters.inFlight),
      ])
    text.add(
      "devices", .gauge, "Devices that are known",
      [
        ([("state", "connected")], counters.connections),
        ([("state", "away")], counters.devices - counters.connections),
      ])
    text.add("apps", .gauge, "Apps that are registered", [([], counters.apps)])
    text.add(
      "counters_add_up", .gauge, "1 while every accepted notification is somewhere",
      [([], counters.addsUp ? 1 : 0)])
    text.add("build_info", .gauge, "1, with the version", [([("version", version)], 1)])
    return text.text
  }
}

/// The text format of Prometheus (Prometheus, "Exposition formats").
struct MetricsText {
  enum Kind: String { case counter, gauge }

  private(set) var text = ""

  mutating func add(
    _ name: String, _ kind: Kind, _ help: String,
    _ samples: [(labels: [(name: String, value: String)], value: Int)]
  ) {
    let name = "pushrelay_\(name)"
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    for (labels, value) in samples {
      let list = labels.map { "\($0.name)=\"\($0.value)\"" }.joined(separator: ",")
      text += list.isEmpty ? "\(name) \(value)\n" : "\(name){\(list)} \(value)\n"
    }
  }
}
