import DequeModule
package import Primitives
package import RelayCore

/// The newest requests of a loop, bounded in bytes: the oldest go first. Rows have numbers from 1
/// on, without gaps.
///
/// Bodies are copied into blocks, one behind the other. A kept reference would be cheaper for the
/// moment, and dear later: memory that is freed long after its use is in no cache any more, nor is
/// what takes its place.
package struct RequestJournal: Sendable {
  private var rows = Deque<Row>()
  /// The number of the oldest row.
  private var first: UInt64 = 1
  private var blocks = Blocks()
  private var forgottenCount = 0
  /// Of all rows, an estimate.
  package private(set) var bytes = 0
  package let limitBytes: Int
  private let redaction: Redaction

  package init(limitBytes: Int, _ redaction: Redaction) {
    self.limitBytes = limitBytes
    self.redaction = redaction
  }

  package var count: Int { rows.count - forgottenCount }

  /// Returns the row's number.
  ///
  /// - Parameter sharesFields: an earlier row has the same text, so that it costs this one nothing.
  package mutating func append(
    _ request: consuming SentRequest, sharesFields: Bool = false
  ) -> UInt64 {
    if !redaction.paths.isEmpty { request.redact(redaction) }
    var row = Row(request, blocks.append(request.body))
    row.sharesFields = sharesFields
    bytes += row.keptBytes
    rows.append(row)
    return makeRoom()
  }

  /// The same of a push, without a copy of all that it is: each one goes through here.
  package mutating func append(
    _ notification: Notification, _ warnings: CaseSet<PayloadWarning>, at moment: Instant,
    _ source: RequestSource, ordinal: UInt32, fields: [UInt8], sharesFields: Bool
  ) -> UInt64 {
    guard redaction.paths.isEmpty else {
      return append(
        SentRequest(
          at: moment, notification.uniqueID, source, ordinal: ordinal, fields: fields,
          .push(notification, warnings: warnings), bodyBytes: notification.payload.count),
        sharesFields: sharesFields)
    }
    let body = blocks.append(notification.payload)
    bytes += Row.keptBytes(body.count + notification.collapseID.count, fields, sharesFields)
    rows.append(
      Row(
        notification, warnings, at: moment, source, ordinal: ordinal, fields: fields, body,
        sharesFields: sharesFields))
    return makeRoom()
  }

  /// Returns the number of the newest row.
  @inline(__always)
  private mutating func makeRoom() -> UInt64 {
    while bytes > limitBytes, !rows.isEmpty { dropOldest() }
    return first + UInt64(rows.count) - 1
  }

  private mutating func dropOldest() {
    bytes -= rows[0].keptBytes
    if rows[0].content == .forgotten { forgottenCount -= 1 }
    let block = rows[0].body.block
    rows.removeFirst(1)
    first += 1
    if rows.isEmpty {
      blocks.drop(before: nil)
    } else if rows[0].body.block != block {
      blocks.drop(before: rows[0].body.block)
    }
  }

  /// After a return to a checkpoint the number may be another request's.
  private func place(of number: UInt64, _ id: UniqueID) -> Int? {
    guard number >= first, number - first < UInt64(rows.count) else { return nil }
    let place = Int(number - first)
    return rows[place].uniqueID == id ? place : nil
  }

  package mutating func answered(_ number: UInt64, _ id: UniqueID, _ answer: SentRequest.Answer) {
    if let place = place(of: number, id) { rows[place].answer = answer }
  }

  /// More of the body of a request whose head was refused, up to a limit.
  package mutating func received(_ part: ArraySlice<UInt8>, of number: UInt64, _ id: UniqueID) {
    guard let place = place(of: number, id), rows[place].content == .unusable else { return }
    rows[place].bodyBytes? += part.count
    // With paths to redact it would have to be complete.
    guard redaction.paths.isEmpty,
      rows[place].rest.count + part.count <= Limits.payloadBytes
    else { return }
    rows[place].rest += part
    bytes += part.count
  }

  /// At most so many rows before a number, newest first, and the number to go on before; nil begins
  /// with the newest.
  package func rows(
    before number: UInt64?, limit: Int
  ) -> (rows: [SentRequest], next: UInt64?) {
    let end = number.map { Int(clamping: $0 > first ? $0 - first : 0) } ?? rows.count
    let begin = max(0, min(end, rows.count) - limit)
    let page = rows[begin..<max(begin, min(end, rows.count))].reversed()
    return (
      page.filter { $0.content != .forgotten }.map(request),
      begin > 0 ? first + UInt64(begin) : nil
    )
  }

  private func request(_ row: Row) -> SentRequest { row.request(blocks[row.body]) }

  /// Forgets what the rows say; their numbers stay.
  package mutating func forget(where isMeant: (SentRequest) -> Bool) {
    for place in rows.indices where rows[place].content != .forgotten {
      guard isMeant(request(rows[place])) else { continue }
      bytes -= rows[place].keptBytes
      blocks.erase(rows[place].body)
      rows[place] = Row(.forgotten, rows[place].body)
      forgottenCount += 1
      bytes += rows[place].keptBytes
    }
    while rows.first?.content == .forgotten { dropOldest() }
  }
}

/// A request as it lies in the journal, without its body.
private struct Row {
  enum Content: Equatable {
    case push, unusable, forgotten
  }

  let at: Instant
  let uniqueID: UniqueID
  let apnsID: UniqueID
  let token: DeviceToken
  let topic: Topic
  let source: RequestSource
  let fields: [UInt8]
  let expiration: Expiration
  let warnings: CaseSet<PayloadWarning>
  let ordinal: UInt32
  let content: Content
  let kind: NotificationClass
  let pushType: PushType
  let priority: Priority
  let wakesApp: Bool
  let showsNothing: Bool
  let isRedacted: Bool
  let body: Blocks.Place
  /// Of the same text as the row before, which it costs nothing.
  var sharesFields: Bool
  /// The collapse id of a push. Of a request whose head was refused, the body that came later.
  var rest: [UInt8]
  var bodyBytes: Int?
  var answer: SentRequest.Answer?

