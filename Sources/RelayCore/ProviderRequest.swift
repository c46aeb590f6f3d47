package import Primitives

/// A provider's request head, read field by field, with its checks (docs/PROTOCOL.md, "Order of
/// checks").
///
/// Values are parsed as they arrive; the header block is not kept. A bad value is not yet an error:
/// the order of checks decides which mistake is reported.
///
/// The getters are `mutating` but change nothing: called from a mutating method of the owner, a
/// non-mutating one gets a copy of the whole head.
package struct ProviderRequestHead: Sendable {
  private enum Field<Value: Sendable>: Sendable {
    case absent
    case given(Value)
    case bad
  }

  private enum Path: Sendable {
    case bad
    case withoutToken
    /// nil if what follows the prefix is no device token.
    case token(DeviceToken?)
    case query(ProviderQuery)
    /// `ChannelRequest` reads it.
    case broadcast
  }

  private enum Method: Sendable {
    case get
    case post
    case other
  }

  private var method = Method.other
  private var path = Path.bad
  /// The fields so far.
  package private(set) var seen = CaseSet<FieldName>()
  private var hasDuplicates = false
  private var hasUnknownField = false
  private var apnsID = Field<UniqueID>.absent
  private var expiration = Field<Int64>.absent
  private var priority = Field<Priority>.absent
  private var collapseID = Field<[UInt8]>.absent
  private var pushType = Field<PushType>.absent
  private var topic = Field<Topic>.absent
  /// Bit n: character n of `apns-id` was a capital. Clients compare the echo byte by byte
  /// (docs/PROTOCOL.md, "What clients in the field send").
  package private(set) var apnsIDCapitals: UInt64 = 0

  /// nil if missing or unusable.
  package private(set) var traceParent: TraceParent?
  /// The service that the client asks, as far as it says one.
  package var environment: ProviderEnvironment?

  /// From the binary API, which has no push type to miss.
  private var isBinary = false

  package init() {}

  /// The head equivalent to a push of the binary provider API.
  package init(_ request: BinaryRequest) {
    method = .post
    path = .token(request.token)
    priority = .given(request.priority)
    if let seconds = request.expiration { expiration = .given(Int64(seconds)) }
    isBinary = true
  }

  /// nil if missing or unusable.
  package var providerID: UniqueID? {
    mutating get { if case .given(let id) = apnsID { id } else { nil } }
  }

  private mutating func payloadLimitBytes(for topic: Topic) -> Int {
    if case .given(let type) = pushType { return type.payloadLimitBytes }
    // Without the header, as before it existed, a VoIP app's topic tells.
    let isVoIP = PushType.voip.fits(topic: topic.bytes.span)
    return isVoIP ? PushType.voip.payloadLimitBytes : Limits.payloadBytes
  }

  /// nil if the request is a push.
  package var query: ProviderQuery? {
    mutating get { if case .query(let query) = path { query } else { nil } }
  }

  package var isBroadcast: Bool {
    mutating get { if case .broadcast = path { true } else { false } }
  }

  /// nil if missing or unusable.
  package var token: DeviceToken? {
    mutating get { if case .token(let token) = path { token } else { nil } }
  }

  /// nil if missing or unknown.
  package var givenPushType: PushType? {
    mutating get { if case .given(let type) = pushType { type } else { nil } }
  }

  /// Reads one header field; the caller checks `authorization`.
  ///
  /// - Parameters:
  ///   - recentTopic: the connection's last topic. Providers repeat it; sharing its bytes saves an
  ///     allocation.
  ///   - isReplacement: the value replaces that of an earlier request with the same field names.
  package mutating func parse(
    _ field: FieldName, _ value: Span<UInt8>, recentTopic: inout Topic?, isReplacement: Bool = false
  ) {
    if !isReplacement {
      if seen.contains(field), field != .traceParent { hasDuplicates = true }
      seen.insert(field)
    }
    switch field {
    case .method:
      let name = PackedName(value, 0..<value.count)
      method = name == Self.post ? .post : name == Self.get ? .get : .other
    case .path: path = Self.parsePath(value)
    case .apnsID: parseID(value)
    case .apnsExpiration: expiration = wholeNumber(value).map { .given($0) } ?? .bad
    case .apnsPriority: priority = Priority(wireValue: value).map { .given($0) } ?? .bad
    case .apnsTopic:
      // A part of a topic names a registration; no provider pushes to it.
      if recentTopic?.equals(value) != true, let new = Topic(value), new.whole == new {
        recentTopic = new
      }
      topic = recentTopic?.equals(value) == true ? .given(recentTopic!) : .bad
    case .apnsCollapseID:
      collapseID = value.count <= Limits.collapseIDBytes ? .given(value.array) : .bad
    case .apnsPushType: pushType = PushType(wireName: value).map { .given($0) } ?? .bad
    case .traceParent: traceParent = TraceParent(value)
    case .authorization, .contentType, .contentLength, .host, .authority: break
    }
  }

  /// A field that no `FieldName` has. Apple ignores it; one of Apple's kind is misspelt.
  package mutating func parseUnknown(_ name: Span<UInt8>) {
    if name.count > 5, PackedName(name, 0..<5) == Self.prefix { hasUnknownField = true }
  }

  /// Copies path, id and trace, a request's own values, from a head with otherwise equal fields.
  @inline(__always)
  package mutating func copyRequestValues(from head: inout ProviderRequestHead) {
    path = head.path
    apnsID = head.apnsID
    apnsIDCapitals = head.apnsIDCapitals
    traceParent = head.traceParent
  }

  /// The checks before the provider's authorization.
  package mutating func checkRequestLine() throws(Rejection) {
    switch path {
    case .bad, .broadcast: throw .badPath
    case .withoutToken: throw .missingDeviceToken
    case .token, .query: break
    }
    guard method == (query == nil ? .post : .get) else { throw .methodNotAllowed }
    guard !hasDuplicates else { throw .duplicateHeaders }
  }

  /// The checks after authorization. `defaultTopic` is a client certificate's, if it is the only
  /// one.
  package mutating func checkFields(
    defaultTopic: @autoclosure () -> Topic?
  ) throws(Rejection) -> Topic {
    if case .bad = apnsID { throw .badMessageID }
    if case .bad = expiration { throw .badExpirationDate }
    if case .bad = priority { throw .badPriority }
    if case .bad = collapseID { throw .badCollapseID }
    if case .bad = pushType { throw .invalidPushType }
    let chosen: Topic?
    switch topic {
    case .bad: throw .badTopic
    case .absent: chosen = defaultTopic()
    case .given(let topic): chosen = topic
    }
    guard let chosen else { throw .missingTopic }
    if case .given(let type) = pushType, !type.fits(topic: chosen.bytes.span) { throw .badTopic }
    return chosen
  }

  /// Checks body and device token, and makes the notification.
  ///
  /// - Parameters:
  ///   - isStrict: refuses a silent push of priority 10 and a missing push type (docs/PROTOCOL.md,
  ///     "Where Apple's text is silent").
  package mutating func notification(
    topic: Topic, body: consuming [UInt8], uniqueID: UniqueID, isStrict: Bool, at now: Instant,
    warnings: inout CaseSet<PayloadWarning>
  ) throws(Rejection) -> Notification {
    guard body.count <= payloadLimitBytes(for: topic) else { throw .payloadTooLarge }
    let scan: PayloadScan
    do {
      scan = try scanPayload(body.span)
    } catch .empty {
      throw .payloadEmpty
    } catch {
      throw .badRequestPayload
    }
    guard case .token(let parsed) = path, let token = parsed else { throw .badDeviceToken }
    guard token.isThere(for: environment) else { throw .badDeviceToken }
    var chosenPriority = Priority.immediate
    if case .given(let given) = priority { chosenPriority = given }
    let classification = Classification(
      scan, pushType: givenPushType, topic: topic.bytes.span, priority: chosenPriority)
    warnings = classification.warnings
    if isBinary { warnings.set(.pushTypeInferred, to: false) }
    if hasUnknownField { warnings.set(.unknownHeader, to: true) }
    if isStrict {
      if warnings.contains(.silentAtPriorityTen) { throw .badPriority }
      if warnings.contains(.pushTypeInferred) { throw .invalidPushType }
    }
    var seconds: Int64?
    if case .given(let given) = expiration {
      seconds = given
      let moment = Instant(unixSeconds: given)
      let isUsual = given == 0 || moment > now && moment < now + .days(366)
      if !isUsual { warnings.set(.unusualExpiration, to: true) }
    }
    var collapse: [UInt8] = []
    if case .given(let given) = collapseID { collapse = given }
    return Notification(
      uniqueID: uniqueID, apnsID: providerID ?? uniqueID, token: token, topic: topic,
      notificationClass: classification.kind, pushType: classification.pushType,
      priority: chosenPriority, wakesApp: classification.wakesApp,
      showsNothing: classification.showsNothing, collapseID: collapse,
      expiration: Expiration(unixSeconds: seconds, at: now), payload: body)
  }

  private mutating func parseID(_ value: Span<UInt8>) {
    apnsIDCapitals = 0
    guard let id = UniqueID(parsing: value) else {
      apnsID = .bad
      return
    }
    apnsID = .given(id)
    for index in 0..<value.count
    where value[index] >= UInt8(ascii: "A") && value[index] <= UInt8(ascii: "F") {
      apnsIDCapitals |= 1 << UInt64(index)
    }
  }

  private static func parsePath(_ value: Span<UInt8>) -> Path {
    let prefix = devicePrefix
    guard value.count >= prefix.count, PackedName(value, 0..<prefix.count) == prefix else {
      if starts(value, with: "/4/broadcasts/") { return .broadcast }
      return ProviderQuery(path: value).map { .query($0) } ?? .bad
    }
    guard value.count > prefix.count else { return .withoutToken }
    guard value[prefix.count] == UInt8(ascii: "/") else { return .bad }
    guard value.count > prefix.count + 1 else { return .withoutToken }
    let rest = value.extracting((prefix.count + 1)..<value.count)
    if let token = DeviceToken(hexadecimal: rest) { return .token(token) }
    for index in 0..<rest.count where rest[index] == UInt8(ascii: "/") { return .bad }
    return .token(nil)
  }

  private static let post = PackedName("POST")
  private static let get = PackedName("GET")
  private static let prefix = PackedName("apns-")
  private static let devicePrefix = PackedName("/3/device")
}

