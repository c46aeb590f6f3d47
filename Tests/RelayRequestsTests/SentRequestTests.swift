import Primitives
import RelayCore
import RelayRequests
import Testing

@Suite("Sent requests") struct SentRequestTests {
  @Test func whatDiffersFromRequestToRequestIsFilledIn() throws {
    let request = try Sample.push(9)
    #expect(
      request.headers.map { "\($0.name)=\($0.value)" } == [
        ":method=POST", ":path=/3/device/" + String(repeating: "ab", count: 32),
        "apns-id=\(UniqueID(high: 1, low: 9))", "content-length=19", "apns-priority=10", "x=a: b",
      ])
    #expect(request.topic == "com.example.app" && request.pushType == "alert")
  }

  @Test func aRefusedOneIsShownAsItCame() throws {
    let request = Sample.refused(1, "{]")
    #expect(request.header(":path") == "/3/device/zz" && request.token == nil)
    #expect(request.topic == "com.example.other" && request.pushType == nil)
    #expect(request.payload == nil && request.apnsID == request.uniqueID)
  }
}
