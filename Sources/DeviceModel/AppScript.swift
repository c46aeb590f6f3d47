public import Primitives

/// What an app is and does, as a value: the phone asks it nothing, it plays the script. Mistakes
/// that real apps make can be scripted too.
public struct AppDefinition: Hashable, Codable, Sendable {
  /// The bundle identifier, which is also the topic of its pushes.
  public var name: String
  public var version: String
  public var modes: BackgroundModes
  /// What it asks for at its first start (WWDC 2013 session 204).
  public var fetchInterval: FetchInterval
  public var script: AppScript
  /// Who keeps the documents in its container the same on all devices; nil for the system.
  public var container: DocumentContainer?
  /// What the picker offers it, by the ends of names such as `txt`; nil for everything.
  public var documentTypes: [String]?

  public init(
    name: String, version: String = "1.0", modes: BackgroundModes = [],
    fetchInterval: FetchInterval = .never, script: AppScript = AppScript(),
    container: DocumentContainer? = nil, documentTypes: [String]? = nil
  ) {
    self.container = container
    self.documentTypes = documentTypes

    self.name = name
    self.version = version
    self.modes = modes
    self.fetchInterval = fetchInterval
    self.script = script
  }
}

/// Who keeps the documents in an app's container the same on all devices, and who else sees them.
public enum DocumentContainer: String, CaseIterable, Hashable, Codable, Sendable {
  /// The app, by transfers of its own.
  case own
  /// The system.
  case cloud
  /// The system, and other apps are offered them in the picker.
  case shared = "public"
  /// The app provides them to others, once its user has switched it on.
  case provider
}

/// What an app declares to do in the background; transfers need no declaration (WWDC 2013 session
/// 204).
public struct BackgroundModes: OptionSet, Hashable, Codable, Sendable {
  public let rawValue: UInt8

  public init(rawValue: UInt8) { self.rawValue = rawValue }

  public static let fetch = BackgroundModes(rawValue: 1)
  public static let remoteNotification = BackgroundModes(rawValue: 2)
  /// Run when its user comes to a place that it watches.
  public static let location = BackgroundModes(rawValue: 4)
  /// Goes on for as long as it plays.
  public static let audio = BackgroundModes(rawValue: 8)
  /// Woken by pushes once a day, on Wi-Fi.
  public static let newsstand = BackgroundModes(rawValue: 16)

  /// As scenarios and the command line call them.
  package static let names: [(String, BackgroundModes)] = [
    ("fetch", .fetch), ("remote-notification", .remoteNotification), ("location", .location),
    ("audio", .audio), ("newsstand", .newsstand),
  ]
}

/// How often an app wants background fetches at most (WWDC 2013 session 204).
public enum FetchInterval: Hashable, Codable, Sendable {
  case never
  /// As the system sees fit.
  case minimum
  case seconds(Int64)
}

/// What the app does when.
public struct AppScript: Hashable, Codable, Sendable {
  public var onPush = CallbackScript()
  public var onFetch = CallbackScript()
  /// When the transfers of one of its sessions have all ended.
  public var onTransfers = CallbackScript()
  /// At a place that it watches; nil for the usual work. What was stored before there was such a
  /// thing has none.
  public var onRegion: CallbackScript?
  /// What it does when it provides documents, and is called for each that is wanted or was written;
  /// nil for the usual work.
  public var onDocument: CallbackScript?
  public var onAuthentication = AuthenticationScript.provides(after: .milliseconds(200))
  public var onLeave = LeaveScript()
  /// Opened from a banner whose content is not there: how long the user waits for it.
  public var contentTime = Interval.seconds(3)
  public var handlers = HandlerKeeping.eachItsOwn
  /// Its state at a first start: the base objects.
  public var interface = StateGraph()
  public var restoration = RestorationScript()
  /// It hides what is sensitive before a snapshot is taken (WWDC 2013 session 204).
  public var hidesContent = false

  public init() {}
}

/// How an app keeps the handlers it is given.
public enum HandlerKeeping: Hashable, Codable, Sendable {
  /// Each callback is paired with its own, as it should be.
  case eachItsOwn
  /// The mistake: one property holds the latest. Of two overlapping callbacks the first to finish
  /// calls the second one's handler, and the first one's is lost (WWDC 2013 session 204).
  case oneProperty
}

