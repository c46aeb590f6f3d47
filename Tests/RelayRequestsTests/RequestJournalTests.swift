import Primitives
import RelayCore
import Testing

@testable import RelayRequests

/// A connection, and requests on it.
enum Sample {
  static let source = RequestSource(
    .provider, peer: "127.0.0.1:4000", isEncrypted: true, .token(team: "T", keyID: "K"),
    connection: 7)

  static func notification(_ number: UInt64, payload: String) throws -> Notification {
    let token = try #require(DeviceToken(hexadecimal: String(repeating: "ab", count: 32)))
    return Notification(
      uniqueID: UniqueID(high: 0, low: number), apnsID: UniqueID(high: 1, low: number),
      token: token, topic: try #require(Topic("com.example.app")), notificationClass: .visible,
      pushType: .alert, priority: .immediate, wakesApp: false, collapseID: [], expiration: .once,
      payload: Array(payload.utf8))
  }

  static func push(
    _ number: UInt64, _ payload: String = #"{"aps":{"badge":2}}"#
  ) throws -> SentRequest {
    let notification = try notification(number, payload: payload)
    return SentRequest(
      at: Instant(milliseconds: Int64(number)), notification.uniqueID,
      head(
        ":method: POST\n:path: \napns-id: \ncontent-length: \napns-priority: 10\nx: a: b\n"),
      ordinal: 1, .push(notification, warnings: CaseSet()), bodyBytes: payload.utf8.count)
  }

  static func head(_ fields: String) -> RequestHead { RequestHead(Array(fields.utf8), source) }

  static func refused(
    _ number: UInt64, _ body: String = "", _ rejection: Rejection? = nil
  ) -> SentRequest {
    SentRequest(
      at: Instant(milliseconds: Int64(number)), UniqueID(high: 0, low: number),
      head(":path: /3/device/zz\napns-topic: com.example.other\n"), ordinal: 1,
      .unusable(body: Array(body.utf8)), bodyBytes: body.utf8.count,
      rejection.map { .init(.push(.rejected($0)), after: .milliseconds(1)) })
  }
}

@Suite("Journal of requests") struct RequestJournalTests {
  private func journal(_ limitBytes: Int = 1 << 20, _ paths: [String] = []) -> RequestJournal {
    RequestJournal(limitBytes: limitBytes, Redaction(paths.map { PayloadPath($0) }))
  }

  /// A campaign says the same to everybody; each row has all of it.
  @Test func whatIsTheSameIsKeptOnce() throws {
    let text = #"{"aps":{"alert":"\#(String(repeating: "a", count: 400))"}}"#
    let other = text.replacing("aa\"", with: "ab\"")
    var journal = journal()
    for number in 1...100 as ClosedRange<UInt64> {
      _ = journal.append(try Sample.push(number, text))
    }
    let bytes = journal.bytes
    // A row of 152 bytes, and a head of its own.
    #expect(bytes <= 100 * (152 + 75) + text.utf8.count, "\(bytes)")
    for number in [101, 102] as [UInt64] { _ = journal.append(try Sample.push(number, other)) }
    _ = journal.append(Sample.refused(103))
    _ = journal.append(try Sample.push(104, text))
    func texts() -> [String] {
      journal.rows(before: nil, limit: 200).rows.map { String(decoding: $0.body, as: UTF8.self) }
    }
    #expect(texts() == [text, "", other, other] + Array(repeating: text, count: 100))
    journal.forget { $0.uniqueID.low <= 101 || $0.uniqueID.low == 104 }
    #expect(texts() == ["", other])
    _ = journal.append(try Sample.push(105, text))
    _ = journal.append(try Sample.push(106, text))
    #expect(texts() == [text, text, "", other])
  }

  @Test func everyAnswerIsKept() throws {
    let own = UniqueID(high: 0, low: 1)
    let answers: [SentRequest.Answer] = [
      .init(.push(.accepted(uniqueID: own)), after: .zero),
      .init(.push(.accepted(uniqueID: own)), after: .seconds(86_400 * 60)),
      .init(.push(.accepted(uniqueID: UniqueID(high: 3, low: 4))), after: .milliseconds(2)),
      .init(.push(.rejected(.badTopic)), after: .milliseconds(3)),
      .init(.push(.gone(since: Instant(milliseconds: 5))), after: .milliseconds(4)),
      .init(.channel(201, nil), after: .milliseconds(5)),
    ]
    for answer in answers {
      var journal = journal()
      let number = journal.append(try Sample.push(1))
      #expect(journal.rows(before: nil, limit: 1).rows[0].answer == nil)
      journal.answered(number, own, answer)
      #expect(journal.rows(before: nil, limit: 1).rows[0].answer == answer)
      journal.forget { _ in true }
      journal.answered(number, own, answer)
      #expect(journal.count == 0 && journal.bytes < 500)
    }
  }

