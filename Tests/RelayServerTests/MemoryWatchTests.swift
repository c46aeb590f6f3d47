import Logging
import RelayCore
import Testing

@testable import RelayServer

/// At the limit of memory nothing is taken that stays; the rest goes on.
@Suite struct MemoryWatchTests {
  private let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  @Test func itIsFullUntilASixteenthIsFree() {
    let watch = MemoryWatch(limitBytes: 1600, quiet)
    for (used, isFull) in [
      (1600, false), (1601, true), (1501, true), (1500, false), (1600, false), (1700, true),
    ] {
      #expect(watch.record(used) == isFull && watch.isFull == isFull, "\(used)")
    }
  }

  /// A byte is less than any process has, and all that this machine could ever have is more.
  @Test func theProcessIsMeasured() {
    let small = MemoryWatch(limitBytes: 1, quiet)
    small.look()
    #expect(small.isFull)
    let large = MemoryWatch(limitBytes: 1 << 50, quiet)
    #expect(large.record(1 << 51))
    large.look()
    #expect(!large.isFull)
  }

  @Test func whatWouldStayIsRefusedAndTheRestGoesOn() throws {
    let watch = MemoryWatch(limitBytes: 1 << 50, quiet)
    let scene = ConnectionScene { $0.memory = watch }
    let device = try scene.connect(provider: false)
    let provider = try scene.connect(provider: true)
    let (id, secret) = try device.enroll()
    let fields = [("authorization", "bearer \(secret)")]
    func statuses() throws -> [Int?] {
      let push = try provider.request(
        "POST", "/3/device/" + String(repeating: "ab", count: 32), [("apns-topic", "a.b")],
        body: Array(#"{"aps":{"alert":"x"}}"#.utf8))
      try provider.exchange()
      let enrolment = try device.request("POST", "/v1/devices")
      let registration = try device.request("PUT", "/v1/devices/\(id)/apps/a.b", fields)
      let inspection = try device.request("GET", "/v1/devices/\(id)", fields)
      try device.exchange()
      return [provider.statuses[push]]
        + [enrolment, registration, inspection].map { device.statuses[$0] }
    }
    // No phone has this token.
    #expect(try statuses() == [400, 201, 200, 200])
    watch.record(1 << 51)
    scene.runner.isFull = watch.isFull
    #expect(try statuses() == [503, 503, 503, 200])
    #expect(scene.runner.history.refusals.last?.status == 503)
    scene.runner.look(at: watch)
    #expect(try statuses() == [400, 201, 200, 200])
  }
}
