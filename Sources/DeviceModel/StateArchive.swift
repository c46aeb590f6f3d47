package import Primitives

/// An app's state as it is kept: every object that takes part, with references as references (WWDC
/// 2013 session 222). Whoever keeps it seals it as JSON, and asks `isSound` of what was read.
package struct StateArchive: Hashable, Codable, Sendable {
  /// One of the objects. In an archive a `StateObjectID` is a place in `objects`.
  package struct Object: Hashable, Codable, Sendable {
    package let path: StatePath
    package let className: String
    package let restorationClass: String?
    package let isRegistered: Bool
    /// The parent's place; it stands before its children.
    package let parent: StateObjectID?
    /// What it remembers, sorted by key.
    package internal(set) var entries: [StateObject.Entry]
  }

  /// The app's version, the system's, and when it was saved.
  package let appVersion: String
  package let systemVersion: String
  package let savedAt: Instant
  package let objects: [Object]
  /// What was on top.
  package let top: StateObjectID?

  /// Archives what takes part in a graph. Of two objects with one path the first is taken, and what
  /// is below the other is left out with it.
  package init(of graph: StateGraph, appVersion: String, systemVersion: String, at now: Instant) {
    self.appVersion = appVersion
    self.systemVersion = systemVersion
    savedAt = now
    var places: [StateObjectID: StateObjectID] = [:]
    var taken: Set<StatePath> = []
    var objects: [Object] = []
    for object in graph.objects {
      guard let path = graph.path(of: object.id) else { continue }
      if let parent = object.parent, places[parent] == nil, graph.path(of: parent) != nil {
        continue
      }
      guard taken.insert(path).inserted else { continue }
      places[object.id] = StateObjectID(number: Int32(objects.count))
      objects.append(
        Object(
          path: path, className: object.className, restorationClass: object.restorationClass,
          isRegistered: object.isRegistered, parent: object.parent.flatMap { places[$0] },
          entries: object.entries))
    }
    for index in objects.indices {
      objects[index].entries = objects[index].entries.compactMap { entry in
        entry.value.mapReferences { places[$0] }.map { .init(key: entry.key, value: $0) }
      }
    }
    self.objects = objects
    // Where what is on top has no identifier, it is what is below it.
    var shown = graph.top
    while let id = shown, places[id] == nil { shown = graph[id]?.parent }
    top = shown.flatMap { places[$0] }
  }

  init(
    appVersion: String, systemVersion: String, savedAt: Instant, objects: [Object],
    top: StateObjectID?
  ) {
    self.appVersion = appVersion
    self.systemVersion = systemVersion
    self.savedAt = savedAt
    self.objects = objects
    self.top = top
  }

  /// Whether it can be restored and is within `PhoneLimits`: what was read may be anything.
  package var isSound: Bool {
    func isPlace(_ id: StateObjectID, below count: Int) -> Bool {
      (0..<count).contains(Int(id.number))
    }
    func isSound(_ value: StateValue, depth: Int = 0) -> Bool {
      switch value {
      case .number, .text, .flag, .data, .bookmark: true
      case .reference(let id): isPlace(id, below: objects.count)
      case .list(let values):
        depth < PhoneLimits.archiveDepth && values.allSatisfy { isSound($0, depth: depth + 1) }
      }
    }
    return objects.count <= PhoneLimits.archiveObjects
      && objects.enumerated().allSatisfy { place, object in
        !object.path.components.isEmpty
          && object.parent.map { isPlace($0, below: place) } ?? true
          && object.entries.allSatisfy { isSound($0.value) }
      }
      && top.map { isPlace($0, below: objects.count) } ?? true
  }
}

/// Why an archive cannot be had. The one error type of this module.
package enum ArchiveError: Error, Hashable, Sendable {
  /// Nothing was saved, or it was deleted.
  case missing
  /// The phone is locked; the key does not exist now.
  case locked
}

/// The archives of the phone's apps, under the protection class `complete`: nobody reads or writes
/// one while the phone is locked. That rule is here, in one place, and has no way around it: the
/// archives are private. (What an earlier run left may come back to its empty place meanwhile.)
package struct ArchiveVault: Sendable {
  private var archives: [AppID: StateArchive] = [:]

  package init() {}

  /// Throws `locked`, or `missing` when there is none.
  package func read(_ app: AppID, _ lock: LockState) throws(ArchiveError) -> StateArchive {
    guard lock == .unlocked else { throw .locked }
    guard let archive = archives[app] else { throw .missing }
    return archive
  }

  /// Keeps an archive instead of the app's last one. Throws `locked`.
  package mutating func save(
    _ archive: StateArchive, of app: AppID, _ lock: LockState
  ) throws(ArchiveError) {
    guard lock == .unlocked else { throw .locked }
    archives[app] = archive
  }

  /// Keeps an archive that the storage has from an earlier run. Throws `locked` when that would
  /// overwrite one; into an empty place it may come, since nobody can read it there.
  package mutating func putBack(
    _ archive: StateArchive, of app: AppID, _ lock: LockState
  ) throws(ArchiveError) {
    guard lock == .unlocked || archives[app] == nil else { throw .locked }
    archives[app] = archive
  }

  /// Whether there is one: the file's name is no secret.
  package func holds(_ app: AppID) -> Bool { archives[app] != nil }

  /// Deleting needs no key.
  package mutating func delete(_ app: AppID) -> Bool { archives.removeValue(forKey: app) != nil }
}

