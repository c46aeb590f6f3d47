import Primitives
package import RelayCore
import RelayStore

/// The JSON of `GET /v1/notifications/{id}`: what became of one push, step by step.
package struct NotificationLife: Encodable, Equatable, Sendable {
  package struct Step: Encodable, Equatable, Sendable {
    /// RFC 3339, for people.
    package var at: String
    /// The same in UNIX milliseconds.
    package var time: Int64
    package var step: String
    package var via: String?
    package var reason: String?
    /// What held it back, and until when (UNIX milliseconds) if time alone frees it.
    var limit: String?
    var until: Int64?
    var replacedBy: String?
    /// The first of what was sent again.
    var repeats: String?
    /// The push that a piggybacked one went along with, or in a word what else.
    var carriedBy: String?
    var carrier: String?
    var outcome: String?
    /// The fault that has acted; `reason` says how.
    var fault: String?
    /// The same as a sentence.
    package var text: String

    package init(_ event: DeliveryEvent) {
      at = event.at.iso8601
      time = event.at.milliseconds
      text = event.step.description
      switch event.step {
      case .received: step = "received"
      case .restored: step = "restored"
      case .sent(let via, let carrier):
        step = "sent"
        self.via = via.name
        if case .push(let id) = carrier { carriedBy = id.description }
        if case .line(let line) = carrier { self.carrier = line.name }
      case .storedOffline:
        step = "stored"
        reason = "device offline"
      case .storedPower(let until, let limit):
        step = "stored"
        reason = "power"
        self.limit = limit.name
        self.until = until?.milliseconds
      case .discarded(let reason):
        step = "discarded"
        self.reason = reason.name
        if case .replaced(let id) = reason { replacedBy = id.description }
        if case .repeated(let id) = reason { repeats = id.description }
      case .delivered: step = "delivered"
      case .outcome(let outcome):
        step = "outcome"
        self.outcome = outcome.description
      case .decided(.waits(let limit, let until)):
        step = "waiting"
        self.limit = limit.rawValue
        self.until = until?.milliseconds
      case .decided(.runs): step = "running"
      case .faulted(let mark):
        step = "fault"
        fault = mark.name
        reason = mark.action
      }
    }
  }

  package var uniqueId: String
  package var id: String
  package var topic: String
  var kind: String
  /// The last step that says where it is.
  package var state: String
  package var steps: [Step]
  /// What was odd about its payload or headers, a sentence each.
  package var warnings: [String]
  /// As its provider said.
  var traceparent: String?

  /// nil when the first step is not known any more, and so neither whose it is.
  package init?(_ events: [DeliveryEvent], note: PushNote = PushNote()) {
    guard let first = events.first(where: \.isReceived),
      case .received(let kind, let apnsID, _, let topic) = first.step
    else { return nil }
    uniqueId = first.uniqueID.description
    id = apnsID.description
    self.topic = topic.description
    self.kind = kind.name
    steps = events.map(Step.init)
    warnings = note.warnings.members.map(\.text)
    traceparent = note.traceParent?.description
    state = Step(events.last { !$0.step.isAside } ?? first).step
  }
}

extension DeliveryEvent {
  /// Whether a life begins with it; a fault may have acted before.
  var isReceived: Bool { if case .received = step { true } else { false } }
}

/// The JSON of `GET /v1/feedback`.
struct FeedbackPage: Encodable {
  struct Token: Encodable {
    var token: String
    var topic: String
    /// Since when it is no good, in UNIX milliseconds; as in the answer 410.
    var timestamp: Int64
  }

  var tokens: [Token]
  /// What to ask `since` next.
  var cursor: Int64
  /// Whether there is more to be had at once.
  var hasMore: Bool
}
