import Primitives
import RelayCore
package import RelayRecording
package import RelayRequests
import RelaySetup

/// The journal of requests, for people; each loop has a part of it.
extension Relay {
  package var keepsRequests: Bool { configuration.keepRequests > 0 }

  /// Places of payloads that are not kept.
  package var redactedPlaces: [PayloadPath] { configuration.redact.map { PayloadPath($0) } }

  /// The newest requests that match, newest first.
  ///
  /// - Parameters:
  ///   - orNearest: when none matches, the one that differs least.
  ///   - refusedOnly: an accepted one does not match.
  package func requests(
    _ match: RequestMatch, limit: Int, orNearest: Bool = false, refusedOnly: Bool = false
  ) async -> Found<[SentRequest]> {
    let wish = RequestWish(
      match: match, limit: limit, orNearest: orNearest, refusedOnly: refusedOnly)
    let found = await inbox.askAll(NodeQuestions.requests, wish)
    let requests = found.value.joined().sorted { $0.at > $1.at }
    let (matching, others) = await wish.search(requests)
    let nearest = orNearest && matching.isEmpty ? match.nearest(others).map { [$0] } : nil
    return Found(value: Array((nearest ?? matching).prefix(limit)), missing: found.missing)
  }

  /// Bytes and number of the requests that this node keeps.
  package func keptRequests() async -> (bytes: Int, count: Int) {
    let parts = await inbox.loops?.onEach { runner in
      [runner.history.requests?.bytes ?? 0, runner.history.requests?.count ?? 0]
    }
    return (parts ?? []).reduce(into: (0, 0)) { ($0.0, $0.1) = ($0.0 + $1[0], $0.1 + $1[1]) }
  }

  package func forgetRequests(_ match: RequestMatch) async -> Missing {
    await inbox.askAll(NodeQuestions.forgetRequests, match).missing
  }
}

struct RequestWish: Sendable {
  var match = RequestMatch()
  var limit = 0
  var orNearest = false
  var refusedOnly = false

  /// Those that match, and as long as there is none the nearest of each turn. Payloads take long to
  /// read: others have their turns in between, and for one that has gone nothing is looked at.
  func search(_ requests: [SentRequest]) async -> (matching: [SentRequest], others: [SentRequest]) {
    var (matching, others): ([SentRequest], [SentRequest]) = ([], [])
    for start in stride(from: 0, to: requests.count, by: Limits.requestsATurn) {
      await Task.yield()
      guard !Task.isCancelled else { break }
      let turn = requests[start..<min(start + Limits.requestsATurn, requests.count)]
      matching += turn.filter {
        match.matches($0) && (!refusedOnly || $0.answer?.refusal != nil)
      }
      if orNearest, matching.isEmpty { others += match.nearest(turn).map { [$0] } ?? [] }
    }
    return (matching, others)
  }
}

extension NodeQuestions {
  /// Rows looked at in one turn of a loop.
  private static let turnRows = 512
  /// The newest rows of a loop that are looked at for the nearest.
  private static let nearestRows = 4096

  // 26 was the same without `refusedOnly`.
  static let requests = NodeQuestion(29) { (node, wish: RequestWish) -> [SentRequest] in
    var found: [SentRequest] = []
    var others: [SentRequest] = []
    for loop in 0..<node.loops.count {
      var (next, count, looked): (UInt64?, Int, Int) = (nil, 0, 0)
      repeat {
        let before = next
        // Only references leave the loop; what they say is read here.
        let page = await node.loops.ask(loop) { runner in
          runner.history.requests?.rows(before: before, limit: turnRows)
        }
        guard let page = page ?? nil else { break }
        let (matching, nearest) = await wish.search(page.rows)
        if looked < nearestRows { others += nearest }
        found += matching.prefix(max(0, wish.limit - count))
        (next, count, looked) = (page.next, count + matching.count, looked + page.rows.count)
      } while next != nil && count < wish.limit && !Task.isCancelled
    }
    return found.isEmpty ? others : found
  }

