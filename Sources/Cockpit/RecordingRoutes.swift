import AdminAPI
import Hummingbird
import Primitives
import RelayCore
import RelayRecording
import RelayServer

struct RecordingRoutes {
  let relay: Relay

  func add(to router: Router<AdminContext>) {
    let recordings = relay.recordings
    router.get("/v1/recordings") { _, _ in
      try Response(json: ["recordings": await recordings.list()])
    }
    router.put("/v1/recordings/:name") { request, context in
      let wish = try RecordingWish(try await request.bytes())
      let name = try context.name()
      return try Response(
        json: try await recordings.start(name, payloads: wish.payloads, limit: wish.limitBytes))
    }
    router.post("/v1/recordings/:name/stop") { _, context in
      try Response(json: try await recordings.stop(try context.name()))
    }
    router.get("/v1/recordings/:name/file") { _, context in
      let path = try await recordings.file(of: try context.name())
      return Response(
        status: .ok, headers: [.contentType: "application/octet-stream"],
        body: try await FileIO().loadFile(path: path, context: context))
    }
    router.delete("/v1/recordings/:name") { _, context in
      try await recordings.remove(try context.name())
      return Response(status: .noContent)
    }
    router.get("/v1/state") { request, _ in try await state(request) }
  }

  /// A device at a past moment, from the running recording.
  private func state(_ request: Request) async throws -> Response {
    try request.allow("at", "device")
    guard let text = request.parameter("at"), let at = Int64(text) else {
      throw Refusal.body("at is a moment in UNIX milliseconds", field: "at")
    }
    guard let device = try Refusal.device(request.parameter("device")) else {
      throw Refusal.body("device is the id of a device, a UUID", field: "device")
    }
    // The clocks of who asks and of the relay may be apart.
    guard at <= (relay.now + .minutes(1)).milliseconds else {
      throw Refusal.body("at is to come: it is \(relay.now.iso8601)", field: "at")
    }
    let moment = min(Instant(milliseconds: at), relay.now)
    let shards = try await relay.recordings.past(at: moment)
    guard let report = shards.compactMap({ $0.report(of: device, at: moment) }).first else {
      throw Refusal.missing(
        "UnknownDevice", "there was no such device at that moment, or nothing was recorded then")
    }
    return try Response(json: DeviceStatus(named: report))
  }
}

extension Refusal {
  init(_ error: Recordings.RecordingError) {
    switch error {
    case .notRunning: self = .conflict("NotReady", "the relay is still starting; try again")
    case .busy(let name), .stillRunning(let name):
      self = .conflict("RecordingRuns", "\(name) is being recorded: stop it first")
    case .nothingRecorded:
      self = .missing("UnknownRecording", "nothing is being recorded; begin a recording")
    case .noRecording(let name):
      self = .missing(
        "UnknownRecording",
        "no recording is called \(name); that of serve --record is called configured")
    case .cannotWrite(let why): self = Refusal(503, "CannotWrite", why)
    case .unreadable(let why): self = .conflict("RecordingUnreadable", why)
    }
  }
}

/// The body of `PUT /v1/recordings/{name}`: `{"payloads":"aps","limit":256}`, or nothing.
struct RecordingWish: Equatable {
  var payloads = RecordedPayloads.none
  /// Of both files together.
  var limitBytes = 256_000_000

  init(_ bytes: [UInt8]) throws {
    guard !bytes.isEmpty else { return }
    let members = try JSONMembers(bytes, known: ["payloads", "limit"])
    payloads =
      try Refusal.read(members.text("payloads"), "payloads", "is none, aps or all") {
        RecordedPayloads(rawValue: $0)
      } ?? payloads
    if let megabytes = try members.integer("limit") {
      guard (1...Int64(Limits.recordingMegabytes)).contains(megabytes) else {
        throw Refusal.body(
          "limit is a number of megabytes, 1 to \(Limits.recordingMegabytes)", field: "limit")
      }
      limitBytes = Int(megabytes) * 1_000_000
    }
  }
}
