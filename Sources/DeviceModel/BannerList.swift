import DequeModule
package import Primitives

/// A notification as the user sees it.
package struct Banner: Hashable, Codable, Sendable {
  package let id: BannerID
  package let app: AppID
  /// Nil for one that the app posted itself.
  package let push: PushID?
  package let text: String
  package let collapseID: String
  package let at: Instant
  /// The app was woken before and has the content: it is there when the user looks.
  package internal(set) var isContentReady: Bool
}

/// The list of notifications, newest last; bounded, the oldest go first.
package struct BannerList: Codable, Sendable {
  private var list = Deque<Banner>()
  private var numbering = Numbering()

  /// Whether its numbers are such as it gives itself: what was decoded may be anything.
  var isSound: Bool { numbering.isSound(after: list.map(\.id.number)) }

  /// Only the newest stay.
  mutating func trim(to limit: Int) { list.removeFirst(max(0, list.count - max(1, limit))) }

  /// All of them, newest last.
  package var banners: [Banner] { Array(list) }
  package var count: Int { list.count }
  package var newest: Banner? { list.last }

  mutating func nextID() -> BannerID { BannerID(number: numbering.next()) }

  /// Adds one; with a collapse id it replaces the app's one that has the same.
  mutating func show(_ banner: Banner, atMost limit: Int) {
    if !banner.collapseID.isEmpty {
      list.removeAll { $0.app == banner.app && $0.collapseID == banner.collapseID }
    }
    list.append(banner)
    trim(to: limit)
  }

  /// Those of an app go with it.
  mutating func remove(of app: AppID) { list.removeAll { $0.app == app } }

  /// Takes one out of the list.
  mutating func take(_ id: BannerID) -> Banner? {
    guard let index = list.firstIndex(where: { $0.id == id }) else { return nil }
    return list.remove(at: index)
  }

  /// The app has called its handler after the banner was shown.
  mutating func contentIsReady(of push: PushID) {
    guard let index = list.lastIndex(where: { $0.push == push }) else { return }
    list[index].isContentReady = true
  }

  /// The banner of a push.
  package func banner(of push: PushID) -> Banner? { list.last { $0.push == push } }
}

/// Which pushes came lately, and what was reported: the relay delivers at least once, the phone
/// drops doubles (docs/ARCHITECTURE.md, "What it promises, and the caveats first"). The oldest are
/// forgotten first.
struct RecentPushes: Codable, Sendable {
  enum Entry: Hashable, Codable, Sendable {
    case open
    case reported(PushOutcome?)
  }

  /// A push that is remembered.
  struct Known: Hashable, Codable, Sendable {
    let id: PushID
    var entry: Entry
  }

  /// Oldest first; few, so that looking through them is quick.
  private(set) var known = Deque<Known>()

  subscript(id: PushID) -> Entry? { known.last { $0.id == id }?.entry }

  mutating func add(_ id: PushID, atMost limit: Int) {
    known.append(Known(id: id, entry: .open))
    trim(to: limit)
  }

  mutating func trim(to limit: Int) { known.removeFirst(max(0, known.count - max(1, limit))) }

  /// The report of one that is still remembered.
  mutating func report(_ id: PushID, _ outcome: PushOutcome?) {
    guard let place = known.lastIndex(where: { $0.id == id }) else { return }
    known[place].entry = .reported(outcome)
  }
}

/// The app switcher: what the user has opened, latest first.
package struct AppSwitcher: Hashable, Codable, Sendable {
  /// Latest first.
  package private(set) var apps: [AppID] = []

  mutating func bringToFront(_ app: AppID) {
    guard apps.first != app else { return }
    remove(app)
    apps.insert(app, at: 0)
  }

  mutating func remove(_ app: AppID) { apps.removeAll { $0 == app } }
}
