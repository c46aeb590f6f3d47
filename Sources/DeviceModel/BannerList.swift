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
package struct BannerList: Sendable {
  private var list = Deque<Banner>()
  private(set) var numbering = Numbering()
  private let limit: Int

  init(limit: Int) { self.limit = max(1, limit) }

  /// A list as it was, or the newest of it.
  init(limit: Int, banners: [Banner], numbering: Numbering) {
    self.init(limit: limit)
    self.numbering = numbering
    list = Deque(banners.suffix(self.limit))
  }

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
struct RecentPushes: Sendable {
  enum Entry: Hashable, Codable, Sendable {
    case open
    case reported(PushOutcome?)
  }

  /// A push that is remembered.
  struct Known: Hashable, Codable, Sendable {
    let id: PushID
    let entry: Entry
  }

  private var entries: [PushID: Entry] = [:]
  /// A ring: the place of the next one to forget.
  private var order: [PushID] = []
  private var oldest = 0
  private let limit: Int

  init(limit: Int) { self.limit = max(1, limit) }

  /// What was remembered, oldest first, or the latest of it.
  init(limit: Int, known: [Known]) {
    self.init(limit: limit)
    for push in known.suffix(self.limit) {
      add(push.id)
      entries[push.id] = push.entry
    }
  }

  subscript(id: PushID) -> Entry? { entries[id] }

  /// Everything that is remembered, oldest first.
  var known: [Known] {
    (order[oldest...] + order[..<oldest]).compactMap { id in
      entries[id].map { Known(id: id, entry: $0) }
    }
  }

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
