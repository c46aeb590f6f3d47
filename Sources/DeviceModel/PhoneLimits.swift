package import Primitives

/// All numbers of the phone. Apple's sessions (WWDC 2013, 204 and 222) give hints at most, quoted
/// below; the numbers are **ours**, plausible, and therefore configurable.
public struct PhoneLimits: Hashable, Sendable {
  // MARK: Running in the background

  /// From the callback to its handler ("well under a minute"; 30 s is ours).
  package var callbackTime = Interval.seconds(30)
  /// For a task begun when leaving the foreground, all slices together (ours).
  package var backgroundTaskTime = Interval.seconds(180)
  /// For a task begun in a callback: "seconds, not minutes" (ours).
  package var callbackTaskTime = Interval.seconds(10)
  /// From leaving the foreground to suspension (ours).
  package var leaveGrace = Interval.seconds(5)
  /// Until a launched, and a resumed, app can work (ours).
  package var launchTime = Interval.milliseconds(800)
  package var resumeTime = Interval.milliseconds(80)
  /// At a time; more are refused (ours).
  package var callbacksPerApp = 16

  // MARK: Awake

  /// How long the phone stays awake after an event (ours).
  package var awakeLinger = Interval.seconds(2)
  /// How long a banner lights a locked screen (ours).
  package var litTime = Interval.seconds(8)

  // MARK: Budgets (all ours)

  /// Millijoules a day of background work: of one app, of all.
  package var appEnergyPerDay: Int64 = 200_000
  package var phoneEnergyPerDay: Int64 = 2_000_000
  /// Cellular bytes a day of background work: of one app, of all.
  package var appDataPerDay: Int64 = 50_000_000
  package var phoneDataPerDay: Int64 = 300_000_000
  /// Power of the radio in milliwatts, and how long it stays on after the last byte.
  package var wifiMilliwatts: Int64 = 400
  package var cellularMilliwatts: Int64 = 1200
  package var wifiTail = Interval.milliseconds(300)
  package var cellularTail = Interval.seconds(5)

  // MARK: Pushes

  /// The phone's own silent limit, beside the relay's ("a couple an hour"; 20 minutes and 3 are
  /// ours): the cost of one push at a middling score.
  package var silentInterval = Interval.minutes(20)
  package var silentBurst: Int64 = 3
  /// Over all apps.
  package var phoneSilentInterval = Interval.minutes(4)
  package var phoneSilentBurst: Int64 = 15
  package var recentPushes = 256
  /// How long a banner waits for its app's handler, so that the content is there when the user
  /// looks (ours).
  package var bannerWait = Interval.seconds(15)
  package var banners = 200
  /// A day, as rates: of an app's widgets (WidgetKit, "Keeping a widget up to date": 40 to 70), of
  /// its complications (PushKit, "complication"), and of a phone's location extensions (Core
  /// Location, "Creating a location push service extension": about 360).
  package var widgetPushes: Int64 = 40
  package var complicationPushes: Int64 = 50
  package var locationPushes: Int64 = 360

  // MARK: Background fetch (all ours; what is between fetches shrinks and grows by how useful an
  // app's were)

  /// The shortest time between fetches.
  package var fetchFloor = Interval.minutes(15)
  /// Before the earliest expected use.
  package var fetchLead = Interval.minutes(10)
  /// Older fetches are repeated while the use is still expected.
  package var fetchFreshness = Interval.minutes(45)
  /// Fetches this far ahead join an awake period.
  package var fetchCoalescing = Interval.minutes(15)
  /// Between fetches while nothing is learned, and of rarely used apps.
  package var fetchExploring = Interval.hours(3)
  package var fetchRarely = Interval.hours(12)
  /// Days of history until it is trusted.
  package var fetchLearningDays = 3
  /// Percent chance of a use within the hour: from this on the use is expected; below this, for any
  /// use of the phone, the hour is idle.
  package var fetchExpectedPercent: Int64 = 20
  package var fetchIdlePercent: Int64 = 5
  /// Local time minus UTC.
  package var timeZone = Interval.zero

  // MARK: Transfers (all ours)

