import Testing

@testable import HTTP2

@Suite struct StreamHistoryTests {
  @Test func everyStreamHasItsFate() {
    var history = StreamHistory()
    #expect(history.fate(of: 1) == .unused)
    for id in [StreamID(1), 3, 9, 11] { history.used(id, isServed: true) }
    history.used(13, isServed: false)
    history.abandoned(3)
    // Again, as the frame's judge may say.
    history.used(3, isServed: false)
    let fates = [1, 3, 5, 7, 9, 11, 13, 15].map { history.fate(of: $0) }
    #expect(
      fates == [
        .endedByClient, .endedByUs, .skipped, .skipped, .endedByClient, .endedByClient, .endedByUs,
        .unused,
      ])
  }

  @Test func theFirstStreamsMayBeSkipped() {
    var history = StreamHistory()
    history.used(5, isServed: true)
    #expect([1, 3].allSatisfy { history.fate(of: $0) == .skipped })
    #expect(history.fate(of: 5) == .endedByClient)
  }

  /// What is forgotten is judged leniently: never an error that may be none.
  @Test func forgettingIsLenient() {
    var history = StreamHistory()
    for id in stride(from: StreamID(1), to: 4_001, by: 2) {
      history.used(id, isServed: true)
      if id % 3 == 0 { history.abandoned(id) }
    }
    for id in stride(from: StreamID(3), to: 4_001, by: 6) {
      #expect(history.fate(of: id) == .endedByUs, "\(id)")
    }
    #expect(history.fate(of: 3_997) == .endedByClient)
  }
}
