import Primitives
import Testing

@testable import RelayCore

@Suite struct LimitsTests {
  @Test func relationsHold() {
    #expect(Limits.relationsHold)
  }

  @Test func theNumbersOfTheDesign() {
    #expect(Limits.payloadBytes == 4096)
    #expect(Limits.voipPayloadBytes == 5120)
    #expect(Limits.collapseIDBytes == 64)
    #expect(Limits.deviceTokenBytes == 2...100)
    #expect(Limits.storage == .days(30))
    for type in PushType.allCases {
      let limit = type == .voip ? Limits.voipPayloadBytes : Limits.payloadBytes
      #expect(type.payloadLimitBytes == limit)
    }
  }
}
