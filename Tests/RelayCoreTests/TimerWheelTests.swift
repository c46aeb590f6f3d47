import Primitives
import Testing

@testable import RelayCore

@Suite struct TimerWheelTests {
  private static func subject(_ number: Int32) -> TimerWheel.Subject {
    .expiration(entry: EntryNumber(number))
  }

  private static func number(_ subject: TimerWheel.Subject) -> Int32 {
    guard case .expiration(let number) = subject else { return -1 }
    return number.number
  }

  @Test func timersFireAtTheirTimeAndNotBefore() {
    let start = Instant(unixSeconds: 1_767_225_600)
    for delay: Int64 in [0, 1, 63, 64, 65, 4095, 4096, 4097, 262_144, 86_400_000, 2_592_000_000] {
      var wheel = TimerWheel(now: start)
      _ = wheel.set(start + .milliseconds(delay), Self.subject(1))
      if delay > 0 {
        #expect(wheel.popDue(at: start + .milliseconds(delay - 1)) == nil, "\(delay)")
      }
      #expect(wheel.popDue(at: start + .milliseconds(delay)) == Self.subject(1), "\(delay)")
      #expect(wheel.popDue(at: start + .milliseconds(delay)) == nil)
      #expect(wheel.count == 0)
      #expect(wheel.nextWake == nil)
    }
  }

  @Test func aTimerInThePastFiresAtOnce() {
    let start = Instant(unixSeconds: 1_767_225_600)
    var wheel = TimerWheel(now: start)
    _ = wheel.set(Instant(milliseconds: 5), Self.subject(1))
    _ = wheel.set(Instant(milliseconds: .min), Self.subject(2))
    #expect(wheel.nextWake == start)
    #expect(wheel.popDue(at: start) == Self.subject(1))
    #expect(wheel.popDue(at: start) == Self.subject(2))
  }

  /// Set in the order in which they are listed, they fire as they would have.
  @Test func whatIsListedFiresElsewhereInTheSameOrder() {
    for seed in UInt64(0)..<50 {
      var generator = SeededRandom(seed: seed)
      var wheel = TimerWheel(now: Instant(milliseconds: 0))
      var now: Int64 = 0
      for number in Int32(0)..<60 {
        // Many have the same moment, some of them set when it was far away.
        let delay: Int64 = [1, 64, 4096, 300_000].randomElement(using: &generator)!
        _ = wheel.set(Instant(milliseconds: (now + delay) / 64 * 64), Self.subject(number))
        now += Int64.random(in: 0...20, using: &generator)
        while wheel.popDue(at: Instant(milliseconds: now)) != nil {}
      }
      var other = TimerWheel(now: Instant(milliseconds: now))
      for timer in wheel.state { _ = other.set(timer.deadline, timer.subject) }
      let end = Instant(milliseconds: now + 1_000_000)
      var (expected, found): ([TimerWheel.Subject], [TimerWheel.Subject]) = ([], [])
      while let subject = wheel.popDue(at: end) { expected.append(subject) }
      while let subject = other.popDue(at: end) { found.append(subject) }
      #expect(found == expected && !found.isEmpty, "seed \(seed)")
    }
  }

  @Test func cancellingTwiceIsHarmless() {
    let start = Instant(milliseconds: 0)
    var wheel = TimerWheel(now: start)
    var name = wheel.set(start + .seconds(1), Self.subject(1))
    wheel.cancel(&name)
    #expect(name == .none)
    wheel.cancel(&name)
    #expect(wheel.count == 0)
    #expect(wheel.popDue(at: start + .days(1)) == nil)
  }

  @Test(.timeLimit(.minutes(1)))
  func theEdgesOfTimeNeitherTrapNorHang() {
    for first in [Int64.min, -1_000_000, -1, 0, 1 << 47, 1 << 48, 1 << 49, .max - 1, .max] {
      for deadline in [Int64.min, -1, 0, 64, 1 << 48, 1 << 60, .max] {
        var wheel = TimerWheel(now: Instant(milliseconds: first))
        _ = wheel.set(Instant(milliseconds: deadline), Self.subject(1))
        #expect(wheel.nextWake != nil)
        _ = wheel.popDue(at: Instant(milliseconds: first))
        if wheel.count > 0 {
          #expect(wheel.popDue(at: .never) == Self.subject(1), "\(first), \(deadline)")
        }
        #expect(wheel.popDue(at: .never) == nil)
        #expect(wheel.count == 0)
      }
    }
  }

