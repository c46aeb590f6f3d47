import Primitives
import TestSeeds
import Testing

@testable import DeviceModel

/// The rules of the issue over random lives. A failing seed is all one needs to play it again.
@Suite struct PhonePropertyTests {
  private static let eventCount = 250

  private struct Step {
    let lapse: Interval
    let event: PhoneEvent
  }

  /// With a driver for its transfers, or without.
  private func phone(_ seed: UInt64) -> Phone {
    let mode: TransferMode = seed % 4 < 2 ? .modelled : .performed
    return Phone(transferMode: mode, seed: seed, at: Bench.start)
  }

  /// Plays a life and answers what was done, for another play, and everything that came of it.
  private func live(
    _ seed: UInt64, _ body: (PhoneEvent, Phone, [PhoneEffect]) -> Void
  ) -> (steps: [Step], effects: [PhoneEffect], phone: Phone) {
    var life = RandomLife(seed: seed)
    var phone = phone(seed)
    var now = Bench.start
    var steps: [Step] = []
    var all: [PhoneEffect] = []
    let installs = life.definitions().map { PhoneEvent.appInstalled($0) }
    for number in 0..<Self.eventCount + installs.count {
      let isInstall = number < installs.count
      let lapse = isInstall ? .zero : life.lapse()
      let event = isInstall ? installs[number] : life.event(phone)
      steps.append(Step(lapse: lapse, event: event))
      now = now + lapse
      var effects: [PhoneEffect] = []
      phone.handle(event, at: now, into: &effects)
      body(event, phone, effects)
      all += effects
    }
    return (steps, all, phone)
  }

  @Test func theRulesHoldInEveryLife() {
    var counts: [String: Int] = [:]
    // In the first the screen goes dark while an app works in the background; in the second a push
    // to an activity comes last, and waits until the phone wakes.
    for seed in [816, 9581] + Array(seeds(1..<61)) {
      var checker = Checker()
      var (_, _, phone) = live(seed) { event, phone, effects in
        checker.saw(event, phone, effects)
        if case .appOpened(let app) = event { checkRestored(app, phone, effects, seed) }
      }
      for event in [PhoneEvent.locked, .tick] {
        var effects: [PhoneEffect] = []
        phone.handle(event, at: phone.now + .minutes(10), into: &effects)
        checker.saw(event, phone, effects)
      }
      checker.finish(phone)
      #expect(checker.complaints.isEmpty, "seed \(seed): \(checker.complaints.prefix(3))")
      counts.merge(checker.counts, uniquingKeysWith: +)
    }
    // The lives are rich enough to mean something.
    for step in [
      "launched", "resumed", "opened", "suspended", "terminated", "taskEnded", "taskExpired",
      "merged", "restored", "startedFresh", "began", "completed", "abandoned", "transfer started",
      "transfer held", "transfer credentialsDemanded", "transfer ended",
    ] {
      let count = counts.filter { $0.key.hasPrefix(step) }.values.reduce(0, +)
      #expect(count > 10, "\(step): \(counts)")
    }
  }

  /// Right after it was opened, an app that was restored is in the state that was saved, unless
  /// something was merged into it.
  private func checkRestored(
    _ app: AppID, _ phone: Phone, _ effects: [PhoneEffect], _ seed: UInt64
  ) {
    let restored = effects.compactMap { effect -> StateArchive? in
      if effect.at == phone.now, case .app(app, .restored(let archive, _)) = effect.action {
        archive
      } else {
        nil
      }
    }
    let isMerged = effects.contains { effect in
      if case .app(app, .merged) = effect.action { effect.at == phone.now } else { false }
    }
    guard let saved = restored.last, let app = phone[app], !isMerged else { return }
    #expect(archive(app.process.interface).hasSameState(as: saved), "seed \(seed)")
  }

  @Test func theSameSeedGivesTheSameLife() {
    for seed in UInt64(1)...8 {
      #expect(live(seed) { _, _, _ in }.effects == live(seed) { _, _, _ in }.effects)
    }
  }

  /// Ticks in between, at the wanted moments or at any others, change nothing.
  @Test func theLengthOfStepsDoesNotMatter() {
    for seed in UInt64(1)...20 {
      let (steps, expected, _) = live(seed) { _, _, _ in }
      var random = SeededRandom(seed: seed)
      var phone = phone(seed)
      var effects: [PhoneEffect] = []
      var now = Bench.start
      for step in steps {
        let next = now + step.lapse
        if seed % 2 == 0 {
          while let wake = phone.nextWake, wake < next {
            phone.handle(.tick, at: wake, into: &effects)
          }
        } else if step.lapse > .zero {
          let middle = now + .milliseconds(random.below(step.lapse.milliseconds))
          phone.handle(.tick, at: middle, into: &effects)
        }
        now = next
        phone.handle(step.event, at: now, into: &effects)
      }
      #expect(effects == expected, "seed \(seed)")
    }
  }

  /// What a phone looks at comes to something, or is some time away. Seed 22 has a transfer that
  /// drains the budget while others wait: it looked every millisecond.
  @Test func aPhoneDoesNotLookWithoutEnd() {
    for seed in [22] + Array(seeds(1..<21)) {
      let (steps, expected, _) = live(seed) { _, _, _ in }
      var phone = phone(seed)
      var effects: [PhoneEffect] = []
      var now = Bench.start
      var looks = 0
      for step in steps {
        let next = now + step.lapse
        while let wake = phone.nextWake, wake < next, looks < 20_000 {
          looks += 1
          phone.handle(.tick, at: wake, into: &effects)
        }
        now = next
        phone.handle(step.event, at: now, into: &effects)
      }
      let minutes = (now - Bench.start).milliseconds / 60_000
      #expect(looks <= expected.count + Int(minutes), "seed \(seed)")
    }
  }

  /// Whatever moment a caller names, nothing overflows.
  @Test func anyMomentIsSurvived() {
    for start in [Int64.min, 0, Bench.start.milliseconds, .max] {
      for end in [Int64.min, 0, .max - 1, .max] {
        var phone = Phone(seed: 1, at: Instant(milliseconds: start))
        var effects: [PhoneEffect] = []
        let events: [PhoneEvent] = [
          .appInstalled(.ordinary()), .unlocked, .appOpened(mail), .pushReceived(.silent(1)),
          .pushReceived(.alert(2)), .transferQueued(mail, TransferRequest(name: "a", bytes: .max)),
          .networkChanged(.cellular), .locked, .rebooted,
        ]
        for event in events {
          phone.handle(event, at: Instant(milliseconds: end), into: &effects)
        }
        #expect(!effects.isEmpty && phone.now <= .endOfCalendar)
      }
    }
  }

  @Test func timeDoesNotGoBack() {
    var bench = Bench([.ordinary()])
    bench.wait(.hours(1))
    bench.phone.handle(.unlocked, at: Bench.start, into: &bench.effects)
    #expect(bench.phone.now == bench.now)
    #expect(bench.effects.allSatisfy { $0.at == bench.now })
  }
}
