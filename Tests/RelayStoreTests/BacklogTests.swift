import Primitives
import RelayCore
import Testing

@testable import RelayStore

@Suite("Backlog") struct BacklogTests {
  private var backlog = Backlog(lingerNanoseconds: 10, forgetDelayNanoseconds: 100)

  private mutating func append(
    _ range: ClosedRange<UInt64>, shard: Int = 0, mayLinger: Bool = false, forgets: [UInt64] = [],
    at now: UInt64 = 0
  ) throws {
    let records = try range.map { try Make.accepted($0, mayLinger: mayLinger) }
    backlog.append(shard: shard, records: records, forgets: forgets, at: now)
  }

  private mutating func take(_ limit: Int = 100, at now: UInt64) -> [UInt64] {
    backlog.popBatch(limit: limit, at: now).notifications.map(\.sequence)
  }

  @Test mutating func urgentRecordsAreDueAtOnce() throws {
    #expect(backlog.deadline == nil)
    try append(5...7, at: 3)
    #expect(backlog.deadline == 0)
    #expect(take(at: 3) == [5, 6, 7])
    #expect(backlog.deadline == nil)
    #expect(backlog.isEmpty)
  }

  @Test mutating func lingeringRecordsAreDueLater() throws {
    try append(5...6, mayLinger: true, at: 3)
    try append(7...7, mayLinger: true, at: 5)
    #expect(backlog.deadline == 13)
    #expect(take(at: 12) == [])
    #expect(take(at: 13) == [5, 6])
    #expect(backlog.deadline == 15)
  }

  @Test mutating func anUrgentRecordTakesThoseBeforeItAlong() throws {
    try append(1...2, mayLinger: true)
    try append(3...3)
    try append(4...4, mayLinger: true)
    #expect(backlog.deadline == 0)
    let batch = backlog.popBatch(limit: 100, at: 0)
    #expect(batch.notifications.map(\.sequence) == [1, 2, 3])
    #expect(batch.ends.map(\.first) == [1])
    #expect(batch.ends.map(\.last) == [3])
    #expect(backlog.deadline == 10)
  }

  @Test mutating func whatIsForgottenInTimeIsNotWritten() throws {
    try append(1...3, mayLinger: true)
    try append(4...4, mayLinger: true, forgets: [1, 3, 4])
    #expect(backlog.popSettled() == [.persisted(shard: 0, through: 1)])
    #expect(backlog.skippedCount == 3)
    let batch = backlog.popBatch(limit: 100, at: 10)
    #expect(batch.notifications.map(\.sequence) == [2])
    #expect(batch.ends.map(\.last) == [2])
    #expect(backlog.popSettled() == [.persisted(shard: 0, through: 4)])
    #expect(backlog.isEmpty)
  }

  @Test mutating func anUrgentRecordThatIsForgottenHurriesNobody() throws {
    try append(1...1, mayLinger: true)
    try append(2...2, forgets: [2])
    #expect(backlog.deadline == 10)
    try append(3...3)
    #expect(take(at: 0) == [1, 3])
  }

  @Test mutating func whatCameOverAnAliasNeedNotBeWrittenEither() throws {
    let content = JournalRecord.Content.forwarded(
      try Make.notification(1), to: Make.device(1), at: Make.instant(1))
    let record = JournalRecord(sequence: 1, content: content, mayLinger: true)
    backlog.append(shard: 0, records: [record], forgets: [1], at: 0)
    #expect(backlog.popSettled() == [.persisted(shard: 0, through: 1)])
    #expect(backlog.skippedCount == 1 && backlog.isEmpty)
  }

  @Test mutating func onlyNotificationsCanBeForgotten() {
    let record = JournalRecord(
      sequence: 1, content: .enrolled(Make.device(1), Make.secret(1)), mayLinger: true)
    backlog.append(shard: 0, records: [record], forgets: [1], at: 0)
    #expect(backlog.popSettled() == [])
    #expect(backlog.popBatch(limit: 10, at: 10).others.count == 1)
  }

