import Primitives
import RelayCore
import TestSupport
import Testing

@testable import RelayServer

/// The machine's time is an argument, so nothing waits for it.
struct BystandersTests {
  private static let start = Instant(milliseconds: 1_790_000_000_000)
  private static let stream = StreamAddress(loop: 0, connection: 1, stream: 1)
  private static let device = DeviceID(UniqueID(high: 1, low: 2))
  private static let configuration = Shard.Configuration(
    keepAlive: .minutes(15), keepAliveTimeout: .seconds(30), ackTimeout: .seconds(60))
  private static let connected = Event.connected(
    DeviceCredential(device: device, secret: SecretHash(words: (1, 2, 3, 4))), stream)

  private var bystanders = Bystanders(configuration)

  init() { bystanders.note(Self.connected, at: Self.start) }

  private mutating func due(after interval: Interval, hasLeft: Bool = true) -> [Event] {
    let due = bystanders.takeDue(at: Self.start + interval) { stream in
      #expect(stream == Self.stream)
      return hasLeft
    }
    #expect(due.allSatisfy { $0.device == Self.device })
    return due.map(\.event)
  }

  private mutating func say(_ event: Event, after interval: Interval) {
    bystanders.note(event, at: Self.start + interval)
  }

  private mutating func send(_ push: Notification, after interval: Interval) {
    bystanders.sent(push, to: Self.stream, at: Self.start + interval)
  }

  private static let keepAliveDue = [Event.keepAliveDue(stream)]

  private static func push(_ number: UInt64) -> Notification {
    Notification(
      uniqueID: UniqueID(high: 1, low: number), apnsID: UniqueID(high: 2, low: number),
      token: DeviceToken(random: (1, 2, 3), routingKey: 4), topic: Topic("com.example.app")!,
      notificationClass: .visible, pushType: .alert, priority: .immediate,
      wakesApp: false, collapseID: [], expiration: .once, payload: [])
  }

  private static func missed(_ push: Notification) -> Event {
    .acknowledgementDue(stream, push.uniqueID)
  }

  @Test mutating func aKeepAliveIsDueAndThenItsAnswer() {
    #expect(due(after: .minutes(15) - .milliseconds(1)) == [])
    #expect(due(after: .minutes(15)) == Self.keepAliveDue)
    #expect(due(after: .minutes(15) + .milliseconds(29_999)) == [])
    #expect(due(after: .minutes(15) + .seconds(30)) == Self.keepAliveDue)
  }

  @Test(arguments: [
    Event.keptAlive(stream), .heard(stream), .reported(stream, ConditionReport()),
    .acked(stream, UniqueID(high: 5, low: 6), nil),
    .decided(stream, UniqueID(high: 5, low: 6), .runs),
  ])
  mutating func anySignOfLifeIsAnAnswer(event: Event) {
    say(event, after: .minutes(1))
    #expect(due(after: .minutes(15)) == Self.keepAliveDue, "nothing was asked before")
    say(event, after: .minutes(15) + .seconds(10))
    #expect(due(after: .minutes(30) + .seconds(9)) == [])
    #expect(due(after: .minutes(30) + .seconds(10)) == Self.keepAliveDue)
  }

  @Test(arguments: [Event.clockFollowed(stream), .disconnected(stream)])
  mutating func whoFollowsTheClockOrGoesHasNoDeadlineHere(event: Event) {
    say(event, after: .zero)
    send(Self.push(1), after: .zero)
    #expect(due(after: .days(1)) == [])
    #expect(bystanders.count == 0)
  }

  @Test mutating func whatIsNotAcknowledgedIsNamedOnce() {
    send(Self.push(1), after: .zero)
    send(Self.push(2), after: .seconds(1))
    send(Self.push(3), after: .seconds(2))
    say(.acked(Self.stream, Self.push(2).apnsID, nil), after: .seconds(3))
    #expect(due(after: .milliseconds(59_999)) == [])
    #expect(due(after: .seconds(60)) == [Self.missed(Self.push(1))])
    #expect(due(after: .seconds(61)) == [])
    #expect(due(after: .seconds(62)) == [Self.missed(Self.push(3))])
    send(Self.push(1), after: .seconds(62))
    say(.acked(Self.stream, Self.push(3).uniqueID, nil), after: .seconds(63))
    #expect(due(after: .seconds(122)) == [Self.missed(Self.push(1))])
  }

  @Test mutating func whatHasNotLeftIsNotOverdue() {
    send(Self.push(1), after: .zero)
    #expect(due(after: .minutes(5), hasLeft: false) == [])
    #expect(due(after: .minutes(5)) == [Self.missed(Self.push(1))])
  }

  @Test mutating func whatIsRememberedOfAStreamIsBounded() {
    let pushes = (0..<Bystanders.framesPerStream + 3).map { Self.push(UInt64($0)) }
    for push in pushes { send(push, after: .zero) }
    #expect(due(after: .minutes(1)) == pushes.dropFirst(3).map(Self.missed))
  }
}
