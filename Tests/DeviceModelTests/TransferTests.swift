import Primitives
import Testing

@testable import DeviceModel

/// WWDC 2013 session 204.
@Suite struct TransferTests {
  private func request(
    _ name: String = "film", _ bytes: Int64 = 25_000_000, isDiscretionary: Bool = false
  ) -> TransferRequest {
    TransferRequest(name: name, bytes: bytes, isDiscretionary: isDiscretionary)
  }

  private func steps(_ bench: Bench) -> [TransferStep] {
    bench.actions.compactMap {
      if case .transfer(_, _, let step) = $0, !step.isQueued { step } else { nil }
    }
  }

  /// A bench with an app in the foreground.
  private func opened(
    transferMode: TransferMode = .modelled, _ change: (inout AppScript) -> Void = { _ in }
  ) -> Bench {
    var bench = Bench([.ordinary("app", change)], transferMode: transferMode)
    bench.send(.unlocked, .appOpened(mail))
    bench.clear()
    return bench
  }

  @Test func itOutlivesTheApp() {
    var bench = opened()
    bench.send(.transferQueued(mail, request()), .locked)
    bench.wait(.seconds(6))
    bench.send(.memoryRanOut)
    #expect(bench.state(mail) == .notRunning)
    bench.wait(.minutes(1))
    #expect(steps(bench) == [.started(offset: 0), .ended(.finished)])
    #expect(bench.callbackSteps(of: mail) == [.began(.transfers), .completed(.newData)])
    #expect(bench.steps(of: mail).contains(.launched(.transfers)))
    #expect(bench.phone.service.transfers.isEmpty)
    // 25 MB at 2.5 MB/s.
    let ended = bench.effects.first { $0.action.isTransferEnd }?.at
    #expect(ended == Bench.start + .seconds(10))
  }

