import AdminAPI
import Hummingbird
import Primitives
import RelayServer

struct ClockRoutes {
  let relay: Relay

  func add(to router: Router<AdminContext>) {
    router.get("/v1/clock") { _, _ in try Response(json: await status()) }
    router.post("/v1/clock/advance") { request, _ in
      try await request.whileConnected { bytes in
        let wish = try AdvanceWish(bytes)
        let clock = try clock()
        try wish.check(at: clock.now)
        return try Response(json: try await clock.advance(wish.goal, from: wish.from))
      }
    }
    router.patch("/v1/clock") { request, _ in
      let wish = try RateWish(try await request.bytes())
      try await (try clock()).setRate(wish.rate)
      return try Response(json: await status())
    }
    router.get("/v1/checkpoints") { _, _ in
      let list = await relay.virtualClock?.checkpointList ?? []
      return try Response(json: ["checkpoints": list])
    }
    router.put("/v1/checkpoints/:name") { _, context in
      let name = try context.name()
      return try Response(json: try await clock().saveCheckpoint(name))
    }
    router.post("/v1/checkpoints/:name/restore") { _, context in
      let name = try context.name()
      return try Response(json: try await clock().rewind(to: name))
    }
    router.delete("/v1/checkpoints/:name") { _, context in
      let name = try context.name()
      try await clock().dropCheckpoint(name)
      return Response(status: .noContent)
    }
  }

  func status() async -> ClockStatus {
    guard let clock = relay.virtualClock else {
      return ClockStatus(mode: "system", now: relay.now, rate: 1, next: nil)
    }
    let (next, rate) = await clock.status()
    return ClockStatus(
      mode: "virtual", now: clock.now, rate: rate, next: next.map { ($0.at, $0.kind.rawValue) })
  }

  private func clock() throws(Refusal) -> VirtualClock {
    if let clock = relay.virtualClock { return clock }
    guard relay.isRunning else {
      throw .conflict("NotReady", "the relay is still starting; try again")
    }
    throw .conflict(
      "ClockNotVirtual", "the relay goes by its machine's time; start it with --clock virtual")
  }
}

extension Refusal {
  init(_ error: VirtualClock.ClockError) {
    switch error {
    case .backwards(let now):
      self = .conflict(
        "ClockBackwards", "time does not run backwards: it is \(now.iso8601) now")
    case .moved(let now):
      self = .conflict(
        "ClockMoved", "somebody else has moved the clock: it is \(now.iso8601) now")
    case .stopped(let now):
      self = .conflict(
        "ClockStopped",
        "the clock was told to stand, or the relay ends: it is \(now.iso8601) now")
    case .notSettled(let now, let waitingFor):
      self = .conflict(
        "NotSettled",
        "the clock stands at \(now.iso8601): what happens then has no end, or somebody is silent",
        waitingFor: waitingFor)
    case .noCheckpoint(let name):
      self = .missing(
        "UnknownCheckpoint",
        "nothing was kept as \(name); 'pushrelay checkpoint list' says what was")
    case .storeOnDisk:
      self = .conflict(
        "StoreOnDisk", "what is on disk cannot be taken back: start the relay with --store memory")
    case .tooMuchKept(let bytes, let limit):
      self = .conflict(
        "TooMuchKept",
        "checkpoints would take \(bytes) bytes, or are too many: at most \(limit) bytes are kept, "
          + "and 100 checkpoints; drop one")
    case .nothingNext:
      self = .conflict(
        "NothingNext", "nothing is to come: no push is held, no phone has anything to do")
    }
  }
}

/// The body of `POST /v1/clock/advance`: `{"by":"1h"}`, `{"to":1795…}` or `{"next":true}`; `"from"`
/// is the time that the caller expects it to be.
struct AdvanceWish: Equatable, Sendable {
  var goal: VirtualClock.Goal
  var from: Instant?
}

extension AdvanceWish {
  /// As long as a scenario may be; what is beyond is mostly a mistake in the unit.
  static let longest = Interval.hours(400 * 24)

  func check(at now: Instant) throws(Refusal) {
    let (length, field) =
      switch goal {
      case .by(let length): (length, "by")
      case .to(let moment): (moment - now, "to")
      case .next: (Interval(milliseconds: 0), "next")
      }
    guard length <= Self.longest else {
      throw .body("the clock moves 400 days at once at most", field: field)
    }
  }

  init(_ bytes: [UInt8]) throws {
    let object = try JSONMembers(bytes, known: ["by", "to", "next", "from"])
    from = try object.integer("from").map { Instant(milliseconds: $0) }
    let by = try object.text("by")
    let to = try object.integer("to")
    let next = try object.flag("next")
    switch (by, to, next) {
    case (let by?, nil, nil):
      guard let length = Interval(by) else {
        throw Refusal.body("by is a length of time such as 90s or 1h30m", field: "by")
      }
      goal = .by(length)
    case (nil, let to?, nil): goal = .to(Instant(milliseconds: to))
    case (nil, nil, true?): goal = .next
    default: throw Refusal.body(#"say one of {"by":"1h"}, {"to":MILLISECONDS}, {"next":true}"#)
    }
  }
}

/// The body of `PATCH /v1/clock`: `{"rate":60}`.
struct RateWish: Equatable, Sendable {
  var rate: Double

  init(_ bytes: [UInt8]) throws {
    let object = try JSONMembers(bytes, known: ["rate"])
    guard let rate = try object.number("rate"), (0...Self.highest).contains(rate) else {
      throw Refusal.body(
        "rate is a number from 0, to stand, to \(Int(Self.highest))", field: "rate")
    }
    self.rate = rate
  }

  private static let highest = 1e6
}