/// Parses up to 18 digits; nil for anything else.
func wholeNumber(_ value: Span<UInt8>) -> Int64? {
  guard (1...18).contains(value.count) else { return nil }
  var number: Int64 = 0
  for index in 0..<value.count {
    let digit = value[index] &- UInt8(ascii: "0")
    guard digit <= 9 else { return nil }
    number = number * 10 + Int64(digit)
  }
  return number
}

/// Queries of a provider. Ours, not Apple's: Apple shows the same in a console (Apple, "Viewing the
/// status of push notifications using Metrics and APNs") and had a feedback service.
package enum ProviderQuery: Hashable, Sendable {
  /// `GET /v1/notifications/{id}`, by unique id or `apns-id`.
  case notification(UniqueID)
  /// `GET /v1/feedback?since=CURSOR`: tokens unregistered since then.
  case feedback(since: Int64)

  init?(path: Span<UInt8>) {
    let (notifications, feedback) = ("/v1/notifications/", "/v1/feedback")
    if starts(path, with: notifications) {
      let rest = path.extracting(notifications.utf8.count..<path.count)
      guard let id = UniqueID(parsing: rest) else { return nil }
      self = .notification(id)
    } else if starts(path, with: feedback) {
      let rest = path.extracting(feedback.utf8.count..<path.count)
      let parameter = "?since="
      if rest.isEmpty {
        self = .feedback(since: 0)
      } else if starts(rest, with: parameter),
        let cursor = wholeNumber(rest.extracting(parameter.utf8.count..<rest.count))
      {
        self = .feedback(since: cursor)
      } else {
        return nil
      }
    } else {
      return nil
    }
  }
}

private func starts(_ path: Span<UInt8>, with text: String) -> Bool {
  let count = text.utf8.count
  return path.count >= count && path.extracting(0..<count).equals(text)
}
