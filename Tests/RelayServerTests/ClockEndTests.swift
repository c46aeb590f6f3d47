import DeviceLink
import HTTP2
import Primitives
import RelayClient
import RelayCore
import RelaySetup
import Testing
import Transport

@testable import RelayServer

/// Who may hold up a virtual clock, and what ends an advance.
@Suite(.timeLimit(.minutes(2))) struct ClockEndTests {
  /// A phone takes part in the clock once its secret is checked, though it asks for that before.
  @Test(arguments: [true, false])
  func onlyAKnownPhonesBarrierCounts(isKnown: Bool) throws {
    let time = VirtualTime(start: Instant(milliseconds: 1_790_000_000_000))
    let scene = ConnectionScene { $0.clock = .virtual(time) }
    let peer = try scene.connect(provider: false)
    let (device, secret) = try peer.enroll()
    let word = isKnown ? secret : "another"
    let stream = try peer.request(
      "POST", "/v1/devices/\(device)/stream", [("authorization", "bearer \(word)")],
      isComplete: false)
    var line: [UInt8] = []
    UpLine.barrier(number: 0, next: nil).write(to: &line)
    try peer.client.http2.write(line.span, to: stream)
    // Head and line are one read.
    try peer.exchange()
    #expect(peer.statuses[stream] == (isKnown ? 200 : 401))
    #expect(scene.runner.timers.followers.streams.count == (isKnown ? 1 : 0))
  }

  @Test func anAdvanceEndsWhenTheClockIsToldToStand() async throws {
    try await VirtualClockTests().withScene {
      $0.keepAlive = .seconds(1)
    } _: { scene in
      let identity = try await scene.devices.enroll()
      let stream = try await scene.devices.openStream(of: identity)
      let lines = VirtualClockTests().follow(stream)
      while await scene.relay.followerCount() == 0 {}
      let (clock, start) = (try scene.clock, try scene.clock.now)
      let advance = Task { try await clock.advance(.by(.hours(24 * 300))) }
      while clock.now == start { await Task.yield() }
      try await clock.setRate(0)
      let stopped = clock.now
      #expect(stopped < start + .hours(24 * 300))
      await #expect(throws: VirtualClock.ClockError.stopped(now: stopped)) {
        try await advance.value
      }
      // It goes on from there when it is told to.
      _ = try await clock.advance(.by(.seconds(5)))
      #expect(clock.now == stopped + .seconds(5))
      stream.cancel()
      _ = await lines.result
    }
  }
}
