/// The objects that make up what an app shows, as far as state restoration is concerned: who is
/// whose parent, what each remembers, who refers to whom (WWDC 2013 session 222).
public struct StateGraph: Hashable, Codable, Sendable {
  /// Parents stand before their children.
  public private(set) var objects: [StateObject] = []
  /// What is on top, in front of the user.
  public internal(set) var top: StateObjectID?
  private var lastID: Int32 = 0

  public init() {}

  /// Adds an object; its parent must be one of this graph, or nil for a root.
  @discardableResult
  public mutating func add(
    _ className: String, identifier: String?, parent: StateObjectID? = nil,
    restorationClass: String? = nil, origin: StateObject.Origin = .base,
    isRegistered: Bool = false
  ) -> StateObjectID {
    lastID += 1
    let id = StateObjectID(number: lastID)
    objects.append(
      StateObject(
        id: id, className: className, identifier: identifier,
        parent: parent.flatMap { self[$0] == nil ? nil : $0 },
        restorationClass: restorationClass, origin: origin, isRegistered: isRegistered))
    return id
  }

  /// Adds what is missing of a path, views that are there from the start; the object at its end.
  @discardableResult
  public mutating func add(_ path: StatePath) -> StateObjectID? {
    var above: StateObjectID?
    for (index, component) in path.components.enumerated() {
      let known = find(StatePath(Array(path.components[...index])))
      above = known ?? add("View", identifier: component, parent: above)
    }
    return above
  }

  /// The object with this id.
  public subscript(id: StateObjectID) -> StateObject? {
    index(of: id).map { objects[$0] }
  }

  /// Remembers a value under a key of an object; nil forgets the key.
  public mutating func set(_ id: StateObjectID, _ key: String, _ value: StateValue?) {
    guard let index = index(of: id) else { return }
    objects[index].set(key, value)
  }

  /// Where an object stands in the archive, or nil if it takes no part: without an identifier, or
  /// below a view without one. A registered object needs nobody above it.
  public func path(of id: StateObjectID) -> StatePath? {
    guard let object = self[id], let identifier = object.restorationIdentifier else { return nil }
    guard let parent = object.parent else { return StatePath([identifier]) }
    if let above = path(of: parent) { return StatePath(above.components + [identifier]) }
    return object.isRegistered ? StatePath([identifier]) : nil
  }

  /// The first object with this path, or that a script calls so.
  public func find(_ path: StatePath) -> StateObjectID? {
    objects.first {
      $0.identifier == path.components.last
        && (self.path(of: $0.id) == path || words(to: $0.id) == path.components)
    }?.id
  }

  /// What a script calls an object and all above it.
  private func words(to id: StateObjectID) -> [String]? {
    guard let object = self[id], let word = object.identifier else { return nil }
    guard let parent = object.parent else { return [word] }
    return words(to: parent).map { $0 + [word] }
  }

  /// Another object in the place of one that is there.
  mutating func remake(_ id: StateObjectID, as className: String) {
    if let index = index(of: id) { objects[index].className = className }
  }

  /// Another identifier, and so another path of all below.
  mutating func rename(_ path: StatePath, to identifier: String) {
    if let index = find(path).flatMap(index(of:)) { objects[index].identifier = identifier }
  }

  /// Whether any object takes part in restoration.
  var takesPart: Bool { objects.contains { path(of: $0.id) != nil } }

  /// Removes an object and everything below it. Base objects are part of the app and stay.
  public mutating func remove(_ id: StateObjectID) {
    if self[id]?.origin == .dynamic { cut(id) }
  }

  /// Whatever it is, with everything below it and what referred to them.
  mutating func cut(_ id: StateObjectID) {
    var gone: Set<StateObjectID> = [id]
    for object in objects where object.parent.map(gone.contains) == true { gone.insert(object.id) }
    objects.removeAll { gone.contains($0.id) }
    if let shown = top, gone.contains(shown) { top = nil }
    for index in objects.indices { objects[index].removeReferences(to: gone) }
  }

  /// All that its objects remember.
  var bookmarks: [[UInt8]] { objects.flatMap(\.entries).flatMap(\.value.bookmarks) }

  /// Whether it is one that can be made with `add` and `set`: what was decoded may be anything. No
  /// parent is its own descendant, as parents come first.
  var isSound: Bool {
    var last: Int32 = 0
    var known: Set<StateObjectID> = []
    for object in objects {
      guard object.id.number > last, object.parent.map(known.contains) ?? true,
        zip(object.entries, object.entries.dropFirst()).allSatisfy({ $0.key < $1.key })
      else { return false }
      last = object.id.number
      known.insert(object.id)
    }
    return lastID >= last && lastID < .max / 2 && top.map(known.contains) ?? true
  }

  /// Ids rise along `objects`, so it is a binary search.
  private func index(of id: StateObjectID) -> Int? {
    var low = 0
    var high = objects.count
    while low < high {
      let middle = (low + high) / 2
      if objects[middle].id.number < id.number { low = middle + 1 } else { high = middle }
    }
    return low < objects.count && objects[low].id == id ? low : nil
  }
}

/// An object of one graph.
public struct StateObjectID: Hashable, Codable, Sendable {
  public let number: Int32
}

