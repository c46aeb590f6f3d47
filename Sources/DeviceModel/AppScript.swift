public import Primitives

/// An app as data: the phone plays its script. Common mistakes of real apps can be scripted too.
public struct AppDefinition: Hashable, Codable, Sendable {
  /// The bundle identifier, which is also the topic of its pushes.
  public var name: String
  public var version: String
  public var modes: BackgroundModes
  /// Requested at its first start (WWDC 2013 session 204).
  public var fetchInterval: FetchInterval
  public var script: AppScript
  /// Nil means `cloud`.
  public var container: DocumentContainer?
  /// File extensions the picker offers it, such as `txt`; nil for all.
  public var documentTypes: [String]?
  /// Nil for an app without Live Activities.
  public var activities: ActivityPlan?
  /// The service that it is built for, `sandbox` or `production`; nil for both.
  public var environment: String?

  public init(
    name: String, version: String = "1.0", modes: BackgroundModes = [],
    fetchInterval: FetchInterval = .never, script: AppScript = AppScript(),
    container: DocumentContainer? = nil, documentTypes: [String]? = nil,
    activities: ActivityPlan? = nil
  ) {
    self.activities = activities
    self.container = container
    self.documentTypes = documentTypes

    self.name = name
    self.version = version
    self.modes = modes
    self.fetchInterval = fetchInterval
    self.script = script
  }
}

/// How the documents in an app's container are synced, and which apps see them.
public enum DocumentContainer: String, CaseIterable, Hashable, Codable, Sendable {
  /// The app itself, by transfers.
  case own
  /// The system.
  case cloud
  /// The system; the picker offers them to other apps.
  case shared = "public"
  /// The app provides them to other apps once the user has switched it on.
  case provider
}

/// Declared background modes; transfers need none (WWDC 2013 session 204).
public struct BackgroundModes: OptionSet, Hashable, Codable, Sendable {
  public let rawValue: UInt8

  public init(rawValue: UInt8) { self.rawValue = rawValue }

  public static let fetch = BackgroundModes(rawValue: 1)
  public static let remoteNotification = BackgroundModes(rawValue: 2)
  /// Runs when the user enters a place it watches.
  public static let location = BackgroundModes(rawValue: 4)
  /// Goes on while it plays.
  public static let audio = BackgroundModes(rawValue: 8)
  /// Woken by a push at most once a day, on Wi-Fi.
  public static let newsstand = BackgroundModes(rawValue: 16)

  package static let names: [(String, BackgroundModes)] = [
    ("fetch", .fetch), ("remote-notification", .remoteNotification), ("location", .location),
    ("audio", .audio), ("newsstand", .newsstand),
  ]
}

/// The shortest time between background fetches that an app wants (WWDC 2013 session 204).
public enum FetchInterval: Hashable, Codable, Sendable {
  case never
  /// The system decides.
  case minimum
  case seconds(Int64)
}

/// An app's actions at each event.
public struct AppScript: Hashable, Codable, Sendable {
  public var onPush = CallbackScript()
  public var onFetch = CallbackScript()
  /// When all transfers of one of its sessions have ended.
  public var onTransfers = CallbackScript()
  /// At a place it watches; nil for the defaults. Older stored scripts have none.
  public var onRegion: CallbackScript?
  /// When a document it provides is wanted or was written; nil for the defaults.
  public var onDocument: CallbackScript?
  /// When a Live Activity was started by a push; nil for the defaults, without new data.
  public var onActivity: CallbackScript?
  public var onAuthentication = AuthenticationScript.provides(after: .milliseconds(200))
  public var onLeave = LeaveScript()
  /// How long the user waits for the content when a banner opens the app without it.
  public var contentTime = Interval.seconds(3)
  public var handlers = HandlerKeeping.eachItsOwn
  /// The base objects at a first start.
  public var interface = StateGraph()
  public var restoration = RestorationScript()
  /// Hides sensitive content before a snapshot (WWDC 2013 session 204).
  public var hidesContent = false

  public init() {}
}

/// How an app keeps its completion handlers.
public enum HandlerKeeping: Hashable, Codable, Sendable {
  case eachItsOwn
  /// A mistake: one property holds the latest handler. Of two overlapping callbacks the first to
  /// finish calls the second one's handler, and its own is lost (WWDC 2013 session 204).
  case oneProperty
}

