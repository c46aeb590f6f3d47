import Primitives
import Testing

@testable import RelayCore

extension Shard {
  /// What is wrong with the shard's inner books, in words; empty when nothing is. Everything that
  /// is kept twice for speed is counted anew here.
  var inconsistencies: [String] {
    var wrong: [String] = []
    func check(_ holds: Bool, _ text: @autoclosure () -> String) {
      if !holds { wrong.append(text()) }
    }
    var waiting = 0
    var stored = 0
    var inFlight = 0
    var expirationTimers = 0
    var waitingOf: [[Int32]: Int32] = [:]
    for number in entries.indices {
      let entry = entries[number]
      let app = apps[entry.app]
      let notificationClass = entry.notification.notificationClass
      if entry.expirationTimer.exists { expirationTimers += 1 }
      switch entry.phase {
      case .waiting:
        waiting += 1
        waitingOf[[entry.app.number, Int32(notificationClass.rawValue)], default: 0] += 1
        check(isPending(entry.sequence), "waiting, but not for the journal")
      case .stored:
        stored += 1
        check(app.slots[notificationClass] == number, "stored, but not in the slot")
        check(!isPending(entry.sequence) && entry.sequence != 0, "stored before the journal has it")
      case .inFlight:
        inFlight += 1
        check(devices[app.device].connection != nil, "in flight to a device that is away")
      }
      if case .at = entry.notification.expiration {
        check(entry.expirationTimer.exists, "without an expiration timer")
      } else {
        check(!entry.phase.isHeld, "held, but tried once")
        check(!entry.expirationTimer.exists, "tried once, with an expiration timer")
      }
      check(
        entry.frameCount <= Limits.framesPerConnection, "more frames than a connection may have")
    }
    check(counters.addsUp, "the counters do not add up: \(counters)")
    check(counters.waiting == waiting, "waiting: \(counters.waiting), counted \(waiting)")
    check(counters.inSlots == stored, "in slots: \(counters.inSlots), counted \(stored)")
    check(counters.inFlight == inFlight, "in flight: \(counters.inFlight), counted \(inFlight)")
    check(counters.devices == devices.count, "devices")
    check(deviceIndex.count == devices.count, "the index of devices")
    check(appIndex.count == counters.apps, "the index of apps")
    check(counters.connections == connectionIndex.count, "the index of connections")
    check(drainScratch.isEmpty, "scratch space is not empty")
    let answers = pending.count { if case .device = $0 { true } else { false } }
    check(pendingAnswers.count == answers, "an answer to a device waits for no record")
    let steps = pending.count { if case .alias = $0 { true } else { false } }
    check(aliasSteps.count == steps, "a step of a token waits for no record")
    check(counters.aliases == aliases.count, "aliases")
    check(aliasIndex.count == aliases.count, "the index of aliases")

    var releaseTimers = 0
    for number in apps.indices {
      let app = apps[number]
      releaseTimers += (app.refillTimer.exists ? 1 : 0) + (app.holdTimer.exists ? 1 : 0)
      check(app.isRegistered || app.entryCount > 0, "a removed app without entries is kept")
      check(
        app.isRegistered || app.slots == PerClass(visible: -1, silent: -1),
        "a removed app has a slot")
      for notificationClass in NotificationClass.allCases {
        check(
          app.waiting[notificationClass]
            == waitingOf[[number.number, Int32(notificationClass.rawValue)], default: 0],
          "the app's count of waiting entries")
      }
      check(
        Int(app.entryCount) == entries.indices.count { entries[$0].app == number },
        "the app's count of entries")
    }
    checkDevices(&wrong)
    let keepAlives = devices.indices.count { devices[$0].keepAliveTimer.exists }
    let timed = devices.indices.count {
      devices[$0].connection != nil && devices[$0].hasDeadlines
    }
    check(keepAlives == timed, "keep-alive timers")
    if !configuration.deadlinesNeedClock {
      check(timed == counters.connections, "a stream without deadlines")
    }
    let acks = devices.indices.count { devices[$0].ackTimer.exists }
    check(
      timers.count == expirationTimers + releaseTimers + keepAlives + acks, "timers leak")
    return wrong
  }

  private func checkDevices(_ wrong: inout [String]) {
    for number in devices.indices {
      let device = devices[number]
      var stored = 0
      var count = 0
      var app = device.firstApp
      while app >= 0 {
        if !apps[app].isRegistered { wrong.append("a removed app in the device's list") }
        if appNumber(apps[app].token) != app { wrong.append("the token leads elsewhere") }
        stored += (apps[app].slots.visible >= 0 ? 1 : 0) + (apps[app].slots.silent >= 0 ? 1 : 0)
        count += 1
        app = apps[app].next
      }
      if Int(device.storedCount) != stored { wrong.append("the device's count of stored entries") }
      if Int(device.appCount) != count { wrong.append("the device's count of apps") }
      var inFlight = 0
      var entry = device.firstInFlight
      while entry >= 0, case .inFlight(let next) = entries[entry].phase {
        inFlight += 1
        entry = next
      }
      if Int(device.inFlightCount) != inFlight { wrong.append("the device's entries in flight") }
      if inFlight > configuration.inFlightPerDevice { wrong.append("the window is exceeded") }
      if let connection = device.connection, deviceNumber(of: connection) != number {
        wrong.append("the connection leads elsewhere")
      }
      if inFlight > 0, device.hasDeadlines, !device.ackTimer.exists {
        wrong.append("nobody waits for an acknowledgement")
      }
      if device.connection == nil, device.ackTimer.exists {
        wrong.append("a timer of no connection")
      }
    }
  }
}

extension AcceptedNotification.Phase {
  /// Waiting or stored.
  var isHeld: Bool {
    if case .inFlight = self { false } else { true }
  }
}

/// Fails when the shard's books are wrong or the effects are not these.
func expectEffects(
  _ fixture: ShardFixture, _ effects: [Effect], _ expected: [Effect],
  sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(effects == expected, sourceLocation: sourceLocation)
  expectSound(fixture, sourceLocation: sourceLocation)
}

/// Fails when the shard's books are wrong.
func expectSound(_ fixture: ShardFixture, sourceLocation: SourceLocation = #_sourceLocation) {
  #expect(fixture.shard.inconsistencies == [], sourceLocation: sourceLocation)
}
