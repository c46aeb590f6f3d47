package import DeviceModel
package import Primitives
import RelayCore

/// A script for a simulation: phones, apps, events and expectations. Read from JSON;
/// docs/SCENARIO-KEYS.md has all keys.
public struct Scenario: Sendable {
  /// The name in error messages.
  public internal(set) var file = ""
  public internal(set) var title = ""
  public internal(set) var about = ""
  /// The default seed.
  public internal(set) var seed: UInt64 = 1
  /// Milliseconds.
  var length: Int64 = 0
  /// The phones stay when all has been played.
  package var isEndless = false
  var relay = RelayPlan()
  var link = LinkModel()
  /// A URL, with a real relay: apps `POST` their tokens of Live Activities to it.
  package internal(set) var tokensTo: String?
  package var phones: [PhonePlan] = []
  var events: [EventPlan] = []
  var expectations: [Expectation] = []
  package var hasExpectations: Bool { !expectations.isEmpty }

  struct RelayPlan: Sendable {
    var policy = RelayPolicy.documented
    var keepAlive: Int64 = 900_000
  }

  /// A phone, its apps and their usage.
  package struct PhonePlan: Sendable {
    package var name = ""
    package var network = Network.wifi
    package var isCharging = false
    package var isLowPower = false
    /// Phones with the same account share their documents.
    var account: String?
    var hasDrive = true
    package var limits = PhoneLimits()
    package var apps: [AppDefinition] = []
    var usage: [Usage] = []
    var habits: Habits?

    init() {}

    /// A phone without scripted events, whose apps can be woken by pushes.
    package init(
      name: String, topics: [String],
      modes: BackgroundModes = [.remoteNotification, .fetch, .location], use: PhoneUse = .none,
      activities: ActivityPlan? = nil, environment: String? = nil
    ) {
      self.name = name
      habits = use.habits
      apps = topics.map { topic in
        // A topic with a push type's suffix has no activities.
        let isExtension = PushType.suffixed(Array(topic.utf8).span) != nil
        var app = AppDefinition(
          name: topic, modes: modes, activities: isExtension ? nil : activities)
        app.environment = environment
        app.script.interface.add(["window", "list"])
        return app
      }
    }

    package var topics: [String] { apps.map(\.name) }
  }

  /// Daily times of use of an app.
  struct Usage: Sendable {
    var app = 0
    var clocks: [Int64] = []
    var days = Days.all
    /// The maximum, earlier or later.
    var jitter: Int64 = 0
    var duration: Int64 = 60_000
  }

  enum Days: String, CaseIterable, Readable {
    case all = "every day"
    case weekdays
    case weekends

    /// Day 0 is a Saturday.
    func holds(_ day: Int64) -> Bool {
      switch self {
      case .all: true
      case .weekdays: (day + 7) % 7 >= 2
      case .weekends: (day + 7) % 7 < 2
      }
    }
  }

  /// Draws daily times of use for every app of a phone, once.
  struct Habits: Sendable {
    var perDay: ClosedRange<Int64> = 1...1
    var between: ClosedRange<Int64> = 0...0
    var apart: ClosedRange<Int64> = 0...0
    var jitter: Int64 = 0
    var duration: Int64 = 60_000
  }

  struct EventPlan: Sendable {
    enum Times: Sendable {
      case once(Int64)
      case every(Int64, from: Int64, until: Int64, count: Int64)
      /// At random times.
      case perDay(Int64, from: Int64, until: Int64)

      /// The maximum in a scenario of this length.
      func count(within length: Int64) -> Int64 {
        switch self {
        case .once: 1
        case .every(let interval, let from, let until, let count):
          min(count, max(0, min(until, length) - from) / interval + 1)
        case .perDay(let count, let from, let until):
          count * (max(0, until - from) / TimeText.day + 1)
        }
      }
    }

    let times: Times
    let action: Action
  }

  /// Indices into `phones` and their `apps`.
  struct Place: Hashable, Sendable {
    let phone: Int
    let app: Int
  }

  enum Action: Sendable {
    /// Picks one payload and one place at random.
    case push(to: [Place], [Payload], PushOptions)
    case relay(@Sendable (inout Simulation) -> Void)
    /// With `lasts` the user locks the phone after that time.
    case app(Place, @Sendable (inout Simulation, AppHandle) -> Void, lasts: Int64? = nil)
    case phone(Int, @Sendable (inout Simulation, PhoneHandle) -> Void)
  }
}

extension Scenario {
  /// Phones without a scenario file. Their names must differ.
  package init(phones: [PhonePlan]) {
    title = "phones"
    length = TimeText.longest - TimeText.day
    self.phones = phones
    guard phones.contains(where: { $0.habits != nil }) else { return }
    // All uses are planned at the start.
    length = PhoneUse.days * TimeText.day
    isEndless = true
  }
}

/// How much the users of phones without a scenario do with them.
package enum PhoneUse: String, CaseIterable, Sendable {
  case none
  /// Each app four to eight times in the first 16 hours of a day, which begins with the run.
  case usual

  /// Days with uses.
  package static let days: Int64 = 60

  fileprivate var habits: Scenario.Habits? {
    let minute: Int64 = 60_000
    return switch self {
    case .none: nil
    case .usual:
      Scenario.Habits(
        perDay: 4...8, between: 0...16 * 60 * minute, apart: 30 * minute...180 * minute,
        jitter: 5 * minute, duration: 3 * minute)
    }
  }
}

/// An error and its position: `messenger.json:14: phones[0].apps[1].fetch: …`.
public struct ScenarioError: Error, Hashable, Sendable, CustomStringConvertible {
  public let file: String
  public let line: Int
  /// Empty for the whole file.
  public let key: String
  public let text: String

  public var description: String {
    "\(file):\(line): " + (key.isEmpty ? "" : "\(key): ") + text
  }
}