  @Test mutating func forgetsOfWrittenRecordsWaitForABatch() throws {
    try append(10...10, forgets: [3, 4], at: 20)
    let first = backlog.popBatch(limit: 10, at: 20)
    #expect(first.forgets == [3, 4])
    backlog.removeForgets(of: first)
    backlog.append(shard: 0, records: [], forgets: [5], at: 30)
    backlog.append(shard: 0, records: [], forgets: [6], at: 40)
    #expect(backlog.deadline == 130)
    #expect(backlog.hasOnlyForgets)
    #expect(backlog.popBatch(limit: 10, at: 130).forgets == [5, 6])
    backlog.postponeForgets(until: 1000)
    backlog.append(shard: 0, records: [], forgets: [7], at: 150)
    #expect(backlog.deadline == 1000)
    for expected in [[5, 6], [7]] as [[UInt64]] {
      let batch = backlog.popBatch(limit: 2, at: 1000)
      #expect(batch.forgets == expected)
      backlog.removeForgets(of: batch)
    }
    #expect(backlog.isEmpty)
  }

  /// What was for a token's owner before must not come back to the next one.
  @Test mutating func allForgetsGoWithARegistration() throws {
    let app = JournalRecord.Content.registered(
      Make.device(1), try Make.topic("app.1"), Make.token(1), isOwn: true)
    backlog.append(shard: 0, records: [], forgets: [3, 4, 5], at: 0)
    #expect(backlog.popBatch(limit: 2, at: 200).forgets == [3, 4])
    backlog.append(
      shard: 1, records: [JournalRecord(sequence: 10, content: app)], forgets: [], at: 0)
    let batch = backlog.popBatch(limit: 2, at: 0)
    #expect(batch.others.count == 1 && batch.forgets == [3, 4, 5])
  }

  /// A notification moved to another shard with its partition: that one forgets it, among records
  /// of its own whose sequences lie around it.
  @Test mutating func anotherShardMayForgetWhatIsWritten() throws {
    try append(10...10)
    #expect(take(at: 0) == [10])
    try append(5...5, shard: 1, mayLinger: true)
    try append(12...13, shard: 1, mayLinger: true, forgets: [10, 13])
    #expect(backlog.skippedCount == 1)
    let batch = backlog.popBatch(limit: 10, at: 100)
    #expect(batch.notifications.map(\.sequence) == [5])
    #expect(batch.forgets == [10])
    #expect(take(at: 100) == [12])
  }

  @Test mutating func aBatchHasALimit() throws {
    try append(1...10)
    #expect(take(4, at: 0) == [1, 2, 3, 4])
    try append(11...11)
    #expect(take(4, at: 0) == [5, 6, 7, 8])
    #expect(take(4, at: 0) == [9, 10, 11])
  }

