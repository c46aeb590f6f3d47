import AdminAPI
import Hummingbird
import Primitives
import RelayCore
import RelayRequests
import RelayServer

/// The body of `POST /v1/wait`:
/// `{"expect":{"what":"delivered","push":"…"},"within":"1h","advance":true,"timeout":"10s"}`.
package struct WaitWish {
  /// The awaited event, in the words of the log and of scenarios.
  enum What: String, CaseIterable {
    case received, restored, sent, stored, held, delivered, discarded, replaced, expired, outcome
    /// A provider's request that did not become a push.
    case refused
    case connected, disconnected, registered

    /// True if it is a state of a device, not of a push.
    var isOfDevice: Bool { self == .connected || self == .disconnected || self == .registered }
  }

  /// All awaitable events, for people.
  package static var words: String { What.allCases.map(\.rawValue).joined(separator: ", ") }

  var what: What
  var push: UniqueID?
  var filter = Relay.LifeFilter()
  /// Conditions on the push's request.
  var match: RequestMatch?
  var via: String?
  var count = 1
  var never = false
  var within: Interval?
  /// When `within` is over: what happens later does not count. Set when the wait begins.
  var end: Instant?
  var advances = false
  var timeout = Interval.seconds(10)

  init(what: What, push: UniqueID?) {
    self.what = what
    self.push = push
  }

  init(_ bytes: [UInt8]) throws {
    let outer = try JSONMembers(bytes, known: ["expect", "within", "advance", "timeout"])
    let known: Set<String> = [
      "what", "push", "device", "topic", "kind", "via", "match", "count", "never",
    ]
    guard let inner = try outer.object("expect", known: known) else {
      throw Refusal.body(#"expect says what to wait for: {"what":"delivered"}"#, field: "expect")
    }
    let what: What = try Refusal.read(inner.text("what"), "expect.what", oneOf: \.rawValue)
    let push = try Refusal.read(
      inner.text("push"), "expect.push", "is an apns-id or apns-unique-id"
    ) { UniqueID($0) }
    self.init(what: what, push: push)
    filter.device = try Refusal.device(inner.text("device"), "expect.device")
    filter.topic = try Refusal.topic(inner.text("topic"), "expect.topic")
    filter.kind = try Refusal.kind(inner.text("kind"), "expect.kind")
    via = try inner.text("via")
    if via != nil { let _: Via = try Refusal.read(via, "expect.via", oneOf: \.name) }
    guard via == nil || what == .sent else {
      throw Refusal.body("via goes with sent: no other step has one", field: "expect.via")
    }
    match = try inner.object("match", known: Self.matchNames).map { try Self.match($0) }
    if what != .refused, match?.reason != nil || match?.status.map({ $0 != 200 }) == true {
      throw Refusal.body(
        "a push that is refused is never \(what.rawValue): wait for refused", field: "expect.match")
    }
    // A request may be refused for its topic or its type.
    if what != .refused { _ = try Refusal.topic(match?.topic, "expect.match.topic") }
    if what != .refused, let type = match?.pushType,
      !PushType.allCases.contains(where: { $0.wireName == type })
    {
      throw Refusal.body("pushType is a push type such as alert", field: "expect.match.pushType")
    }
    guard match == nil || !what.isOfDevice else {
      throw Refusal.body("match goes with what happens to pushes", field: "expect.match")
    }
    guard !what.isOfDevice || filter.device != nil else {
      throw Refusal.body("\(what.rawValue) needs the id of a device", field: "expect.device")
    }
    if let number = try inner.integer("count") {
      guard (1...1000).contains(number) else {
        throw Refusal.body("count is a whole number from 1 to 1000", field: "expect.count")
      }
      count = Int(number)
    }
    try checkStates()
    never = try inner.flag("never") ?? false
    advances = try outer.flag("advance") ?? false
    within = try Refusal.read(
      outer.text("within"), "within", "is a length of time such as 1h30m"
    ) { Interval($0) }
    if let text = try outer.text("timeout") { timeout = try Self.timeout(text) }
    guard !advances || within != nil else {
      throw Refusal.body("advance needs within: how far the clock may be moved", field: "within")
    }
  }

  /// A state of a device has no count; a refused request has no kind.
  private func checkStates() throws(Refusal) {
    if filter.kind != nil, what.isOfDevice || what == .refused {
      throw .body(
        "kind goes with what happens to pushes; of a request match.pushType is known",
        field: "expect.kind")
    }
    guard what.isOfDevice else { return }
    if count > 1 {
      throw .body(
        "count goes with what happens to pushes: \(what.rawValue) is a state",
        field: "expect.count")
    }
    if push != nil { throw .body("push goes with what happens to it", field: "expect.push") }
    if filter.topic != nil, what != .registered {
      throw .body("topic goes with registered and with pushes", field: "expect.topic")
    }
  }

  private static let matchNames: Set<String> = [
    "topic", "token", "pushType", "status", "reason", "headers", "payload",
  ]

  /// `{"topic":…,"headers":{"apns-priority":"5"},"payload":{"aps.badge":3}}`, where the payload may
  /// be conditions as of queries, too: `["aps.badge=3","aps.alert.title~hello"]`.
  private static func match(_ members: JSONMembers) throws -> RequestMatch {
    var match = RequestMatch()
    match.topic = try Refusal.read(members.text("topic"), "expect.match.topic", "is a topic") {
      $0.isEmpty ? nil : $0
    }
    match.tokens = try Refusal.token(members.text("token"), "expect.match.token").map { [$0] }
    match.pushType = try members.text("pushType")
    match.status = try Refusal.status(
      members.integer("status").map(String.init), "expect.match.status")
    match.reason = try Refusal.reason(members.text("reason"), "expect.match.reason")
    match.headers = try members.members(of: "headers").map { name, value in
      // A number is written as in the header.
      (name.lowercased(), value.text ?? String(decoding: value.source, as: UTF8.self))
    }
    switch members.value("payload")?.value {
    case nil: break
    case .object?:
      match.payload = try members.members(of: "payload").map { path, value in
        PayloadCondition(PayloadPath(path), .equals(value))
      }
    case .list(let texts)?:
      match.payload = try texts.map { text in
        guard let text = text.text, !text.isEmpty else {
          throw Refusal.body(
            "in a list each condition is a text such as aps.badge=3", field: "expect.match.payload")
        }
        return PayloadCondition(text)
      }
    case .text?, .number?, .flag?, .null?:
      throw Refusal.body(
        #"payload is an object, or a list of conditions such as ["aps.badge=3"]"#,
        field: "expect.match.payload")
    }
    return match
  }

  static func timeout(_ text: String) throws(Refusal) -> Interval {
    guard let timeout = Interval(text), timeout <= .minutes(10) else {
      throw .body("timeout is a length of the machine's time, at most 10m", field: "timeout")
    }
    return timeout
  }

  /// Returns whether an item may meet this wait, so that it must look again.
  ///
  /// - Parameter known: the push's unique id, once it is known.
  func mayMatter(_ item: FeedItem, _ known: UniqueID?) -> Bool {
    switch item {
    case .life(let event):
      guard let push, !what.isOfDevice else { return !what.isOfDevice }
      if event.uniqueID == push || event.uniqueID == known { return true }
      guard case .received(_, let apnsID, _, _) = event.step else { return false }
      return apnsID == push
    case .device(let change): return what.isOfDevice && change.device == filter.device
    case .fault, .policy: return false
    case .rewound, .gap: return true
    }
  }

  func matches(_ step: NotificationLife.Step) -> Bool {
    guard via == nil || step.via == via else { return false }
    if let end, step.time > end.milliseconds { return false }
    return switch what {
    case .received, .restored, .sent, .stored, .delivered, .discarded, .outcome:
      step.step == what.rawValue
    case .refused: false
    case .held: step.step == "stored" && step.reason == "power considerations"
    case .replaced, .expired: step.step == "discarded" && step.reason == what.rawValue
    case .connected, .disconnected, .registered: false
    }
  }
}
