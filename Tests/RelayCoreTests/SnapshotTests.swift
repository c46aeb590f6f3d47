import Testing

@testable import RelayCore

@Suite struct SnapshotTests {
  /// Every number different, so that a forgotten one is noticed.
  private func snapshot(_ base: Int) -> Snapshot {
    var snapshot = Snapshot()
    for index in snapshot.rejected.indices { snapshot.rejected[index] = base + index }
    for index in snapshot.sent.indices { snapshot.sent[index] = base * 2 + index }
    snapshot.received = base * 3
    snapshot.stored = base * 4
    snapshot.delivered = base * 5
    snapshot.expired = base * 6
    snapshot.discardedUnregistered = base * 7
    snapshot.notStored = base * 8
    snapshot.replaced = base * 9
    snapshot.journalFailed = base * 10
    snapshot.waiting = base * 11
    snapshot.inSlots = base * 12
    snapshot.inFlight = base * 13
    snapshot.devices = base * 14
    snapshot.apps = base * 15
    snapshot.connections = base * 16
    snapshot.aliases = base * 17
    return snapshot
  }

  @Test func sumsAddEveryNumber() {
    var expected = snapshot(1110)
    for index in expected.rejected.indices { expected.rejected[index] = 1110 + index * 2 }
    for index in expected.sent.indices { expected.sent[index] = 2220 + index * 2 }
    #expect(snapshot(110) + snapshot(1000) == expected)
    #expect(snapshot(7) + Snapshot() == snapshot(7))
  }

  @Test func everyEndIsCountedOnce() {
    let reasons: [DiscardReason] = [
      .expired, .unregistered, .notStored, .replaced(by: UniqueID(high: 0, low: 0)), .journalFailed,
    ]
    for reason in reasons {
      var snapshot = Snapshot()
      snapshot.received = 1
      #expect(!snapshot.addsUp)
      snapshot.count(reason)
      #expect(snapshot.addsUp, "\(reason)")
      #expect(snapshot.ended == 1)
    }
    #expect(Set(reasons.map(\.name)).count == reasons.count)
  }

  @Test func addsUpLooksAtEveryPlace() {
    for place in [\Snapshot.waiting, \.inSlots, \.inFlight, \.delivered, \.expired] {
      var snapshot = Snapshot()
      snapshot.received = 1
      snapshot[keyPath: place] = 1
      #expect(snapshot.addsUp)
      snapshot[keyPath: place] = 2
      #expect(!snapshot.addsUp)
    }
  }
}
