import HTTP2
import NIOCore
import Primitives
import ProviderCredentials
import RelayCore
import RelayRequests
import RelaySetup

/// The text of a connection's newest head, for the journal of requests.
///
/// Most heads differ from the one before only in path, id and length. Those values are kept apart,
/// so that all rows of such heads share one text.
struct SentHead {
  /// A line each, `name: value`, in order. The values of `own` are missing.
  private(set) var text: [UInt8] = [] {
    didSet { isTextKept = false }
  }
  /// True once a row has this text.
  var isTextKept = false
  /// The newest values of `ownFields`.
  private var own: [[UInt8]] = Array(repeating: [], count: 3)

  private static let ownFields: [FieldName] = [.path, .apnsID, .contentLength]
  /// Instead of a provider token.
  private static let secret = Array("[not kept]".utf8)

  /// Returns whether the field `authorization` has changed.
  mutating func read(_ fields: ArraySlice<HeaderField>, _ arena: [UInt8]) -> Bool {
    var (isNew, isChanged, isAuthorizationNew) = (true, false, false)
    for field in fields {
      guard !field.isRepeated else {
        isNew = false
        continue
      }
      let name = FieldName(arena.span.extracting(field.name))
      isAuthorizationNew = isAuthorizationNew || name == .authorization
      if let place = Self.ownFields.firstIndex(where: { $0 == name }) {
        own[place].removeAll(keepingCapacity: true)
        own[place].append(contentsOf: arena[field.value])
      } else {
        isChanged = true
      }
    }
    if isNew || isChanged { write(fields, arena, isNew: isNew) }
    return isAuthorizationNew
  }

  private mutating func write(
    _ fields: ArraySlice<HeaderField>, _ arena: [UInt8], isNew: Bool
  ) {
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
        if name == .authorization {
          new += Self.secret
        } else if !Self.ownFields.contains(where: { $0 == name }) {
          new += arena[field.value]
        }
      }
      new.append(UInt8(ascii: "\n"))
    }
    text = new
  }

  /// The text with all values.
  var whole: [UInt8] { Self.whole(text, own) }

  /// A text with the missing values of a path, an id and a length.
  static func whole(_ text: [UInt8], _ own: [[UInt8]]) -> [UInt8] {
    var whole: [UInt8] = []
    for line in text.split(separator: UInt8(ascii: "\n")) {
      whole += line
      let name = line.dropLast(2)
      if let place = Self.ownFields.firstIndex(where: { name.elementsEqual($0.wireName.utf8) }) {
        whole += own[place]
      }
      whole.append(UInt8(ascii: "\n"))
    }
    return whole
  }
}

/// A provider connection's part of the journal of requests: absent when none are kept.
struct KeptRequests {
  private(set) var head = SentHead()
  private var source: RequestSource?
  private var count: UInt32 = 0

  mutating func read(_ fields: ArraySlice<HeaderField>, _ arena: [UInt8]) {
    if head.read(fields, arena) { source = nil }
  }

  /// The connection of the next request, and the request's place on it.
  mutating func next(
    _ credentials: borrowing ConnectionCredentials, on handler: ConnectionHandler
  ) -> (source: RequestSource, ordinal: UInt32) {
    count &+= 1
    if let source { return (source, count) }
    let runner = handler.runner
    let new = RequestSource(
      .provider, peer: handler.peerText, isEncrypted: !runner.settings.configuration.plaintext,
      credentials.shown(by: runner.verifier.keys), connection: handler.number?.value ?? 0)
    source = new
    return (new, count)
  }

  /// Whether a row has the text of the newest head already; from now on one has.
  mutating func keepText() -> Bool { exchange(&head.isTextKept, with: true) }
}

/// The journal of requests. Of a client that has not shown who it is, nothing goes there.
extension ProviderConnection {
  /// Keeps a request whose head is in order.
  mutating func keep(
    _ result: Result<Notification, Rejection>, _ stream: StreamID, _ uniqueID: UniqueID,
    _ sentText: [UInt8], _ body: [UInt8]?, _ warnings: CaseSet<PayloadWarning>,
    at now: Instant, on handler: ConnectionHandler
  ) {
    guard case .success(let notification) = result else {
      return keep(body, stream, uniqueID, sentText, on: handler)
    }
    guard let (source, ordinal) = kept?.next(credentials, on: handler) else { return }
    let row = handler.runner.history.requests?.append(
      notification, warnings, at: now, source, ordinal: ordinal, fields: sentText,
      sharesFields: kept?.keepText() ?? false)
    _ = waiting.modify(stream) { $0.row = row ?? 0 }
  }

  /// Keeps a request whose head is refused; its body may come.
  mutating func keepRefused(
    _ stream: StreamID, _ uniqueID: UniqueID, on handler: ConnectionHandler
  ) {
    if let whole = kept?.head.whole { keep([], stream, uniqueID, whole, on: handler) }
  }

  private mutating func keep(
    _ body: [UInt8]?, _ stream: StreamID, _ uniqueID: UniqueID, _ text: [UInt8],
    on handler: ConnectionHandler
  ) {
    guard let (source, ordinal) = kept?.next(credentials, on: handler) else { return }
    let row = handler.runner.history.keep(
      SentRequest(
        at: handler.runner.now, uniqueID, source, ordinal: ordinal, fields: text,
        .unusable(body: body ?? []), bodyBytes: body?.count))
    _ = waiting.modify(stream) { $0.row = row }
  }

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

  mutating func answered(
    _ row: UInt64, _ id: UniqueID, _ answer: ProviderAnswer, after length: Interval
  ) {
    if row > 0 { requests?.answered(row, id, SentRequest.Answer(answer, after: length)) }
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
