import Primitives
import Testing

@testable import RelayCore

@Suite struct DeviceTests {
  @Test func slotsAndCountsOfTheClassesAreSeparate() {
    var app = App(
      token: DeviceToken(random: (1, 2, 3), routingKey: 4), topic: Topic("com.example.app")!,
      device: 0, registration: 1)
    app.slots[.visible] = 5
    app.slots[.silent] = 6
    app.waiting[.visible] = 7
    app.waiting[.silent] = 8
    #expect(app.slots == PerClass(visible: 5, silent: 6))
    #expect(app.waiting == PerClass(visible: 7, silent: 8))
    #expect(NotificationClass.allCases.map { app.slots[$0] } == [5, 6])
    #expect(NotificationClass.allCases.map { app.waiting[$0] } == [7, 8])
  }

  @Test func aDeviceHasAConnectionUnlessItIsAway() {
    let connection = ConnectionID(loop: 1, connection: 2, stream: 3)
    var device = Device(
      id: DeviceID(UniqueID(high: 1, low: 2)), secret: SecretHash(words: (1, 2, 3, 4)))
    #expect(device.connection == nil)
    device.phase = .live(connection)
    #expect(device.connection == connection)
    device.phase = .questioned(connection)
    #expect(device.connection == connection)
  }

  @Test func expirationIsTheMomentItself() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let moment = fixture.now + .seconds(1)
    for (expiration, isExpired) in [
      (Expiration.at(moment), true), (.at(moment + .milliseconds(1)), false), (.once, false),
    ] {
      let entry = AcceptedNotification(
        notification: fixture.push(.visible, app, expiration: expiration), order: 1, sequence: 1,
        acceptedAt: fixture.now, app: 0, phase: .waiting)
      #expect(entry.isExpired(at: moment) == isExpired)
    }
  }
}
