import HTTP2
import NIOCore
import Primitives
import ProviderCredentials
import RelayCore
import RelayRequests
import RelaySetup

/// A provider connection's part of the journal of requests: the text of its newest head.
///
/// Most heads differ from the one before only in path, id and length. Those values are not in the
/// text, so that all rows of such heads share one object; of a push its row has them, and of a
/// request that is none they are kept here.
struct SentHead {
  /// A line each, `name: value`, in order. The values of `ownFields` are missing.
  private var text: [UInt8] = []
  /// The values of `ownFields` of the newest head, or of the one before.
  private var ownValues: [[UInt8]] = [[], [], []]
  private var hasOwnValues = false
  private var hadOwnValues = false
  /// nil after a change of the credentials.
  private var source: RequestSource?
  /// For the rows of requests with this text; nil before the first.
  private(set) var shared: RequestHead?
  private var requestCount: UInt32 = 0
  private let listener: RequestSource.Listener

  init(_ listener: RequestSource.Listener) { self.listener = listener }

  private static let ownFields: [FieldName] = [.path, .apnsID, .contentLength]
  /// Instead of a provider token, or what a proxy or a browser would add of its kind.
  private static let secret = Array("[not kept]".utf8)

  private static func isSecret(_ name: ArraySlice<UInt8>) -> Bool {
    name.suffix(13).elementsEqual("authorization".utf8) || name.elementsEqual("cookie".utf8)
  }

  mutating func beginHead() { (hadOwnValues, hasOwnValues) = (hasOwnValues, false) }

  /// Returns true for a field that may differ from request to request. With any other the text is
  /// to be written again.
  mutating func change(_ name: FieldName?) -> Bool {
    switch name {
    case .path, .apnsID, .contentLength: return true
    case .authorization: source = nil
    case .apnsTopic, .apnsPushType, .contentType, .host, .traceParent, .method, .apnsExpiration,
      .apnsPriority, .apnsCollapseID, .authority, nil:
      break
    }
    return false
  }

  /// A field that the newest head repeats is as before it, or as `head` has it.
  mutating func keepOwnValues(
    _ fields: ArraySlice<HeaderField>, _ arena: [UInt8], of head: inout ProviderRequestHead
  ) {
    if !fields.contains(where: \.isRepeated) {
      ownValues = [[], [], []]
    } else if !hadOwnValues {
      ownValues = head.ownValues(bodyBytes: nil)
    }
    for field in fields where !field.isRepeated {
      let name = FieldName(arena.span.extracting(field.name))
      guard let place = Self.ownFields.firstIndex(where: { $0 == name }) else { continue }
      ownValues[place] = Array(arena[field.value])
    }
    hasOwnValues = true
  }

  mutating func write(_ fields: ArraySlice<HeaderField>, _ arena: [UInt8], isNew: Bool) {
    // A block that repeats fields has the names of the last, in the same order.
    var old = isNew ? [] : text.split(separator: UInt8(ascii: "\n"))[...]
    var new: [UInt8] = []
    for field in fields {
      let line = old.popFirst()
      if field.isRepeated {
        new += line ?? []
      } else {
        let name = FieldName(arena.span.extracting(field.name))
        new += arena[field.name] + [UInt8(ascii: ":"), UInt8(ascii: " ")]
        if Self.isSecret(arena[field.name]) {
          new += Self.secret
        } else if !Self.ownFields.contains(where: { $0 == name }) {
          new += arena[field.value]
        }
      }
      new.append(UInt8(ascii: "\n"))
    }
    text = new
    shared = nil
  }

  private var wholeText: [UInt8] { Self.whole(text, ownValues) }

  /// A text with the missing values of a path, an id and a length.
  private static func whole(_ text: [UInt8], _ own: [[UInt8]]) -> [UInt8] {
    var whole: [UInt8] = []
    for line in text.split(separator: UInt8(ascii: "\n")) {
      whole += line
      let name = line.dropLast(2)
      if let place = ownFields.firstIndex(where: { name.elementsEqual($0.wireName.utf8) }) {
        whole += own[place]
      }
      whole.append(UInt8(ascii: "\n"))
    }
    return whole
  }

  /// A head is in order, with these credentials, and has no rows yet.
  mutating func accept(
    _ topic: Topic, _ credentials: borrowing ConnectionCredentials, on handler: ConnectionHandler
  ) {
    shared = RequestHead(text, source(credentials, on: handler), topic)
  }

  /// All that the newest head says; nil before the first that was in order.
  var whole: RequestHead? { source.map { RequestHead(wholeText, $0) } }

