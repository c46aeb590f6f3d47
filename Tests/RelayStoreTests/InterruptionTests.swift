import Dispatch
import GRDB
import Synchronization
import Testing

@testable import RelayStore

@Suite("Interruption") struct InterruptionTests {
  @Test func whatIsBeingDoneIsBrokenOff() throws {
    let queue = try DatabaseQueue()
    let interruption = Interruption()
    let isOver = Atomic(false)
    DispatchQueue.global().async {
      while !isOver.load(ordering: .relaxed) { interruption.request() }
    }
    let error = #expect(throws: DatabaseError.self) {
      try interruption.run(
        { database in
          // Never ends by itself.
          try database.execute(
            sql: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT max(i) FROM n")
        }, on: queue)
    }
    #expect(error?.resultCode == .SQLITE_INTERRUPT)
    // The rest is left alone, although requests go on.
    for _ in 0..<200 {
      let one = try queue.read { try Int.fetchOne($0, sql: "SELECT 1") }
      #expect(one == 1)
    }
    isOver.store(true, ordering: .relaxed)
  }

  @Test func aRequestWithoutWorkDoesNothing() throws {
    let interruption = Interruption()
    interruption.request()
    try interruption.run({ try $0.execute(sql: "SELECT 1") }, on: try DatabaseQueue())
    interruption.request()
  }
}
