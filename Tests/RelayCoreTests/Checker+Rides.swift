import Primitives

@testable import RelayCore

/// What rides along, and what has paid for it: a second, slower account of invariant 7.
extension Checker {
  struct Rides {
    /// Silent and visible pushes of which a frame was sent.
    var framed: Set<UniqueID> = []
    /// Silents that a ride has paid for.
    var paid: Set<UniqueID> = []
    /// For each registration: rides that its silents could have taken, and silents that took one.
    var opened: [Int: Int] = [:]
    var taken: [Int: Int] = [:]
    /// When each device opened rides by itself.
    var atWill: [DeviceID: [Int64]] = [:]
    /// Keep-alives that wait for their answers.
    var questioned: Set<ConnectionID> = []
    /// The device that has just done what opens a ride at will.
    var device: DeviceID?
    /// Frames of what is in flight, and when the last was sent.
    var frames: [UniqueID: (count: Int, last: Instant)] = [:]
    /// Frames that were sent again.
    var resent = 0
  }

  /// Notes what an event has to do with rides, before the shard handles it.
  mutating func noteRides(_ event: Event) {
    rides.device = nil
    switch event {
    case .asked(.connected, let credential, _): rides.device = credential.device
    case .stream(let connection, .keptAlive):
      if rides.questioned.remove(connection) == nil { rides.device = live[connection] }
    case .stream(let connection, .reported(let report)):
      rides.questioned.remove(connection)
      guard let device = live[connection] else { return }
      var condition = conditions[device] ?? DeviceCondition()
      condition.apply(report)
      if condition != conditions[device] ?? DeviceCondition() { rides.device = device }
    case .stream(let connection, .heard), .stream(let connection, .acked),
      .stream(let connection, .decided):
      rides.questioned.remove(connection)
    case .submitted, .asked, .stream, .journal, .alias, .broadcast, .operated, .clock: break
    }
  }

  /// The relay asks for a sign of life: one ride, the answer included.
  mutating func checkKeepAlive(_ connection: ConnectionID) {
    expect(rides.questioned.insert(connection).inserted, "asked twice")
    if let device = live[connection] { openRide(of: device) }
  }

  /// A first frame, or one on another connection.
  mutating func checkPayment(_ life: Life, _ via: Via, device: DeviceID) {
    let id = life.notification.uniqueID
    let isFirst = rides.framed.insert(id).inserted
    rides.frames[id] = (1, now)
    switch life.notification.notificationClass {
    case .visible:
      if isFirst, !life.notification.showsNothing { openRide(of: device) }
    case .silent:
      expect(!withholdsSilent(device), "a silent push in Low Power Mode, via \(via)")
      guard isFirst, !rides.paid.contains(id) else { return }
      switch via {
      case .direct, .refill:
        takeBudget(life.registration)
        openRide(of: device, except: life.registration)
      case .piggyback, .connect:
        openRideAtWill(of: device)
        expect(rides.paid.contains(id), "a silent push that nothing has paid for, via \(via)")
      case .hold, .resend: expect(false, "a silent push via \(via)")
      }
    }
    guard life.notification.notificationClass == .silent, isFirst, rides.paid.contains(id) else {
      return
    }
    rides.taken[life.registration, default: 0] += 1
    expect(
      rides.taken[life.registration]! <= rides.opened[life.registration, default: 0],
      "more silent pushes unpaid than rides opened")
  }

  /// Again on the same connection.
  mutating func checkResend(_ connection: ConnectionID, _ delivery: Delivery) {
    let id = delivery.notification.uniqueID
    expect(lives[id]?.flight == connection && lives[id]?.end == nil, "sent again, not in flight")
    guard let (count, last) = rides.frames[id] else { return expect(false, "sent again, first") }
    expect(now >= last + ackTimeout, "sent again too early")
    expect(count < Int(Limits.framesPerConnection), "sent again too often")
    rides.frames[id] = (count + 1, now)
    rides.resent += 1
    if case .stream(connection, .queueChecked(true)) = eventAtHand { return }
    expect(false, "sent again without a look at the queue")
  }

  private mutating func openRideAtWill(of device: DeviceID) {
    guard rides.device == device else { return }
    rides.device = nil
    rides.atWill[device, default: []].append(now.milliseconds)
    let times = rides.atWill[device]!
    for (index, first) in times.enumerated() {
      let allowed =
        rideLimit.burst + (now.milliseconds - first) / rideLimit.interval.milliseconds
      expect(Int64(times.count - index) <= allowed, "more rides than a device may open by itself")
    }
    openRide(of: device)
  }

  private func withholdsSilent(_ device: DeviceID) -> Bool {
    conditions[device]?.withholdsSilent ?? false
  }

  /// Whatever is in a silent slot of the device now is paid for, unless the phone would not run it.
  private mutating func openRide(of device: DeviceID, except own: Int? = nil) {
    for (index, registration) in registrations.enumerated()
    where isThere(index) && registration.app.phone.credential.device == device && index != own {
      rides.opened[index, default: 0] += 1
      let slot = Slot(registration: index, notificationClass: .silent)
      if let id = slots[slot], !withholdsSilent(device) { rides.paid.insert(id) }
    }
  }

  /// What something went along with has passed at the same moment, whatever the clock says.
  mutating func checkCarriers(_ effects: [Effect]) {
    let sent = Set(effects.sendings.map(\.uniqueID))
    for (id, carrier) in effects.carriers {
      switch (carrier, eventAtHand) {
      case (.push(let other), _):
        expect(other != id && sent.contains(other), "along with what was not sent")
      case (.line(.keepAlive), .stream(_, .keptAlive)), (.line(.condition), .stream(_, .reported)),
        (.line(.room), .clock(.tick)):
        break
      case (.line(.keepAlive), .clock(.tick)):
        let isAsked = effects.contains { if case .sendKeepAlive = $0 { true } else { false } }
        expect(isAsked, "along with no keep-alive")
      case (.line(.answer), .stream(_, .heard)), (.line(.answer), .stream(_, .acked)),
        (.line(.answer), .stream(_, .decided)), (.line(.answer), .stream(_, .reported)):
        break
      default: expect(false, "along with \(carrier)")
      }
    }
  }
}