  init(_ request: borrowing SentRequest, _ body: Blocks.Place) {
    let (notification, content): (Notification, Content) =
      switch request.content {
      case .push(let sent, _): (sent, .push)
      case .unusable: (Self.none, .unusable)
      case .forgotten: (Self.none, .forgotten)
      }
    self.init(
      notification, request.warnings, at: request.at, request.source, ordinal: request.ordinal,
      fields: request.fields, body, content, request.uniqueID, isRedacted: request.isRedacted)
    bodyBytes = request.bodyBytes
    answer = request.answer
  }

  init(
    _ notification: Notification, _ warnings: CaseSet<PayloadWarning>, at moment: Instant,
    _ source: RequestSource, ordinal: UInt32, fields: [UInt8], _ body: Blocks.Place,
    _ content: Content = .push, _ id: UniqueID? = nil, isRedacted: Bool = false,
    sharesFields: Bool = false
  ) {
    at = moment
    self.sharesFields = sharesFields
    uniqueID = id ?? notification.uniqueID
    self.source = source
    self.fields = fields
    self.ordinal = ordinal
    self.isRedacted = isRedacted
    self.body = body
    self.warnings = warnings
    self.content = content
    bodyBytes = body.count
    apnsID = notification.apnsID
    token = notification.token
    topic = notification.topic
    rest = notification.collapseID
    expiration = notification.expiration
    kind = notification.notificationClass
    pushType = notification.pushType
    priority = notification.priority
    wakesApp = notification.wakesApp
    showsNothing = notification.showsNothing
  }

  private static let none = Notification(
    uniqueID: UniqueID(high: 0, low: 0), apnsID: UniqueID(high: 0, low: 0), token: .vacant,
    topic: .vacant, notificationClass: .visible, pushType: .alert, priority: .immediate,
    wakesApp: false, collapseID: [], expiration: .once, payload: [])

  var keptBytes: Int { Self.keptBytes(body.count + rest.count, fields, sharesFields) }

  @inline(__always)
  static func keptBytes(_ ownBytes: Int, _ fields: [UInt8], _ sharesFields: Bool) -> Int {
    MemoryLayout<Row>.stride + ownBytes + (sharesFields ? 0 : fields.count)
  }

  func request(_ body: [UInt8]) -> SentRequest {
    let content: SentRequest.Content =
      switch self.content {
      case .push:
        .push(
          Notification(
            uniqueID: uniqueID, apnsID: apnsID, token: token, topic: topic,
            notificationClass: kind, pushType: pushType, priority: priority, wakesApp: wakesApp,
            showsNothing: showsNothing, collapseID: rest, expiration: expiration,
            payload: body), warnings: warnings)
      case .unusable: .unusable(body: body + rest)
      case .forgotten: .forgotten
      }
    return SentRequest(
      at: at, uniqueID, source, ordinal: ordinal, fields: fields, content, bodyBytes: bodyBytes,
      answer, isRedacted: isRedacted)
  }
}

/// Bytes one behind the other, in blocks of which the oldest go.
private struct Blocks {
  struct Place {
    var block: UInt32 = 0
    var start: UInt32 = 0
    var length: UInt32 = 0

    var count: Int { Int(length) }
  }

  private static let blockBytes = 65_536
  private var blocks = Deque<[UInt8]>()
  /// The number of the oldest block.
  private var first: UInt32 = 0
  /// The memory of a block that has gone.
  private var spare: [UInt8] = []

  mutating func append(_ bytes: [UInt8]) -> Place {
    guard !bytes.isEmpty else {
      return Place(block: first &+ UInt32(max(0, blocks.count - 1)))
    }
    if blocks.isEmpty || blocks[blocks.count - 1].count + bytes.count > Self.blockBytes {
      var next: [UInt8] = []
      swap(&next, &spare)
      next.reserveCapacity(max(Self.blockBytes, bytes.count))
      blocks.append(next)
    }
    let last = blocks.count - 1
    let start = blocks[last].count
    blocks[last].append(contentsOf: bytes)
    return Place(
      block: first &+ UInt32(last), start: UInt32(start), length: UInt32(bytes.count))
  }

  subscript(place: Place) -> [UInt8] {
    guard place.length > 0 else { return [] }
    let start = Int(place.start)
    return Array(blocks[Int(place.block &- first)][start..<start + place.count])
  }

  mutating func erase(_ place: Place) {
    guard place.length > 0 else { return }
    let start = Int(place.start)
    for index in start..<start + place.count { blocks[Int(place.block &- first)][index] = 0 }
  }

  /// - Parameter block: the oldest that is needed; nil for none.
  mutating func drop(before block: UInt32?) {
    guard let block else {
      first = first &+ UInt32(blocks.count)
      blocks.removeAll()
      return
    }
    while first != block, !blocks.isEmpty {
      spare = blocks.removeFirst()
      spare.removeAll(keepingCapacity: spare.capacity <= Self.blockBytes)
      first = first &+ 1
    }
  }
}

extension SentRequest {
  fileprivate mutating func redact(_ redaction: Redaction) {
    let redacted = body.isEmpty ? [] : redaction.redacted(body)
    guard redacted != body else { return }
    isRedacted = true
    switch content {
    case .push(let sent, let warnings):
      content = .push(sent.with(payload: redacted), warnings: warnings)
    case .unusable: content = .unusable(body: redacted)
    case .forgotten: break
    }
  }
}
