import ArgumentParser
import FoundationEssentials
import Primitives
import RelayCore
import RelayRecording

struct ReplayCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Play a recording ('serve --record FILE') again, and compare every decision.",
    discussion: """
      Examples:

        pushrelay replay relay.prr
        pushrelay replay relay.prr --until 2026-11-21T09:30:00Z --inspect DEVICE
        pushrelay replay relay.prr --log 3f1c9a52-0d6e-8b34-8000-00000000002a
        pushrelay replay relay.prr --policy strict
        pushrelay replay relay.prr --policy '{"app":{"count":2,"per":"1d"}}'
        pushrelay replay relay.prr --json > events.jsonl

      The exit status is 1 when a batch gives other effects than when it was recorded, or the file \
      is damaged. A file that was cut, as by a kill, is played up to its last whole chunk. \
      docs/RECORDING.md says what is in a recording and what is not.
      """)

  @Argument(help: "A recording.")
  var file: String
  @Option(help: "Stop behind this moment (ISO 8601), or where this notification was accepted.")
  var until: String?
  @Option(help: "Show how this device stands at the end.")
  var inspect: String?
  @Option(help: "Show the life of this notification: its apns-unique-id or apns-id.")
  var log: String?
  @Option(help: "Compare with what this silent policy would have done: a name or its numbers.")
  var policy: String?
  @Flag(help: "Print every event and the summary as one JSON object per line.")
  var json = false
  @Flag(help: "Play the recording of another core version: say what differs, as a fact.")
  var compare = false

  func validate() throws {
    if policy != nil, until != nil || inspect != nil || log != nil {
      throw ValidationError("--policy looks at the whole recording; leave out the others")
    }
    if policy != nil, json || compare {
      throw ValidationError("--policy prints a table of its own; leave out --json and --compare")
    }
    if json, inspect != nil || log != nil {
      throw ValidationError("--json prints every event; leave out --inspect and --log")
    }
  }

  func run() async throws {
    let bytes = try PrivateFile.read(file, limitBytes: .max, else: "give the path of a recording")
    do {
      let reader = try RecordingReader(bytes)
      try check(reader.header)
      if let policy { return try show(reader, other: policy) }
      try play(reader)
    } catch let problem as RecordingReader.ReadingError {
      throw CommandError("\(file): \(problem)")
    }
  }
}

/// The lives of pushes, without what a return to a checkpoint took back.
private struct Lives {
  private struct Shard {
    var log = DeliveryLog(notifications: 100_000)
    var saved: [UInt32: DeliveryLog] = [:]

    mutating func add(_ step: Replay.Step) {
      for case .log(var event) in step.effects { log.append(&event) }
      guard case .operated(let operation) = step.event else { return }
      switch operation {
      case .checkpointSaved(let number): saved[number] = log
      case .checkpointDropped(let number): saved[number] = nil
      // A state from before the recording has nothing of it.
      case .rewound(let number): log = saved[number] ?? DeliveryLog(notifications: 100_000)
      case .policyChanged, .administered, .faulted, .shutDown: break
      }
    }
  }

  private var shards: [UInt16: Shard] = [:]

  mutating func add(_ step: Replay.Step) { shards[step.shard, default: Shard()].add(step) }

  func steps(of id: UniqueID) -> [DeliveryEvent] {
    shards.values.lazy.map { $0.log.steps(of: id) }.first { !$0.isEmpty } ?? []
  }
}

extension ReplayCommand {
  private func check(_ header: RecordingHeader) throws {
    guard header.coreVersion == coreVersion || compare else {
      throw CommandError(
        "\(file) was recorded by core version \(header.coreVersion) and this is \(coreVersion), "
          + "which may decide otherwise: replay it with that build, or with --compare")
    }
  }

  /// Reads an option's value; nil without one.
  private func option<Value>(
    _ name: String, _ text: String?, _ hint: String, _ read: (String) -> Value?
  ) throws -> Value? {
    guard let text else { return nil }
    guard let value = read(text) else { throw CommandError("--\(name) \(text): give \(hint)") }
    return value
  }

  private func play(_ reader: RecordingReader) throws {
    let hint = "a time as 2026-11-21T09:30:00Z, or a UUID"
    let end: Replay.Until? = try option("until", until, hint) { text in
      if let id = UniqueID(text) { return .notification(id) }
      guard let date = try? Date(text, strategy: .iso8601) else { return nil }
      return .moment(Instant(milliseconds: Int64((date.timeIntervalSince1970 * 1000).rounded())))
    }
    let device = try option("inspect", inspect, "a device's id, a UUID") { DeviceID($0) }
    let notification = try option("log", log, "a notification's id, a UUID") { UniqueID($0) }
    var replay = Replay(reader, until: end ?? .end)
    var lives = Lives()
    let begin = ContinuousClock.now
    var observe: ((Replay.Step) -> Void)?
    if json || notification != nil {
      observe = { step in
        if json { show(json: step) }
        lives.add(step)
      }
    }
    try replay.run(observe: observe)
    let took = begin.duration(to: .now)
    if case .notification? = end, !replay.isComplete {
      throw CommandError("--until \(until ?? ""): \(file) has no push with this id")
    }
    if case .moment? = end, replay.summary.events == 0 {
      throw CommandError("--until \(until ?? ""): \(file) begins later")
    }
    if json {
      try show(json: replay, took)
    } else {
      show(replay, took)
    }
    if let notification { try show(lives.steps(of: notification), of: notification) }
    if let device { try show(device, in: replay, end) }
    guard replay.summary.differences.isEmpty || compare else { throw ExitCode(1) }
  }

