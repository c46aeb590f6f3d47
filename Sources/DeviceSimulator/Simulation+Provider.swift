import DeviceModel
import Primitives
import RelayCore

/// The provider's side, with all checks of a network request but the provider's token.
extension Simulation {
  /// Posts a push; `life(of:)` tells whether the relay accepted it.
  @discardableResult
  public mutating func push(
    _ payload: Payload, to app: AppHandle, _ options: PushOptions = PushOptions()
  ) -> PushHandle {
    let index = Int32(pushes.count)
    pushes.append(
      PushEntry(
        app: app.number, name: options.name, payload: payload,
        collapseID: options.collapseID ?? "", postedAt: time))
    pushes[Int(index)].activity = address(payload, options)
    guard isRelayUp else {
      unanswered(Int(index), "the relay is down")
      return PushHandle(index: index)
    }
    if options.channel != nil {
      pushes[Int(index)].priority =
        options.priority.flatMap { Priority(rawValue: UInt8(clamping: $0)) } ?? .immediate
      broadcast(index, options)
      return PushHandle(index: index)
    }
    if let address = pushes[Int(index)].activity,
      apps[Int(app.number)].activityTokens[address] == nil
    {
      unanswered(Int(index), "its server has no token \(address.part)")
      return PushHandle(index: index)
    }
    do throws(Rejection) {
      let notification = try notification(index, payload, options)
      pushes[Int(index)].adopt(notification)
      pushes[Int(index)].wakesApp = notification.wakesApp
      let request = RequestID(loop: 0, connection: ConnectionNumber(UInt32(index)), stream: 1)
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
    let token = pushes[Int(index)].activity.flatMap { app.activityTokens[$0] }
    var head = ProviderRequestHead()
    var recent: Topic? = app.topic == .vacant ? nil : app.topic
    head.parse(.method, Array("POST".utf8).span, recentTopic: &recent)
    let path = token.map(AppEntry.path) ?? app.path
    head.parse(.path, path.span, recentTopic: &recent)
    let usual = token == nil ? app.name : app.name + Self.activityTopic
    let topic = Array((options.topic ?? usual).utf8)
    head.parse(.apnsTopic, topic.span, recentTopic: &recent)
    let fields: [(FieldName, String?)] = [
      (.apnsPushType, options.type ?? (token == nil ? nil : PushType.liveactivity.wireName)),
      (.apnsPriority, options.priority.map(String.init)),
      (.apnsExpiration, options.expiration(at: instant).map(String.init)),
      (.apnsCollapseID, options.collapseID),
    ]
    for case (let field, let value?) in fields {
      head.parse(field, Array(value.utf8).span, recentTopic: &recent)
    }
    try head.checkRequestLine()
    let checked = try head.checkFields(defaultTopic: nil)
    var warnings = CaseSet<PayloadWarning>()
    return try head.notification(
      topic: checked, body: payload.bytes, uniqueID: uniqueID(index), isStrict: false,
      at: instant, warnings: &warnings)
  }
}

struct PushEntry: Sendable {
  let app: Int32
  let name: String?
  let payload: Payload
  let collapseID: String
  let postedAt: Int64
  /// By a real relay, in milliseconds since the epoch.
  var acceptedAt: Int64?
  /// `apns-expiration`, in milliseconds since the epoch; nil for a single attempt, which it was.
  var expiresAt: Int64?
  /// Set once the relay accepts the push.
  var notificationClass = NotificationClass.silent
  var wakesApp = false
  /// To the token of a Live Activity, to start one, or a broadcast.
  var activity: ActivityAddress?
  var priority = Priority.immediate
  var type = PushType.alert
  var answer = PushAnswer.awaited
  /// From a real relay: the id, and the text for the trace.
  var id: UniqueID?
  var told = ""

  mutating func adopt(_ notification: Notification) {
    notificationClass = notification.notificationClass
    (priority, type) = (notification.priority, notification.pushType)
    if case .at(let end) = notification.expiration { expiresAt = end.milliseconds }
  }
}

enum PushAnswer: Sendable {
  case awaited
  case given(ProviderAnswer)
  /// There will be no answer; the reason.
  case missing(String)
}

/// The `apns-` header fields of a request; nil ones are not sent.
public struct PushOptions: Hashable, Sendable {
  /// For the timeline and for scenarios.
  public var name: String?
  public var type: String?
  public var priority: Int?
  /// Time to `apns-expiration`; zero for a single attempt, nothing stored.
  public var expiresAfter: Duration?
  public var collapseID: String?
  /// `apns-topic`, if not the app's name.
  public var topic: String?
  /// To the token of this Live Activity: the n-th of the app on its phone.
  public var activity: Int?
  /// Broadcast to this channel, by its id, of an app of that name on any phone.
  public var channel: String?

  public init(
    name: String? = nil, type: String? = nil, priority: Int? = nil, expiresAfter: Duration? = nil,
    collapseID: String? = nil, topic: String? = nil, activity: Int? = nil, channel: String? = nil
  ) {
    self.activity = activity
    self.channel = channel
    self.name = name
    self.type = type
    self.priority = priority
    self.expiresAfter = expiresAfter
    self.collapseID = collapseID
    self.topic = topic
  }

  /// `apns-expiration`.
  func expiration(at now: Instant) -> Int64? {
    expiresAfter.map { after in
      after == .zero ? 0 : (now.milliseconds + after.simulatedMilliseconds + 999) / 1000
    }
  }
}

/// The limit on silent pushes. The rule is push-relay's own; Apple's is not published.
public struct RelayPolicy: Hashable, Sendable {
  let policy: SilentPolicy

  /// 3 at once per app, then one every 20 minutes; 12 at once per phone, then one every 5.
  public static let documented = RelayPolicy(policy: .documented)
  /// One at once per app, then one an hour; 2 at once per phone, then one every 30 minutes.
  public static let strict = RelayPolicy(policy: .strict)
  public static let unlimited = RelayPolicy(policy: .unlimited)

  /// A rate limit.
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

  /// Nil means no limit.
  public static func custom(perApp: Rate?, perPhone: Rate?) -> RelayPolicy {
    RelayPolicy(policy: SilentPolicy(perApp: perApp?.limit, perDevice: perPhone?.limit))
  }

  init(policy: SilentPolicy) { self.policy = policy }
}
