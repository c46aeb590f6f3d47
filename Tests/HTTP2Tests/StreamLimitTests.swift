import Testing

@testable import HTTP2

@Suite struct StreamLimitTests {
  @Test func whatWasAcknowledgedOrMayBeKnownIsAllowed() {
    var limit = StreamLimit()
    limit.announced(1)
    #expect(limit.allows(1_000), "the client may not have read it")
    limit.acknowledged()
    #expect(limit.allows(1) && !limit.allows(2))
    limit.announced(1_000)
    limit.announced(5)
    #expect(limit.allows(1_000) && !limit.allows(1_001), "the client may have read it")
    limit.acknowledged()
    #expect(limit.allows(1_000))
    limit.acknowledged()
    #expect(limit.allows(5) && !limit.allows(6))
  }
}
