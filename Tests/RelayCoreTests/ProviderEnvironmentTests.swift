import Primitives
import Testing

@testable import RelayCore

@Suite("Provider environments") struct ProviderEnvironmentTests {
  @Test(
    arguments: [
      ("api.push.apple.com", .production), ("api.push.apple.com:443", .production),
      ("API.Push.Apple.com:2197", .production), ("api.sandbox.push.apple.com", .sandbox),
      ("api.development.push.apple.com", .sandbox), ("gateway.sandbox.push.apple.com", .sandbox),
      ("api-broadcast.push.apple.com", .production),
      ("api-manage-broadcast.sandbox.push.apple.com:2195", .sandbox), ("127.0.0.1:2197", nil),
      ("localhost", nil), ("push.apple.com", nil), ("x.api.push.apple.com", nil), ("", nil),
      ("api.push.apple.com.example.com", nil), ("[::1]:443", nil),
    ] as [(String, ProviderEnvironment?)])
  func aHostNameSaysWhichServiceIsMeant(host: String, expected: ProviderEnvironment?) {
    #expect(ProviderEnvironment(host: host.utf8) == expected)
  }

  @Test(arguments: [(ProviderEnvironment.sandbox, "53414e44"), (.production, "50524f44")])
  func aMintedTokenKnowsItsService(environment: ProviderEnvironment, digits: String) {
    let token = DeviceToken(random: (.max, 2, 3), routingKey: 4, for: environment)
    #expect(token.environment == environment && token.routingKey == 4)
    #expect(token.hexadecimal.hasPrefix(digits + "ffffffff"))
    // A client sends digits.
    #expect(DeviceToken(hexadecimal: token.hexadecimal.uppercased())?.environment == environment)
    // A token of another length was brought along.
    #expect(DeviceToken(hexadecimal: String(token.hexadecimal.dropLast(2)))?.environment == nil)
    #expect(DeviceToken(random: (1, 2, 3), routingKey: 4, for: nil).environment == nil)
  }

  @Test func aChannelKnowsItsService() {
    let services = [nil] + ProviderEnvironment.allCases.map(Optional.some)
    for own in services {
      let id = ChannelID(random: (.max, 7), for: own)
      #expect(id.environment == own && id.low == 7 && id.high & 0xFFFF_FFFF == 0xFFFF_FFFF)
      // As clients have it, and in paths.
      #expect(ChannelID(id.description)?.environment == own)
      #expect(ChannelID(id.pathText)?.environment == own)
      for asked in services {
        #expect(id.isThere(for: asked) == (own == nil || asked == nil || own == asked))
      }
    }
  }

  @Test(arguments: ProviderEnvironment.allCases)
  func aTokenOfTheOtherServiceIsBad(asked: ProviderEnvironment) throws {
    for own in [nil, .sandbox, .production] as [ProviderEnvironment?] {
      for isSaid in [true, false] {
        var head = ProviderRequestHead()
        var topic: Topic?
        let token = DeviceToken(random: (9, 2, 3), routingKey: 4, for: own)
        head.parse(.path, Array("/3/device/\(token.hexadecimal)".utf8).span, recentTopic: &topic)
        if isSaid { head.environment = asked }
        var warnings = CaseSet<PayloadWarning>()
        var refusal: Rejection?
        do throws(Rejection) {
          _ = try head.notification(
            topic: .vacant, body: Array(#"{"aps":{"alert":"x"}}"#.utf8),
            uniqueID: UniqueID(high: 1, low: 2), isStrict: false, at: .init(milliseconds: 1),
            warnings: &warnings)
        } catch {
          refusal = error
        }
        let isOther = isSaid && own != nil && own != asked
        #expect(refusal == (isOther ? .badDeviceToken : nil), "\(String(describing: own))")
      }
    }
  }
}
