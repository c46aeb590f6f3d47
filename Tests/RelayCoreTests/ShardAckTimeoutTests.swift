import Primitives
import Testing

@testable import RelayCore

/// A phone that answers keep-alives and acknowledges nothing.
@Suite struct ShardAckTimeoutTests {
  private struct Scene {
    var fixture = ShardFixture(
      configuration: .init(
        keepAlive: .days(1), ackTimeout: .seconds(60), inFlightPerDevice: 2))
    var app: PhoneApp
    var connection: ConnectionID

    init() {
      app = fixture.phoneWithApp()
      connection = fixture.connect(app.phone).connection
    }

    mutating func send(expiration: Expiration? = nil) -> Notification {
      let push = fixture.push(.visible, app, expiration: expiration)
      _ = fixture.submit(push)
      return push
    }

    mutating func checked(isEmpty: Bool = true) -> [Effect] {
      fixture.handle(.stream(connection, .queueChecked(isEmpty: isEmpty)))
    }
  }

  @Test func whatIsNotAcknowledgedIsSentAgainThreeTimesThenTheConnectionEnds() {
    var scene = Scene()
    let acceptedAt = scene.fixture.now
    let push = scene.send()
    for _ in 0..<3 {
      expectEffects(scene.fixture, scene.fixture.advance(.milliseconds(59_999)), [])
      expectEffects(
        scene.fixture, scene.fixture.advance(.milliseconds(1)), [.checkQueue(scene.connection)])
      expectEffects(
        scene.fixture, scene.checked(),
        scene.fixture.sent(push, .resend, scene.connection, acceptedAt: acceptedAt))
    }
    #expect(scene.fixture.advance(.seconds(60)) == [.checkQueue(scene.connection)])
    expectEffects(
      scene.fixture, scene.checked(),
      [.close(scene.connection, .ackTimeout), scene.fixture.log(.storedOffline, push)])
    #expect(scene.fixture.shard.timers.count == 1, "its expiration")
    // A new connection, a new beginning.
    #expect(scene.fixture.connect(scene.app.phone).effects.sendings == [Sending(push, .connect)])
    expectSound(scene.fixture)
  }

  @Test func anAcknowledgementOfAnyFrameIsEnough() {
    var scene = Scene()
    let push = scene.send()
    _ = scene.fixture.advance(.seconds(60))
    _ = scene.checked()
    #expect(scene.fixture.ack(push, scene.connection).first == scene.fixture.log(.delivered, push))
    expectEffects(scene.fixture, scene.fixture.ack(push, scene.connection), [])
    expectEffects(scene.fixture, scene.fixture.advance(.hours(1)), [])
  }

  @Test func eachFrameHasItsOwnTime() {
    var scene = Scene()
    let first = scene.send()
    scene.fixture.now = scene.fixture.now + .seconds(30)
    let second = scene.send()
    #expect(scene.fixture.advance(.seconds(30)) == [.checkQueue(scene.connection)])
    #expect(scene.checked().sendings == [Sending(first, .resend)])
    _ = scene.fixture.ack(first, scene.connection)
    #expect(scene.fixture.advance(.seconds(30)) == [.checkQueue(scene.connection)])
    #expect(scene.checked().sendings == [Sending(second, .resend)])
    expectSound(scene.fixture)
  }

  @Test func whatIsOverdueGoesInTheOrderInWhichItWent() {
    var scene = Scene()
    let pushes = [scene.send(), scene.send()]
    _ = scene.fixture.advance(.seconds(61))
    #expect(scene.checked().sendings == pushes.map { Sending($0, .resend) })
  }

  /// The frame has not left: another one would only be queued behind it.
  @Test func whatIsStillQueuedHereIsNotSentAgain() {
    var scene = Scene()
    let push = scene.send()
    for _ in 0..<10 {
      #expect(scene.fixture.advance(.seconds(60)) == [.checkQueue(scene.connection)])
      expectEffects(scene.fixture, scene.checked(isEmpty: false), [])
    }
    #expect(scene.fixture.advance(.seconds(60)) == [.checkQueue(scene.connection)])
    #expect(scene.checked().sendings == [Sending(push, .resend)])
  }

  @Test func anAnswerOfAClosedConnectionIsIgnored() {
    var scene = Scene()
    _ = scene.send()
    _ = scene.fixture.advance(.seconds(60))
    _ = scene.fixture.connect(scene.app.phone)
    expectEffects(scene.fixture, scene.checked(), [])
  }

  @Test func expirationInFlightEndsTheWait() {
    var scene = Scene()
    let expiring = scene.send(expiration: .at(scene.fixture.now + .seconds(70)))
    let other = scene.send()
    let kept = scene.send()
    #expect(scene.fixture.advance(.seconds(60)) == [.checkQueue(scene.connection)])
    #expect(scene.checked().sendings == [Sending(expiring, .resend), Sending(other, .resend)])
    // What the full window kept back goes in its place.
    let effects = scene.fixture.advance(.seconds(10))
    #expect(effects.discards == [.expired])
    #expect(effects.sendings == [Sending(kept, .piggyback)])
    expectEffects(scene.fixture, scene.fixture.ack(expiring, scene.connection), [])
    expectSound(scene.fixture)
  }

  @Test func anAcknowledgementBeforeTheEndIsADelivery() {
    var scene = Scene()
    let push = scene.send(expiration: .at(scene.fixture.now + .seconds(10)))
    scene.fixture.now = scene.fixture.now + .milliseconds(9_999)
    #expect(scene.fixture.ack(push, scene.connection).first == scene.fixture.log(.delivered, push))
    expectEffects(scene.fixture, scene.fixture.advance(.seconds(10)), [])
  }

  @Test func whatIsTriedOnceIsSentAgainToo() {
    var scene = Scene()
    let once = scene.send(expiration: .once)
    _ = scene.fixture.advance(.seconds(60))
    #expect(scene.checked().sendings == [Sending(once, .resend)])
  }
}
