package import Primitives

/// Every number of the phone in one place. Apple's sessions (WWDC 2013, 204 and 222) name next to
/// none: where they give a hint it is repeated, and the number is **ours**, chosen to be plausible,
/// and is configuration for that reason.
public struct PhoneLimits: Hashable, Sendable {
  // MARK: Running in the background

  /// From a callback to the call of its handler ("well under a minute"; 30 s is ours).
  package var callbackTime = Interval.seconds(30)
  /// All of a background task begun on leaving the foreground, slices added up (ours).
  package var backgroundTaskTime = Interval.seconds(180)
  /// All of a background task begun from a callback: "seconds, not minutes" (ours).
  package var callbackTaskTime = Interval.seconds(10)
  /// Between leaving the foreground and being suspended (ours).
  package var leaveGrace = Interval.seconds(5)
  /// Until a launched app can work, and a resumed one (ours).
  package var launchTime = Interval.milliseconds(800)
  package var resumeTime = Interval.milliseconds(80)
  /// Callbacks of one app at a time; one more is refused (ours).
  package var callbacksPerApp = 16

  // MARK: Awake

  /// How long the phone stays awake after whatever woke it (ours).
  package var awakeLinger = Interval.seconds(2)
  /// How long a banner lights a locked screen (ours).
  package var litTime = Interval.seconds(8)

  // MARK: Budgets (all ours)

  /// Millijoules a day for one app's background work, and for all of it.
  package var appEnergyPerDay: Int64 = 200_000
  package var phoneEnergyPerDay: Int64 = 2_000_000
  /// Bytes a day over cellular for one app's background work, and for all of it.
  package var appDataPerDay: Int64 = 50_000_000
  package var phoneDataPerDay: Int64 = 300_000_000
  /// What the radio draws in milliwatts, which is millijoules a second, and how long it stays on
  /// after the last byte.
  package var wifiMilliwatts: Int64 = 400
  package var cellularMilliwatts: Int64 = 1200
  package var wifiTail = Interval.milliseconds(300)
  package var cellularTail = Interval.seconds(5)

  // MARK: Pushes

  /// The phone's own silent limit, on top of the relay's ("a couple an hour"; 20 minutes and 3 are
  /// ours): what a push of an app of middling standing uses up; of others more or less.
  package var silentInterval = Interval.minutes(20)
  /// How many of those at once.
  package var silentBurst: Int64 = 3
  /// The same over all apps.
  package var phoneSilentInterval = Interval.minutes(4)
  package var phoneSilentBurst: Int64 = 15
  /// Pushes that are remembered so that a second delivery is dropped.
  package var recentPushes = 256
  /// How long a banner waits for its app's handler, so that the content is there when the user
  /// looks (ours): shown then, it is made ready when the handler is called.
  package var bannerWait = Interval.seconds(15)
  /// Banners in the list; the oldest go first.
  package var banners = 200

  // MARK: Background fetch (all ours; what is between fetches shrinks and grows by how useful an
  // app's were)

  /// Never more often than this.
  package var fetchFloor = Interval.minutes(15)
  /// How long before the earliest expected use.
  package var fetchLead = Interval.minutes(10)
  /// A fetch older than this is repeated while the use is still expected.
  package var fetchFreshness = Interval.minutes(45)
  /// Fetches this far ahead join an awake period.
  package var fetchCoalescing = Interval.minutes(15)
  /// Between fetches while nothing is learned yet, and for an app that is hardly ever used.
  package var fetchExploring = Interval.hours(3)
  package var fetchRarely = Interval.hours(12)
  /// Days of history before it is trusted.
  package var fetchLearningDays = 3
  /// The chance of a use within the hour, in percent, from which it counts as expected; and the
  /// one of any use of the phone below which an hour is idle.
  package var fetchExpectedPercent: Int64 = 20
  package var fetchIdlePercent: Int64 = 5
  /// What the local clock is ahead of UTC.
  package var timeZone = Interval.zero

  // MARK: Transfers (all ours)

  /// Active at a time; the others queue.
  package var transfersAtOnce = 6
  /// Until one whose connection broke is tried again.
  package var transferRetry = Interval.seconds(1)
  /// Transfers known to the system; one more is refused.
  package var transfers = 1000
  /// What the active transfers share.
  package var wifiBytesPerSecond: Int64 = 2_500_000
  package var cellularBytesPerSecond: Int64 = 500_000
  /// Discretionary transfers on battery need this share of the phone's energy budget.
  package var discretionaryPercent: Int64 = 20

  // MARK: Documents

  /// How long the sync service writes (ours).
  package var documentWriteTime = Interval.milliseconds(200)
  /// Documents on the phone, and changes elsewhere that wait for a network (ours).
  package var documents = 10_000
  /// Uses under way, versions of a document that are kept of its conflicts, and edits that an app
  /// can take back (ours).
  package var documentUses = 256
  package var documentVersions = 16
  package var undoneEdits = 100

  // MARK: Content (ours)

  /// What an app's database holds; the oldest go first. And files beside it.
  package var contentItems = 1000
  package var contentFiles = 100

  // MARK: Archives (ours)

  /// Objects of one archive, how deep lists may lie in lists, and bytes of one archive.
  package static let archiveObjects = 2000
  package static let archiveDepth = 16
  package static let archiveBytes = 4_000_000

  public init() {}

  // MARK: Configuration

  /// What can be set by its name: a key of `limits` in a scenario, `device --limit NAME=VALUE`.
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
    ("contentFiles", .count(\.contentFiles)),
  ]

  /// Sets one. False when there is none of that name, or it is no such value.
  public mutating func set(_ name: String, to text: String) -> Bool {
    guard let slot = Self.slots.first(where: { $0.name == name })?.slot else { return false }
    let number = Int64(text).flatMap { (1...1_000_000_000_000).contains($0) ? $0 : nil }
    switch (slot, number) {
    case (.time(let path), _):
      // What is behind UTC is less than nothing.
      let isBehind = name == "timeZone" && text.hasPrefix("-")
      guard let time = Interval(isBehind ? String(text.dropFirst()) : text) else { return false }
      self[keyPath: path] = .milliseconds(isBehind ? -time.milliseconds : time.milliseconds)
    case (.amount(let path), .some(let number)): self[keyPath: path] = number
    case (.count(let path), .some(let number)): self[keyPath: path] = Int(number)
    case (.amount, nil), (.count, nil): return false
    }
    return true
  }

  /// Relations between the numbers: a limit that is set must keep them.
  public var relationsHold: Bool {
    callbackTaskTime < backgroundTaskTime && launchTime < callbackTime && resumeTime < launchTime
      && callbacksPerApp >= 1 && callbacksPerApp < recentPushes
      && appEnergyPerDay <= phoneEnergyPerDay && appDataPerDay <= phoneDataPerDay
      // A fetch at the earliest moment is still fresh at the first expected use.
      && fetchLead + fetchCoalescing < fetchFreshness && fetchFloor < fetchFreshness
      && fetchFreshness < .hours(1) && fetchExploring < fetchRarely
      && fetchIdlePercent < fetchExpectedPercent && silentBurst >= 1 && phoneSilentBurst >= 1
      && transfersAtOnce <= transfers && (0...100).contains(discretionaryPercent)
      && timeZone >= .hours(-14) && timeZone <= .hours(14)
  }
}
