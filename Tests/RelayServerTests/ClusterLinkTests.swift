import RelaySetup
import Testing

@testable import RelayServer

/// What a node of a cluster tells its loops.
@Suite struct ClusterLinkTests {
  private static let table: [(address: String, fromLoopback: Bool, fromElsewhere: Bool)] = [
    ("10.0.0.2:5223", true, true), ("n2.example:5223", true, true), ("[fd00::2]:5223", true, true),
    ("127.0.0.1:5223", true, false), ("[::1]:5223", true, false), ("localhost:5223", true, false),
    ("0.0.0.0:5223", false, false), ("[::]:5223", false, false), ("10.0.0.2:0", false, false),
    ("", false, false), ("10.0.0.2", false, false), ("n2:70000", false, false),
  ]

  @Test func phonesAreLedOnlyWhereTheyCanGo() {
    let (here, elsewhere) = ("127.0.0.1:5223", "10.0.0.1:5223")
    for (address, fromLoopback, fromElsewhere) in Self.table {
      for (own, isUsable) in [(here, fromLoopback), (elsewhere, fromElsewhere)] {
        let usable = RelayConfiguration.Endpoint(own).flatMap {
          ClusterLink.usable(address, from: $0)
        }
        #expect(usable == (isUsable ? address : nil), "\(address) from \(own)")
      }
    }
  }

  @Test func aLoopIsToldOnceAndTakesAllThatHasCome() {
    let arrivals = Arrivals()
    for round in 0..<3 as Range<UInt8> {
      #expect((0..<3).map { arrivals.add([round, $0]) } == [true, false, false])
      #expect(arrivals.removeAll() == (0..<3).map { [round, $0] })
      #expect(arrivals.removeAll().isEmpty)
    }
  }
}
