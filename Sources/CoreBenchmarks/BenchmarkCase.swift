enum BenchmarkCase: String, CaseIterable {
  case scan
  case scanSilent = "scan-silent"
  case scanLocalized = "scan-localized"
  case scanUnicode = "scan-unicode"
  case scanLarge = "scan-large"
  case head
  case path
  case request
  case answer
  case line
  case submit
  case submitOnly = "submit-only"
  case deliver
  case silent
  case record
  case replay
  case checkpoint
  case checkpointLarge = "checkpoint-large"
  case http2
  case http2Plain = "http2-plain"

  /// One operation of the case, for the help.
  private var text: String {
    switch self {
    case .scan: "the alert of 220 bytes that scripts/bench posts, scanned"
    case .scanSilent: "silent.json, scanned"
    case .scanLocalized: "alert-localized.json, scanned"
    case .scanUnicode: "unicode.json, scanned"
    case .scanLarge: "size-4096.json, scanned"
    case .head: "a whole head: names told, values parsed, all checks"
    case .path: "a head that differs from the last in its path only, and all checks"
    case .request: "such a head and the body of 220 bytes, up to the notification"
    case .answer: "the two ids of an answer, written"
    case .line: "a push's line to its device written, the one that acknowledges it read"
    case .submit: "a push to an away device: submitted, persisted, stored, effects performed"
    case .submitOnly: "the same, without the notification being made and effects performed"
    case .deliver: "a push to a connected device: submitted, persisted, sent, acknowledged"
    case .silent: "a silent push to a connected device that the budget lets through or holds"
    case .record: "as submit, and written down with the member aps of the payload"
    case .replay: "an event of recorded mixed traffic, played again"
    case .checkpoint: "a checkpoint and what it copies, the longest turn: 100 devices, 1,000 pushes"
    case .checkpointLarge: "the same, 10,000 devices, 100,000 pushes"
    case .http2: "a request of h2load's through a server's session, and its answer"
    case .http2Plain: "the same, without telling repeated fields"
    }
  }

  var line: String {
    "  \(rawValue)\(String(repeating: " ", count: 16 - rawValue.count))\(text)"
  }

  func run(_ options: Options) throws(CommandError) -> Measurement {
    let alert = try options.payload("alert-220-bytes.json")
    let count = options.count
    return switch self {
    case .scan: try measureScan(alert, count)
    case .scanSilent: try measureScan(options.payload("silent.json"), count)
    case .scanLocalized: try measureScan(options.payload("alert-localized.json"), count)
    case .scanUnicode: try measureScan(options.payload("unicode.json"), count)
    case .scanLarge: try measureScan(options.payload("size-4096.json"), count)
    case .head: try measureHead(count)
    case .path: try measurePath(count)
    case .request: try measureRequest(alert, count)
    case .answer: measureAnswer(count)
    case .line: try measureLine(alert, count)
    case .submit: try measurePushes(alert, count)
    case .submitOnly: try measureSubmitOnly(alert, count)
    case .deliver: try measurePushes(alert, count, isConnected: true)
    case .silent: try measureSilent(options.payload("silent.json"), count)
    case .record: try measurePushes(alert, count, records: true)
    case .replay: try measureReplay(alert, count)
    case .checkpoint: try measureCheckpoint(alert, devices: 100, pushes: 1000, count)
    case .checkpointLarge: try measureCheckpoint(alert, devices: 10_000, pushes: 100_000, count)
    case .http2: try measureHTTP2(tellsRepeatedFields: true, count)
    case .http2Plain: try measureHTTP2(tellsRepeatedFields: false, count)
    }
  }
}

struct Measurement {
  var nanoseconds: Int64
  /// Depends on every operation, so that none is optimized away; the same in every run.
  var sum: UInt64
}

/// Runs `operation` with 0..<count and adds up the results.
@inline(__always)
func measure(
  _ count: Int, _ operation: (Int) throws(CommandError) -> UInt64
) throws(CommandError) -> Measurement {
  let clock = ContinuousClock()
  let start = clock.now
  var sum: UInt64 = 0
  for index in 0..<count { sum &+= try operation(index) }
  let (seconds, attoseconds) = (clock.now - start).components
  return Measurement(nanoseconds: seconds * 1_000_000_000 + attoseconds / 1_000_000_000, sum: sum)
}