/// How an archive of one version of an app becomes one of another.
public struct ArchiveTransform: Hashable, Codable, Sendable {
  public var from: String
  public var to: String
  public var changes: [ArchiveChange]

  public init(from: String, to: String, changes: [ArchiveChange]) {
    self.from = from
    self.to = to
    self.changes = changes
  }
}

/// One thing that is other in a later version. One that does not apply changes nothing.
public enum ArchiveChange: Hashable, Codable, Sendable {
  /// An object has another identifier, and so have the paths of those below it.
  case rename(StatePath, to: String)
  case renameKey(StatePath, key: String, to: String)
  case set(StatePath, key: String, StateValue)
  /// An object is there no more, with all below it and what referred to them.
  case drop(StatePath)
}

extension StateArchive {
  /// The archive as the later version would have saved it.
  package func transformed(by transform: ArchiveTransform) -> StateArchive {
    var (objects, top) = (objects, top)
    for change in transform.changes {
      switch change {
      case .rename(let path, let identifier): Self.rename(path, to: identifier, in: &objects)
      case .renameKey(let path, let key, let new):
        Self.change(path, in: &objects) { entry in
          entry.key == key ? StateObject.Entry(key: new, value: entry.value) : entry
        }
      case .set(let path, let key, let value):
        guard !value.hasReferences else { continue }
        Self.change(path, in: &objects, adding: .init(key: key, value: value)) { $0 }
      case .drop(let path): Self.drop(path, in: &objects, &top)
      }
    }
    return StateArchive(
      appVersion: transform.to, systemVersion: systemVersion, savedAt: savedAt, objects: objects,
      top: top)
  }

  private static func rename(
    _ path: StatePath, to identifier: String, in objects: inout [Object]
  ) {
    let new = StatePath(path.components.dropLast() + [identifier])
    guard !identifier.isEmpty, objects.contains(where: { $0.path == path }),
      !objects.contains(where: { $0.path == new })
    else { return }
    objects = objects.map { object in
      guard object.path.components.starts(with: path.components) else { return object }
      let below = object.path.components.dropFirst(path.components.count)
      return object.at(StatePath(new.components + below))
    }
  }

  /// What is there already under a key of what is added or renamed gives way to it.
  private static func change(
    _ path: StatePath, in objects: inout [Object], adding new: StateObject.Entry? = nil,
    _ change: (StateObject.Entry) -> StateObject.Entry
  ) {
    guard let place = objects.firstIndex(where: { $0.path == path }) else { return }
    let old = objects[place].entries
    let changed = old.map(change).filter { !old.contains($0) } + [new].compactMap(\.self)
    let kept = old.filter { old in
      change(old) == old && !changed.contains { $0.key == old.key }
    }
    objects[place].entries = (kept + changed).sorted { $0.key < $1.key }
  }

  private static func drop(
    _ path: StatePath, in objects: inout [Object], _ top: inout StateObjectID?
  ) {
    var places: [StateObjectID: StateObjectID] = [:]
    var kept: [Object] = []
    for (place, object) in objects.enumerated() {
      let isGone =
        object.path == path || object.parent.map { places[$0] == nil } ?? false
      guard !isGone else { continue }
      places[StateObjectID(number: Int32(place))] = StateObjectID(number: Int32(kept.count))
      kept.append(object.at(object.path, below: object.parent.flatMap { places[$0] }))
    }
    for index in kept.indices {
      kept[index].entries = kept[index].entries.compactMap { entry in
        entry.value.mapReferences { places[$0] }.map { .init(key: entry.key, value: $0) }
      }
    }
    objects = kept
    top = top.flatMap { places[$0] }
  }
}

extension StateArchive.Object {
  fileprivate func at(_ path: StatePath) -> Self { at(path, below: parent) }

  fileprivate func at(_ path: StatePath, below parent: StateObjectID?) -> Self {
    Self(
      path: path, className: className, restorationClass: restorationClass,
      isRegistered: isRegistered, parent: parent, entries: entries)
  }
}
