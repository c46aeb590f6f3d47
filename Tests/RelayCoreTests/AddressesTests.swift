import Primitives
import Testing

@testable import RelayCore

@Suite struct AddressesTests {
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
