import Testing

@testable import RelayCore

@Suite struct SequenceRangesTests {
  @Test func sequencesRiseAndLeadBack() {
    for bits in [0, 1, 3, SequenceRanges.defaultBits] {
      let ranges = SequenceRanges(first: 1000, bits: bits)
      var last: UInt64 = 999
      for ordinal in UInt64(0)..<100 {
        let sequence = ranges.sequence(ordinal)
        #expect(sequence > last)
        #expect(ranges.ordinal(of: sequence) == ordinal)
        last = sequence
      }
    }
    #expect(SequenceRanges(first: 5, bits: 2).sequence(3) == 8)
    #expect(SequenceRanges(first: 5, bits: 2).sequence(4) == 5 + 1024)
  }

  /// However long one of them runs: it never takes what is another's.
  @Test func shardsNeverShareASequence() {
    let bits = 2
    var owners: [UInt64: Int] = [:]
    for shard in 0..<1 << SequenceRanges.shardBits {
      let ranges = SequenceRanges(first: UInt64(1024 + shard << bits), bits: bits)
      for ordinal in UInt64(0)..<41 {
        #expect(owners.updateValue(shard, forKey: ranges.sequence(ordinal)) == nil)
      }
    }
  }

  @Test func aShardGoesOnInItsNextRange() {
    var fixture = ShardFixture(.manual, firstSequence: 8, rangeBits: 2)
    let app = fixture.phoneWithApp()
    let pushes = (0..<5).map { _ in fixture.push(.visible, app) }
    var requests: [RequestID] = []
    var sequences: [UInt64] = []
    for push in pushes {
      let effects = fixture.submit(push)
      requests.append(fixture.lastRequest)
      for case .persist(let record) in effects { sequences.append(record.sequence) }
    }
    #expect(sequences == [10, 11, 1032, 1033, 1034])
    let first = fixture.handle(.journal(.persisted(through: 1032)))
    #expect(first.contains(fixture.accepted(pushes[2], requests[2])))
    #expect(!first.contains(fixture.accepted(pushes[3], requests[3])))
    let rest = fixture.handle(.journal(.persistFailed(through: 1034)))
    #expect(rest.contains(fixture.rejected(.serviceUnavailable, requests[4])))
    #expect(fixture.connect(app.phone).effects.sendings == [Sending(pushes[2], .connect)])
    expectSound(fixture)
  }

  /// What waits on both sides of the gap is found by its sequence.
  @Test func anAcknowledgementFindsItsRecordBehindTheGap() {
    var fixture = ShardFixture(.manual, firstSequence: 8, rangeBits: 1)
    let app = fixture.phoneWithApp()
    _ = fixture.persistAll()
    let (connection, _) = fixture.connect(app.phone)
    let pushes = (0..<3).map { _ in fixture.push(.visible, app) }
    for push in pushes { _ = fixture.submit(push) }
    let effects = fixture.ack(pushes[2], connection)
    #expect(effects.contains(fixture.accepted(pushes[2])))
    #expect(effects.contains(.forget(fixture.lastSequence)))
    expectSound(fixture)
  }
}
