import Primitives
import Testing

@testable import RelayCore

@Suite struct AddressesTests {
  /// There are several for each phone, and one in many an effect: the node is in what was padding.
  @Test func anAddressHasTwelveBytes() {
    #expect(MemoryLayout<StreamAddress>.size == 12)
    #expect(MemoryLayout<StreamAddress>.stride == 12)
  }

  @Test(arguments: [0, 1, .max] as [UInt16])
  func nodeAndLoopAreOneNumber(_ node: UInt16) {
    for loop in [0, 1, .max] as [UInt16] {
      let address = StreamAddress(loop: loop, connection: 2, stream: 3, node: node)
      #expect(address.place == UInt32(node) * 65_536 + UInt32(loop))
      #expect(StreamAddress(place: address.place, connection: 2, stream: 3) == address)
    }
    #expect(StreamAddress(loop: 7, connection: 2, stream: 3).node == 0)
  }

  @Test func secretsAreComparedWhole() {
    let secret = SecretHash(words: (1, 2, 3, 4))
    #expect(secret == SecretHash(words: (1, 2, 3, 4)))
    for other in [(0, 2, 3, 4), (1, 0, 3, 4), (1, 2, 0, 4), (1, 2, 3, 0)]
      as [(
        UInt64, UInt64, UInt64, UInt64
      )]
    {
      #expect(secret != SecretHash(words: other))
    }
    // Two differences do not cancel each other out.
    #expect(SecretHash(words: (1, 1, 0, 0)) != SecretHash(words: (0, 0, 0, 0)))
  }

  @Test func deviceIDsAreWrittenAsUUIDs() {
    let text = "123e4567-e89b-12d3-a456-426614174000"
    #expect(DeviceID(text)?.description == text)
    #expect(DeviceID(text)?.routingKey == 0x123E_4567_E89B_12D3)
    #expect(DeviceID("nobody") == nil)
  }
}
