import AdminAPI
import Hummingbird
import NIOCore
import Primitives
import RelayCore
import RelayFaults
import RelayServer
import ServiceLifecycle

/// Events as they happen: server-sent events, or lines of JSON. When events come faster than they
/// are read, the reader gets a gap and then the newest, never a growing queue.
struct EventRoutes {
  let relay: Relay
  let epoch: Epoch

  /// The events in one piece, and the pause between pieces: enough for a page, cheap for the relay.
  private static let itemsPerPiece = 100
  private static let pause = Duration.milliseconds(50)
  /// The most that a reader may fall behind before it gets a gap.
  private static let backlog: UInt64 = 1000
  private static let statsPause = Duration.milliseconds(250)
  private static let quietPause = Duration.seconds(5)
  /// Lives that a reader's own cache holds.
  private static let heads = 20_000

  func add(to router: Router<AdminContext>) {
    router.get("/v1/events") { request, _ in
      guard let feed = await relay.feeds.feed() else { throw Refusal.notReady }
      try request.allow("device", "since")
      let start = try await start(request, feed)
      let isLines = Self.accepts("application/x-ndjson", request.headers[.accept] ?? "")
      let device = try Refusal.device(request.parameter("device"))
      return Response(
        status: .ok,
        headers: [
          .contentType: isLines ? "application/x-ndjson" : "text/event-stream",
          .cacheControl: "no-store",
        ],
        body: ResponseBody { writer in
          var teller = Teller(
            relay: relay, epoch: epoch.text, feed: feed, position: start.position,
            moment: start.moment, isLines: isLines, device: device, own: relay.nodeName)
          do {
            try await teller.run(&writer)
          } catch {
            // The reader has gone.
          }
          try await writer.finish(nil)
        })
    }
  }

  /// Whether a type is named, and not excluded (RFC 9110, section 12.5.1).
  static func accepts(_ type: String, _ accept: String) -> Bool {
    accept.lowercased().split(separator: ",").contains { range in
      let parts = range.split(separator: ";").map { $0.filter { !$0.isWhitespace } }
      let isExcluded = parts.contains { $0.hasPrefix("q=") && Double($0.dropFirst(2)) == 0 }
      return parts.first == type && !isExcluded
    }
  }

  /// The position after the last event that the reader has seen, or now. With a cursor of another
  /// node, or of this one's run before, that of about the cursor's moment, with the moment.
  private func start(
    _ request: Request, _ feed: EventFeed
  ) async throws -> (position: UInt64, moment: Instant?) {
    let header = request.headers[.init("Last-Event-ID")!].flatMap { $0.isEmpty ? nil : $0 }
    guard let last = header ?? request.parameter("since") else {
      return (await feed.position, nil)
    }
    let parts = last.split(separator: "-", omittingEmptySubsequences: false)
    if relay.nodeName != nil, parts.count == 3, parts[0] != epoch.text, let at = Int64(parts[2]) {
      // Rather twice than not at all: the nodes' clocks differ by as much at most.
      let moment = Instant(milliseconds: max(0, at)) - Limits.hopAge
      return (await feed.position(from: moment), moment)
    }
    guard parts.count == 2 || parts.count == 3, let position = UInt64(parts[1]),
      parts[0] == epoch.text, position <= (await feed.position)
    else {
      throw Refusal(
        410, "CursorExpired",
        "the cursor is of another run; the oldest is \(epoch.cursor(await feed.oldest))")
    }
    return (position, nil)
  }

  /// One reader.
  private struct Teller {
    let relay: Relay
    /// The epoch in which the stream began; it ends with it.
    let epoch: String
    let feed: EventFeed
    var position: UInt64
    /// Where the reader goes on that another node has told until now; events may be missing.
    let moment: Instant?
    let isLines: Bool
    let device: DeviceID?
    let own: String?
    var heads: [UniqueID: Relay.Life] = [:]
    var lastStats: CountersBody?
    var lastClock: ClockStatus?
    var statsAt = ContinuousClock.now
    var toldAt = ContinuousClock.now

    mutating func run(_ writer: inout any ResponseBodyWriter) async throws {
      let (id, signals) = await feed.signals()
      defer { Task { [feed] in await feed.forget(id) } }
      await relay.feeds.follow(feed, from: moment)
      if moment != nil { try await write(&writer, "gap", ["dropped": 0]) }
      try await tellStats(&writer)
      let (wakes, wake) = AsyncStream.makeStream(
        of: Void.self, bufferingPolicy: .bufferingNewest(1))
      let pump = Task {
        for await _ in signals { wake.yield() }
        wake.finish()
      }
      // Wakes for what is sent although nothing happens.
      let ticks = Task {
        while true {
          try await Task.sleep(for: statsPause)
          wake.yield()
        }
      }
      defer {
        pump.cancel()
        ticks.cancel()
      }
      let rewindCount = relay.rewindCount
      for await _ in wakes.cancelOnGracefulShutdown() {
        guard relay.rewindCount == rewindCount else {
          // Earlier events are undone: the next cursor is of another epoch.
          return try await write(&writer, "bye", ["reason": "rewound"])
        }
        if try await tellItems(&writer) { try await Task.sleep(for: pause) }
        if ContinuousClock.now - statsAt >= statsPause { try await tellStats(&writer) }
      }
      try await write(&writer, "bye", ["reason": "shutdown"])
    }

