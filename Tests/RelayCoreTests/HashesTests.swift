import Primitives
import Testing

@testable import RelayCore

@Suite struct HashesTests {
  /// Each byte of a token counts, in its words and behind them.
  @Test func tokensThatDifferHaveOtherHashes() {
    func hash(_ bytes: [UInt8]) -> UInt32? {
      DeviceToken(bytes: bytes.span).map { KeyedHash.hash($0) }
    }
    for count in [2, 8, 31, 32, 33, 100] {
      let bytes = [UInt8](repeating: 0x5A, count: count)
      #expect(hash(bytes) != nil && hash(bytes) == hash(bytes), "\(count) bytes")
      for index in 0..<count {
        // By chance, one in 2^32, one of them has the same hash; never all eight.
        let others = (0..<8).map { bit in
          var other = bytes
          other[index] ^= 1 << UInt8(bit)
          return hash(other)
        }
        #expect(others.contains { $0 != hash(bytes) }, "\(count) bytes, byte \(index)")
      }
    }
  }

  @Test func connectionsThatDifferHaveOtherHashes() {
    let connection = ConnectionID(loop: 1, connection: 2, stream: 3)
    let others = [
      ConnectionID(loop: 2, connection: 2, stream: 3),
      ConnectionID(loop: 1, connection: 3, stream: 3),
      ConnectionID(loop: 1, connection: 2, stream: 5),
      ConnectionID(loop: 1, connection: 2, stream: 3, node: 1),
    ]
    let hash = KeyedHash.hash(connection)
    #expect(KeyedHash.hash(connection) == hash)
    // A chance of one in 2^32 for each, whatever the keys of this process are.
    #expect(others.allSatisfy { KeyedHash.hash($0) != hash })
  }
}
