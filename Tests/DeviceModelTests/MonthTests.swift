import Primitives
import Testing

@testable import DeviceModel

/// A month in a user's life: every app is used one to three times a day at its own times, which
/// vary by some minutes from day to day, and 200 silent and visible pushes come in a day.
struct Month {
  struct Habit {
    let app: AppID
    let minuteOfDay: Int64
  }

  enum Happening {
    case use(AppID)
    case push(RemotePush)
  }

  let appCount: Int
  let days: Int64
  let pushesPerDay: Int64
  private(set) var happenings: [(at: Instant, what: Happening)] = []

  init(
    seed: UInt64, appCount: Int = 20, days: Int64 = 30, pushesPerDay: Int64 = 200,
    jitterMinutes: Int64 = 20
  ) {
    self.appCount = appCount
    self.days = days
    self.pushesPerDay = pushesPerDay
    var random = SeededRandom(seed: seed)
    var habits: [Habit] = []
    for number in 0..<appCount {
      // Between seven in the morning and eleven at night, and hours apart.
      var minute = 7 * 60 + random.below(300)
      for _ in 0...random.below(3) where minute < 23 * 60 {
        habits.append(Habit(app: AppID(number), minuteOfDay: minute))
        minute += 180 + random.below(240)
      }
    }
    var pushNumber: UInt64 = 0
    for day in 0..<days {
      let midnight = Bench.start + .days(day)
      for habit in habits {
        // Two dice: mostly near the usual time.
        let jitter = random.below(jitterMinutes + 1) + random.below(jitterMinutes + 1)
        let at = midnight + .minutes(habit.minuteOfDay + jitter - jitterMinutes)
        happenings.append((at + .milliseconds(random.below(60_000)), .use(habit.app)))
      }
      for _ in 0..<pushesPerDay {
        pushNumber += 1
        let app = AppID(Int(random.below(Int64(appCount))))
        let push: RemotePush =
          random.below(2) == 0
          ? .silent(pushNumber, app) : .alert(pushNumber, app, wakesApp: random.below(2) == 0)
        happenings.append((midnight + .milliseconds(random.below(86_400_000)), .push(push)))
      }
    }
    happenings.sort { $0.at < $1.at }
  }

  var definitions: [AppDefinition] {
    (0..<appCount).map { number in
      .ordinary("app \(number)", fetchInterval: .minimum) {
        $0.onFetch.workJitter = .seconds(3)
        $0.onFetch.outcome = .newDataPercent(70)
      }
    }
  }

  /// Plays it, handing over what every step brought.
  func play(_ seed: UInt64, _ body: ([PhoneEffect], Happening?) -> Void) -> Phone {
    var phone = Phone(seed: seed, at: Bench.start)
    var effects: [PhoneEffect] = []
    for definition in definitions {
      phone.handle(.appInstalled(definition), at: Bench.start, into: &effects)
    }
    body(effects, nil)
    for (at, happening) in happenings {
      effects.removeAll(keepingCapacity: true)
      switch happening {
      case .push(let push):
        phone.handle(.pushReceived(push), at: at, into: &effects)
      case .use(let app):
        phone.handle(.unlocked, at: at, into: &effects)
        phone.handle(.appOpened(app), at: at + .seconds(1), into: &effects)
        phone.handle(.locked, at: at + .seconds(50), into: &effects)
      }
      body(effects, happening)
    }
    return phone
  }
}

@Suite struct MonthTests {
  /// On how many of a hundred days with a use of an app, after the first week, the app was fetched
  /// within the hour before every use of that day.
  private func hitPercent(seed: UInt64, jitterMinutes: Int64) -> (percent: Int, fetches: Int) {
    let month = Month(seed: seed, pushesPerDay: 20, jitterMinutes: jitterMinutes)
    var lastFetch: [AppID: Instant] = [:]
    struct Day: Hashable {
      let app: AppID
      let number: Int64
    }
    var wasHit: [Day: Bool] = [:]
    var fetches = 0
    _ = month.play(seed) { effects, _ in
      for effect in effects {
        switch effect.action {
        case .callback(_, let app, .began(.fetch)):
          lastFetch[app] = effect.at
          fetches += 1
        case .app(let app, .opened):
          let day = Day(app: app, number: (effect.at - Bench.start).milliseconds / 86_400_000)
          guard day.number >= 7 else { continue }
          let isHit = lastFetch[app].map { effect.at - $0 <= .hours(1) } ?? false
          wasHit[day] = (wasHit[day] ?? true) && isHit
        default: break
        }
      }
    }
    return (wasHit.values.count { $0 } * 100 / max(1, wasHit.count), fetches)
  }

  @Test func fetchesConvergeToShortlyBeforeUse() {
    for jitter in [0, 40] as [Int64] {
      let (percent, fetches) = hitPercent(seed: 1, jitterMinutes: jitter)
      #expect(percent >= 80, "jitter \(jitter): hit on \(percent) % of days")
      // Some 40 habits, 30 days: not by fetching all the time either.
      #expect(fetches < 4000, "jitter \(jitter): \(fetches) fetches")
    }
  }
}