/// The cost and the outcome of one callback.
public struct CallbackScript: Hashable, Codable, Sendable {
  public var work = Interval.seconds(2)
  /// The most that is randomly added to `work`.
  public var workJitter = Interval.zero
  /// Bytes over the radio, and millijoules in addition to the radio's.
  public var bytes: Int64 = 50_000
  public var energy: Int64 = 500
  public var outcome = OutcomeRule.always(.newData)
  public var handler = HandlerCall.afterWork
  /// Protection of the credential it needs, and of the file it writes (Apple, "Encrypting Your
  /// App's Files").
  public var reads = DataProtection.untilFirstUnlock
  public var writes = DataProtection.unlessOpen
  /// While locked and unable to read `reads`, it uses a derived credential that is good for this
  /// work only and available after the first unlock; nil means no.
  public var hasLimitedCredential: Bool?
  /// From here on: only if there was new data.
  public var transfers: [TransferRequest] = []
  public var notification: LocalNotification?
  public var changes: [StateChange] = []
  /// Also without new data, unless it failed.
  public var setsFetchInterval: FetchInterval?
  /// Asks once for the plain image at the next launch.
  public var ignoresNextSnapshot = false
  public var task: TaskScript?
  /// Items added to its database.
  public var brings: [String]?
  /// The handler is called when all of these have ended.
  public var uses: [DocumentUse]?

  public init() {}
}

/// How a callback's outcome is chosen.
public enum OutcomeRule: Hashable, Codable, Sendable {
  case always(CallbackOutcome)
  /// New data in this percentage of cases, by the phone's seed; otherwise no data.
  case newDataPercent(Int64)
}

/// The argument of a completion handler (WWDC 2013 session 204).
public enum CallbackOutcome: String, CaseIterable, Hashable, Codable, Sendable {
  case newData
  case noData
  case failed
}

/// When a completion handler is called after the work.
public enum HandlerCall: Hashable, Codable, Sendable {
  case afterWork
  case late(Interval)
  /// The mistake that gets an app killed.
  case never
}

/// The answer to a server's authentication challenge (WWDC 2013 session 204).
public enum AuthenticationScript: Hashable, Codable, Sendable {
  case provides(after: Interval)
  case cancels(after: Interval)
  case wrong(after: Interval)
}

/// A request for background time beyond a callback or the foreground.
public struct TaskScript: Hashable, Codable, Sendable {
  public var work: Interval
  /// Ends itself when its time is over; otherwise the app is killed.
  public var endsInTime: Bool
  /// Millijoules for all of it.
  public var energy: Int64

  public init(work: Interval, endsInTime: Bool = true, energy: Int64 = 1000) {
    self.work = work
    self.endsInTime = endsInTime
    self.energy = energy
  }
}

/// Actions of an app when it leaves the foreground.
public struct LeaveScript: Hashable, Codable, Sendable {
  public var task: TaskScript?
  public var transfers: [TransferRequest] = []

  public init() {}
}

/// How an app takes part in state restoration.
public struct RestorationScript: Hashable, Codable, Sendable {
  /// The greatest age of an archive it accepts; nil for any (WWDC 2013 session 222).
  public var oldest: Interval?
  public var answersNothing: Set<String> = []
  /// Restoration classes that do more than recreate what was saved.
  public var classes: [RestorationClass]?
  /// Objects the app delegate makes when there is no restoration class.
  public var appDelegate: Set<StatePath>?
  public var tables: [StateTable]?
  /// Objects whose data no longer exists.
  public var gone: Set<StatePath> = []
  /// A mistake that costs the archive.
  public var crashes = false
  /// How to convert archives between versions. Older stored scripts lack this and the fields below.
  public var transforms: [ArchiveTransform]?
  /// Declines an archive that is still of another version after `transforms`.
  public var declinesOtherVersions: Bool?
  /// Run when restoring has finished.
  public var applies: [StateApplication]?

  public init() {}

  /// The class of the object that a restoration class makes; nil for none.
  func answer(_ name: String, _ object: StateObject, _ items: [String]) -> String? {
    guard !answersNothing.contains(name) else { return nil }
    let own = classes?.first { $0.name == name }
    if let key = own?.needs {
      guard case .text(let item)? = object[key], items.contains(item) else { return nil }
    }
    return own?.answers ?? object.className
  }

