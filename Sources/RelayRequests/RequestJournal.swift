import DequeModule
package import Primitives
package import RelayCore

/// The newest requests of a loop, bounded in bytes: the oldest go first, a block at a time. Rows
/// have numbers from 1 on, without gaps.
package struct RequestJournal: Sendable {
  /// Those before the newest.
  private var older = Deque<RequestBlock>()
  private var newest: RequestBlock
  /// The memory of a block that has gone.
  private var spare = RequestBlock(first: 0)
  /// Of the blocks before the newest.
  private var olderBytes = 0
  package let limitBytes: Int
  private let blockBytes: Int
  private let redaction: Redaction

  package init(limitBytes: Int, _ redaction: Redaction) {
    self.limitBytes = limitBytes
    self.redaction = redaction
    // Most answers come while their rows are in the newest.
    blockBytes = min(524_288, limitBytes / 16)
    newest = RequestBlock(first: 1)
  }

  /// An estimate.
  package var bytes: Int { olderBytes + newest.keptBytes }

  package var count: Int { older.reduce(newest.count) { $0 + $1.count } }

  /// Returns the row's number.
  package mutating func append(_ request: consuming SentRequest) -> UInt64 {
    if !redaction.paths.isEmpty { request.redact(redaction) }
    if newest.keptBytes >= blockBytes { beginBlock() }
    newest.append(request)
    return makeRoom()
  }

  /// The same of a push, without a copy of all that it is: each one goes through here.
  package mutating func append(
    _ notification: Notification, _ warnings: CaseSet<PayloadWarning>, at moment: Instant,
    _ head: RequestHead, ordinal: UInt32
  ) -> UInt64 {
    guard redaction.paths.isEmpty else {
      return append(
        SentRequest(
          at: moment, notification.uniqueID, head, ordinal: ordinal,
          .push(notification, warnings: warnings), bodyBytes: notification.payload.count))
    }
    if newest.keptBytes >= blockBytes { beginBlock() }
    newest.append(notification, warnings, at: moment, head, ordinal: ordinal)
    return makeRoom()
  }

  private mutating func beginBlock() {
    let full = newest
    olderBytes += full.keptBytes
    older.append(full)
    newest = RequestBlock(first: full.end)
    swap(&newest, &spare)
    newest.empty(first: full.end, roomLike: full)
  }

  /// Returns the number of the newest row.
  @inline(__always)
  private mutating func makeRoom() -> UInt64 {
    let number = newest.end - 1
    while bytes > limitBytes, newest.end > newest.first {
      if let gone = older.popFirst() {
        olderBytes -= gone.keptBytes
        spare = gone
      } else {
        newest = RequestBlock(first: number + 1)
      }
    }
    return number
  }

  /// Lets `body` change a row's block. After a return to a checkpoint the number may be another
  /// request's.
  @inline(__always)
  private mutating func change(
    _ number: UInt64, _ id: UniqueID, _ body: (inout RequestBlock) -> Void
  ) {
    if number >= newest.first {
      if newest.hasRow(number, id) { body(&newest) }
    } else if let place = older.lastIndex(where: { $0.first <= number }),
      older[place].hasRow(number, id)
    {
      changeOlder(place, body)
    }
  }

  private mutating func changeOlder(_ place: Int, _ body: (inout RequestBlock) -> Void) {
    olderBytes -= older[place].keptBytes
    body(&older[place])
    olderBytes += older[place].keptBytes
  }

  package mutating func answered(_ number: UInt64, _ id: UniqueID, _ answer: SentRequest.Answer) {
    change(number, id) { $0.answered(number, answer) }
  }

  /// More of the body of a request whose head was refused, up to a limit.
  package mutating func received(_ part: ArraySlice<UInt8>, of number: UInt64, _ id: UniqueID) {
    // With paths to redact it would have to be complete.
    let mayKeep = redaction.paths.isEmpty
    change(number, id) { $0.received(part, of: number, mayKeep: mayKeep) }
  }

  /// At most so many rows before a number, newest first, and the number to go on before; nil begins
  /// with the newest.
  package func rows(before number: UInt64?, limit: Int) -> (rows: [SentRequest], next: UInt64?) {
    let first = older.first?.first ?? newest.first
    let end = min(number ?? .max, newest.end)
    guard end > first else { return ([], nil) }
    let begin = end - first > UInt64(limit) ? end - UInt64(limit) : first
    var rows: [SentRequest] = []
    for block in [newest] + older.reversed() where block.first < end && block.end > begin {
      let numbers = max(block.first, begin)..<min(block.end, end)
      rows += numbers.reversed().compactMap { block.request($0) }
    }
    return (rows, begin > first ? begin : nil)
  }

  /// Forgets what the rows say; their numbers stay.
  package mutating func forget(where isMeant: (SentRequest) -> Bool) {
    for place in older.indices { changeOlder(place) { $0.forget(where: isMeant) } }
    newest.forget(where: isMeant)
    spare = RequestBlock(first: 0)
    if count == 0 {
      (older, olderBytes) = ([], 0)
      newest = RequestBlock(first: newest.end)
    }
  }
}

