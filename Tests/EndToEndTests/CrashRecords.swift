import Foundation
import RelayCore

/// An app as its provider sees it: one device token, from its registration to its end.
struct CrashApp: Sendable {
  /// What the relay was last told about it, and what it has answered.
  enum Phase: Equatable, Sendable {
    case registered
    /// `DELETE` was sent and not answered: it may have happened.
    case leaving(since: Int)
    /// `DELETE` was answered.
    case gone(since: Int, atMilliseconds: Int64)
  }

  let device: Int
  let topic: String
  let token: String
  var phase = Phase.registered
  /// Numbers of pushes whose fate is open, or decides that of others, by class.
  var open: [String: [Int]] = ["visible": [], "silent": []]
  /// When the newest push that was delivered had begun, by class.
  var newestDelivered: [String: Int] = [:]
  /// What was said of it, and when, for whoever wonders how it came to this.
  var history: [String] = []

  var isGone: Bool { if case .gone = phase { true } else { false } }
}

/// A push, and all that is known of it. The test numbers pushes; the number is in the payload.
struct CrashPush: Sendable {
  enum Answer: Equatable, Sendable {
    /// Not answered yet.
    case none
    /// The relay died before it answered.
    case lost
    case refused(status: Int)
    case accepted
  }

  let app: Int
  let isSilent: Bool
  /// `apns-expiration`; nil: stored for long, 0: never stored.
  let expirationSeconds: Int64?
  /// The provider's own `apns-id`, then what the relay says it is.
  var id: UniqueID?
  var uniqueID: UniqueID?
  /// Moments of the ledger, not of a clock.
  let begun: Int
  var ended = Int.max
  var answer = Answer.none
  /// In which life of the relay it was posted.
  let life: Int
  var deliveries = 0
  /// It was answered 200, not delivered, and rightly so.
  var isSettled = false
  /// The life of the relay in which it surely took an acknowledgement.
  var confirmedLife: Int?

  var className: String { isSilent ? "silent" : "visible" }
  var isStorable: Bool { expirationSeconds != 0 }
  var expiresAtMilliseconds: Int64? { expirationSeconds.map { $0 * 1000 } }

  func hasExpired(at milliseconds: Int64) -> Bool {
    expiresAtMilliseconds.map { $0 <= milliseconds } ?? false
  }

  /// The payload of a number, of a length of its own, so that it can be made anew and compared.
  static func payload(_ number: Int, isSilent: Bool) -> String {
    let length = (number &* 7919) % (number % 16 == 0 ? 3000 : 120)
    let aps = isSilent ? #"{"content-available":1}"# : #"{"alert":"Goal"}"#
    return #"{"n":\#(number),"aps":\#(aps),"fill":"\#(String(repeating: "x", count: length))"}"#
  }

  /// The number in such a payload.
  static func number(in payload: String) -> Int? {
    guard payload.hasPrefix(#"{"n":"#) else { return nil }
    return Int(payload.dropFirst(5).prefix { $0.isNumber })
  }
}

/// What happened how often.
struct CrashCounts: Sendable {
  var posts = 0
  var accepted = 0
  var lost = 0
  var unavailable = 0
  var unregisteredAnswers = 0
  /// Pushes that were delivered, each counted once.
  var delivered = 0
  /// Deliveries of what had been delivered before: not acknowledged, then acknowledged but the
  /// relay had died, then those whose acknowledgement it had surely taken.
  var again = 0
  var againAfterAnswer = 0
  var replaced = 0
  var expired = 0
  var neverStored = 0
  var unregistered = 0
  /// Pushes without an answer that came all the same.
  var deliveredWithoutAnswer = 0
  /// Moments at which everything answered 200 had to be accounted for.
  var checkpoints = 0
  var devices = 0
  var registrations = 0
  var removals = 0
  var kills = 0
  var killsWhileStarting = 0
  var terminations = 0
  var starts: [Duration] = []
  var journalBytes = 0
}

extension CrashCounts: CustomStringConvertible {
  var description: String {
    let milliseconds = starts.map { Int($0 / .milliseconds(1)) }.sorted()
    let median = milliseconds.isEmpty ? 0 : milliseconds[milliseconds.count / 2]
    return """
      \(kills) kills (\(killsWhileStarting) while starting), \(terminations) times SIGTERM, \
      start to ready in the median \(median) ms, at most \(milliseconds.last ?? 0) ms; \
      \(posts) posts: \(accepted) answered 200, \(unregisteredAnswers) 410, \(unavailable) 503, \
      \(lost) not answered; of those answered 200, replaced \(replaced), expired \(expired), \
      never to be stored \(neverStored), app removed \(unregistered); delivered \(delivered) \
      (\(deliveredWithoutAnswer) without an answer), again \(again) and after an acknowledgement \
      that was taken before a crash \(againAfterAnswer); \(checkpoints) checkpoints; \
      \(devices) devices, \(registrations) registrations, \(removals) removals; \
      journal \(journalBytes) bytes
      """
  }
}
