import Primitives
import RelayCore

/// The provider's side: what is posted goes through the very checks that a request over the network
/// goes through, all but the provider's token.
extension Simulation {
  /// Posts a push to an app and answers how to ask for it later. Whether the relay took it stands
  /// in `life(of:)`.
  @discardableResult
  public mutating func push(
    _ payload: Payload, to app: AppHandle, _ options: PushOptions = PushOptions()
  ) -> PushHandle {
    let index = Int32(pushes.count)
    pushes.append(
      PushEntry(
        app: app.number, name: options.name, payload: payload,
        collapseID: options.collapseID ?? "", postedAt: time))
    guard isRelayUp else {
      unanswered(Int(index), "the relay is down")
      return PushHandle(index: index)
    }
    do throws(Rejection) {
      let notification = try notification(index, payload, options)
      pushes[Int(index)].notificationClass = notification.notificationClass
      pushes[Int(index)].wakesApp = notification.wakesApp
      let request = RequestID(loop: 0, connection: UInt32(index), stream: 1)
      tellRelay(.submitted(notification, from: request))
    } catch {
      pushes[Int(index)].answer = .given(.rejected(error))
      refused(Int(index), error.status, error.reason)
    }
    return PushHandle(index: index)
  }

  private func notification(
    _ index: Int32, _ payload: Payload, _ options: PushOptions
  ) throws(Rejection) -> Notification {
    let app = apps[Int(pushes[Int(index)].app)]
    var head = ProviderRequestHead()
    var recent: Topic? = app.topic == .vacant ? nil : app.topic
    head.take(.method, Array("POST".utf8).span, recentTopic: &recent)
    head.take(.path, app.path.span, recentTopic: &recent)
    let topic = options.topic.map { Array($0.utf8) } ?? Array(app.name.utf8)
    head.take(.apnsTopic, topic.span, recentTopic: &recent)
    var expiration: Int64?
    if let after = options.expiresAfter {
      let moment = instant.milliseconds + after.simulatedMilliseconds
      expiration = after == .zero ? 0 : (moment + 999) / 1000
    }
    let fields: [(FieldName, String?)] = [
      (.apnsPushType, options.type), (.apnsPriority, options.priority.map(String.init)),
      (.apnsExpiration, expiration.map(String.init)), (.apnsCollapseID, options.collapseID),
    ]
    for case (let field, let value?) in fields {
      head.take(field, Array(value.utf8).span, recentTopic: &recent)
    }
    try head.checkRequestLine()
    let checked = try head.checkFields(defaultTopic: nil)
    guard payload.bytes.count <= head.payloadLimitBytes else { throw .payloadTooLarge }
    var warnings = CaseSet<PayloadWarning>()
    return try head.notification(
      topic: checked, body: payload.bytes, uniqueID: uniqueID(index), isStrict: false,
      at: instant, warnings: &warnings)
  }
}

/// A push that was posted.
struct PushEntry: Sendable {
  let app: Int32
  let name: String?
  let payload: Payload
  let collapseID: String
  let postedAt: Int64
  /// When a real relay accepted it, in milliseconds since the epoch.
  var acceptedAt: Int64?
  /// What the relay made of it; a push that it refused shows and wakes nothing.
  var notificationClass = NotificationClass.silent
  var wakesApp = false
  var answer = PushAnswer.awaited
  /// Given by a real relay, and what the trace says of it when it arrives.
  var id: UniqueID?
  var told = ""
}

/// What its provider has heard.
enum PushAnswer: Sendable {
  case awaited
  case given(ProviderAnswer)
  /// Nothing, and never will: why.
  case missing(String)
}

/// What stands in the head of a request. What is nil is not sent.
public struct PushOptions: Hashable, Sendable {
  /// By which the timeline and a scenario call it.
  public var name: String?
  /// `apns-push-type`.
  public var type: String?
  /// `apns-priority`.
  public var priority: Int?
  /// For `apns-expiration`: so long after it was posted; zero for one attempt, nothing stored.
  public var expiresAfter: Duration?
  /// `apns-collapse-id`.
  public var collapseID: String?
  /// `apns-topic`, when it is not the app's name.
  public var topic: String?

  public init(
    name: String? = nil, type: String? = nil, priority: Int? = nil, expiresAfter: Duration? = nil,
    collapseID: String? = nil, topic: String? = nil
  ) {
    self.name = name
    self.type = type
    self.priority = priority
    self.expiresAfter = expiresAfter
    self.collapseID = collapseID
    self.topic = topic
  }
}

/// How many silent pushes the relay lets through. The rule is push-relay's own; Apple's is not
/// published.
public struct RelayPolicy: Hashable, Sendable {
  let policy: SilentPolicy

  /// 3 at once per app, then one every 20 minutes; 12 at once per phone, then one every 5.
  public static let documented = RelayPolicy(policy: .documented)
  /// One at once per app, then one an hour; 2 at once per phone, then one every 30 minutes.
  public static let strict = RelayPolicy(policy: .strict)
  /// Everything goes through.
  public static let unlimited = RelayPolicy(policy: .unlimited)

  /// So many pushes in a time.
  public struct Rate: Hashable, Sendable {
    public var count: Int
    public var per: Duration
    /// At once, after a quiet time.
    public var burst: Int

    public init(_ count: Int, per: Duration, burst: Int) {
      self.count = count
      self.per = per
      self.burst = burst
    }

    var limit: RateLimit {
      let (count, burst) = (min(max(1, count), 1_000_000), min(max(1, burst), 1000))
      return RateLimit(
        Int64(count), per: .milliseconds(max(1, per.simulatedMilliseconds)), burst: Int64(burst))
    }
  }

  /// A rule of one's own; nil is no limit.
  public static func custom(perApp: Rate?, perPhone: Rate?) -> RelayPolicy {
    RelayPolicy(
      policy: SilentPolicy(
        name: "custom", perApp: perApp?.limit, perDevice: perPhone?.limit))
  }

  /// A shipped policy.
  static func named(_ name: String) -> RelayPolicy? {
    SilentPolicy.named.first { $0.name == name }.map(RelayPolicy.init(policy:))
  }

  private init(policy: SilentPolicy) { self.policy = policy }
}