  /// Active at a time; the others queue.
  package var transfersAtOnce = 6
  /// Until a transfer with a broken connection is tried again.
  package var transferRetry = Interval.seconds(1)
  package var transfers = 1000
  /// Shared by the active transfers.
  package var wifiBytesPerSecond: Int64 = 2_500_000
  package var cellularBytesPerSecond: Int64 = 500_000
  /// The share of the phone's energy budget below which discretionary transfers wait on battery.
  package var discretionaryPercent: Int64 = 20

  // MARK: Documents

  /// How long the sync service writes (ours).
  package var documentWriteTime = Interval.milliseconds(200)
  /// Also the maximum of remote changes that wait for a network (ours).
  package var documents = 10_000
  /// Uses under way, versions kept from conflicts, and undo steps of an app (ours).
  package var documentUses = 256
  package var documentVersions = 16
  package var undoneEdits = 100

  // MARK: Content (ours)

  /// Items in an app's database, and files beside it; the oldest items go first.
  package var contentItems = 1000
  package var contentFiles = 100

  // MARK: Live Activities (the policy `live-activities`)

  /// Of an app at a time; users report some 5 (ours).
  package var activities = 5
  /// Until an activity ends by itself, and how long it may stay on the screen after its end
  /// (ActivityKit, "Displaying live data with Live Activities").
  package var activityTime = Interval.hours(8)
  package var activityStay = Interval.hours(4)
  /// Until the token of an activity is another one. Apple says that it may change, not when; by
  /// default never in an activity's time (ours).
  package var activityTokenTime = Interval.hours(8)
  /// Started by push: some 10 in a short time (Apple's engineers, forum thread 799505); that one
  /// comes back every 6 minutes is ours.
  package var activityStarts: Int64 = 10
  package var activityStartInterval = Interval.minutes(6)
  /// Updates of priority 10 of an app: users report some 15 an hour (ours).
  package var activityUpdates: Int64 = 15
  package var activityUpdateInterval = Interval.minutes(4)
  /// The same with frequent updates (ours).
  package var frequentUpdates: Int64 = 60
  package var frequentUpdateInterval = Interval.seconds(15)

  // MARK: Archives (ours)

  /// Per archive: objects, nesting of lists, bytes.
  package static let archiveObjects = 2000
  package static let archiveDepth = 16
  package static let archiveBytes = 4_000_000

  public init() {}

  // MARK: Configuration

  /// Settable by name: a key of `limits` in a scenario, `device --limit NAME=VALUE`.
  package enum Slot: Sendable {
    case time(any WritableKeyPath<PhoneLimits, Interval> & Sendable)
    case amount(any WritableKeyPath<PhoneLimits, Int64> & Sendable)
    case count(any WritableKeyPath<PhoneLimits, Int> & Sendable)
  }

