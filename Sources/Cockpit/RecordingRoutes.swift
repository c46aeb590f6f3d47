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
      return try await perform { () throws(Recordings.RecordingError) in
        try await recordings.start(name, payloads: wish.payloads, limit: wish.limitBytes)
      }
    }
    router.post("/v1/recordings/:name/stop") { _, context in
      let name = try context.name()
      return try await perform { () throws(Recordings.RecordingError) in
        try await recordings.stop(name)
      }
    }
    router.get("/v1/recordings/:name/file") { _, context in
      let name = try context.name()
      let path = try await found { () throws(Recordings.RecordingError) in
        try await recordings.file(of: name)
      }
      return Response(
        status: .ok, headers: [.contentType: "application/octet-stream"],
        body: try await FileIO().loadFile(path: path, context: context))
    }
    router.delete("/v1/recordings/:name") { _, context in
      let name = try context.name()
      try await found { () throws(Recordings.RecordingError) in try await recordings.remove(name) }
      return Response(status: .noContent)
    }
    router.get("/v1/state") { request, _ in try await state(request) }
  }

  /// A device at a past moment, from the running recording.
  private func state(_ request: Request) async throws -> Response {
    guard let text = request.parameter("at"), let at = Int64(text) else {
      throw Refusal.body("at is a moment in UNIX milliseconds", field: "at")
    }
    guard let device = request.parameter("device").flatMap({ DeviceID($0) }) else {
      throw Refusal.body("device is the id of a device, a UUID", field: "device")
    }
    let shards = try await found { () throws(Recordings.RecordingError) in
      try await relay.recordings.past(at: Instant(milliseconds: at))
    }
    guard let report = shards.compactMap({ $0.report(of: device) }).first else {
      throw Refusal.missing("UnknownDevice", "there was no such device at that moment")
    }
    return try Response(json: DeviceStatus(report))
  }

  private func perform(
    _ work: () async throws(Recordings.RecordingError) -> some Encodable
  ) async throws -> Response {
    try Response(json: try await found(work))
  }

  private func found<Value>(
    _ work: () async throws(Recordings.RecordingError) -> Value
  ) async throws(Refusal) -> Value {
    do throws(Recordings.RecordingError) {
      return try await work()
    } catch {
      switch error {
      case .notRunning: throw .conflict("NotReady", "the relay is still starting; try again")
      case .busy(let name):
        throw .conflict("RecordingRuns", "\(name) is being recorded: stop it first")
      case .noRecording(let name):
        throw .missing("UnknownRecording", "no recording is called \(name); begin one")
      case .stillRunning(let name):
        throw .conflict("RecordingRuns", "\(name) is being recorded: stop it first")
      case .cannotWrite(let why): throw Refusal(503, "CannotWrite", why)
      case .unreadable(let why): throw .conflict("RecordingUnreadable", why)
      }
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
