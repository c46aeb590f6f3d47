import DequeModule

/// A notification as the user sees it.
package struct Banner: Hashable, Sendable {
  package let id: BannerID
  package let app: AppID
  /// Nil for one that the app posted itself.
  package let push: PushID?
  package let text: String
  package let collapseID: String
  package let at: Moment
  /// The app was woken before and has the content: it is there when the user looks.
  package let isContentReady: Bool
}

/// The list of notifications, newest last; bounded, the oldest go first.
package struct BannerList: Sendable {
  private var list = Deque<Banner>()
  private var numbering = Numbering()
  private let limit: Int

  init(limit: Int) { self.limit = max(1, limit) }

  /// All of them, newest last.
  package var banners: [Banner] { Array(list) }
  package var count: Int { list.count }
  package var newest: Banner? { list.last }

  mutating func nextID() -> BannerID { BannerID(number: numbering.next()) }

  /// Adds one; with a collapse id it replaces the app's one that has the same.
  mutating func show(_ banner: Banner) {
    if !banner.collapseID.isEmpty {
      list.removeAll { $0.app == banner.app && $0.collapseID == banner.collapseID }
    }
    if list.count >= limit { list.removeFirst() }
    list.append(banner)
  }

  /// Takes one out of the list.
  mutating func take(_ id: BannerID) -> Banner? {
    guard let index = list.firstIndex(where: { $0.id == id }) else { return nil }
    return list.remove(at: index)
  }

  /// The banner of a push.
  package func banner(of push: PushID) -> Banner? { list.last { $0.push == push } }
}

/// Which pushes came lately, and what was reported: the relay delivers at least once, the phone
/// drops doubles (design, section 2). The oldest are forgotten first.
struct RecentPushes: Sendable {
  enum Entry: Hashable, Sendable {
    case open
    case reported(PushOutcome?)
  }

  private var entries: [PushID: Entry] = [:]
  /// A ring: the place of the next one to forget.
  private var order: [PushID] = []
  private var oldest = 0
  private let limit: Int

  init(limit: Int) { self.limit = max(1, limit) }

  subscript(id: PushID) -> Entry? { entries[id] }

  mutating func add(_ id: PushID) {
    entries[id] = .open
    if order.count < limit {
      order.append(id)
    } else {
      entries[order[oldest]] = nil
      order[oldest] = id
      oldest = (oldest + 1) % limit
    }
  }

  /// Notes the report of one that is still remembered.
  mutating func report(_ id: PushID, _ outcome: PushOutcome?) {
    if entries[id] != nil { entries[id] = .reported(outcome) }
  }
}

/// The app switcher: what the user has opened, latest first.
package struct AppSwitcher: Hashable, Sendable {
  /// Latest first.
  package private(set) var apps: [AppID] = []

  mutating func bringToFront(_ app: AppID) {
    guard apps.first != app else { return }
    remove(app)
    apps.insert(app, at: 0)
  }

  mutating func remove(_ app: AppID) { apps.removeAll { $0 == app } }
}