  package static let slots: [(name: String, slot: Slot)] = [
    ("callbackTime", .time(\.callbackTime)), ("backgroundTaskTime", .time(\.backgroundTaskTime)),
    ("callbackTaskTime", .time(\.callbackTaskTime)), ("leaveGrace", .time(\.leaveGrace)),
    ("launchTime", .time(\.launchTime)), ("resumeTime", .time(\.resumeTime)),
    ("callbacksPerApp", .count(\.callbacksPerApp)), ("awakeLinger", .time(\.awakeLinger)),
    ("litTime", .time(\.litTime)), ("appEnergyPerDay", .amount(\.appEnergyPerDay)),
    ("phoneEnergyPerDay", .amount(\.phoneEnergyPerDay)),
    ("appDataPerDay", .amount(\.appDataPerDay)), ("phoneDataPerDay", .amount(\.phoneDataPerDay)),
    ("wifiMilliwatts", .amount(\.wifiMilliwatts)),
    ("cellularMilliwatts", .amount(\.cellularMilliwatts)), ("wifiTail", .time(\.wifiTail)),
    ("cellularTail", .time(\.cellularTail)), ("silentInterval", .time(\.silentInterval)),
    ("silentBurst", .amount(\.silentBurst)), ("phoneSilentInterval", .time(\.phoneSilentInterval)),
    ("phoneSilentBurst", .amount(\.phoneSilentBurst)), ("recentPushes", .count(\.recentPushes)),
    ("bannerWait", .time(\.bannerWait)), ("banners", .count(\.banners)),
    ("widgetPushes", .amount(\.widgetPushes)),
    ("complicationPushes", .amount(\.complicationPushes)),
    ("locationPushes", .amount(\.locationPushes)),
    ("fetchFloor", .time(\.fetchFloor)), ("fetchLead", .time(\.fetchLead)),
    ("fetchFreshness", .time(\.fetchFreshness)), ("fetchCoalescing", .time(\.fetchCoalescing)),
    ("fetchExploring", .time(\.fetchExploring)), ("fetchRarely", .time(\.fetchRarely)),
    ("fetchLearningDays", .count(\.fetchLearningDays)),
    ("fetchExpectedPercent", .amount(\.fetchExpectedPercent)),
    ("fetchIdlePercent", .amount(\.fetchIdlePercent)), ("timeZone", .time(\.timeZone)),
    ("transfersAtOnce", .count(\.transfersAtOnce)), ("transferRetry", .time(\.transferRetry)),
    ("transfers", .count(\.transfers)), ("wifiBytesPerSecond", .amount(\.wifiBytesPerSecond)),
    ("cellularBytesPerSecond", .amount(\.cellularBytesPerSecond)),
    ("discretionaryPercent", .amount(\.discretionaryPercent)),
    ("documentWriteTime", .time(\.documentWriteTime)), ("documents", .count(\.documents)),
    ("documentUses", .count(\.documentUses)), ("documentVersions", .count(\.documentVersions)),
    ("undoneEdits", .count(\.undoneEdits)), ("contentItems", .count(\.contentItems)),
    ("contentFiles", .count(\.contentFiles)), ("activities", .count(\.activities)),
    ("activityTime", .time(\.activityTime)), ("activityStay", .time(\.activityStay)),
    ("activityTokenTime", .time(\.activityTokenTime)),
    ("activityStarts", .amount(\.activityStarts)),
    ("activityStartInterval", .time(\.activityStartInterval)),
    ("activityUpdates", .amount(\.activityUpdates)),
    ("activityUpdateInterval", .time(\.activityUpdateInterval)),
    ("frequentUpdates", .amount(\.frequentUpdates)),
    ("frequentUpdateInterval", .time(\.frequentUpdateInterval)),
  ]

  /// Returns false for an unknown name or a malformed value.
  public mutating func set(_ name: String, to text: String) -> Bool {
    guard let slot = Self.slots.first(where: { $0.name == name })?.slot else { return false }
    let number = Int64(text).flatMap { (1...1_000_000_000_000).contains($0) ? $0 : nil }
    switch (slot, number) {
    case (.time(let path), _):
      // Time zones west of UTC are negative.
      let isBehind = name == "timeZone" && text.hasPrefix("-")
      guard let time = Interval(isBehind ? String(text.dropFirst()) : text) else { return false }
      self[keyPath: path] = .milliseconds(isBehind ? -time.milliseconds : time.milliseconds)
    case (.amount(let path), .some(let number)): self[keyPath: path] = number
    case (.count(let path), .some(let number)): self[keyPath: path] = Int(number)
    case (.amount, nil), (.count, nil): return false
    }
    return true
  }

  /// Must hold after every change.
  public var relationsHold: Bool {
    callbackTaskTime < backgroundTaskTime && launchTime < callbackTime && resumeTime < launchTime
      && callbacksPerApp >= 1 && callbacksPerApp < recentPushes
      && appEnergyPerDay <= phoneEnergyPerDay && appDataPerDay <= phoneDataPerDay
      // A fetch at the earliest time is still fresh at the first expected use.
      && fetchLead + fetchCoalescing < fetchFreshness && fetchFloor < fetchFreshness
      && fetchFreshness < .hours(1) && fetchExploring < fetchRarely
      && fetchIdlePercent < fetchExpectedPercent && silentBurst >= 1 && phoneSilentBurst >= 1
      && activities <= 100 && activityStartInterval > .zero && activityUpdateInterval > .zero
      && frequentUpdateInterval > .zero && activityTokenTime >= .seconds(1)
      && transfersAtOnce <= transfers && (0...100).contains(discretionaryPercent)
      && timeZone >= .hours(-14) && timeZone <= .hours(14)
  }
}
