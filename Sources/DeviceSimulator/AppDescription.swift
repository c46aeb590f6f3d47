/// An app: what it declares, and what it does when it is run. Mistakes that real apps make can be
/// described as well.
public struct AppDescription: Hashable, Sendable {
  /// Its bundle identifier, which is the topic of its pushes.
  public var name: String
  public var modes: Set<BackgroundMode>
  /// What it asks for at its first start.
  public var fetch: FetchWish
  public var onPush = Work()
  public var onFetch = Work()
  /// When the transfers of one of its sessions have all ended.
  public var onTransfers = Work()
  /// What it queues, and begins as a background task, when its user leaves it.
  public var transfersOnLeave: [TransferDescription] = []
  public var taskOnLeave: TaskDescription?
  /// How long its user waits for what a banner announced when it is not there yet.
  public var contentTime: Duration = .seconds(3)
  /// The objects of its interface that state restoration keeps, as they are at its first start.
  public var state: [StateDescription] = []
  /// It hides what is sensitive before a snapshot is taken.
  public var hidesContent = false
  /// The mistake: one property holds the latest completion handler, and of two overlapping calls
  /// one is lost.
  public var keepsOneHandler = false

  /// An app that may be woken by pushes, and asks for no background fetch.
  public init(
    _ name: String, modes: Set<BackgroundMode> = [.remoteNotification], fetch: FetchWish = .never
  ) {
    self.name = name
    self.modes = modes
    self.fetch = fetch
  }
}

/// What an app declares to do in the background. Transfers need no declaration.
public enum BackgroundMode: String, CaseIterable, Hashable, Sendable {
  case fetch
  case remoteNotification = "remote-notification"
}

/// How often an app wants to be fetched.
public enum FetchWish: Hashable, Sendable {
  case never
  /// As the system sees fit.
  case minimum
  /// Not within that time after it was active.
  case notWithin(Duration)
}

/// What an app does when it is called in the background, what that costs, and how it ends.
public struct Work: Hashable, Sendable {
  /// How long it takes, and a random part on top.
  public var takes: Duration = .seconds(2)
  public var jitter: Duration = .zero
  /// Over the radio.
  public var bytes = 50_000
  /// Beside the radio's, in millijoules.
  public var energy = 500
  public var outcome = WorkOutcome.newData
  public var handler = HandlerUse.called
  // What it does when there was something new.
  public var transfers: [TransferDescription] = []
  public var notification: LocalBanner?
  public var task: TaskDescription?
  /// Asks for another fetch interval.
  public var fetch: FetchWish?
  /// What its interface remembers from then on.
  public var remembers: [StateDescription] = []

  public init() {}
}

/// What the completion handler is called with.
public enum WorkOutcome: Hashable, Sendable {
  case newData
  case noData
  case failed
  /// New data so often in a hundred, by the seed; else no data.
  case newDataPercent(Int)
}

/// When the completion handler is called.
public enum HandlerUse: Hashable, Sendable {
  case called
  /// So long after the work was done.
  case calledLate(Duration)
  /// Which gets the app killed.
  case neverCalled
}

/// A notification that an app posts itself.
public struct LocalBanner: Hashable, Sendable {
  public var text: String
  public var badge: Int?
  public var hasSound: Bool

  public init(_ text: String, badge: Int? = nil, hasSound: Bool = false) {
    self.text = text
    self.badge = badge
    self.hasSound = hasSound
  }
}

/// A background task.
public struct TaskDescription: Hashable, Sendable {
  public var takes: Duration
  /// Whether it stops when the system says so; if not, the app is killed.
  public var endsInTime: Bool

  public init(takes: Duration, endsInTime: Bool = true) {
    self.takes = takes
    self.endsInTime = endsInTime
  }
}

/// A file to be moved by the system, whether the app runs or not.
public struct TransferDescription: Hashable, Sendable {
  public var name: String
  public var bytes: Int
  /// The app is woken when all of a session have ended.
  public var session = "default"
  public var isUpload = false
  /// Waits for Wi-Fi and power. Queued in the background it always does.
  public var isDiscretionary = false
  /// Its server asks who it is, once.
  public var demandsCredentials = false
  /// Goes on where it was interrupted; else it starts over.
  public var resumes = true
  /// The document that it brings up to date: the n-th that came to be on the phone, from 1.
  public var document: Int?
  /// Where a phone in real time gets it from or takes it to, by HTTP: `https://host/path`. In
  /// virtual time, and without it, a modelled network moves `bytes`.
  public var url: String?
  /// What the app answers when that server asks who it is: the value of the field `Authorization`.
  public var authorization: String?

  public init(_ name: String, bytes: Int) {
    self.name = name
    self.bytes = bytes
  }
}

/// What a phone is connected to.
public enum NetworkKind: String, CaseIterable, Hashable, Sendable {
  case wifi
  case cellular
  /// No coverage: nobody says good-bye, the relay finds out by itself.
  case none
  case airplane
}
