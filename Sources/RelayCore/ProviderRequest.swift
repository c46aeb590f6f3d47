package import Primitives

/// The head of a provider's request while it is read, field by field, and the checks on it in the
/// order of docs/PROTOCOL.md, "Order of checks".
///
/// Values are parsed as they come, so that nothing of the header block is kept. A bad value is not
/// an error yet: the order of checks decides which of several mistakes the provider hears of.
///
/// The questions are `mutating` and change nothing: one that is not is handed a copy of the head,
/// with all that it refers to, when a mutating method of its owner calls it.
package struct ProviderRequestHead: Sendable {
  private enum Field<Value: Sendable>: Sendable {
    case absent
    case given(Value)
    case bad
  }

  private enum Path: Sendable {
    case bad
    case withoutToken
    /// nil when what follows the prefix is no device token.
    case token(DeviceToken?)
    case query(ProviderQuery)
  }

  private enum Method: Sendable {
    case get
    case post
    case other
  }

  private var method = Method.other
  private var path = Path.bad
  private var seen = CaseSet<FieldName>()
  private var hasDuplicates = false
  private var apnsID = Field<UniqueID>.absent
  private var expiration = Field<Int64>.absent
  private var priority = Field<Priority>.absent
  private var collapseID = Field<[UInt8]>.absent
  private var pushType = Field<PushType>.absent
  private var topic = Field<Topic>.absent
  /// Which characters of `apns-id` were capitals, from bit 0. Clients compare the echo byte by byte
  /// (docs/PROTOCOL.md, "What clients in the field send").
  package private(set) var apnsIDCapitals: UInt64 = 0

  /// What it is a part of, if it says so in a usable way.
  package private(set) var traceParent: TraceParent?

  /// Whether it never had a header, so that a push type is not missing.
  private var isBinary = false

  package init() {}

  /// The head that a push of the binary provider API would have had.
  package init(_ request: BinaryRequest) {
    method = .post
    path = .token(request.token)
    priority = .given(request.priority)
    if let seconds = request.expiration { expiration = .given(Int64(seconds)) }
    isBinary = true
  }

  /// The provider's id, if it gave a usable one.
  package var providerID: UniqueID? {
    mutating get { if case .given(let id) = apnsID { id } else { nil } }
  }

  /// The most that this request's body may have, in bytes.
  package var payloadLimitBytes: Int {
    mutating get {
      if case .given(let type) = pushType { type.payloadLimitBytes } else { Limits.payloadBytes }
    }
  }

  /// What is asked for, when the request is not a push.
  package var query: ProviderQuery? {
    mutating get { if case .query(let query) = path { query } else { nil } }
  }

  /// The push type, if a known one was given.
  package var givenPushType: PushType? {
    mutating get { if case .given(let type) = pushType { type } else { nil } }
  }

  /// Takes one field of the header block; `authorization` is the caller's to check.
  ///
  /// - Parameters:
  ///   - recentTopic: what the connection saw last. A provider sends the same one again and again;
  ///     sharing its bytes saves an allocation per request.
  ///   - isReplacement: this head was that of an earlier request whose fields had the same names;
  ///     the value takes the place of the earlier one's.
  package mutating func take(
    _ field: FieldName, _ value: Span<UInt8>, recentTopic: inout Topic?,
    isReplacement: Bool = false
  ) {
    if !isReplacement {
      if seen.contains(field) { hasDuplicates = true }
      seen.insert(field)
    }
    switch field {
    case .method:
      let name = PackedName(value, 0..<value.count)
      method = name == Self.post ? .post : name == Self.get ? .get : .other
    case .path: path = Self.parsePath(value)
    case .apnsID: takeID(value)
    case .apnsExpiration:
      expiration = wholeNumber(value).map { .given($0) } ?? .bad
    case .apnsPriority: priority = Priority(wireValue: value).map { .given($0) } ?? .bad
    case .apnsTopic:
      if recentTopic?.equals(value) != true, let new = Topic(value) { recentTopic = new }
      topic = recentTopic?.equals(value) == true ? .given(recentTopic!) : .bad
    case .apnsCollapseID:
      collapseID = value.count <= Limits.collapseIDBytes ? .given(Self.copy(value)) : .bad
    case .apnsPushType: pushType = PushType(wireName: value).map { .given($0) } ?? .bad
    case .traceParent: traceParent = TraceParent(value)
    case .authorization, .contentType, .contentLength, .host: break
    }
  }

  /// Takes over what is a request's own, path, id and trace, from a head that says the same
  /// otherwise.
  @inline(__always)
  package mutating func takeOwn(from head: inout ProviderRequestHead) {
    path = head.path
    apnsID = head.apnsID
    apnsIDCapitals = head.apnsIDCapitals
    traceParent = head.traceParent
  }

  /// The checks that come before the provider's right to push is looked at.
  package mutating func checkRequestLine() throws(Rejection) {
    switch path {
    case .bad: throw .badPath
    case .withoutToken: throw .missingDeviceToken
    case .token, .query: break
    }
    guard method == (query == nil ? .post : .get) else { throw .methodNotAllowed }
    guard !hasDuplicates else { throw .duplicateHeaders }
  }

  /// The checks that come after it, up to the topic; returns the topic.
  ///
  /// - Parameter defaultTopic: the one that a client certificate implies, if it names just one.
  package mutating func checkFields(
    defaultTopic: @autoclosure () -> Topic?
  ) throws(Rejection) -> Topic {
    if case .bad = apnsID { throw .badMessageID }
    if case .bad = expiration { throw .badExpirationDate }
    if case .bad = priority { throw .badPriority }
    if case .bad = collapseID { throw .badCollapseID }
    if case .bad = pushType { throw .invalidPushType }
    switch topic {
    case .bad: throw .badTopic
    case .absent:
      guard let defaultTopic = defaultTopic() else { throw .missingTopic }
      return defaultTopic
    case .given(let topic):
      if case .given(let type) = pushType, !type.fits(topic: topic.bytes.span) { throw .badTopic }
      return topic
    }
  }

  /// The checks on body and device token; what they leave is a notification.
  ///
  /// - Parameters:
  ///   - body: all of it, at most `payloadLimitBytes`; the caller has refused longer ones.
  ///   - uniqueID: the relay's name for it.
  ///   - isStrict: refuse a silent push of priority 10 and a missing push type (docs/PROTOCOL.md,
  ///     "Where Apple's text is silent").
  package mutating func notification(
    topic: Topic, body: consuming [UInt8], uniqueID: UniqueID, isStrict: Bool, at now: Instant,
    warnings: inout CaseSet<PayloadWarning>
  ) throws(Rejection) -> Notification {
    let scan: PayloadScan
    do {
      scan = try scanPayload(body.span)
    } catch .empty {
      throw .payloadEmpty
    } catch {
      throw .badRequestPayload
    }
    guard case .token(let parsed) = path, let token = parsed else { throw .badDeviceToken }
    var chosenPriority = Priority.immediate
    if case .given(let given) = priority { chosenPriority = given }
    let classification = Classification(
      scan, pushType: givenPushType, topic: topic.bytes.span, priority: chosenPriority)
    warnings = classification.warnings
    if isBinary { warnings.set(.pushTypeInferred, to: false) }
    if isStrict {
      if warnings.contains(.silentAtPriorityTen) { throw .badPriority }
      if warnings.contains(.pushTypeInferred) { throw .invalidPushType }
    }
    var seconds: Int64?
    if case .given(let given) = expiration { seconds = given }
    var collapse: [UInt8] = []
    if case .given(let given) = collapseID { collapse = given }
    return Notification(
      uniqueID: uniqueID, apnsID: providerID ?? uniqueID, token: token, topic: topic,
      notificationClass: classification.kind, pushType: classification.pushType,
      priority: chosenPriority, wakesApp: classification.wakesApp,
      showsNothing: classification.showsNothing, collapseID: collapse,
      expiration: Expiration(unixSeconds: seconds, at: now), payload: body)
  }

  // MARK: Values

  private mutating func takeID(_ value: Span<UInt8>) {
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
  private static let devicePrefix = PackedName("/3/device")

  private static func copy(_ value: Span<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(value.count)
    for index in 0..<value.count { bytes.append(value[index]) }
    return bytes
  }
}

/// A whole number without sign, blanks or fraction; nil for anything else.
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

/// Whether the bytes are exactly this text.
func matches(_ value: Span<UInt8>, _ text: String) -> Bool {
  let expected = text.utf8
  guard value.count == expected.count else { return false }
  var index = 0
  for character in expected {
    guard value[index] == character else { return false }
    index += 1
  }
  return true
}

/// What a provider may ask besides pushing. Ours, not Apple's: Apple shows the same in a console
/// (Apple, "Viewing the status of push notifications using Metrics and APNs") and used to have a
/// feedback service.
package enum ProviderQuery: Hashable, Sendable {
  /// `GET /v1/notifications/{id}`: the life of the one with this unique id or `apns-id`.
  case notification(UniqueID)
  /// `GET /v1/feedback?since=CURSOR`: the tokens that were unregistered since.
  case feedback(since: Int64)

  /// Reads a path; nil when it is none of these.
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
  return path.count >= count && matches(path.extracting(0..<count), text)
}