  static let forgetRequests = NodeQuestion(18) { (node, match: RequestMatch) -> Bool in
    // Payloads are not read on a loop, which others wait for.
    var ids: Set<UniqueID>?
    if !match.payload.isEmpty {
      let wish = RequestWish(match: match, limit: .max, orNearest: false)
      ids = Set(await requests.answer(node, wish)?.map(\.uniqueID) ?? [])
    }
    let wanted = ids
    _ = await node.loops.onEach { runner in
      runner.history.forgetRequests { wanted?.contains($0.uniqueID) ?? match.matches($0) }
    }
    return true
  }
}

extension RequestWish: Composite {
  static let fields = Fields(of: Self(), \.match, \.limit, \.orNearest, \.refusedOnly)
}

extension RequestMatch: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(id, topic, tokens, pushType, status, reason, since)
    writer.put(headers.flatMap { [$0.name, $0.value] }, payload.map(\.text))
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init()
    id = try reader.read()
    topic = try reader.read()
    tokens = try reader.read()
    pushType = try reader.read()
    status = try reader.read()
    reason = try reader.read()
    since = try reader.read()
    let fields = try reader.read([String].self)
    guard fields.count.isMultiple(of: 2) else { throw reader.invalid(Self.self) }
    headers = stride(from: 0, to: fields.count, by: 2).map { (fields[$0], fields[$0 + 1]) }
    payload = try reader.read([String].self).map { PayloadCondition($0) }
  }
}

extension RequestSource.Listener: BinaryCodable {}

extension SentRequest.Answer.Outcome: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .push(let answer): writer.put(tag: 1, answer)
    case .channel(let status, let refusal):
      writer.put(tag: 2, Int(status))
      writer.put(refusal?.row.reason)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .push(try reader.read())
    case 2:
      let (status, reason): (Int, String?) = (try reader.read(), try reader.read())
      self = .channel(
        UInt16(clamping: status),
        reason.flatMap(ChannelRefusal.init(reason:)))
    default: throw reader.invalid(Self.self)
    }
  }
}

extension SentRequest: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(at, uniqueID, source.listener, source.peer, source.isEncrypted, source.connection)
    writer.put(source.service?.rawValue)
    switch source.proof {
    case .none: writer.put([String]())
    case .token(let team, let keyID): writer.put([team, keyID])
    case .certificate(let name): writer.put([name])
    }
    writer.put(ordinal, fields, bodyBytes, answer?.outcome, answer?.after, isRedacted)
    switch content {
    case .push(let notification, let warnings):
      writer.put(tag: 1, notification)
      writer.put(warnings.members.map(\.rawValue))
    case .unusable(let body): writer.put(tag: 2, body)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    let (moment, uniqueID): (Instant, UniqueID) = (try reader.read(), try reader.read())
    let listener: RequestSource.Listener = try reader.read()
    let (peer, isEncrypted): (String, Bool) = (try reader.read(), try reader.read())
    let connection: UInt32 = try reader.read()
    let service = try reader.read(String?.self).flatMap { ProviderEnvironment(rawValue: $0) }
    let names = try reader.read([String].self)
    let proof: RequestSource.Proof =
      switch names.count {
      case 2: .token(team: names[0], keyID: names[1])
      case 1: .certificate(names[0])
      default: .none
      }
    let source = RequestSource(
      listener, peer: peer, isEncrypted: isEncrypted, proof, service: service,
      connection: connection)
    let ordinal: UInt32 = try reader.read()
    let (fields, bodyBytes): ([UInt8], Int?) = (try reader.read(), try reader.read())
    let (answer, after): (Answer.Outcome?, Interval?) = (try reader.read(), try reader.read())
    let isRedacted: Bool = try reader.read()
    let content: Content
    switch try reader.byte() {
    case 1:
      let notification: Notification = try reader.read()
      content = .push(notification, warnings: try PushNote.warnings(from: &reader))
    case 2: content = .unusable(body: try reader.read())
    default: throw reader.invalid(Self.self)
    }
    self.init(
      at: moment, uniqueID, RequestHead(fields, source), ordinal: ordinal, content,
      bodyBytes: bodyBytes,
      answer.flatMap { answer in after.map { Answer(answer, after: $0) } },
      isRedacted: isRedacted)
  }
}
