import Primitives
import RelayCore
import Testing

@testable import RelayServer

@Suite struct LoopLedgerTests {
  private let id = UniqueID(high: 1, low: 2)
  private let topic = Topic("com.example.app")!
  private let token = DeviceToken(random: (1, 2, 3), routingKey: 4)

  /// What is in memory is stored as soon as it was asked for, once.
  @Test func memoryAnswersUpToTheLastRecord() {
    var ledger = LoopLedger(ServerSettings(), FeedOutlet())
    let nothing = ledger.stored()
    #expect(nothing == nil)
    let content = JournalRecord.Content.unregistered(
      DeviceID(id), topic, token, at: Instant(milliseconds: 5))
    ledger.persist(JournalRecord(sequence: 7, content: content))
    ledger.persist(JournalRecord(sequence: 8, content: .forgotten(DeviceID(id))))
    ledger.forget(7)
    let stored = ledger.stored()
    #expect(stored?.through == 8)
    #expect(stored?.retired.map(\.token) == [token])
    let again = ledger.stored()
    #expect(again == nil)
  }

  @Test func stepsAreCountedAndKeptAndTold() async {
    let feed = FeedOutlet()
    let (stream, continuation) = AsyncStream.makeStream(of: FeedBatch.self)
    feed.open(continuation)
    var ledger = LoopLedger(ServerSettings(), feed)
    let fault = FaultMark(name: "busy", place: "provider", action: "drop")
    for step in [DeliveryStep.storedOffline, .faulted(fault), .delivered] {
      var event = DeliveryEvent(at: Instant(milliseconds: 1), uniqueID: id, step: step)
      ledger.log(&event)
    }
    #expect(ledger.metrics.storedOffline == 1 && ledger.lives.steps(of: id).count == 3)
    feed.flush()
    continuation.finish()
    var told = 0
    for await batch in stream { told += batch.items.count }
    #expect(told == 2, "a fault tells of itself")
  }
}