/// The restoration identifiers from the root down to an object.
public struct StatePath: Hashable, Codable, Sendable, ExpressibleByArrayLiteral,
  CustomStringConvertible
{
  public let components: [String]

  public init(_ components: [String]) { self.components = components }

  public init(arrayLiteral elements: String...) { components = elements }

  /// `window/inbox`.
  public init(text: String) { components = text.split(separator: "/").map(String.init) }

  public var description: String { components.joined(separator: "/") }
}

/// One object and what it remembers.
public struct StateObject: Hashable, Codable, Sendable {
  /// Whether it is there before anything is restored, or made while the app runs.
  public enum Origin: Hashable, Codable, Sendable {
    case base
    case dynamic
  }

  public struct Entry: Hashable, Codable, Sendable {
    public let key: String
    public var value: StateValue
  }

  /// A restoration class of this name stands for the storyboard, which has its objects always.
  static let storyboard = "storyboard"

  public let id: StateObjectID
  public internal(set) var className: String
  /// A word in parentheses is only what a script calls it.
  public internal(set) var identifier: String?
  public let parent: StateObjectID?
  /// Who makes it anew when it is needed.
  public let restorationClass: String?
  public let origin: Origin
  /// Registered explicitly: a model object or a controller without a view.
  public let isRegistered: Bool
  /// Sorted by key.
  public private(set) var entries: [Entry] = []

  /// Without one it takes no part in restoration.
  var restorationIdentifier: String? { identifier.flatMap { $0.hasPrefix("(") ? nil : $0 } }

  /// What it remembers under a key.
  subscript(key: String) -> StateValue? { entries.first { $0.key == key }?.value }

  mutating func set(_ key: String, _ value: StateValue?) {
    let place = entries.firstIndex { $0.key >= key } ?? entries.count
    let isThere = place < entries.count && entries[place].key == key
    switch (value, isThere) {
    case (let value?, true): entries[place].value = value
    case (let value?, false): entries.insert(Entry(key: key, value: value), at: place)
    case (nil, true): entries.remove(at: place)
    case (nil, false): break
    }
  }

  mutating func removeReferences(to gone: Set<StateObjectID>) {
    for entry in entries {
      set(entry.key, entry.value.mapReferences { gone.contains($0) ? nil : $0 })
    }
  }
}

/// What an object remembers under one key.
public enum StateValue: Hashable, Codable, Sendable {
  case number(Int64)
  case text(String)
  case flag(Bool)
  case data([UInt8])
  /// Lasting access to a document, resolved when it is restored.
  case bookmark([UInt8])
  /// Another object; never a copy of it.
  case reference(StateObjectID)
  case list([StateValue])

  /// The same with every reference led elsewhere; without those led nowhere, and nil when it was
  /// such a reference itself.
  func mapReferences(_ lead: (StateObjectID) -> StateObjectID?) -> StateValue? {
    switch self {
    case .number, .text, .flag, .data, .bookmark: self
    case .reference(let id): lead(id).map { .reference($0) }
    case .list(let values): .list(values.compactMap { $0.mapReferences(lead) })
    }
  }

  /// Whether a reference of that sort is in it.
  func refers(where isOne: (StateObjectID) -> Bool) -> Bool {
    switch self {
    case .number, .text, .flag, .data, .bookmark: false
    case .reference(let id): isOne(id)
    case .list(let values): values.contains { $0.refers(where: isOne) }
    }
  }

  /// The bookmarks in it.
  fileprivate var bookmarks: [[UInt8]] {
    switch self {
    case .bookmark(let data): [data]
    case .list(let values): values.flatMap(\.bookmarks)
    case .number, .text, .flag, .data, .reference: []
    }
  }

  /// Whether any reference is in it.
  var hasReferences: Bool { refers { _ in true } }
}

/// One thing that an app changes about its own state, as a script says it.
public enum StateChange: Hashable, Codable, Sendable {
  case set(StatePath, key: String, StateValue)
  case unset(StatePath, key: String)
  case link(StatePath, key: String, to: StatePath)
  /// A new dynamic object below a parent, or a root for an empty path. One whose restoration class
  /// was forgotten does not come back.
  case add(
    className: String, identifier: String, parent: StatePath, restorationClass: String?,
    isRegistered: Bool)
  case remove(StatePath)
  /// Brings to the top.
  case show(StatePath)
}

extension StateGraph {
  /// Makes a change; one that does not apply (no such object, identifier taken) changes nothing.
  public mutating func apply(_ change: StateChange) {
    switch change {
    case .set(let path, let key, let value):
      if let id = find(path), !value.hasReferences { set(id, key, value) }
    case .unset(let path, let key):
      if let id = find(path) { set(id, key, nil) }
    case .link(let path, let key, let target):
      if let id = find(path), let other = find(target) { set(id, key, .reference(other)) }
    case .add(let className, let identifier, let parent, let restorationClass, let isRegistered):
      let above = find(parent)
      guard above != nil || parent.components.isEmpty else { return }
      guard find(StatePath(parent.components + [identifier])) == nil else { return }
      guard objects.count < PhoneLimits.archiveObjects else { return }
      add(
        className, identifier: identifier, parent: above, restorationClass: restorationClass,
        origin: .dynamic, isRegistered: isRegistered)
    case .remove(let path):
      if let id = find(path) { remove(id) }
    case .show(let path):
      if let id = find(path) { top = id }
    }
  }
}