    /// Returns whether there was anything.
    private mutating func tellItems(_ writer: inout any ResponseBodyWriter) async throws -> Bool {
      let end = await feed.position
      var dropped: UInt64 = 0
      if end > position + backlog {
        dropped = end - position - UInt64(itemsPerPiece)
        position += dropped
      }
      let page = await feed.read(since: position, limit: itemsPerPiece)
      dropped += page.dropped
      position = page.next
      if dropped > 0 { try await write(&writer, "gap", ["dropped": dropped]) }
      var piece = ByteBuffer()
      for (place, entry) in page.items.enumerated() {
        let cursor = page.next - UInt64(page.items.count - place) + 1
        try await append(entry.item, of: entry.node ?? own, cursor, to: &piece)
      }
      if piece.readableBytes > 0 { try await writer.write(piece) }
      return !page.items.isEmpty
    }

    private mutating func append(
      _ item: FeedItem, of node: String?, _ cursor: UInt64, to piece: inout ByteBuffer
    ) async throws {
      func append(_ kind: String, _ body: some Encodable) throws {
        let json = try JSONText.bytes(Joined(body, node.map { ["node": $0] } ?? [:]))
        self.append(kind, cursor, at: item.at, json, to: &piece)
      }
      switch item {
      case .life(let event):
        guard let life = await life(of: event), device == nil || life.device == device else {
          return
        }
        let phone = relay.names[life.device]
        let head = [
          "phone": phone, "uniqueId": life.uniqueID.description, "id": life.apnsID.description,
          "topic": life.topic.description, "kind": life.kind.name,
          "device": life.device.description,
        ]
        try append("life", Joined(NotificationLife.Step(event), head.compactMapValues(\.self)))
      case .device(let change):
        guard device == nil || change.device == device else { return }
        try append("device", DeviceEvent(change, relay))
      case .rewound:
        // Every reader is told by `bye` and starts again.
        break
      case .fault(let hit):
        guard device == nil else { return }
        try append("fault", FaultEvent(hit))
      case .policy(let policy, let moment):
        guard device == nil else { return }
        try append("policy", PolicyEvent(time: moment.milliseconds, policy: policy.name))
      case .gap(let dropped, _): try append("gap", ["dropped": dropped])
      }
    }

    /// The event's notification, from the cache or the relay.
    private mutating func life(of event: DeliveryEvent) async -> Relay.Life? {
      if let life = Relay.Life([event]) {
        if heads.count >= EventRoutes.heads { heads.removeAll() }
        heads[event.uniqueID] = life
        return life
      }
      if let life = heads[event.uniqueID] { return life }
      let life = await relay.life(of: event.uniqueID).value
      heads[event.uniqueID] = life
      return life
    }

    private mutating func tellStats(_ writer: inout any ResponseBodyWriter) async throws {
      statsAt = .now
      let shares = [await relay.counters()] + (await relay.feeds.counters.values)
      let counters = shares.reduce(ShardCounters(), +)
      let clock = await ClockRoutes(relay: relay).status()
      let body = CountersBody(counters)
      let isNews = body != lastStats || lastClock?.rate != clock.rate
      guard isNews || ContinuousClock.now - toldAt > quietPause else { return }
      if clock.mode == "virtual", clock != lastClock { try await write(&writer, "clock", clock) }
      lastClock = clock
      lastStats = body
      toldAt = .now
      let totals = Totals(
        now: clock.now, devices: counters.devices, connections: counters.connections,
        addsUp: shares.allSatisfy(\.addsUp))
      try await write(&writer, "stats", Joined(body, totals))
    }

    private func write(
      _ writer: inout any ResponseBodyWriter, _ kind: String, _ value: some Encodable
    ) async throws {
      var piece = ByteBuffer()
      append(kind, position, at: relay.now, try JSONText.bytes(value), to: &piece)
      try await writer.write(piece)
    }

    private func append(
      _ kind: String, _ cursor: UInt64, at moment: Instant, _ json: [UInt8],
      to piece: inout ByteBuffer
    ) {
      let id = "\(epoch)-\(cursor)" + (own == nil ? "" : "-\(moment.milliseconds)")
      if isLines {
        piece.writeString(#"{"id":"\#(id)","event":"\#(kind)","data":"#)
        piece.writeBytes(json)
        piece.writeString("}\n")
      } else {
        piece.writeString("id: \(id)\nevent: \(kind)\ndata: ")
        piece.writeBytes(json)
        piece.writeString("\n\n")
      }
    }
  }

  private struct PolicyEvent: Encodable {
    var time: Int64
    var policy: String
  }

  private struct FaultEvent: Encodable {
    var time: Int64
    var name: String
    var at: String
    var what: String
    var uniqueId: String?
    var topic: String?

    init(_ hit: FaultHit) {
      time = hit.at.milliseconds
      name = hit.name
      at = hit.place.rawValue
      what = hit.action
      uniqueId = hit.uniqueID?.description
      topic = hit.topic?.description
    }
  }

  private struct Totals: Encodable {
    var now: Int64
    var devices: Int
    var connections: Int
    var addsUp: Bool
  }
}

extension DeviceEvent {
  init(_ change: DeviceChange, _ relay: Relay) {
    self.init(
      at: change.at, change.device, named: relay.names[change.device], change.what.rawValue,
      topic: change.topic, condition: change.condition, remaining: change.remaining,
      policy: change.policy)
  }
}