  /// As many as that together, so that many are written with one sync.
  @Test mutating func theLimitIsShared() throws {
    try append(1...30, shard: 0)
    #expect(backlog.popBatch(limit: 20, at: 0).ends.map { Int($0.last - $0.first) + 1 } == [20])
    try append(1...30, shard: 1)
    try append(31...60, shard: 0)
    #expect(
      backlog.popBatch(limit: 20, at: 0).ends.map { Int($0.last - $0.first) + 1 } == [10, 10])
    #expect(backlog.popBatch(limit: 1, at: 0).ends.map { Int($0.last - $0.first) + 1 } == [1, 1])
  }

  @Test mutating func aLimitThatCutsBeforeTheUrgentOneGoesOnAllTheSame() throws {
    try append(1...10, mayLinger: true)
    try append(11...11)
    #expect(take(4, at: 0) == [1, 2, 3, 4])
    #expect(take(4, at: 0) == [5, 6, 7, 8])
    #expect(take(4, at: 0) == [9, 10, 11])
    #expect(backlog.isEmpty)
  }

  @Test mutating func shardsHaveLinesOfTheirOwn() throws {
    try append(1...2, shard: 0, mayLinger: true)
    try append(1001...1002, shard: 2)
    let batch = backlog.popBatch(limit: 100, at: 0)
    #expect(batch.notifications.map(\.sequence) == [1001, 1002])
    #expect(batch.ends.map(\.shard) == [2])
    #expect(backlog.deadline == 10)
  }

  @Test mutating func whatCameFirstIsWrittenFirst() {
    let token = Make.token(1)
    guard let topic = Topic("a.b") else { return }
    backlog.append(
      shard: 1,
      records: [
        JournalRecord(
          sequence: 9, content: .unregistered(Make.device(1), topic, token, at: Make.instant(1)))
      ], forgets: [], at: 1)
    backlog.append(
      shard: 0,
      records: [
        JournalRecord(
          sequence: 1, content: .registered(Make.device(2), topic, token, isOwn: true))
      ], forgets: [], at: 2)
    let others = backlog.popBatch(limit: 10, at: 2).others
    #expect(others.map(\.arrivedAt) == [1, 2])
  }

  /// A batch is of one range of sequences, so that its ends say what it covers.
  @Test mutating func aBatchEndsWithItsRange() throws {
    try append(1...3, mayLinger: true)
    try append(1025...1026)
    for expected in [[1, 2, 3], [1025, 1026]] as [[UInt64]] {
      #expect(backlog.deadline == 0)
      let batch = backlog.popBatch(limit: 100, at: 0)
      #expect(batch.notifications.map(\.sequence) == expected)
      #expect(batch.ends.map(\.first) == [expected.first])
      #expect(batch.ends.map(\.last) == [expected.last])
    }
    #expect(backlog.isEmpty)
  }

  @Test mutating func whatIsForgottenIsFoundBehindAGap() throws {
    try append(1...3, mayLinger: true)
    try append(1025...1027, mayLinger: true, forgets: [1026, 500, 3, 1028])
    #expect(backlog.popBatch(limit: 100, at: 10).notifications.map(\.sequence) == [1, 2])
    #expect(backlog.popSettled() == [.persisted(shard: 0, through: 3)])
    let batch = backlog.popBatch(limit: 100, at: 10)
    #expect(batch.notifications.map(\.sequence) == [1025, 1027])
    #expect(batch.forgets == [500, 1028])
    try append(2049...2049, mayLinger: true, forgets: [2049])
    #expect(backlog.popSettled() == [.persisted(shard: 0, through: 2049)])
  }

  @Test mutating func everythingIsTakenOnRequest() throws {
    try append(1...3, mayLinger: true)
    let batch = backlog.popBatch(limit: 10, everything: true, at: 0)
    #expect(batch.notifications.count == 3)
  }

  /// Against a model that knows no indices: whatever happens, each record is taken once or skipped,
  /// in order, and reported once.
  @Test func randomTrafficIsTakenOnceAndInOrder() throws {
    for seed in 0..<300 as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      var backlog = Backlog(lingerNanoseconds: 10, forgetDelayNanoseconds: 100)
      var last: [UInt64] = [0, 1000]
      var reported: [UInt64] = [0, 1000]
      var forgotten: Set<UInt64> = []
      var written: Set<UInt64> = []
      func settle() {
        for case .persisted(let shard, let end) in backlog.popSettled() {
          for sequence in reported[shard] + 1...end {
            #expect(forgotten.contains(sequence) && !written.contains(sequence), "seed \(seed)")
          }
          reported[shard] = end
        }
      }
      for now in 0..<60 as Range<UInt64> {
        let shard = Int.random(in: 0...1, using: &random)
        let count = UInt64.random(in: 0...4, using: &random)
        let mayLinger = Bool.random(using: &random)
        let records = try (0..<count).map { offset in
          try Make.accepted(last[shard] + 1 + offset, mayLinger: mayLinger)
        }
        last[shard] += count
        let base: UInt64 = shard == 0 ? 0 : 1000
        var forgets: [UInt64] = []
        for sequence in base + 1..<last[shard] + 1 where !forgotten.contains(sequence) {
          if UInt8.random(in: 0..<8, using: &random) == 0 { forgets.append(sequence) }
        }
        forgotten.formUnion(forgets)
        backlog.append(shard: shard, records: records, forgets: forgets, at: now)
        settle()
        guard let deadline = backlog.deadline, deadline <= now else { continue }
        let batch = backlog.popBatch(limit: 6, at: now)
        #expect(!batch.isEmpty, "seed \(seed)")
        backlog.removeForgets(of: batch)
        for item in batch.notifications {
          #expect(written.insert(item.sequence).inserted, "seed \(seed)")
        }
        for end in batch.ends {
          #expect(end.first == reported[end.shard] + 1, "seed \(seed)")
          reported[end.shard] = end.last
        }
        settle()
      }
      while !backlog.isEmpty {
        let batch = backlog.popBatch(limit: 6, everything: true, at: 60)
        for item in batch.notifications {
          #expect(written.insert(item.sequence).inserted, "seed \(seed)")
        }
        backlog.removeForgets(of: batch)
        _ = backlog.popSettled()
      }
      let all = Set(1..<last[0] + 1).union(1001..<last[1] + 1)
      #expect(all.subtracting(forgotten).isSubset(of: written), "seed \(seed)")
    }
  }
}
