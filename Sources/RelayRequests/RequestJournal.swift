import DequeModule
import RelayCore

/// The newest requests of a loop, bounded in bytes: the oldest go first. Rows have numbers from 1
/// on, without gaps.
package struct RequestJournal: Sendable {
  private var rows = Deque<SentRequest>()
  /// The number of the oldest row.
  private var first: UInt64 = 1
  /// Of all rows, an estimate that includes what memory they cost beside their bodies.
  package private(set) var bytes = 0
  package let limitBytes: Int
  private let redaction: Redaction

  package init(limitBytes: Int, _ redaction: Redaction) {
    self.limitBytes = limitBytes
    self.redaction = redaction
  }

  package var count: Int { rows.count }

  /// Returns the row's number.
  package mutating func append(_ row: consuming SentRequest) -> UInt64 {
    if !redaction.paths.isEmpty { row.redact(redaction) }
    bytes += row.keptBytes
    rows.append(row)
    while bytes > limitBytes, let oldest = rows.popFirst() {
      bytes -= oldest.keptBytes
      first += 1
    }
    return first + UInt64(rows.count) - 1
  }

  private func place(of number: UInt64) -> Int? {
    number >= first && number - first < UInt64(rows.count) ? Int(number - first) : nil
  }

  package mutating func answered(_ number: UInt64, _ answer: SentRequest.Answer) {
    if let place = place(of: number) { rows[place].answer = answer }
  }

  /// More of the body of a request whose head was refused, up to a limit.
  package mutating func received(_ part: ArraySlice<UInt8>, of number: UInt64) {
    guard let place = place(of: number), case .unusable(var body) = rows[place].content else {
      return
    }
    rows[place].bodyBytes? += part.count
    // With paths to redact it would have to be complete.
    guard redaction.paths.isEmpty, body.count + part.count <= Limits.payloadBytes else { return }
    rows[place].content = .forgotten
    body += part
    rows[place].content = .unusable(body: body)
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
    return (page.filter { !$0.isForgotten }, begin > 0 ? first + UInt64(begin) : nil)
  }

  /// Forgets what the rows say; their numbers stay.
  package mutating func forget(where isMeant: (SentRequest) -> Bool) {
    for place in rows.indices where isMeant(rows[place]) {
      let row = rows[place]
      bytes -= row.keptBytes
      rows[place] = SentRequest(
        at: row.at, UniqueID(high: 0, low: 0), row.source, ordinal: 0, fields: [], .forgotten,
        bodyBytes: 0)
      bytes += rows[place].keptBytes
    }
  }
}

extension SentRequest {
  /// Of an object on the heap beside its content.
  private static let heapBytes = 32

  fileprivate var keptBytes: Int {
    let row = MemoryLayout<SentRequest>.stride
    return switch content {
    // Its fields are those of many requests mostly.
    case .push(let notification, _): row + notification.payload.count + 8 * Self.heapBytes
    case .unusable(let body): row + body.count + fields.count + 2 * Self.heapBytes
    case .forgotten: row
    }
  }

  fileprivate mutating func redact(_ redaction: Redaction) {
    switch content {
    case .push(let sent, let warnings):
      content = .push(sent.with(payload: redaction.redacted(sent.payload)), warnings: warnings)
    case .unusable(let body):
      content = .unusable(body: body.isEmpty ? [] : redaction.redacted(body))
    case .forgotten: break
    }
  }
}
