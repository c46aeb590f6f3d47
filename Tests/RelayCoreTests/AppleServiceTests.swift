import Testing

@testable import RelayCore

@Suite struct AppleServiceTests {
  /// As Apple's pages have them; what is not there is nobody's.
  @Test(
    arguments: [
      ("api.push.apple.com:443", .provider), ("api.push.apple.com:2197", .provider),
      ("api.sandbox.push.apple.com:443", .provider), ("api.sandbox.push.apple.com:2197", .provider),
      ("api.development.push.apple.com:443", .provider),
      ("api-broadcast.push.apple.com:443", .provider),
      ("api-broadcast.sandbox.push.apple.com:2197", .provider),
      ("api-manage-broadcast.push.apple.com:2196", .channels),
      ("api-manage-broadcast.sandbox.push.apple.com:2195", .channels),
      ("gateway.push.apple.com:2195", .legacy), ("gateway.sandbox.push.apple.com:2195", .legacy),
      ("feedback.push.apple.com:2196", .feedback),
      ("feedback.sandbox.push.apple.com:2196", .feedback),
      ("api.push.apple.com:80", nil), ("api.push.apple.com:2195", nil),
      ("gateway.push.apple.com:2196", nil), ("push.apple.com:443", nil), ("apple.com:443", nil),
      ("api.push.apple.com.example.org:443", nil), ("xapi.push.apple.com:443", nil),
      ("17.188.143.34:443", nil), ("[::1]:443", nil),
    ] as [(String, AppleService?)])
  func everyNameAndPortThatIsDocumented(place: String, service: AppleService?) throws {
    #expect(AppleService(at: try #require(ConnectTarget(place))) == service)
  }

  /// A program finds its place by name and port alone.
  @Test func noPlaceIsOfTwoServices() {
    let places = AppleService.allCases.flatMap { service in
      service.hosts.flatMap { host in service.ports.map { "\(host):\($0)" } }
    }
    #expect(Set(places).count == places.count)
    #expect(AppleService.names.count == 11)
    #expect(AppleService.names.allSatisfy { $0.hasSuffix(".push.apple.com") })
  }
}