  private mutating func source(
    _ credentials: borrowing ConnectionCredentials, on handler: ConnectionHandler
  ) -> RequestSource {
    if let source { return source }
    let runner = handler.runner
    let new = RequestSource(
      listener, peer: handler.peerText, isEncrypted: !runner.settings.configuration.plaintext,
      credentials.shown(by: runner.verifier.keys), service: handler.environment,
      connection: handler.number?.value ?? 0)
    source = new
    return new
  }

  // MARK: Rows

  /// Keeps a push. Returns the row's number.
  mutating func keep(
    _ notification: Notification, _ head: RequestHead?, _ warnings: CaseSet<PayloadWarning>,
    at now: Instant, on handler: ConnectionHandler
  ) -> UInt64 {
    guard let head else { return 0 }
    requestCount &+= 1
    return handler.runner.history.requests?.append(
      notification, warnings, at: now, head, ordinal: requestCount) ?? 0
  }

  /// Keeps a request whose head is in order, and that is refused. Returns the row's number.
  mutating func keepRefused(
    _ request: inout ProviderRequest, _ uniqueID: UniqueID, at now: Instant,
    on handler: ConnectionHandler
  ) -> UInt64 {
    guard let head = request.sentHead else { return 0 }
    requestCount &+= 1
    let body = request.refusedBody
    let ownHead = RequestHead(
      Self.whole(head.fields, request.head.ownValues(bodyBytes: body?.count)), head.source)
    return handler.runner.history.keep(
      SentRequest(
        at: now, uniqueID, ownHead, ordinal: requestCount, .unusable(body: body ?? []),
        bodyBytes: body?.count))
  }

  /// Keeps a request whose head is refused; its body may come. Of a client that has not shown who
  /// it is, nothing goes here.
  mutating func keepRefused(
    _ uniqueID: UniqueID, _ credentials: borrowing ConnectionCredentials, at now: Instant,
    on handler: ConnectionHandler
  ) -> UInt64 {
    let (head, ordinal) = next(credentials, on: handler)
    return handler.runner.history.keep(
      SentRequest(
        at: now, uniqueID, head, ordinal: ordinal, .unusable(body: []), bodyBytes: 0))
  }

  /// All that the newest head says, and its request's place on the connection.
  mutating func next(
    _ credentials: borrowing ConnectionCredentials, on handler: ConnectionHandler
  ) -> (head: RequestHead, ordinal: UInt32) {
    requestCount &+= 1
    return (RequestHead(wholeText, source(credentials, on: handler)), requestCount)
  }
}

extension ProviderRequestHead {
  /// The values that differ from request to request, as far as they are known.
  fileprivate mutating func ownValues(bodyBytes: Int?) -> [[UInt8]] {
    let path = token.map { "/3/device/\($0.hexadecimal)" } ?? ""
    let id = providerID.map(\.description) ?? ""
    let length = bodyBytes.map { String($0) } ?? ""
    return [path, id, length].map { Array($0.utf8) }
  }
}

extension ProviderConnection {
  /// More of a request whose head is refused.
  mutating func keepBody(
    _ bytes: ArraySlice<UInt8>, of stream: StreamID, on handler: ConnectionHandler
  ) {
    guard let (row, id) = waiting.read(stream, { ($0.row, $0.uniqueID) }), row > 0 else { return }
    handler.runner.history.requests?.received(bytes, of: row, id)
  }
}

extension LoopHistory {
  /// Returns the row's number; 0 when no requests are kept.
  mutating func keep(_ row: consuming SentRequest) -> UInt64 { requests?.append(row) ?? 0 }

  mutating func keep(
    _ outcome: SentRequest.Answer.Outcome, to row: UInt64, _ id: UniqueID, after length: Interval
  ) {
    if row > 0 { requests?.answered(row, id, SentRequest.Answer(outcome, after: length)) }
  }

  /// Counts a push's answer, and keeps it in its row if there is one: one access for both.
  mutating func answered(
    _ answer: ProviderAnswer, to row: UInt64, _ id: UniqueID, after length: Interval
  ) {
    answers.answered(answer, after: length)
    keep(.push(answer), to: row, id, after: length)
  }
}

extension ConnectionCredentials {
  func shown(by keys: ProviderKeys) -> RequestSource.Proof {
    switch binding {
    case .unbound, .open: .none
    case .certificate(let certificate): .certificate(certificate.userID ?? "without UID")
    case .teamKey, .topicKey:
      currentKey(in: keys).map { .token(team: $0.teamID, keyID: $0.keyID) } ?? .none
    }
  }
}

extension SocketHandler {
  /// The client's address and port.
  var peerText: String {
    guard let address = context?.channel.remoteAddress, let ip = address.ipAddress,
      let port = address.port
    else { return remoteAddress }
    return ip.utf8.contains(UInt8(ascii: ":")) ? "[\(ip)]:\(port)" : "\(ip):\(port)"
  }
}