/// Requests one behind the other, and the bytes that belong to them.
///
/// Bodies are copied. A kept reference would be cheaper for the moment, and dear later: memory that
/// is freed long after its use is in no cache any more, nor is what takes its place.
private struct RequestBlock {
  /// The number of the first row.
  private(set) var first: UInt64
  private var rows: [RequestRow] = []
  private var tails: [UInt8] = []
  /// Where the newest payload lies that a row has for its whole tail: who tells many people the
  /// same has it kept once.
  private var newestPayload = 0..<0
  private var heads: [RequestHead] = []
  /// The head of the newest row that has one, and its place: requests come in runs.
  private var newestHead: (id: ObjectIdentifier, place: UInt32)?
  /// Of requests whose heads were refused, the bodies that came later.
  private var laterBodies: [UInt64: [UInt8]] = [:]
  /// Of heads and later bodies.
  private var otherBytes = 0
  private var forgottenCount = 0

  init(first: UInt64) { self.first = first }

  /// The number behind the last row.
  var end: UInt64 { first + UInt64(rows.count) }

  var count: Int { rows.count - forgottenCount }

  var keptBytes: Int {
    rows.count * MemoryLayout<RequestRow>.stride + tails.count + otherBytes
  }

  /// Keeps the memory, and has as much as a full one: it does not grow step by step, with copies.
  mutating func empty(first: UInt64, roomLike full: RequestBlock) {
    rows.removeAll(keepingCapacity: true)
    tails.removeAll(keepingCapacity: true)
    newestPayload = 0..<0
    heads.removeAll(keepingCapacity: true)
    newestHead = nil
    laterBodies = [:]
    (otherBytes, forgottenCount, self.first) = (0, 0, first)
    rows.reserveCapacity(full.rows.count)
    tails.reserveCapacity(full.tails.count)
  }

  @inline(__always)
  mutating func append(
    _ notification: Notification, _ warnings: CaseSet<PayloadWarning>, at moment: Instant,
    _ head: RequestHead, ordinal: UInt32
  ) {
    let tail = keepTail(of: notification)
    var row = RequestRow(notification, warnings, at: moment, place(of: head), ordinal: ordinal)
    row.start = UInt32(truncatingIfNeeded: tail.lowerBound)
    row.length = UInt32(truncatingIfNeeded: tail.count)
    rows.append(row)
  }

  @inline(__always)
  private mutating func keepTail(of notification: Notification) -> Range<Int> {
    let isAlone = notification.collapseID.isEmpty && notification.token.count == 32
    if isAlone, isNewest(notification.payload) { return newestPayload }
    let start = tails.count
    tails.append(contentsOf: notification.payload)
    if isAlone {
      newestPayload = start..<tails.count
    } else {
      tails.append(contentsOf: notification.collapseID)
      if notification.token.count != 32 { tails.append(contentsOf: notification.token.bytes) }
    }
    return start..<tails.count
  }