  /// The transforms from one version towards another, each used at most once.
  func path(from version: String, to wanted: String) -> [ArchiveTransform] {
    var left = transforms ?? []
    var (path, version) = ([ArchiveTransform](), version)
    while version != wanted, let place = left.firstIndex(where: { $0.from == version }) {
      let next = left.remove(at: place)
      path.append(next)
      version = next.to
    }
    return path
  }
}

/// A restoration class; it decides by the identifiers and the saved state (WWDC 2013 session 222).
public struct RestorationClass: Hashable, Codable, Sendable {
  public var name: String
  /// Returns nothing unless the database still has the item saved under this key.
  public var needs: String?
  /// The class it makes instead of the saved one.
  public var answers: String?

  public init(name: String, needs: String? = nil, answers: String? = nil) {
    (self.name, self.needs, self.answers) = (name, needs, answers)
  }
}

/// A table of the app's database, newest first; `key` holds the selected row.
public struct StateTable: Hashable, Codable, Sendable {
  public var path: StatePath
  public var key: String

  public init(path: StatePath, key: String) { (self.path, self.key) = (path, key) }
}

/// After decoding, an object copies a value of the object it refers to, whichever of the two was
/// decoded first (WWDC 2013 session 222).
public struct StateApplication: Hashable, Codable, Sendable {
  public var path: StatePath
  public var key: String
  /// The key of the reference, and the key of the value in the other object.
  public var through: String
  public var theirs: String

  public init(path: StatePath, key: String, through: String, theirs: String) {
    self.path = path
    self.key = key
    self.through = through
    self.theirs = theirs
  }
}

/// A notification posted by the app itself.
public struct LocalNotification: Hashable, Codable, Sendable {
  public var text: String
  public var badge: Int?
  public var hasSound: Bool

  public init(text: String, badge: Int? = nil, hasSound: Bool = false) {
    self.text = text
    self.badge = badge
    self.hasSound = hasSound
  }
}

/// A background transfer (WWDC 2013 session 204).
public struct TransferRequest: Hashable, Codable, Sendable {
  public enum Direction: Hashable, Codable, Sendable {
    case download
    case upload
  }

  /// The session identifier by which the app reconnects.
  public var session: String
  public var name: String
  public var direction: Direction
  /// For a performed transfer an estimate; the server knows better.
  public var bytes: Int64
  /// A choice in the foreground; always so when queued from the background.
  public var isDiscretionary: Bool
  /// The server challenges once. For a performed transfer the server itself decides.
  public var demandsCredentials: Bool
  /// Resumes after an interruption; otherwise starts over.
  public var resumes: Bool
  public var document: DocumentID?
  /// The HTTP address for `TransferMode.performed`; nil uses the modelled network in any mode.
  public var url: String?
  /// The `Authorization` field the app provides when challenged.
  public var authorization: String?
  /// The real size, if not `bytes`; a larger one fails the transfer. Modelled transfers only, like
  /// `breaksAt`.
  public var actualBytes: Int64?
  /// The byte at which the connection breaks, once; then the transfer is tried again.
  public var breaksAt: Int64?

  public init(
    session: String = "default", name: String, direction: Direction = .download, bytes: Int64,
    isDiscretionary: Bool = false, demandsCredentials: Bool = false, resumes: Bool = true,
    document: DocumentID? = nil, url: String? = nil, authorization: String? = nil
  ) {
    self.session = session
    self.name = name
    self.direction = direction
    self.bytes = max(0, bytes)
    self.isDiscretionary = isDiscretionary
    self.demandsCredentials = demandsCredentials
    self.resumes = resumes
    self.document = document
    self.url = url
    self.authorization = authorization
  }
}

/// Protection classes of files and keys (Apple, "Encrypting Your App's Files").
public enum DataProtection: String, CaseIterable, Hashable, Codable, Sendable {
  case complete
  case unlessOpen
  case untilFirstUnlock
  case none

  public func isReadable(_ lock: LockState) -> Bool {
    switch self {
    case .complete, .unlessOpen: lock == .unlocked
    case .untilFirstUnlock: lock != .beforeFirstUnlock
    case .none: true
    }
  }

  /// A new file can be created, and written until it is closed.
  public func isWritable(_ lock: LockState) -> Bool {
    self == .unlessOpen || isReadable(lock)
  }
}

/// Which keys of protected data are available.
public enum LockState: String, CaseIterable, Hashable, Sendable {
  case beforeFirstUnlock
  case locked
  case unlocked
}
