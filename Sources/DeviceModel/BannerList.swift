import DequeModule
package import Primitives

/// A notification as the user sees it.
package struct Banner: Hashable, Codable, Sendable {
  package let id: BannerID
  package let app: AppID
  /// Nil for one the app posted itself.
  package let push: PushID?
  package let text: String
  package let collapseID: String
  package let at: Instant
  /// By the relay; nil for one the app posted itself.
  package var acceptedAt: Instant?
  /// The app was woken and already has the content.
  package internal(set) var isContentReady: Bool
  /// It lights no screen (priority 1); nil means it does.
  package var isQuiet: Bool?
}

/// The notifications shown, newest last. Bounded: the oldest are dropped first.
package struct BannerList: Codable, Sendable {
  private var list = Deque<Banner>()
  private var numbering = Numbering()

  var isSound: Bool { numbering.isSound(after: list.map(\.id.number)) }

  mutating func trim(to limit: Int) { list.removeFirst(max(0, list.count - max(1, limit))) }

  package var banners: [Banner] { Array(list) }

  mutating func nextID() -> BannerID { BannerID(number: numbering.next()) }

  /// Replaces the app's banner with the same non-empty collapse id.
  mutating func show(_ banner: Banner, atMost limit: Int) {
    if !banner.collapseID.isEmpty {
      list.removeAll { $0.app == banner.app && $0.collapseID == banner.collapseID }
    }
    list.append(banner)
    trim(to: limit)
  }

  /// When the push was accepted that the app's banner with this collapse id is of.
  func moment(of collapseID: String, _ app: AppID) -> Instant? {
    guard !collapseID.isEmpty else { return nil }
    return list.last { $0.app == app && $0.collapseID == collapseID }?.acceptedAt
  }

  /// The clock was set back.
  mutating func forgetMoments() {
    for index in list.indices { list[index].acceptedAt = nil }
  }

  mutating func remove(of app: AppID) { list.removeAll { $0.app == app } }

  mutating func remove(_ id: BannerID) -> Banner? {
    guard let index = list.firstIndex(where: { $0.id == id }) else { return nil }
    return list.remove(at: index)
  }

  /// It has come after the banner was shown.
  mutating func contentIsReady(of push: PushID) {
    guard let index = list.lastIndex(where: { $0.push == push }) else { return }
    list[index].isContentReady = true
  }
}

/// Recent pushes and their reports, oldest first: the relay delivers at least once, the phone drops
/// duplicates (docs/ARCHITECTURE.md, "What it promises, and the caveats first").
struct RecentPushes: Codable, Sendable {
  enum Entry: Hashable, Codable, Sendable {
    case open
    case reported(PushOutcome?)
  }

  struct Known: Hashable, Codable, Sendable {
    let id: PushID
    var entry: Entry
  }

  /// Few enough for a linear search.
  private(set) var known = Deque<Known>()

  subscript(id: PushID) -> Entry? { known.last { $0.id == id }?.entry }

  mutating func add(_ id: PushID, atMost limit: Int) {
    known.append(Known(id: id, entry: .open))
    trim(to: limit)
  }

  mutating func trim(to limit: Int) { known.removeFirst(max(0, known.count - max(1, limit))) }

  mutating func report(_ id: PushID, _ outcome: PushOutcome?) {
    guard let place = known.lastIndex(where: { $0.id == id }) else { return }
    known[place].entry = .reported(outcome)
  }
}

/// The apps the user has opened, most recent first.
package struct AppSwitcher: Hashable, Codable, Sendable {
  package private(set) var apps: [AppID] = []

  mutating func bringToFront(_ app: AppID) {
    guard apps.first != app else { return }
    remove(app)
    apps.insert(app, at: 0)
  }

  mutating func remove(_ app: AppID) { apps.removeAll { $0 == app } }
}
