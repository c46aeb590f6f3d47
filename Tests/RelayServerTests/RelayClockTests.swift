import AdminAPI
import DeviceLink
import Primitives
import RelayClient
import RelayCore
import Synchronization
import TestSupport
import Testing

@testable import RelayServer

/// The machine's clock is set while a relay runs (`SystemTime.pretended`).
@Suite struct RelayClockTests {
  private static let topic = "com.example.app"

  @Test(arguments: [.hours(1), .hours(-1), .days(30), .days(-30)] as [Interval])
  func aRelayFollowsTheMachinesClock(_ step: Interval) async throws {
    try await LoopbackRelay.runRelay { relay, addresses, _ in
      guard case .system(let time) = relay.settings.clock, let loops = relay.inbox.loops else {
        Issue.record("no relay that goes by the machine's clock")
        return
      }
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let devices = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      let phone = try await devices.enroll()
      let token = try await devices.register(topic: Self.topic, of: phone)
      let stream = try await devices.openStream(of: phone)
      for _ in 0..<3 {
        #expect(try await push(token, isSilent: true, over: provider).status == 200)
      }
      #expect(try await devices.status(of: phone).apps[0].budget.remaining == 0)
      let before = relay.now
      time.pretended.store(step.milliseconds, ordering: .relaxed)
      // Looked at once a second; then every loop.
      while await !loops.onEach({ $0.clock.offset }).allSatisfy({ $0 != .zero }) {
        _ = try await devices.status(of: phone)
      }
      #expect(abs(((relay.now - before) - step).milliseconds) < 60_000)
      #expect(time.step() == nil, "once")
      // What was used stays used, and what expires in ten minutes by the new time does not now.
      let status = try await devices.status(of: phone).apps[0].budget
      #expect(status.remaining == 0)
      let wait = (status.heldUntil ?? 0) - relay.now.milliseconds
      #expect((1...1_200_000).contains(wait))
      stream.finish()
      while try await devices.status(of: phone).connected {}
      let expiration = relay.now.milliseconds / 1000 + 600
      let answer = try await push(token, expiration: expiration, over: provider)
      #expect(answer.status == 200)
      #expect(
        try await devices.status(of: phone).apps[0].visible?.expiresAt == expiration * 1000)
      await provider.close()
      await devices.client.close()
    }
  }

  private func push(
    _ token: String, isSilent: Bool = false, expiration: Int64? = nil, over client: RelayClient
  ) async throws -> PushAnswer {
    let aps = isSilent ? #""content-available":1"# : #""alert":"x""#
    var push = PushRequest(token: token, payload: Array(#"{"aps":{\#(aps)}}"#.utf8))
    push.topic = Self.topic
    push.pushType = isSilent ? "background" : "alert"
    push.priority = isSilent ? 5 : 10
    push.expirationSeconds = expiration
    return try await client.push(push, providerToken: nil)
  }
}
