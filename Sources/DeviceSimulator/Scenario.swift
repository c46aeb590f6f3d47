package import DeviceModel
package import Primitives

/// A story to be played in a simulation: phones and apps, what happens when, what must come of it.
/// Read from JSON; docs/SCENARIO-KEYS.md has all keys.
public struct Scenario: Sendable {
  /// As errors name it.
  public let file: String
  public let title: String
  /// What it shows; may be empty.
  public let about: String
  /// For a run that names no other.
  public let seed: UInt64
  /// Milliseconds.
  let length: Int64
  let policy: RelayPolicy
  let keepAlive: Int64
  let link: LinkModel
  package var phones: [PhonePlan]
  let events: [EventPlan]
  let expectations: [Expectation]

  /// A phone with its apps and its user's days.
  package struct PhonePlan: Sendable {
    package let name: String
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

    init(name: String) { self.name = name }

    /// One to which nothing happens by itself, with apps that pushes may wake.
    package init(
      name: String, topics: [String],
      modes: BackgroundModes = [.remoteNotification, .fetch, .location]
    ) {
      self.init(name: name)
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
    let app: Int
    let clocks: [Int64]
    var days = Days.all
    /// At most so much earlier or later.
    let jitter: Int64
    let duration: Int64
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
    let perDay: ClosedRange<Int64>
    let between: ClosedRange<Int64>
    let apart: ClosedRange<Int64>
    let jitter: Int64
    let duration: Int64
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
    case relay(RelayDeed)
    case app(Place, AppDeed)
    case phone(Int, PhoneDeed)
  }
}

extension Scenario {
  /// Phones whose story nobody has written down, made on the spot. Their names must differ.
  package init(phones: [PhonePlan]) {
    self.init(
      file: "", title: "phones", about: "", seed: 1, length: TimeText.longest - TimeText.day,
      policy: .documented, keepAlive: 0, link: LinkModel(), phones: phones, events: [],
      expectations: [])
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

/// The keys there are, by the place where they stand: what is not among them is an error, and
/// docs/SCENARIO-KEYS.md explains each.
enum ScenarioKeys {
  static let scenario = [
    "title", "about", "seed", "length", "relay", "link", "phones", "events", "expect",
  ]
  static let relay = ["policy", "keepAlive"]
  static let policy = ["perApp", "perPhone"]
  static let rate = ["count", "per", "burst"]
  static let link = ["latency", "jitter", "reconnect", "loss"]
  static let phone = [
    "name", "network", "charging", "lowPower", "limits", "apps", "usage", "habits", "account",
    "iCloudDrive",
  ]
  static let app = [
    "name", "version", "copies", "modes", "fetch", "onPush", "onFetch", "onTransfers", "onRegion",
    "onDocument", "onAuthentication", "onLeave", "contentTime", "state", "objects", "restoration",
    "hidesContent", "keepsOneHandler", "container", "documentTypes",
  ]
  static let work = [
    "takes", "jitter", "bytes", "energy", "outcome", "newDataPercent", "handler", "handlerLate",
    "reads", "writes", "limitedCredential", "transfers", "notification", "task", "fetch",
    "remembers", "brings", "uses", "ignoresSnapshot",
  ]
  static let object = ["path", "class", "madeBy", "registered", "remembers"]
  static let use = ["documents", "for", "bytes", "line", "text"]
  static let authentication = ["provides", "cancels", "wrong"]
  static let leave = ["transfers", "task"]
  static let restoration = [
    "oldest", "answersNothing", "gone", "classes", "appDelegate", "tables", "crashes",
    "transforms", "otherVersions", "applies",
  ]
  static let restorationClass = ["name", "needs", "answers"]
  static let table = ["path", "key"]
  static let transform = ["from", "to", "changes"]
  static let archiveChange = ["rename", "set", "drop", "key", "value", "to"]
  static let application = ["path", "key", "through", "theirs"]
  static let task = ["takes", "endsInTime", "energy"]
  static let notification = ["text", "badge", "sound"]
  static let transfer = [
    "name", "bytes", "session", "upload", "discretionary", "credentials", "resumes", "document",
    "url", "authorization", "actualBytes", "breaksAt",
  ]
  static let usage = ["app", "at", "days", "jitter", "for"]
  static let habits = ["perDay", "between", "apart", "jitter", "for"]
  static let times = ["at", "every", "count", "until", "perDay"]
  static let event = Verb.all.reduce(into: times + ["push", "do"]) { keys, verb in
    keys += verb.allKeys.filter { !keys.contains($0) }
  }
  static let push = [
    "to", "name", "payload", "payloads", "type", "priority", "expires", "collapse", "topic",
  ]
  static let expectation = [
    "says", "expect", "never", "order", "fetchedBeforeUse", "after", "before", "within", "between",
    "count",
  ]
  static let match = ["what", "phone", "app", "push", "why"]
  static let count = ["min", "max"]
  static let fetchedBeforeUse = ["within", "percentOfDays", "after", "before"]

  static let all: [(place: String, keys: [String])] = [
    ("scenario", scenario), ("relay", relay), ("policy", policy), ("rate", rate), ("link", link),
    ("phone", phone), ("app", app), ("work", work),
    ("onAuthentication", authentication), ("onLeave", leave), ("restoration", restoration),
    ("restoration class", restorationClass), ("table", table), ("transform", transform),
    ("archive change", archiveChange), ("application", application),
    ("object", object), ("use", use), ("task", task),
    ("notification", notification), ("transfer", transfer), ("usage", usage), ("habits", habits),
    ("event", event), ("push", push), ("expectation", expectation), ("match", match),
    ("count", count), ("fetchedBeforeUse", fetchedBeforeUse),
  ]
}
