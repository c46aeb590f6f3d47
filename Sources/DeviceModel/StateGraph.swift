/// An app's objects as far as state restoration needs them: parents, values, references (WWDC 2013
/// session 222).
public struct StateGraph: Hashable, Codable, Sendable {
  /// Parents come before their children.
  public private(set) var objects: [StateObject] = []
  public internal(set) var top: StateObjectID?
  private var lastID: Int32 = 0

  public init() {}

  /// The parent must be in this graph; nil adds a root.
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

  /// Adds the missing views of a path; returns the object at its end.
  @discardableResult
  public mutating func add(_ path: StatePath) -> StateObjectID? {
    var above: StateObjectID?
    for (index, component) in path.components.enumerated() {
      let known = find(StatePath(Array(path.components[...index])))
      above = known ?? add("View", identifier: component, parent: above)
    }
    return above
  }

  public subscript(id: StateObjectID) -> StateObject? {
    index(of: id).map { objects[$0] }
  }

  /// Nil removes the key.
  public mutating func set(_ id: StateObjectID, _ key: String, _ value: StateValue?) {
    guard let index = index(of: id) else { return }
    objects[index].set(key, value)
  }

  /// The path in an archive; nil if the object takes no part: without an identifier, or below a
  /// view without one. A registered object needs no parent.
  public func path(of id: StateObjectID) -> StatePath? {
    guard let object = self[id], let identifier = object.restorationIdentifier else { return nil }
    guard let parent = object.parent else { return StatePath([identifier]) }
    if let above = path(of: parent) { return StatePath(above.components + [identifier]) }
    return object.isRegistered ? StatePath([identifier]) : nil
  }

  /// The first object with this path, counting names used only in scripts.
  public func find(_ path: StatePath) -> StateObjectID? {
    objects.first {
      $0.identifier == path.components.last
        && (self.path(of: $0.id) == path || words(to: $0.id) == path.components)
    }?.id
  }

  private func words(to id: StateObjectID) -> [String]? {
    guard let object = self[id], let word = object.identifier else { return nil }
    guard let parent = object.parent else { return [word] }
    return words(to: parent).map { $0 + [word] }
  }

  mutating func remake(_ id: StateObjectID, as className: String) {
    if let index = index(of: id) { objects[index].className = className }
  }

  mutating func rename(_ path: StatePath, to identifier: String) {
    if let index = find(path).flatMap(index(of:)) { objects[index].identifier = identifier }
  }

  var takesPart: Bool { objects.contains { path(of: $0.id) != nil } }

  /// Removes an object and its descendants. Base objects are part of the app and stay.
  public mutating func remove(_ id: StateObjectID) {
    if self[id]?.origin == .dynamic { cut(id) }
  }

  /// Removes an object, its descendants and all references to them.
  mutating func cut(_ id: StateObjectID) {
    var gone: Set<StateObjectID> = [id]
    for object in objects where object.parent.map(gone.contains) == true { gone.insert(object.id) }
    objects.removeAll { gone.contains($0.id) }
    if let shown = top, gone.contains(shown) { top = nil }
    for index in objects.indices { objects[index].removeReferences(to: gone) }
  }

  var bookmarks: [[UInt8]] { objects.flatMap(\.entries).flatMap(\.value.bookmarks) }

  /// Checks a decoded graph: it can be made with `add` and `set`. Parents come first, so there are
  /// no cycles.
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

  /// Binary search: ids increase along `objects`.
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

/// An object with the values it has saved.
public struct StateObject: Hashable, Codable, Sendable {
  /// Base objects exist before restoring; dynamic ones are made while the app runs.
  public enum Origin: Hashable, Codable, Sendable {
    case base
    case dynamic
  }

  public struct Entry: Hashable, Codable, Sendable {
    public let key: String
    public var value: StateValue
  }

  /// The restoration class of storyboard objects, which always exist.
  static let storyboard = "storyboard"

  public let id: StateObjectID
  public internal(set) var className: String
  /// A name in parentheses is used only by scripts.
  public internal(set) var identifier: String?
  public let parent: StateObjectID?
  /// The class that recreates it.
  public let restorationClass: String?
  public let origin: Origin
  /// Registered explicitly: a model object or a controller without a view.
  public let isRegistered: Bool
  /// Sorted by key.
  public private(set) var entries: [Entry] = []

  /// Nil means it takes no part in restoration.
  var restorationIdentifier: String? { identifier.flatMap { $0.hasPrefix("(") ? nil : $0 } }

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

/// A value saved under one key.
public enum StateValue: Hashable, Codable, Sendable {
  case number(Int64)
  case text(String)
  case flag(Bool)
  case data([UInt8])
  /// Lasting access to a document, resolved when restored.
  case bookmark([UInt8])
  /// A reference, never a copy.
  case reference(StateObjectID)
  case list([StateValue])

  /// Maps every reference; drops those mapped to nil, or returns nil for such a reference itself.
  func mapReferences(_ lead: (StateObjectID) -> StateObjectID?) -> StateValue? {
    switch self {
    case .number, .text, .flag, .data, .bookmark: self
    case .reference(let id): lead(id).map { .reference($0) }
    case .list(let values): .list(values.compactMap { $0.mapReferences(lead) })
    }
  }

  func refers(where isOne: (StateObjectID) -> Bool) -> Bool {
    switch self {
    case .number, .text, .flag, .data, .bookmark: false
    case .reference(let id): isOne(id)
    case .list(let values): values.contains { $0.refers(where: isOne) }
    }
  }

  fileprivate var bookmarks: [[UInt8]] {
    switch self {
    case .bookmark(let data): [data]
    case .list(let values): values.flatMap(\.bookmarks)
    case .number, .text, .flag, .data, .reference: []
    }
  }

  var hasReferences: Bool { refers { _ in true } }
}

/// A change to an app's state, in the terms of a script.
public enum StateChange: Hashable, Codable, Sendable {
  case set(StatePath, key: String, StateValue)
  case unset(StatePath, key: String)
  case link(StatePath, key: String, to: StatePath)
  /// Adds a dynamic object, a root for an empty path. Without a restoration class it cannot be
  /// recreated.
  case add(
    className: String, identifier: String, parent: StatePath, restorationClass: String?,
    isRegistered: Bool)
  case remove(StatePath)
  case show(StatePath)
}

extension StateGraph {
  /// A change that does not apply (no such object, identifier taken) has no effect.
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
