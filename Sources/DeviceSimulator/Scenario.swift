package import DeviceModel
package import Primitives

/// A story to be played in a simulation: phones and apps, what happens when, what must come of it.
/// Read from JSON; docs/SCENARIO-KEYS.md has all keys.
public struct Scenario: Sendable {
  /// As errors name it.
  public internal(set) var file = ""
  public internal(set) var title = ""
  /// What it shows; may be empty.
  public internal(set) var about = ""
  /// For a run that names no other.
  public internal(set) var seed: UInt64 = 1
  /// Milliseconds.
  var length: Int64 = 0
  var relay = RelayPlan()
  var link = LinkModel()
  package var phones: [PhonePlan] = []
  var events: [EventPlan] = []
  var expectations: [Expectation] = []

  struct RelayPlan: Sendable {
    var policy = RelayPolicy.documented
    var keepAlive: Int64 = 900_000
  }

  /// A phone with its apps and its user's days.
  package struct PhonePlan: Sendable {
    package var name = ""
    package var network = Network.wifi
    package var isCharging = false
    package var isLowPower = false
    /// Phones of the same one share their documents.
    var account: String?
    var hasDrive = true
    package var limits = PhoneLimits()
    var apps: [AppDefinition] = []
    var usage: [Usage] = []
    var habits: Habits?

    init() {}

    /// One to which nothing happens by itself, with apps that pushes may wake.
    package init(
      name: String, topics: [String],
      modes: BackgroundModes = [.remoteNotification, .fetch, .location]
    ) {
      self.name = name
      apps = topics.map { topic in
        var app = AppDefinition(name: topic, modes: modes)
        app.script.interface.add(["window", "list"])
        return app
      }
    }

    /// The names of its apps.
    package var topics: [String] { apps.map(\.name) }
  }

  /// At which times of every day an app is used.
  struct Usage: Sendable {
    var app = 0
    var clocks: [Int64] = []
    var days = Days.all
    /// At most so much earlier or later.
    var jitter: Int64 = 0
    var duration: Int64 = 60_000
  }

  /// Day 1 is a Saturday.
  enum Days: Sendable {
    case all
    case weekdays
    case weekends

    /// A day from 0.
    func holds(_ day: Int64) -> Bool {
      switch self {
      case .all: true
      case .weekdays: day % 7 >= 2
      case .weekends: day % 7 < 2
      }
    }
  }

  /// Every app of a phone is used some times a day, at times of its own that chance sets once.
  struct Habits: Sendable {
    var perDay: ClosedRange<Int64> = 1...1
    var between: ClosedRange<Int64> = 0...0
    var apart: ClosedRange<Int64> = 0...0
    var jitter: Int64 = 0
    var duration: Int64 = 60_000
  }

  /// What happens, and when.
  struct EventPlan: Sendable {
    enum Times: Sendable {
      case once(Int64)
      case every(Int64, from: Int64, until: Int64, count: Int64)
      /// At random moments.
      case perDay(Int64, from: Int64, until: Int64)

      /// How often that is, at most, in a scenario of this length.
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

  /// Phones and apps are named by their places in `phones`.
  struct Place: Hashable, Sendable {
    let phone: Int
    let app: Int
  }

  enum Action: Sendable {
    /// One of the payloads to one of the places, by chance when there are several.
    case push(to: [Place], [Payload], PushOptions)
    case relay(@Sendable (inout Simulation) -> Void)
    /// Whoever uses it for a while locks the phone then.
    case app(Place, @Sendable (inout Simulation, AppHandle) -> Void, lasts: Int64? = nil)
    case phone(Int, @Sendable (inout Simulation, PhoneHandle) -> Void)
  }
}

extension Scenario {
  /// Phones whose story nobody has written down, made on the spot. Their names must differ.
  package init(phones: [PhonePlan]) {
    title = "phones"
    length = TimeText.longest - TimeText.day
    self.phones = phones
  }
}

/// What is wrong with a scenario, and where: `messenger.json:14: phones[0].apps[1].fetch: …`.
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
