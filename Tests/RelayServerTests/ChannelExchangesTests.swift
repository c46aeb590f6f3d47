import HTTP2
import Primitives
import RelayCore
import Testing

@testable import RelayServer

/// Refusals that no client outside can cause alone, on a connection of channel management.
@Suite struct ChannelExchangesTests {
  private func read(_ method: String, _ more: [String: String] = [:]) -> ChannelRequest {
    var request = ChannelRequest()
    let fields = [":method": method, ":path": "/1/apps/com.example.app/channels"]
    for (name, value) in fields.merging(more, uniquingKeysWith: { $1 }) {
      request.parse(Array(name.utf8).span, Array(value.utf8).span)
    }
    return request
  }

  private func begin(
    _ exchanges: inout ChannelExchanges, _ stream: StreamID, _ request: ChannelRequest,
    isDraining: Bool = false, refusal: ChannelRefusal? = nil
  ) -> ChannelRefusal? {
    exchanges.begin(
      stream, request, isManagement: true, isDraining: isDraining, at: Instant(milliseconds: 0)
    ) { _, _ throws(ChannelRefusal) in
      if let refusal { throw refusal }
    }
    guard case .refused(let refusal) = exchanges.exchanges[stream]?.stage else { return nil }
    return refusal
  }

  @Test func aRelayThatEndsSaysSo() {
    var exchanges = ChannelExchanges()
    #expect(begin(&exchanges, 1, read("GET"), isDraining: true) == .shutdown)
  }

  @Test func soManyAreUnderWayOnAConnection() {
    var exchanges = ChannelExchanges()
    for number in 0..<Limits.channelRequests {
      #expect(begin(&exchanges, StreamID(2 * number + 1), read("GET")) == nil)
    }
    #expect(begin(&exchanges, 9001, read("GET")) == .serviceUnavailable)
    exchanges.forget(1)
    exchanges.forget(9001)
    #expect(begin(&exchanges, 9003, read("GET")) == nil)
  }

  /// Path, method and id come before the credentials.
  @Test func theOrderOfChecksIsAsDocumented() {
    var exchanges = ChannelExchanges()
    let bad = ["apns-request-id": "1"]
    #expect(begin(&exchanges, 1, read("PUT", bad), refusal: .badCertificate) == .methodNotAllowed)
    #expect(begin(&exchanges, 3, read("GET", bad), refusal: .badCertificate) == .badMessageID)
    #expect(begin(&exchanges, 5, read("GET"), refusal: .badCertificate) == .badCertificate)
    #expect(
      begin(&exchanges, 7, read("GET", [":path": "/"]), refusal: .badCertificate) == .badPath)
  }

  /// What is refused keeps no body, and an incomplete request ends with its peer.
  @Test func nothingIsKeptInVain() {
    var exchanges = ChannelExchanges()
    _ = begin(&exchanges, 1, read("GET"))
    _ = begin(&exchanges, 3, read("GET"), refusal: .badCertificate)
    #expect(exchanges.count == 2 && !exchanges.owesAnswers)
    exchanges.forgetIncomplete()
    #expect(exchanges.count == 0)
  }

  @Test func allCredentialsRefusalsHaveAReasonHere() {
    let expected: [Rejection: ChannelRefusal] = [
      .badCertificate: .badCertificate, .badCertificateEnvironment: .badCertificateEnvironment,
      .missingProviderToken: .missingProviderToken, .expiredProviderToken: .expiredProviderToken,
      .invalidProviderToken: .invalidProviderToken, .topicDisallowed: .topicMismatch,
      .unrelatedKeyIDInToken: .invalidProviderToken,
      .badEnvironmentKeyIDInToken: .invalidProviderToken,
      .tooManyProviderTokenUpdates: .tooManyProviderTokenUpdates,
    ]
    for (rejection, refusal) in expected {
      #expect(ChannelRefusal(credentials: rejection) == refusal)
    }
  }
}
