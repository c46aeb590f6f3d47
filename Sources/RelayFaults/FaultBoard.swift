package import Primitives
package import RelayCore
import Synchronization

/// A fault in force.
package final class FaultRule: Sendable {
  package let name: String
  package let fault: Fault
  /// Shared by all loops, or `times` would apply to each of them.
  private let state: Mutex<FaultTally>

  package init(_ name: String, _ fault: Fault, at now: Instant) {
    self.name = name
    self.fault = fault
    state = Mutex(FaultTally(seed: fault.seed, until: fault.duration.map { now + $0 }))
  }

  /// In the relay's time; nil until it is removed.
  package var until: Instant? { tally.until }

  package var tally: FaultTally { state.withLock { $0 } }

  func hits(at now: Instant) -> Bool {
    state.withLock { $0.decide(fault.when, at: now) }
  }

  package func stepClock(by interval: Interval) { state.withLock { $0.stepClock(by: interval) } }
}

/// All faults in force. Of several that match, the first by name acts.
package struct FaultSet: Sendable {
  package let rules: [FaultRule]

  package init(rules: [FaultRule]) { self.rules = rules }

  /// The rule that hits a notification at this place, if any.
  package func hit(_ place: Fault.Place, _ notification: Notification, at now: Instant)
    -> FaultRule?
  {
    rules.first { rule in
      if case .answerChannels = rule.fault.action { return false }
      return rule.fault.place == place && rule.fault.match.holds(notification)
        && rule.hits(at: now)
    }
  }

  /// The rule that answers a request about an app's channels, if any, and what it answers.
  package func hit(
    channelsOf bundle: Topic, at now: Instant
  ) -> (rule: FaultRule, refusal: ChannelRefusal)? {
    for rule in rules {
      let refusal: ChannelRefusal? =
        switch rule.fault.action {
        case .answer(let rejection): ChannelRefusal(reason: rejection.reason)
        case .answerChannels(let refusal): refusal
        case .delay, .drop, .reset, .duplicate, .goAway, .halfClose, .blackhole, .stall, .failWrite:
          nil
        }
      guard rule.fault.place == .provider, let refusal,
        rule.fault.match.holds(channelsOf: bundle), rule.hits(at: now)
      else { continue }
      return (rule, refusal)
    }
    return nil
  }

  /// The rule that hits a write of the journal, if any; it makes it fail or delays it.
  package func journalHit(failing: Bool, at now: Instant) -> FaultRule? {
    rules.first { rule in
      rule.fault.place == .journal && (rule.fault.action == .failWrite) == failing
        && rule.hits(at: now)
    }
  }
}

/// The faults of a relay.
package final class FaultBoard: Sendable {
  private struct Board {
    var rules: [String: FaultRule] = [:]
    var earlierHits = 0
  }

  private let board = Mutex(Board())

  package init() {}

  package var rules: [FaultRule] {
    board.withLock { board in board.rules.values.sorted { $0.name < $1.name } }
  }

  /// The hits of all faults, removed ones included.
  package var hitCount: Int {
    board.withLock { board in
      board.rules.values.reduce(board.earlierHits) { $0 + $1.tally.hit }
    }
  }

  /// Puts a fault in force, replacing one of the same name; false when there are too many.
  package func put(_ rule: FaultRule) -> Bool {
    board.withLock { board in
      guard board.rules.count < Limits.faults || board.rules[rule.name] != nil else { return false }
      board.earlierHits += board.rules[rule.name]?.tally.hit ?? 0
      board.rules[rule.name] = rule
      return true
    }
  }

  package func remove(_ name: String) -> Bool {
    board.withLock { board in
      guard let gone = board.rules.removeValue(forKey: name) else { return false }
      board.earlierHits += gone.tally.hit
      return true
    }
  }

  package var set: FaultSet? {
    let rules = rules
    return rules.isEmpty ? nil : FaultSet(rules: rules)
  }
}

/// An action of a fault.
package struct FaultHit: Sendable {
  package let at: Instant
  package let name: String
  package let place: Fault.Place
  package let action: String
  /// Of the notification; nil for the journal.
  package var uniqueID: UniqueID?
  package var topic: Topic?

  package init(
    at: Instant, name: String, place: Fault.Place, action: String, uniqueID: UniqueID? = nil,
    topic: Topic? = nil
  ) {
    (self.at, self.name, self.place, self.action) = (at, name, place, action)
    (self.uniqueID, self.topic) = (uniqueID, topic)
  }
}

/// Device tokens that the provider API always answers with a reason of their own: one for each row
/// of the table of refusals.
///
/// In hexadecimal, such a token is "reserved" in ASCII, then zeros, then the status and the row's
/// number within it: `7265736572766564…00041001` is the first of the 410s.
package enum ReservedToken {
  private static let mark: UInt64 = 0x7265_7365_7276_6564

  private static let rows: [UInt64: Rejection] = {
    var rows: [UInt64: Rejection] = [:]
    var counts: [UInt16: Int] = [:]
    for rejection in Rejection.allCases {
      counts[rejection.status, default: 0] += 1
      let digits = String(Int(rejection.status) * 100 + (counts[rejection.status] ?? 0))
      rows[UInt64(digits, radix: 16) ?? 0] = rejection
    }
    return rows
  }()

  /// The answer to a token; nil when it is not reserved.
  @inline(__always)
  package static func rejection(_ token: DeviceToken) -> Rejection? {
    guard token.words.0 == mark else { return nil }
    return row(token)
  }

  private static func row(_ token: DeviceToken) -> Rejection? {
    guard token.words.1 == 0, token.words.2 == 0 else { return nil }
    return rows[token.words.3]
  }

  package static func token(answering rejection: Rejection) -> String {
    let number = rows.first { $0.value == rejection }?.key ?? 0
    let digits = String(number, radix: 16)
    return String(mark, radix: 16) + String(repeating: "0", count: 48 - digits.count) + digits
  }
}