  @inline(__always)
  private func isNewest(_ payload: [UInt8]) -> Bool {
    guard payload.count == newestPayload.count else { return false }
    let kept = tails.span
    let newest = kept.extracting(newestPayload)
    let bytes = payload.span
    // Without a way out in between, many bytes are compared at once.
    var difference: UInt8 = 0
    for index in bytes.indices { difference |= bytes[index] ^ newest[index] }
    return difference == 0
  }

  mutating func append(_ request: SentRequest) {
    switch request.content {
    case .push(let sent, let warnings):
      let head = RequestHead(request.fields, request.source, sent.topic)
      append(sent, warnings, at: request.at, head, ordinal: request.ordinal)
    case .unusable(let body):
      var row = RequestRow(
        .unusable, at: request.at, request.uniqueID, place(of: request.head), request.ordinal)
      row.start = UInt32(truncatingIfNeeded: tails.count)
      row.length = UInt32(truncatingIfNeeded: body.count)
      tails += body
      rows.append(row)
    }
    rows[rows.count - 1].bodyBytes = request.bodyBytes.map { Int32(clamping: $0) }
    rows[rows.count - 1].isRedacted = request.isRedacted
    rows[rows.count - 1].answer = request.answer
  }

  /// Connections take turns, so an earlier head may come again.
  @inline(__always)
  private mutating func place(of head: RequestHead) -> UInt32 {
    if let newestHead, newestHead.id == ObjectIdentifier(head) { return newestHead.place }
    let place = earlierPlace(of: head)
    newestHead = (ObjectIdentifier(head), place)
    return place
  }

  private mutating func earlierPlace(of head: RequestHead) -> UInt32 {
    let recent = heads.indices.suffix(32)
    if let known = recent.last(where: { heads[$0] === head }) { return UInt32(known) }
    otherBytes += head.fields.count
    heads.append(head)
    return UInt32(heads.count - 1)
  }

  func hasRow(_ number: UInt64, _ id: UniqueID) -> Bool {
    guard (first..<end).contains(number) else { return false }
    // The span's row is looked at where it lies, the array's would be copied; `==` is a call.
    let known = rows.span[Int(number - first)].uniqueID
    return known.high == id.high && known.low == id.low
  }

  mutating func answered(_ number: UInt64, _ answer: SentRequest.Answer) {
    rows[Int(number - first)].answer = answer
  }

  mutating func received(_ part: ArraySlice<UInt8>, of number: UInt64, mayKeep: Bool) {
    let place = Int(number - first)
    guard rows[place].content == .unusable else { return }
    rows[place].bodyBytes? += Int32(clamping: part.count)
    let known = laterBodies[number]?.count ?? 0
    guard mayKeep, known + part.count <= Limits.payloadBytes else { return }
    laterBodies[number, default: []] += part
    otherBytes += part.count
  }

  /// nil for one that somebody wanted forgotten.
  func request(_ number: UInt64) -> SentRequest? {
    let row = rows[Int(number - first)]
    let tail = Array(tails[Int(row.start)..<Int(row.start) + Int(row.length)])
    let head = heads[Int(row.head)]
    let content: SentRequest.Content
    switch row.content {
    case .push: content = .push(row.notification(tail, head.topic), warnings: row.warnings)
    case .unusable: content = .unusable(body: tail + (laterBodies[number] ?? []))
    case .forgotten: return nil
    }
    return SentRequest(
      at: row.at, row.uniqueID, head, ordinal: row.ordinal, content,
      bodyBytes: row.bodyBytes.map { Int($0) }, row.answer, isRedacted: row.isRedacted)
  }