/// One callback: what it costs and how it ends.
public struct CallbackScript: Hashable, Codable, Sendable {
  /// From the callback to the end of its work.
  public var work = Interval.seconds(2)
  /// A random part on top, up to this.
  public var workJitter = Interval.zero
  /// What goes over the radio, and the energy beside the radio's, in millijoules.
  public var bytes: Int64 = 50_000
  public var energy: Int64 = 500
  public var outcome = OutcomeRule.always(.newData)
  public var handler = HandlerCall.afterWork
  /// The protection of the credential it needs, and of the file it writes to (Apple, "Encrypting
  /// Your App's Files").
  public var reads = DataProtection.untilFirstUnlock
  public var writes = DataProtection.unlessOpen
  /// Where it may not read `reads` while locked, it makes do with a derived credential that is good
  /// for this work only and there after the first unlock; nil for no.
  public var hasLimitedCredential: Bool?
  /// What it does when there was something new.
  public var transfers: [TransferRequest] = []
  public var notification: LocalNotification?
  public var changes: [StateChange] = []
  /// Asks for another interval, unless it failed.
  public var setsFetchInterval: FetchInterval?
  /// Asks for the plain image at the next launch, once.
  public var ignoresNextSnapshot = false
  /// A background task begun then, and whether it stops when its time is over.
  public var task: TaskScript?
  /// What its database holds more when there was something new.
  public var brings: [String]?
  /// The documents that it uses then; its handler is called when all of that has ended.
  public var uses: [DocumentUse]?

  public init() {}
}

/// What a callback reports.
public enum OutcomeRule: Hashable, Codable, Sendable {
  case always(CallbackOutcome)
  /// New data so often in a hundred, by the phone's seed; no data otherwise.
  case newDataPercent(Int64)
}

/// What a handler is called with (WWDC 2013 session 204).
public enum CallbackOutcome: String, CaseIterable, Hashable, Codable, Sendable {
  case newData
  case noData
  case failed
}

/// When the handler is called.
public enum HandlerCall: Hashable, Codable, Sendable {
  case afterWork
  case late(Interval)
  /// The mistake that gets an app killed.
  case never
}

/// An answer to a server that asks a transfer for credentials (WWDC 2013 session 204).
public enum AuthenticationScript: Hashable, Codable, Sendable {
  case provides(after: Interval)
  case cancels(after: Interval)
  /// What it answers is not taken.
  case wrong(after: Interval)
}

/// Time asked for beyond a callback or beyond the foreground.
public struct TaskScript: Hashable, Codable, Sendable {
  /// How long it takes, slices added up.
  public var work: Interval
  /// Whether it ends itself when the system says that time is over; if not, the app is killed.
  public var endsInTime: Bool
  /// Millijoules for all of it.
  public var energy: Int64

  public init(work: Interval, endsInTime: Bool = true, energy: Int64 = 1000) {
    self.work = work
    self.endsInTime = endsInTime
    self.energy = energy
  }
}

/// What an app does when it leaves the foreground.
public struct LeaveScript: Hashable, Codable, Sendable {
  /// A background task begun on the way out.
  public var task: TaskScript?
  public var transfers: [TransferRequest] = []

  public init() {}
}

/// How an app takes part in restoration.
public struct RestorationScript: Hashable, Codable, Sendable {
  /// An older archive is declined; nil takes any (WWDC 2013 session 222).
  public var oldest: Interval?
  /// Restoration classes that answer nothing.
  public var answersNothing: Set<String> = []
  /// What single restoration classes do beyond making what was saved.
  public var classes: [RestorationClass]?
  /// What the app delegate makes when nobody else does.
  public var appDelegate: Set<StatePath>?
  /// Tables whose source gives identifiers: under that key is the selected row's.
  public var tables: [StateTable]?
  /// Single objects whose data is gone.
  public var gone: Set<StatePath> = []
  /// The mistake that costs the archive.
  public var crashes = false
  /// How the archive of an older version becomes one of a later version. What was stored before
  /// there was such a thing has none, here and below.
  public var transforms: [ArchiveTransform]?
  /// An archive that is of another version than the app, when that is done, is declined.
  public var declinesOtherVersions: Bool?
  /// What objects do when they are told that restoring has finished.
  public var applies: [StateApplication]?