  @Test func theNewestComeFirstPageByPage() throws {
    var journal = journal()
    for number in 1...5 { #expect(journal.append(try Sample.push(UInt64(number))) == number) }
    let first = journal.rows(before: nil, limit: 2)
    #expect(first.rows.map(\.uniqueID.low) == [5, 4] && first.next == 4)
    let second = journal.rows(before: first.next, limit: 2)
    #expect(second.rows.map(\.uniqueID.low) == [3, 2] && second.next == 2)
    let last = journal.rows(before: second.next, limit: 2)
    #expect(last.rows.map(\.uniqueID.low) == [1] && last.next == nil)
    #expect(journal.rows(before: 1, limit: 2).rows.isEmpty)
    #expect(self.journal().rows(before: nil, limit: 9).rows.isEmpty)
  }

  /// One that is larger than the journal is not kept, and has had its number.
  @Test func theNumbersGoOnBehindWhatIsNotKept() throws {
    var journal = journal(64)
    for number in 1...3 as ClosedRange<UInt64> {
      #expect(journal.append(try Sample.push(number)) == number && journal.count == 0)
    }
  }

  /// Its head is not counted again, and the answer of one that was never there is nobody's.
  @Test func whatIsForgottenIsForgottenOnce() throws {
    var journal = journal()
    let kept = try Sample.push(1)
    for request in [kept, Sample.refused(2)] { _ = journal.append(request) }
    journal.forget { $0.uniqueID.low == 2 }
    let bytes = journal.bytes
    journal.forget { _ in false }
    journal.answered(3, kept.uniqueID, .init(.push(.rejected(.badTopic)), after: .zero))
    #expect(journal.bytes == bytes)
    let left = journal.rows(before: nil, limit: 9).rows
    #expect(left.map(\.uniqueID) == [kept.uniqueID] && left.allSatisfy { $0.answer == nil })
  }

  @Test func itsBytesAreBoundedAndTheOldestGo() throws {
    var journal = journal(20_000)
    let long = String(repeating: "x", count: 1000)
    for number in 1...100 as ClosedRange<UInt64> {
      let row = journal.append(try Sample.push(number, #"{"\#(number)":"\#(long)"}"#))
      // A block goes at a time, of which there are many.
      #expect(journal.bytes <= 20_000 && (14...19).contains(journal.count) || number < 20)
      // An answer that comes late, to a block before the newest, changes no size.
      let (old, bytes) = (number > 4 ? number - 4 : number, journal.bytes)
      journal.answered(
        old, UniqueID(high: 0, low: old), .init(.push(.rejected(.badTopic)), after: .zero))
      #expect(journal.bytes == bytes && row == number)
    }
    #expect(journal.rows(before: 2, limit: 10).rows.isEmpty, "these have gone")
    #expect(journal.rows(before: nil, limit: 1).rows.first?.uniqueID.low == 100)
    // The number of a row that has gone names nothing.
    journal.answered(1, UniqueID(high: 0, low: 1), .init(.push(.rejected(.badTopic)), after: .zero))
    let answered = journal.rows(before: nil, limit: 100).rows.filter { $0.answer != nil }
    #expect(answered.map(\.uniqueID.low).max() == 96)
    _ = journal.append(try Sample.push(101, String(repeating: "y", count: 50_000)))
    #expect(journal.count == 0 && journal.bytes == 0)
  }

  @Test func anAnswerComesToItsRow() throws {
    var journal = journal()
    let row = journal.append(try Sample.push(1))
    _ = journal.append(Sample.refused(2))
    journal.answered(
      row, UniqueID(high: 0, low: 1), .init(.push(.rejected(.badPriority)), after: .milliseconds(3))
    )
    let rows = journal.rows(before: nil, limit: 2).rows
    #expect(rows[1].answer?.status == 400 && rows[1].answer?.after == .milliseconds(3))
    #expect(rows[0].answer == nil)
  }

  @Test func theBodyOfARefusedHeadComesLaterAndIsBounded() throws {
    var journal = journal()
    let row = journal.append(Sample.refused(1))
    let before = journal.bytes
    journal.received(Array("abc".utf8)[...], of: row, UniqueID(high: 0, low: 1))
    journal.received(Array("def".utf8)[...], of: row, UniqueID(high: 0, low: 1))
    #expect(journal.rows(before: nil, limit: 1).rows[0].body == Array("abcdef".utf8))
    #expect(journal.bytes == before + 6)
    journal.received([UInt8](repeating: 0, count: 1 << 20)[...], of: row, UniqueID(high: 0, low: 1))
    let kept = try #require(journal.rows(before: nil, limit: 1).rows.first)
    #expect(kept.body.count == 6 && kept.bodyBytes == 6 + 1 << 20)
    let rest = [UInt8](repeating: 1, count: Limits.payloadBytes - 6)
    journal.received(rest[...], of: row, UniqueID(high: 0, low: 1))
    journal.received([2], of: row, UniqueID(high: 0, low: 1))
    #expect(journal.rows(before: nil, limit: 1).rows[0].body == Array("abcdef".utf8) + rest)
    // One that was whole before its head was refused.
    _ = journal.append(Sample.refused(2, "whole"))
    #expect(journal.rows(before: nil, limit: 1).rows[0].body == Array("whole".utf8))
  }

  @Test func whatIsForgottenIsGoneAndTheRestStays() throws {
    var journal = journal()
    for number in 1...3 { _ = journal.append(try Sample.push(UInt64(number))) }
    let before = journal.bytes
    journal.forget { $0.uniqueID.low == 2 }
    #expect(journal.count == 2)
    #expect(journal.rows(before: nil, limit: 9).rows.map(\.uniqueID.low) == [3, 1])
    #expect(journal.bytes <= before)
    journal.answered(
      3, UniqueID(high: 0, low: 3),
      .init(.push(.accepted(uniqueID: UniqueID(high: 0, low: 3))), after: .zero))
    #expect(journal.rows(before: nil, limit: 1).rows[0].answer?.status == 200)
    journal.forget { _ in true }
    #expect(journal.count == 0 && journal.bytes == 0)
    #expect(journal.append(try Sample.push(4)) == 4)
  }

  /// Numbers come again after a return to a checkpoint.
  @Test func anAnswerNeverComesToAnotherRequest() throws {
    var journal = journal()
    let row = journal.append(try Sample.push(1))
    journal.answered(
      row, UniqueID(high: 0, low: 9), .init(.push(.rejected(.badTopic)), after: .zero))
    journal.received([1], of: row, UniqueID(high: 0, low: 9))
    #expect(journal.rows(before: nil, limit: 1).rows[0].answer == nil)
  }

  /// Whatever a push has comes back, and so does a head that others have too.
  @Test(arguments: [2, 16, 31, 32, 33, 100])
  func aPushComesBackAsItWas(tokenBytes: Int) throws {
    var journal = journal(200_000)
    let topics = try ["a.b", "c.d"].map { try #require(Topic($0)) }
    let heads = topics.map { RequestHead(Array("apns-topic: \($0)\n".utf8), Sample.source, $0) }
    var pushes: [Notification] = []
    for number in 0..<300 {
      let token = try #require(
        DeviceToken(
          hexadecimal: String(repeating: number % 2 == 0 ? "ab" : "cd", count: tokenBytes)))
      pushes.append(
        Notification(
          uniqueID: UniqueID(high: 1, low: UInt64(number)),
          apnsID: UniqueID(high: 2, low: UInt64(number)), token: token,
          topic: topics[number / 3 % 2], notificationClass: number % 5 == 0 ? .silent : .visible,
          pushType: PushType.allCases[number % PushType.allCases.count],
          priority: Priority.allCases[number % Priority.allCases.count],
          wakesApp: number % 4 == 0, showsNothing: number % 7 == 0,
          collapseID: Array("\(number)".utf8.prefix(number % 3)),
          expiration: number % 2 == 0 ? .once : .at(Instant(milliseconds: Int64(number))),
          payload: Array(repeating: UInt8(number % 200), count: number * 7)))
      _ = journal.append(
        pushes[number], CaseSet(), at: Instant(milliseconds: 5), heads[number / 3 % 2],
        ordinal: UInt32(number))
    }
    let rows = journal.rows(before: nil, limit: 300).rows
    #expect((50..<250).contains(rows.count) && journal.bytes <= 200_000)
    for row in rows {
      #expect(row.notification == pushes[Int(row.ordinal)])
      #expect(row.header("apns-topic") == row.topic)
    }
  }

  @Test func headsThatDifferAreCounted() throws {
    func bytes(_ differ: Bool) throws -> Int {
      var journal = journal()
      let head = Sample.head("x: \(String(repeating: "1", count: 2000))\n")
      for number in 1...20 as ClosedRange<UInt64> {
        let push = try #require(try Sample.push(number).notification)
        let own = Sample.head("x: \(String(repeating: "\(number)", count: 2000))\n")
        _ = journal.append(
          push, CaseSet(), at: .init(milliseconds: 1), differ ? own : head, ordinal: 1)
      }
      return journal.bytes
    }
    #expect(try bytes(true) - bytes(false) > 19 * 2000)
  }

  /// Not even in memory that waits for its next use.
  @Test func aHeadThatNoRowHasAnyMoreIsForgottenToo() throws {
    var journal = journal()
    _ = journal.append(Sample.refused(1, "x"))
    _ = journal.append(try Sample.push(2))
    let before = journal.bytes
    journal.forget { $0.uniqueID.low == 1 }
    #expect(journal.bytes < before && journal.count == 1)
  }

  @Test func namedPlacesAreNeverKept() throws {
    var journal = journal(1 << 20, ["aps.alert"])
    _ = journal.append(try Sample.push(1, #"{"aps":{"alert":"secret","badge":1}}"#))
    let row = journal.append(Sample.refused(2))
    journal.received(
      Array(#"{"aps":{"alert":"secret"}}"#.utf8)[...], of: row, UniqueID(high: 0, low: 2))
    let rows = journal.rows(before: nil, limit: 2).rows
    #expect(rows[1].body == Array(#"{"aps":{"alert":"[text of 6]","badge":1}}"#.utf8))
    #expect(rows[1].isRedacted && !rows[1].isWhole && !rows[0].isWhole)
    // In parts nothing could be found in it.
    #expect(rows[0].body.isEmpty && rows[0].bodyBytes == 26)
  }
}
