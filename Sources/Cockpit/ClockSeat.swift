import FoundationEssentials
package import Primitives

/// What the admin API may do with the relay's clock.
package struct ClockSeat: Sendable {
  package var status: @Sendable () async -> ClockStatus
  /// Throws a `Refusal` when the clock cannot be moved so.
  package var advance: @Sendable (AdvanceWish) async throws -> ClockAdvance
  /// How many seconds are to pass in one of the machine's.
  package var setRate: @Sendable (Double) async -> Void
  /// The states that the relay can be taken back to. The rest throws a `Refusal`.
  package var checkpoints: @Sendable () async -> [CheckpointStatus]
  package var save: @Sendable (String) async throws -> CheckpointStatus
  package var rewind: @Sendable (String) async throws -> CheckpointStatus
  package var drop: @Sendable (String) async throws -> Void

  package init(
    status: @escaping @Sendable () async -> ClockStatus,
    advance: @escaping @Sendable (AdvanceWish) async throws -> ClockAdvance,
    setRate: @escaping @Sendable (Double) async -> Void,
    checkpoints: @escaping @Sendable () async -> [CheckpointStatus],
    save: @escaping @Sendable (String) async throws -> CheckpointStatus,
    rewind: @escaping @Sendable (String) async throws -> CheckpointStatus,
    drop: @escaping @Sendable (String) async throws -> Void
  ) {
    self.status = status
    self.advance = advance
    self.setRate = setRate
    self.checkpoints = checkpoints
    self.save = save
    self.rewind = rewind
    self.drop = drop
  }
}

/// A state that the relay can be taken back to.
package struct CheckpointStatus: Codable, Equatable, Sendable {
  package var name: String
  /// When it was, in UNIX milliseconds.
  package var at: Int64
  /// About how many bytes it may take.
  package var bytes: Int

  package init(name: String, at: Int64, bytes: Int) {
    self.name = name
    self.at = at
    self.bytes = bytes
  }
}

/// The answer to `GET /v1/checkpoints`.
package struct CheckpointList: Codable, Equatable, Sendable {
  package var checkpoints: [CheckpointStatus]
}

/// The answer to `GET /v1/clock`.
package struct ClockStatus: Codable, Equatable, Sendable {
  package struct Next: Codable, Equatable, Sendable {
    package var at: Int64
    package var what: String

    package init(at: Int64, what: String) {
      self.at = at
      self.what = what
    }
  }

  /// `system` or `virtual`.
  package var mode: String
  /// UNIX milliseconds.
  package var now: Int64
  /// How many seconds pass in one of the machine's.
  package var rate: Double
  /// When a virtual clock's relay has something to do next.
  package var next: Next?

  package init(mode: String, now: Int64, rate: Double, next: Next?) {
    self.mode = mode
    self.now = now
    self.rate = rate
    self.next = next
  }

  static var system: ClockStatus {
    ClockStatus(
      mode: "system", now: Int64(Date().timeIntervalSince1970 * 1000), rate: 1, next: nil)
  }
}

/// The answer to `POST /v1/clock/advance`.
package struct ClockAdvance: Codable, Equatable, Sendable {
  /// UNIX milliseconds.
  package var now: Int64
  /// How many of what have come to pass.
  package var fired: [String: Int]

  package init(now: Int64, fired: [String: Int]) {
    self.now = now
    self.fired = fired
  }
}

/// The body of `POST /v1/clock/advance`: `{"by":"1h"}`, `{"to":1795…}` or `{"next":true}`, and
/// `"from"`: the time that the caller believes it is.
package struct AdvanceWish: Equatable, Sendable {
  package enum Goal: Equatable, Sendable {
    case by(Interval)
    case to(Int64)
    case next
  }

  package var goal: Goal
  package var from: Int64?

  package init(_ goal: Goal, from: Int64? = nil) {
    self.goal = goal
    self.from = from
  }

  init(_ bytes: [UInt8]) throws {
    let object = try JSONMembers(bytes, known: ["by", "to", "next", "from"])
    from = try object.integer("from")
    let by = try object.text("by")
    let to = try object.integer("to")
    let next = try object.flag("next")
    switch (by, to, next) {
    case (let by?, nil, nil):
      guard let length = Interval(by) else {
        throw Refusal.body("by is a length of time such as 90s or 1h30m", field: "by")
      }
      goal = .by(length)
    case (nil, let to?, nil): goal = .to(to)
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

/// A JSON object of which every member is known.
struct JSONMembers {
  private let values: [String: JSONScalar]

  init(_ bytes: [UInt8], known: Set<String>) throws {
    do {
      values = try JSONDecoder().decode([String: JSONScalar].self, from: Data(bytes))
    } catch {
      throw Refusal.body("the body is one JSON object of texts, numbers, true and false")
    }
    if let stranger = values.keys.sorted().first(where: { !known.contains($0) }) {
      throw Refusal.body(
        "there is no \(stranger): known are \(known.sorted().joined(separator: ", "))",
        field: stranger)
    }
  }

  func text(_ key: String) throws -> String? {
    guard let value = values[key] else { return nil }
    guard case .text(let text) = value else { throw Refusal.body("\(key) is a text", field: key) }
    return text
  }

  func number(_ key: String) throws -> Double? {
    guard let value = values[key] else { return nil }
    guard case .number(let number) = value else {
      throw Refusal.body("\(key) is a number", field: key)
    }
    return number
  }

  func integer(_ key: String) throws -> Int64? {
    guard let number = try number(key) else { return nil }
    guard let integer = Int64(exactly: number) else {
      throw Refusal.body("\(key) is a whole number", field: key)
    }
    return integer
  }

  func flag(_ key: String) throws -> Bool? {
    guard let value = values[key] else { return nil }
    guard case .flag(let flag) = value else {
      throw Refusal.body("\(key) is true or false", field: key)
    }
    return flag
  }
}

/// A value of a JSON object that holds no others.
enum JSONScalar: Decodable {
  case text(String)
  case number(Double)
  case flag(Bool)

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else {
      self = .text(try container.decode(String.self))
    }
  }
}
