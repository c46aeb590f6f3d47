/// A request about channels, read from its header fields and its body: what is wanted, or what is
/// wrong with it. Pure; the registry then decides (`ChannelRegistry`).
///
/// Order of checks: path, method, `apns-request-id`; then the caller the credentials; then the
/// fields, then the body, then the channel.
package struct ChannelRequest: Sendable {
  package enum Operation: Hashable, CaseIterable, Sendable {
    case create, read, delete, list, broadcast
  }

  private var method: [UInt8] = []
  private var path: [UInt8] = []
  private var channelID: [UInt8]?
  private var pushType: [UInt8]?
  private var priority: [UInt8]?
  private var expiration: [UInt8]?
  /// As it came; answers repeat it.
  package private(set) var requestID: [UInt8]?
  package private(set) var authorization: [UInt8] = []

  package init() {}

  /// All that is to be kept of one that is refused: what the answer repeats.
  package init(answering refused: ChannelRequest) {
    guard let id = refused.requestID, UniqueID(parsing: id.span) != nil else { return }
    requestID = id
  }

  /// Reads a field; the last of a name counts, unknown ones do not.
  package mutating func parse(_ name: Span<UInt8>, _ value: Span<UInt8>) {
    if name.says(":method") {
      method = value.array
    } else if name.says(":path") {
      path = value.array
    } else if name.says("authorization") {
      authorization = value.array
    } else if name.says("apns-channel-id") {
      channelID = value.array
    } else if name.says("apns-request-id") {
      requestID = value.array
    } else if name.says("apns-push-type") {
      pushType = value.array
    } else if name.says("apns-priority") {
      priority = value.array
    } else if name.says("apns-expiration") {
      expiration = value.array
    }
  }

  /// The operation that path and method ask for, and the bundle id in the path.
  ///
  /// - Parameter isManagement: on the listener of channel management, otherwise the providers'.
  package func route(
    isManagement: Bool
  ) throws(ChannelRefusal) -> (operation: Operation, bundle: Topic) {
    let parts = String(decoding: path.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
      .split(separator: "/", omittingEmptySubsequences: false)
    let prefix = isManagement ? ["", "1", "apps"] : ["", "4", "broadcasts", "apps"]
    let rest = parts.dropFirst(prefix.count)
    guard parts.prefix(prefix.count).elementsEqual(prefix, by: { $0 == $1 }),
      let bundle = rest.first.flatMap({ Topic($0) }), rest.count == (isManagement ? 2 : 1)
    else { throw .badPath }
    let name = String(decoding: method, as: UTF8.self)
    switch (isManagement, rest.last, name) {
    case (false, _, "POST"): return (.broadcast, bundle)
    case (true, "channels", "POST"): return (.create, bundle)
    case (true, "channels", "GET"): return (.read, bundle)
    case (true, "channels", "DELETE"): return (.delete, bundle)
    case (true, "all-channels", "GET"): return (.list, bundle)
    case (true, "channels", _), (true, "all-channels", _), (false, _, _): throw .methodNotAllowed
    case (true, _, _): throw .badPath
    }
  }

  package func checkID() throws(ChannelRefusal) {
    guard let requestID else { return }
    guard UniqueID(parsing: requestID.span) != nil else { throw .badMessageID }
  }

  /// A bundle id without the suffix of a push type, which the path must not have.
  package static func check(bundle: Topic) throws(ChannelRefusal) {
    let bytes = bundle.bytes.span
    for type in PushType.allCases where !type.topicSuffix.isEmpty && type.fits(topic: bytes) {
      throw .topicDisallowed
    }
  }

  /// Everything else that does not depend on the channel.
  ///
  /// - Parameters:
  ///   - body: nil when it was longer than anything allowed.
  ///   - isStrict: a broadcast must say when it expires; Apple's samples do, its text does not.
  package func wish(
    _ operation: Operation, body: [UInt8]?, isStrict: Bool
  ) throws(ChannelRefusal) -> ChannelWish {
    guard let body, body.count <= Limits.broadcastPayloadBytes else { throw .payloadTooLarge }
    switch operation {
    case .create: return .create(try Self.storagePolicy(in: body))
    case .read: return .read(try channel())
    case .delete: return .delete(try channel())
    case .list: return .list
    case .broadcast:
      let channel = try channel()
      guard let pushType else { throw .missingPushType }
      guard Self.isLiveActivity(pushType.span) else { throw .invalidPushType }
      var chosen = Priority.immediate
      if let priority {
        guard let given = Priority(wireValue: priority.span) else { throw .badPriority }
        chosen = given
      }
      var seconds: Int64 = 0
      if let expiration {
        guard let given = wholeNumber(expiration.span) else { throw .badExpirationDate }
        seconds = given
      } else if isStrict {
        throw .badExpirationDate
      }
      try Self.checkContent(body)
      return .publish(
        channel, BroadcastDraft(priority: chosen, expirationSeconds: seconds, payload: body))
    }
  }

  private func channel() throws(ChannelRefusal) -> ChannelID {
    guard let channelID else { throw .missingChannelID }
    guard let id = ChannelID(channelID.span) else { throw .badChannelID }
    return id
  }

  /// Some clients write it without capitals.
  private static func isLiveActivity(_ text: Span<UInt8>) -> Bool {
    let name = Array("liveactivity".utf8)
    guard text.count == name.count else { return false }
    return name.indices.allSatisfy { text[$0] | 0x20 == name[$0] }
  }

  private static func tree(_ body: [UInt8]) throws(ChannelRefusal) -> JSONTree {
    guard !body.isEmpty else { throw .payloadEmpty }
    do {
      return try JSONTree.read(body)
    } catch {
      throw .badRequestPayload
    }
  }

  /// `{"message-storage-policy":1,"push-type":"LiveActivity"}`
  private static func storagePolicy(in body: [UInt8]) throws(ChannelRefusal) -> StoragePolicy {
    let tree = try tree(body)
    guard let type = tree["push-type"] else { throw .missingPushType }
    guard let name = type.text, isLiveActivity(Array(name.utf8).span) else {
      throw .invalidPushType
    }
    guard case .number(let number)? = tree["message-storage-policy"]?.value,
      let policy = StoragePolicy.allCases.first(where: { Double($0.rawValue) == number })
    else { throw .badRequestParams }
    return policy
  }

  /// A broadcast updates or ends activities; it starts none (Apple, "Starting and updating Live
  /// Activities with ActivityKit push notifications").
  private static func checkContent(_ body: [UInt8]) throws(ChannelRefusal) {
    if try tree(body)["aps"]?["event"]?.text == "start" { throw .badRequestPayload }
  }
}

/// The wish of a well-formed request, for the registry.
package enum ChannelWish: Hashable, Sendable {
  case create(StoragePolicy)
  case read(ChannelID)
  case delete(ChannelID)
  case list
  case publish(ChannelID, BroadcastDraft)

  /// Whether it waits for the journal.
  package var isWritten: Bool {
    switch self {
    case .create, .delete: true
    case .read, .list: false
    case .publish(_, let draft): draft.expirationSeconds != 0
    }
  }
}

/// A broadcast before its channel has decided about it.
package struct BroadcastDraft: Hashable, Sendable {
  package var priority: Priority
  /// `apns-expiration`; 0 is not to be stored.
  package var expirationSeconds: Int64
  package var payload: [UInt8]

  package init(priority: Priority, expirationSeconds: Int64, payload: [UInt8]) {
    self.priority = priority
    self.expirationSeconds = expirationSeconds
    self.payload = payload
  }
}

/// An answer about channels, but for the ids that every answer has.
package struct ChannelAnswer: Hashable, Sendable {
  package var status: UInt16
  /// `apns-channel-id`, of a new channel.
  package var channel: ChannelID?
  /// `apns-unique-id`, of a broadcast.
  package var uniqueID: UniqueID?
  package var body: [UInt8]

  package init(
    status: UInt16, channel: ChannelID? = nil, uniqueID: UniqueID? = nil, body: String = ""
  ) {
    self.status = status
    self.channel = channel
    self.uniqueID = uniqueID
    self.body = Array(body.utf8)
  }

  package init(_ refusal: ChannelRefusal) {
    self.init(status: refusal.row.status, body: #"{"reason":"\#(refusal.row.reason)"}"#)
  }

  /// As its body says it, also when it comes from another node.
  package var refusal: ChannelRefusal? {
    guard status >= 400 else { return nil }
    return ChannelRefusal.allCases.first { Self($0) == self }
  }
}