  public init() {}

  /// What a restoration class makes of an object: of which class the new one is; nil for nothing.
  func answer(_ name: String, _ object: StateObject, _ items: [String]) -> String? {
    guard !answersNothing.contains(name) else { return nil }
    let own = classes?.first { $0.name == name }
    if let key = own?.needs {
      guard case .text(let item)? = object[key], items.contains(item) else { return nil }
    }
    return own?.answers ?? object.className
  }

  /// The transforms from one version to another, as far as they lead; each at most once.
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

/// A restoration class: given the identifiers and what was saved, it decides by that (WWDC 2013
/// session 222).
public struct RestorationClass: Hashable, Codable, Sendable {
  public var name: String
  /// It answers nothing unless the app still has what is saved under this key.
  public var needs: String?
  /// Another class than the one that was saved.
  public var answers: String?

  public init(name: String, needs: String? = nil, answers: String? = nil) {
    (self.name, self.needs, self.answers) = (name, needs, answers)
  }
}

/// A table of what the app's database holds, newest first.
public struct StateTable: Hashable, Codable, Sendable {
  public var path: StatePath
  public var key: String

  public init(path: StatePath, key: String) { (self.path, self.key) = (path, key) }
}

/// An object takes over, under a key, what the object that it refers to has decoded: whoever of the
/// two was decoded first (WWDC 2013 session 222).
public struct StateApplication: Hashable, Codable, Sendable {
  public var path: StatePath
  public var key: String
  /// Its key that refers to the other, and that one's key.
  public var through: String
  public var theirs: String

  public init(path: StatePath, key: String, through: String, theirs: String) {
    self.path = path
    self.key = key
    self.through = through
    self.theirs = theirs
  }
}

/// A notification that the app posts itself.
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

/// A piece of work for the transfer service (WWDC 2013 session 204).
public struct TransferRequest: Hashable, Codable, Sendable {
  public enum Direction: Hashable, Codable, Sendable {
    case download
    case upload
  }

  /// By which the app reconnects to it, and what it is.
  public var session: String
  public var name: String
  public var direction: Direction
  /// Its size; of a performed one a guess, its server knows better.
  public var bytes: Int64
  /// A choice in the foreground; queued from the background it always is.
  public var isDiscretionary: Bool
  /// Whether its server asks who it is, once. Of a performed one the server itself decides.
  public var demandsCredentials: Bool
  /// Whether it goes on where it was interrupted; else it starts over.
  public var resumes: Bool
  /// The document that a download brings up to date.
  public var document: DocumentID?
  /// Where `TransferMode.performed` gets it from or takes it to, by HTTP; nil for the modelled
  /// network in any mode.
  public var url: String?
  /// What the app provides when that server asks: the value of the field `Authorization`.
  public var authorization: String?
  /// What its server really has, if that is not `bytes`: a transfer that turns out larger than was
  /// said fails there. Modelled transfers only, as is the next.
  public var actualBytes: Int64?
  /// The connection breaks there, once, and the transfer is tried again.
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

/// The protection classes of files and keys (Apple, "Encrypting Your App's Files").
public enum DataProtection: String, CaseIterable, Hashable, Codable, Sendable {
  case complete
  case unlessOpen
  case untilFirstUnlock
  case none

  /// Whether what exists can be read.
  public func isReadable(_ lock: LockState) -> Bool {
    switch self {
    case .complete, .unlessOpen: lock == .unlocked
    case .untilFirstUnlock: lock != .beforeFirstUnlock
    case .none: true
    }
  }

  /// Whether a new file can be created and written until it is closed.
  public func isWritable(_ lock: LockState) -> Bool {
    self == .unlessOpen || isReadable(lock)
  }
}

/// Whether the keys of protected data exist.
public enum LockState: String, CaseIterable, Hashable, Sendable {
  /// Since the last start nobody has entered the code.
  case beforeFirstUnlock
  case locked
  case unlocked
}