  /// Random settings, cancellations and steps in time, against a plain list.
  @Test func itAgreesWithAList() {
    for seed in UInt64(0)..<60 {
      var generator = SeededRandom(seed: seed)
      var now = Int64.random(in: 0..<2_000_000_000_000, using: &generator)
      var wheel = TimerWheel(now: Instant(milliseconds: now))
      var expected: [Int32: (deadline: Int64, name: TimerWheel.TimerID)] = [:]
      var lastNumber: Int32 = 0
      for _ in 0..<600 {
        switch Int.random(in: 0..<10, using: &generator) {
        case 0..<5:
          lastNumber += 1
          let delay = Self.delay(&generator)
          let (sum, overflow) = now.addingReportingOverflow(delay)
          let deadline = overflow ? Int64.max : sum
          let name = wheel.set(Instant(milliseconds: deadline), Self.subject(lastNumber))
          expected[lastNumber] = (max(deadline, now), name)
        case 5:
          if let number = expected.keys.sorted().randomElement(using: &generator) {
            wheel.cancel(&expected[number]!.name)
            expected[number] = nil
          }
        case 6:
          if let wake = wheel.nextWake { now = max(now, min(wake.milliseconds, 1 << 47)) }
          Self.pop(&wheel, at: now, &expected, seed)
        default:
          now += Self.delay(&generator) % 10_000_000_000
          Self.pop(&wheel, at: now, &expected, seed)
        }
        #expect(wheel.count == expected.count, "seed \(seed)")
        Self.checkWake(wheel, now, expected.values.map(\.deadline).min(), seed)
      }
    }
  }

  private static func delay(_ generator: inout SeededRandom) -> Int64 {
    switch Int.random(in: 0..<8, using: &generator) {
    case 0: 0
    case 1: .max - Int64.random(in: 0..<100, using: &generator)
    default:
      Int64.random(in: 0..<(1 << Int64.random(in: 1...36, using: &generator)), using: &generator)
    }
  }

  /// Takes what is due, which must be just what the list says, in order of deadline.
  private static func pop(
    _ wheel: inout TimerWheel, at now: Int64,
    _ expected: inout [Int32: (deadline: Int64, name: TimerWheel.TimerID)], _ seed: UInt64
  ) {
    var last = Int64.min
    while let subject = wheel.popDue(at: Instant(milliseconds: now)) {
      guard let timer = expected.removeValue(forKey: number(subject)) else {
        Issue.record("seed \(seed): \(subject) fired and was not set")
        return
      }
      #expect(timer.deadline <= now, "seed \(seed): too early")
      #expect(timer.deadline >= last, "seed \(seed): out of order")
      last = timer.deadline
    }
    #expect(!expected.values.contains { $0.deadline <= now }, "seed \(seed): one was missed")
  }

  /// The wake-up is never later than the first deadline, and waking at it makes progress.
  private static func checkWake(
    _ wheel: TimerWheel, _ now: Int64, _ earliest: Int64?, _ seed: UInt64
  ) {
    guard let earliest else {
      #expect(wheel.nextWake == nil, "seed \(seed)")
      return
    }
    // A loop that is woken for nothing would not rest.
    if earliest > now, let wake = wheel.nextWake {
      #expect(wake.milliseconds > now, "seed \(seed): too early")
    }
    var copy = wheel
    var wakes = 0
    while let wake = copy.nextWake {
      wakes += 1
      #expect(wake.milliseconds <= max(earliest, now), "seed \(seed): too late")
      if copy.popDue(at: wake) != nil { break }
      guard wakes < 10 else {
        Issue.record("seed \(seed): stuck at \(wake), the first deadline is \(earliest)")
        return
      }
    }
    #expect(wakes >= 1, "seed \(seed): no wake-up")
  }

  /// What `nextWake` only bounds, this says exactly.
  @Test func theEarliestIsTheNextThatFires() {
    var random = SeededRandom(seed: 3)
    var wheel = TimerWheel(now: Instant(milliseconds: 1_000_000))
    #expect(wheel.earliest == nil)
    var deadlines: [Int32: Int64] = [:]
    for number in 0..<Int32(500) {
      let deadline = 1_000_000 + random.below(1 << random.below(36))
      deadlines[number] = deadline
      _ = wheel.set(Instant(milliseconds: deadline), .refill(app: AppNumber(number)))
    }
    while let earliest = wheel.earliest {
      #expect(earliest.deadline.milliseconds == deadlines.values.min())
      guard case .refill(let number)? = wheel.popDue(at: earliest.deadline) else {
        Issue.record("nothing fired")
        return
      }
      #expect(deadlines.removeValue(forKey: number.number) == earliest.deadline.milliseconds)
    }
    #expect(deadlines.isEmpty)
  }
}