  @Test func itOutlivesTheReboot() {
    for resumes in [true, false] {
      var bench = opened()
      var request = request()
      request.resumes = resumes
      bench.send(.transferQueued(mail, request))
      bench.wait(.seconds(4))
      bench.send(.rebooted)
      bench.wait(.seconds(20))
      let offset: Int64 = resumes ? 10_000_000 : 0
      #expect(
        steps(bench) == [.started(offset: 0), .started(offset: offset), .ended(.finished)])
      // Its app is told when keys are there.
      #expect(bench.callbackSteps(of: mail).isEmpty)
      bench.send(.unlocked)
      bench.wait(.seconds(10))
      #expect(bench.callbackSteps(of: mail) == [.began(.transfers), .completed(.newData)])
    }
  }

  @Test func itGoesOnAfterTheNetworkWasAway() {
    var bench = opened()
    bench.send(.transferQueued(mail, request()))
    bench.wait(.seconds(4))
    bench.send(.networkChanged(.airplane))
    bench.wait(.hours(5))
    bench.send(.networkChanged(.cellular))
    bench.wait(.minutes(2))
    #expect(
      steps(bench) == [
        .started(offset: 0), .held(.noNetwork), .started(offset: 10_000_000), .ended(.finished),
      ])
  }

  @Test func queuedInTheBackgroundItIsDiscretionary() {
    let script = request()
    var bench = Bench([.ordinary { $0.onPush.transfers = [script] }])
    bench.send(.networkChanged(.cellular), .pushReceived(.silent(1)))
    bench.wait(.hours(1))
    #expect(bench.phone.service.transfers.first?.isDiscretionary == true)
    #expect(bench.phone.service.transfers.first?.phase == .waiting(.needsWiFi))
    bench.send(.lowPowerSwitched(isOn: true), .networkChanged(.wifi))
    #expect(bench.phone.service.transfers.first?.phase == .waiting(.lowPower))
    bench.send(.lowPowerSwitched(isOn: false))
    bench.wait(.minutes(1))
    #expect(bench.callbackSteps(of: mail).last == .completed(.newData))
  }

  @Test func fromTheForegroundThatIsAChoice() {
    for isDiscretionary in [true, false] {
      var bench = opened()
      bench.send(.networkChanged(.cellular))
      bench.send(.transferQueued(mail, request(isDiscretionary: isDiscretionary)))
      let phase = bench.phone.service.transfers.first?.phase
      #expect(phase == (isDiscretionary ? .waiting(.needsWiFi) : .active))
    }
    // What is queued on the way out counts as the foreground's.
    let script = request()
    var bench = opened { $0.onLeave.transfers = [script] }
    bench.send(.networkChanged(.cellular), .appLeft)
    #expect(bench.phone.service.transfers.first?.phase == .active)
  }

  @Test func anEmptyEnergyBudgetHoldsDiscretionaryOnes() {
    var bench = opened { $0.onPush.energy = 1_900_000 }
    bench.send(.pushReceived(.silent(1)), .locked)
    bench.wait(.minutes(1))
    bench.send(.unlocked, .appOpened(mail))
    bench.send(.transferQueued(mail, request(isDiscretionary: true)))
    #expect(bench.phone.service.transfers.first?.phase == .waiting(.energyBudget))
    bench.wait(.hours(6))
    #expect(steps(bench).last == .ended(.finished))
    bench.clear()
    bench.send(.pushReceived(.silent(2)), .appLeft)
    bench.wait(.minutes(1))
    bench.send(.chargerChanged(isConnected: true), .appOpened(mail))
    bench.send(.transferQueued(mail, request(isDiscretionary: true)))
    #expect(bench.phone.service.transfers.first?.phase == .active)
  }

  @Test func aSessionIsOneWakeUp() {
    let requests = (0..<5).map { request("part \($0)", 1_000_000) }
    var bench = Bench([.ordinary { $0.onPush.transfers = requests }])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    let begun = bench.callbackSteps(of: mail).filter {
      if case .began = $0 { true } else { false }
    }
    #expect(begun == [.began(.push(PushID(1))), .began(.transfers)])
    // In parallel: all five start before the first ends.
    let order = steps(bench)
    #expect(order.prefix(5).allSatisfy { $0 == .started(offset: 0) })
    #expect(order.count == 10)
  }

  @Test func parallelTransfersLetTheRadioSleepEarlier() {
    func energy(atOnce: Int) -> Int64 {
      var limits = PhoneLimits()
      limits.transfersAtOnce = atOnce
      limits.cellularBytesPerSecond = 500_000
      var bench = Bench([.ordinary()], limits: limits)
      bench.send(.networkChanged(.cellular), .unlocked, .appOpened(mail))
      for part in 0..<6 {
        bench.send(.transferQueued(mail, request("part \(part)", 1_000_000)))
        // One after the other, each waiting for a server, the radio never sleeps.
        if atOnce == 1 { bench.wait(.seconds(6)) }
      }
      bench.wait(.minutes(1))
      #expect(steps(bench).filter { $0 == .ended(.finished) }.count == 6)
      return limits.phoneEnergyPerDay - bench.phone.energy.level(at: bench.now)
    }
    #expect(energy(atOnce: 6) < energy(atOnce: 1))
  }

  @Test func aServerAsksForCredentials() {
    for isProvided in [true, false] {
      var bench = opened {
        if !isProvided { $0.onAuthentication = .cancels(after: .seconds(1)) }
      }
      var request = request()
      request.demandsCredentials = true
      bench.send(.transferQueued(mail, request), .locked)
      bench.wait(.minutes(1))
      let begun = bench.callbackSteps(of: mail).filter {
        if case .began = $0 { true } else { false }
      }
      #expect(begun == [.began(.authentication), .began(.transfers)])
      #expect(
        steps(bench)
          == (isProvided
            ? [.credentialsDemanded, .started(offset: 0), .ended(.finished)]
            : [.credentialsDemanded, .ended(.notAuthenticated)]))
    }
  }

  /// A call speaks of what had ended when it began, and of nothing later.
  @Test func eachCallTellsOfItsOwnTransfers() {
    var bench = opened { $0.onTransfers.work = .seconds(10) }
    bench.send(.transferQueued(mail, request("one", 1_000_000)), .locked)
    bench.wait(.seconds(2))
    bench.send(.transferQueued(mail, request("two", 1_000_000)))
    bench.wait(.seconds(9))
    #expect(bench.phone.service.transfers.map(\.request.name) == ["two"])
    bench.send(.appCrashed(mail))
    #expect(bench.callbackSteps(of: mail).count == 4)
    bench.send(.unlocked, .appOpened(mail))
    bench.wait(.seconds(11))
    #expect(bench.callbackSteps(of: mail).suffix(2) == [.began(.transfers), .completed(.newData)])
    #expect(bench.phone.service.transfers.isEmpty)
  }

  /// A server whose question was not answered asks less and less often, and at once when it can be.
  @Test func anAppInFrontIsAskedAtOnce() {
    var bench = opened { $0.onAuthentication = .provides(after: .seconds(40)) }
    var request = request()
    request.demandsCredentials = true
    bench.send(.transferQueued(mail, request), .locked)
    bench.wait(.hours(1))
    let demands = steps(bench).filter { $0 == .credentialsDemanded }.count
    #expect((5...12).contains(demands))
    bench.send(.unlocked, .appOpened(mail))
    #expect(steps(bench).filter { $0 == .credentialsDemanded }.count == demands + 1)
    bench.wait(.minutes(2))
    #expect(steps(bench).last == .ended(.finished))
  }

  /// A swipe cancels what the app has queued, and nothing but its user brings the app back.
  @Test func aForceQuitAppIsToldWhenItsUserOpensIt() {
    var bench = opened()
    bench.send(.transferQueued(mail, request()), .appSwipedAway(mail))
    #expect(steps(bench).last == .ended(.cancelled))
    bench.wait(.hours(1))
    #expect(steps(bench).last == .ended(.cancelled))
    #expect(bench.callbackSteps(of: mail).isEmpty)
    bench.send(.appOpened(mail))
    bench.wait(.seconds(10))
    #expect(bench.callbackSteps(of: mail) == [.began(.transfers), .completed(.newData)])
  }

  @Test func anAppThatCrashesOnTheWayIsToldNextTime() {
    var bench = opened {
      $0.restoration.crashes = true
      $0.interface = sampleInterface()
    }
    bench.send(.transferQueued(mail, request()), .appLeft)
    bench.wait(.seconds(6))
    bench.send(.memoryRanOut)
    bench.wait(.minutes(1))
    #expect(bench.steps(of: mail).last == .terminated(.crashWhileRestoring))
    #expect(bench.callbackSteps(of: mail).isEmpty)
    bench.send(.appOpened(mail))
    bench.wait(.minutes(1))
    #expect(bench.callbackSteps(of: mail) == [.began(.transfers), .completed(.newData)])
  }

  @Test func thereIsALimitToHowManyAreKnown() {
    var limits = PhoneLimits()
    limits.transfers = 10
    var bench = Bench([.ordinary()], limits: limits)
    bench.send(.unlocked, .appOpened(mail))
    for part in 0..<11 { bench.send(.transferQueued(mail, request("part \(part)"))) }
    #expect(bench.actions.last == .ignored(.limitReached))
    #expect(
      bench.phone.service.transfers.count { $0.phase == .active } == limits.transfersAtOnce)
  }

  @Test func sharesAreExact() {
    var random = SeededRandom(seed: 9)
    for seed in UInt64(1)...50 {
      var bench = opened()
      let sizes = (0..<1 + random.below(6)).map { _ in 1 + random.below(30_000_000) }
      for (part, size) in sizes.enumerated() {
        bench.send(.transferQueued(mail, request("part \(part)", size)))
      }
      bench.wait(.minutes(5))
      let last = bench.effects.last { $0.action.isTransferEnd }?.at ?? bench.now
      let total = sizes.reduce(0, +)
      let exact = total * 1000 / PhoneLimits().wifiBytesPerSecond
      let taken = (last - Bench.start).milliseconds
      #expect((exact...exact + 20).contains(taken), "seed \(seed): \(taken), exact \(exact)")
    }
  }
}

extension TransferStep {
  fileprivate var isQueued: Bool { if case .queued = self { true } else { false } }
}

extension PhoneAction {
  fileprivate var isTransferEnd: Bool {
    if case .transfer(_, _, .ended) = self { true } else { false }
  }
}