  // MARK: What is printed

  private func show(_ replay: Replay, _ took: Duration) {
    let (header, summary) = (replay.header, replay.summary)
    let rate = Int(Double(summary.events) / (took / .seconds(1)))
    Console.say(table: [
      ["recorded by", "\(header.build), core version \(header.coreVersion)"],
      ["payloads", header.payloads.rawValue], ["shards", "\(replay.shards.count)"],
      ["from", summary.first?.iso8601 ?? "-"], ["to", summary.last?.iso8601 ?? "-"],
      ["events", "\(summary.events)"], ["batches", "\(summary.batches)"],
      ["speed", "\(rate) events a second"],
      ["ends", until != nil && replay.isComplete ? "where --until says" : Self.end(of: summary)],
      ["differences", summary.differences.isEmpty ? "none" : "\(summary.differences.count)"],
    ])
    for difference in summary.differences { Console.say("  \(difference)") }
  }

  private static func end(of summary: Replay.Summary) -> String {
    if let ending = summary.ending { return ending.text }
    if summary.cutBytes > 0 { return "cut: \(summary.cutBytes) bytes of no whole chunk left out" }
    return "without a last word: whoever recorded was killed, or records still"
  }

  private func show(json replay: Replay, _ took: Duration) throws {
    let differences: [JSONObject] = replay.summary.differences.map {
      ["shard": $0.shard, "batch": $0.batch, "at": $0.at.iso8601, "event": $0.event.name]
    }
    try Console.say(object: [
      "events": replay.summary.events, "batches": replay.summary.batches,
      "shards": replay.shards.count, "seconds": took / .seconds(1),
      "cutBytes": replay.summary.cutBytes, "differences": differences,
    ])
  }

  private func show(json step: Replay.Step) {
    let detail =
      switch step.event {
      case .submitted(let notification, _): "\(notification.uniqueID) \(notification.topic)"
      case .asked(_, let credential, _): "\(credential.device)"
      case .stream(_, .acked(let id, _)), .stream(_, .decided(let id, _)): "\(id)"
      case .journal(.persisted(let sequence)), .journal(.persistFailed(let sequence)): "\(sequence)"
      case .operated(.administered(let device, _)): "\(device)"
      case .operated(.policyChanged(let policy, _)): policy.name
      case .operated(.faulted(let id, let mark)): "\(id) \(mark.name)"
      case .operated(.checkpointSaved(let number)), .operated(.rewound(let number)),
        .operated(.checkpointDropped(let number)):
        "\(number)"
      case .stream, .journal, .alias, .broadcast, .operated, .clock: ""
      }
    let steps: [String] = step.effects.compactMap { effect in
      guard case .log(let event) = effect else { return nil }
      return "\(event.uniqueID) \(event.step)"
    }
    try? Console.say(object: [
      "shard": step.shard, "batch": step.batch, "at": step.at.iso8601, "event": step.event.name,
      "detail": detail, "effects": steps,
    ])
  }

  private func show(_ steps: [DeliveryEvent], of id: UniqueID) throws {
    guard !steps.isEmpty else { throw CommandError("\(file) knows no notification \(id)") }
    Console.say("")
    Console.say(table: steps.map { [$0.at.iso8601, "\($0.step)"] })
  }

  private func show(_ device: DeviceID, in replay: Replay, _ end: Replay.Until?) throws {
    // Budgets refill until then without an event.
    let moment: Instant? = if case .moment(let moment) = end { moment } else { nil }
    let found = replay.shards.lazy.compactMap { $0.shard.standing(of: device, at: moment) }.first
    guard let (report, timers) = found else {
      throw CommandError("\(file) knows no device \(device) at that moment")
    }
    Console.say("")
    func left(_ count: Int64?) -> String { count.map { "\($0) left" } ?? "no limit" }
    Console.say(table: [
      ["device", "\(report.device)"], ["connected", report.isConnected ? "yes" : "no"],
      ["condition", "\(report.condition)"], ["policy", report.policy],
      ["budget", left(report.allowance?.remaining)], ["in flight", "\(report.inFlight)"],
    ])
    for app in report.apps {
      Console.say("app \(app.topic): \(left(app.allowance?.remaining))")
      for (name, slot) in [("visible", app.visible), ("silent", app.silent)] {
        guard let slot else { continue }
        let end = slot.expiresAt.map { ", until \($0.iso8601)" } ?? ""
        Console.say("  \(name): \(slot.uniqueID), since \(slot.acceptedAt.iso8601)\(end)")
      }
    }
    Console.say(table: timers.map { ["timer", $0.at.iso8601, $0.what] })
  }

  private func show(_ reader: RecordingReader, other name: String) throws {
    let other: SilentPolicy
    do throws(SilentPolicyError) {
      other = try SilentPolicy(text: name)
    } catch {
      throw CommandError("--policy: \(error)")
    }
    let comparison = try PolicyComparison(reader, other: other)
    var table = [
      [
        "app", "policy", "silent", "sent", "held", "replaced", "lost", "along", "waiting", "p50",
        "p90", "p99",
      ]
    ]
    for (topic, columns) in comparison.rows {
      for (name, row) in zip(comparison.names, columns) {
        let delays = [50, 90, 99].map { percent in
          row.delay(percent: percent).map { "\(Double($0.milliseconds) / 1000) s" } ?? "-"
        }
        let counts = [
          row.received, row.sent, row.held, row.replaced, row.lost, row.piggybacked, row.waiting,
        ]
        table.append([topic?.description ?? "all", name] + counts.map(String.init) + delays)
      }
    }
    Console.say(table: table)
  }
}