  mutating func forget(where isMeant: (SentRequest) -> Bool) {
    var gone: [RequestRow] = []
    for number in first..<end {
      guard let request = request(number), isMeant(request) else { continue }
      let row = rows[Int(number - first)]
      gone.append(row)
      otherBytes -= laterBodies.removeValue(forKey: number)?.count ?? 0
      rows[Int(number - first)] = RequestRow(.forgotten, at: row.at, row.uniqueID, row.head, 0)
      forgottenCount += 1
    }
    let left = rows.filter { $0.content != .forgotten }
    let shared = Set(left.filter { $0.length > 0 }.map(\.start))
    for row in gone where !shared.contains(row.start) {
      for index in Int(row.start)..<Int(row.start) + Int(row.length) { tails[index] = 0 }
    }
    // The newest payload may be gone.
    newestPayload = 0..<0
    // Of the heads that no row has any more, the numbers stay.
    let needed = Set(left.map(\.head))
    for place in heads.indices where !needed.contains(UInt32(place)) {
      otherBytes -= heads[place].fields.count
      heads[place] = .none
    }
    // Its object may be gone, and another one at its address.
    newestHead = nil
  }
}

/// A request as it lies in the journal: without a reference, so that a block of them comes and goes
/// at once.
private struct RequestRow {
  enum Content: Equatable {
    case push, unusable, forgotten
  }

  let at: Instant
  let uniqueID: UniqueID
  let apnsID: UniqueID
  /// Of 32 bytes; others are in the tail.
  let token: (UInt64, UInt64, UInt64, UInt64)
  let expiration: Expiration
  /// The place of its head in the block.
  let head: UInt32
  let ordinal: UInt32
  let warnings: CaseSet<PayloadWarning>
  /// Of its tail, payload, collapse id and token, in the block.
  var start: UInt32 = 0
  var length: UInt32 = 0
  var bodyBytes: Int32?
  let content: Content
  let kind: NotificationClass
  let pushType: PushType
  let priority: Priority
  let wakesApp: Bool
  let showsNothing: Bool
  let collapseIDBytes: UInt8
  /// 0 for a token of 32.
  let tokenBytes: UInt8
  var isRedacted = false
  var answer: SentRequest.Answer?

  @inline(__always)
  init(
    _ notification: Notification, _ warnings: CaseSet<PayloadWarning>, at moment: Instant,
    _ head: UInt32, ordinal: UInt32
  ) {
    at = moment
    uniqueID = notification.uniqueID
    apnsID = notification.apnsID
    token = notification.token.words
    tokenBytes =
      notification.token.count == 32 ? 0 : UInt8(truncatingIfNeeded: notification.token.count)
    expiration = notification.expiration
    self.head = head
    self.ordinal = ordinal
    self.warnings = warnings
    bodyBytes = Int32(truncatingIfNeeded: notification.payload.count)
    content = .push
    kind = notification.notificationClass
    pushType = notification.pushType
    priority = notification.priority
    wakesApp = notification.wakesApp
    showsNothing = notification.showsNothing
    collapseIDBytes = UInt8(truncatingIfNeeded: notification.collapseID.count)
  }

  init(_ content: Content, at moment: Instant, _ id: UniqueID, _ head: UInt32, _ ordinal: UInt32) {
    (at, uniqueID, apnsID) = (moment, id, id)
    (token, tokenBytes, collapseIDBytes) = ((0, 0, 0, 0), 0, 0)
    (expiration, warnings) = (.once, CaseSet())
    (self.head, self.ordinal, self.content) = (head, ordinal, content)
    (kind, pushType, priority) = (.visible, .alert, .immediate)
    (wakesApp, showsNothing) = (false, false)
  }

  func notification(_ tail: [UInt8], _ topic: Topic) -> Notification {
    let behindID = tail.count - Int(tokenBytes)
    let payloadEnd = behindID - Int(collapseIDBytes)
    let sentToken =
      tokenBytes == 0
      ? DeviceToken(random: (token.0, token.1, token.2), routingKey: token.3)
      : DeviceToken(bytes: Array(tail[behindID...]).span) ?? .vacant
    return Notification(
      uniqueID: uniqueID, apnsID: apnsID, token: sentToken, topic: topic, notificationClass: kind,
      pushType: pushType, priority: priority, wakesApp: wakesApp, showsNothing: showsNothing,
      collapseID: Array(tail[payloadEnd..<behindID]), expiration: expiration,
      payload: Array(tail[..<payloadEnd]))
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
    }
  }
}
