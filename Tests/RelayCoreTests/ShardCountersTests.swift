import Testing

@testable import RelayCore

@Suite struct ShardCountersTests {
  /// Every number different, so that a forgotten one is noticed.
  private func counters(_ base: Int) -> ShardCounters {
    var counters = ShardCounters()
    for index in counters.rejected.indices { counters.rejected[index] = base + index }
    for index in counters.sent.indices { counters.sent[index] = base * 2 + index }
    for index in counters.fired.indices { counters.fired[index] = base * 18 }
    counters.received = base * 3
    counters.stored = base * 4
    counters.delivered = base * 5
    counters.expired = base * 6
    counters.discardedUnregistered = base * 7
    counters.notStored = base * 8
    counters.replaced = base * 9
    counters.repeated = base * 19
    counters.journalFailed = base * 10
    counters.waiting = base * 11
    counters.inSlots = base * 12
    counters.inFlight = base * 13
    counters.devices = base * 14
    counters.apps = base * 15
    counters.connections = base * 16
    counters.aliases = base * 17
    return counters
  }

  @Test func sumsAddEveryNumber() {
    var expected = counters(1110)
    for index in expected.rejected.indices { expected.rejected[index] = 1110 + index * 2 }
    for index in expected.sent.indices { expected.sent[index] = 2220 + index * 2 }
    #expect(counters(110) + counters(1000) == expected)
    #expect(counters(7) + ShardCounters() == counters(7))
  }

  @Test func everyEndIsCountedOnce() {
    let reasons: [DiscardReason] = [
      .expired, .unregistered, .notStored, .replaced(by: UniqueID(high: 0, low: 0)), .journalFailed,
      .repeated(of: UniqueID(high: 0, low: 0)),
    ]
    for reason in reasons {
      var counters = ShardCounters()
      counters.received = 1
      #expect(!counters.addsUp)
      counters.count(reason)
      #expect(counters.addsUp, "\(reason)")
      #expect(counters.ended == 1)
    }
    #expect(Set(reasons.map(\.name)).count == reasons.count)
  }

  @Test func everyTermOfTheSumIsSaid() {
    var counters = ShardCounters()
    #expect(counters.balance == "0 received = 0 ended")
    counters.received = 20
    counters.restored = 5
    counters.delivered = 4
    counters.expired = 1
    counters.waiting = 3
    counters.inSlots = 7
    counters.inFlight = 8
    counters.handedOver = 2
    #expect(counters.addsUp)
    #expect(
      counters.balance
        == """
        20 received + 5 restored = 5 ended + 7 held + 8 in flight + 3 waiting for the journal \
        + 2 handed over
        """)
  }

  @Test func addsUpLooksAtEveryPlace() {
    for place in [\ShardCounters.waiting, \.inSlots, \.inFlight, \.delivered, \.expired] {
      var counters = ShardCounters()
      counters.received = 1
      counters[keyPath: place] = 1
      #expect(counters.addsUp)
      counters[keyPath: place] = 2
      #expect(!counters.addsUp)
    }
  }
}
