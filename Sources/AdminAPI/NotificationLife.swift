import Primitives
package import RelayCore

/// The steps of one push: the answer to `GET /v1/notifications/{id}` of both APIs.
package struct NotificationLife: Codable, Equatable, Sendable {
  package struct Step: Codable, Equatable, Sendable {
    /// RFC 3339.
    package var at: String
    /// UNIX milliseconds.
    package var time: Int64
    package var step: String
    package var via: String?
    package var reason: String?
    /// The limit that held it back, and until when (UNIX milliseconds) if only time frees it.
    package var limit: String?
    package var until: Int64?
    package var replacedBy: String?
    /// The first of the repeated pushes.
    package var repeats: String?
    /// The push that a piggybacked one went along with, or the kind of line.
    package var carriedBy: String?
    package var carrier: String?
    package var outcome: String?
    /// The fault that acted; `reason` has the action.
    package var fault: String?
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
        reason = "power considerations"
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
  package var kind: String
  /// The last step that tells where it is.
  package var state: String
  package var steps: [Step]
  /// Oddities of its payload and headers, a sentence each.
  package var warnings: [String]
  package var traceparent: String?
  // Only in the admin API: providers are told nothing about devices.
  package var device: String?
  /// The device's name.
  package var phone: String?
  package var sentence: String?
  /// Of a held one, and of one that the phone lets wait.
  package var waits: Waits?
  /// The token of the device's app; empty when the app is gone.
  package var token: String?
  /// As it was sent, if the relay keeps requests and still has this one; not in lists.
  package var request: RequestStatus?

  /// nil when the first step, which has its owner, is no longer known.
  package init?(
    _ events: [DeliveryEvent], warnings: CaseSet<PayloadWarning> = CaseSet(),
    traceParent: TraceParent? = nil
  ) {
    guard let first = events.first(where: \.isReceived),
      case .received(let kind, let apnsID, _, let topic) = first.step
    else { return nil }
    uniqueId = first.uniqueID.description
    id = apnsID.description
    self.topic = topic.description
    self.kind = kind.name
    steps = events.map(Step.init)
    self.warnings = warnings.members.map(\.text)
    traceparent = traceParent?.description
    state = Step(events.last { !$0.step.isAside } ?? first).step
  }
}

extension DeliveryEvent {
  /// True if it begins a life; only a fault may have acted before.
  package var isReceived: Bool { if case .received = step { true } else { false } }
}

/// The answer to `GET /v1/notifications` of the admin API.
package struct NotificationList: Codable, Sendable {
  package var cursor: String
  package var hasMore: Bool
  package var notifications: [NotificationLife]

  package init(cursor: String, hasMore: Bool, notifications: [NotificationLife]) {
    (self.cursor, self.hasMore, self.notifications) = (cursor, hasMore, notifications)
  }
}

/// The answer to `POST /v1/wait` when it was met; `at` in UNIX milliseconds.
package struct WaitAnswer: Codable, Sendable {
  package var met = true
  package var at: Int64
  package var relayTime: String
  package var events: [NotificationLife.Step]
  /// The ids of those that were refused, where that was awaited.
  package var requests: [String]?

  package init(
    at: Int64, relayTime: String, events: [NotificationLife.Step] = [], requests: [String]? = nil
  ) {
    (self.at, self.relayTime, self.events, self.requests) = (at, relayTime, events, requests)
  }
}
