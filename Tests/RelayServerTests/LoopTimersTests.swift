import NIOCore
import NIOEmbedded
import Primitives
import RelayCore
import Testing

@testable import RelayServer

@Suite struct LoopTimersTests {
  @Test func theFirstMomentCounts() throws {
    let loop = EmbeddedEventLoop()
    var (timers, woken) = (LoopTimers(), [Int64]())
    func wake(_ seconds: Int64) {
      timers.wake(at: Instant(milliseconds: seconds * 1000)) {
        loop.scheduleTask(in: .seconds(seconds)) { woken.append(seconds) }
      }
    }
    for seconds in [5, 7, 3, 4] as [Int64] { wake(seconds) }
    loop.advanceTime(by: .seconds(10))
    #expect(woken == [3])
    timers.cancelWake()
    wake(6)
    timers.cancelWake()
    loop.advanceTime(by: .seconds(10))
    #expect(woken == [3])
  }
}

@Suite struct ClockFollowersTests {
  private let device = DeviceID(UniqueID(high: 1, low: 2))
  private let stream = StreamAddress(loop: 0, connection: 1, stream: 3)
  private let start = Instant(milliseconds: 0)
  private let now = Instant(milliseconds: 1000)

  /// So that time goes on beside it.
  @Test func whatIsOverIsPutOffEachTimeForLonger() {
    var followers = ClockFollowers()
    var pauses: [Int64] = []
    for wanted in [start, now, now, now + .milliseconds(9), now] {
      _ = followers.add(stream, device, next: wanted, at: now)
      pauses.append(((followers.next ?? start) - now).milliseconds)
    }
    #expect(pauses == [1, 2, 4, 9, 1])
    for _ in 0..<40 { _ = followers.add(stream, device, next: start, at: now) }
    #expect(followers.next == now + .milliseconds(65_536))
  }

  @Test func aPhoneIsAskedWhenItWasSpokenTo() throws {
    var followers = ClockFollowers()
    let isNew = followers.add(stream, device, next: now, at: start)
    let (first, second) = (followers.ask(), followers.ask())
    let asked = try #require(first.first)
    #expect(isNew && followers.awaited == [device] && second.isEmpty)
    followers.answered(stream, asked.number + 1, next: nil, at: start)
    #expect(followers.awaited == [device], "the answer to something else")
    followers.answered(stream, asked.number, next: now, at: start)
    let third = followers.ask()
    #expect(followers.awaited.isEmpty && third.isEmpty)
    let due = followers.touchDue(at: now)
    let fourth = followers.ask()
    #expect(due == 1 && fourth.map(\.stream) == [stream])
  }

  /// As long as a phone listens, only that stream is asked; then that of orders is, at once.
  @Test func ordersStandInForAPhoneThatIsAway() {
    var followers = ClockFollowers()
    let orders = StreamAddress(loop: 0, connection: 1, stream: 7)
    _ = followers.add(stream, device, next: nil, at: start)
    _ = followers.add(orders, device, next: now, at: start, takesOrders: true)
    #expect(followers.next == nil && followers.ask().map(\.stream) == [stream])
    let due = followers.touchDue(at: now)
    #expect(due == 0)
    followers.remove(stream)
    #expect(followers.next == now && followers.ask().map(\.stream) == [orders])
    let second = StreamAddress(loop: 0, connection: 1, stream: 9)
    let third = StreamAddress(loop: 0, connection: 1, stream: 11)
    for stream in [second, third] { _ = followers.add(stream, device, next: nil, at: start) }
    // The older of two goes, as when it is superseded.
    followers.remove(second)
    #expect(followers.next == nil && followers.awaited == [device], "it was asked before")
  }

  @Test func whoStaysIsNotWaitedFor() {
    var followers = ClockFollowers()
    let other = StreamAddress(loop: 0, connection: 1, stream: 5)
    for stream in [stream, other] { _ = followers.add(stream, device, next: nil, at: start) }
    _ = followers.ask()
    let then = followers
    let orders = StreamAddress(loop: 0, connection: 1, stream: 7)
    _ = followers.add(orders, device, next: nil, at: start, takesOrders: true)
    followers.goBack(to: then, staying: [stream])
    #expect(Set(followers.streams) == [stream, orders] && followers.awaited.isEmpty)
    followers.remove(orders)
    let isNew = followers.add(stream, device, next: now, at: start)
    #expect(!isNew && followers.next == now)
    followers.remove(stream)
    #expect(followers.next == nil)
  }
}
