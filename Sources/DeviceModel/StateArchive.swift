package import Primitives

/// An app's state as it is kept: every object that takes part, with references as references (WWDC
/// 2013 session 222). A value; `encoded` makes bytes of it, which whoever keeps them seals.
package struct StateArchive: Hashable, Sendable {
  /// One of the objects. In an archive a `StateObjectID` is a place in `objects`.
  package struct Object: Hashable, Sendable {
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
    top = graph.top.flatMap { places[$0] }
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

  /// Whether both hold the same objects in the same state, whenever and wherever saved.
  package func hasSameState(as other: StateArchive) -> Bool {
    objects == other.objects && top == other.top
  }
}

/// Why an archive cannot be had. The one error type of this module.
package enum ArchiveError: Error, Hashable, Sendable {
  /// Nothing was saved, or it was deleted.
  case missing
  /// The phone is locked; the key does not exist now.
  case locked
  /// The bytes are no archive: which byte, and what was expected there.
  case malformed(offset: Int, expected: String)
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
