package import Primitives

/// An app's state as it is kept: the graph of every object that takes part, with references as
/// references (WWDC 2013 session 222). It is sealed as JSON; ask `isSound` after reading it.
package struct StateArchive: Hashable, Codable, Sendable {
  /// The app's version, the system's, and when it was saved.
  package private(set) var appVersion: String
  package let systemVersion: String
  package let savedAt: Instant
  /// Each object has a path that no other one has.
  package private(set) var graph = StateGraph()

  /// Archives what takes part in a graph. Of two objects with one path the first is taken, and what
  /// is below the other is left out with it.
  package init(of graph: StateGraph, appVersion: String, systemVersion: String, at now: Instant) {
    self.appVersion = appVersion
    self.systemVersion = systemVersion
    savedAt = now
    var kept: [StateObjectID: StateObjectID] = [:]
    var paths: Set<StatePath> = []
    for object in graph.objects {
      guard let path = graph.path(of: object.id) else { continue }
      let parent = object.parent.flatMap { kept[$0] }
      let isBelowOther = parent == nil && path.components.count > 1
      guard !isBelowOther, paths.insert(path).inserted else { continue }
      kept[object.id] = self.graph.add(
        object.className, identifier: object.identifier, parent: parent,
        restorationClass: object.restorationClass, isRegistered: object.isRegistered)
    }
    for object in graph.objects {
      guard let id = kept[object.id] else { continue }
      for entry in object.entries {
        self.graph.set(id, entry.key, entry.value.mapReferences { kept[$0] })
      }
    }
    // Where what is on top has no identifier, it is what is below it.
    var shown = graph.top
    while let id = shown, kept[id] == nil { shown = graph[id]?.parent }
    self.graph.top = shown.flatMap { kept[$0] }
  }

  /// Of all its objects.
  package var paths: [StatePath] { graph.objects.compactMap { graph.path(of: $0.id) } }

  /// Whether it can be restored and is within `PhoneLimits`: what was read may be anything.
  package var isSound: Bool {
    func isSound(_ value: StateValue, depth: Int = 0) -> Bool {
      switch value {
      case .number, .text, .flag, .data, .bookmark: true
      case .reference(let id): graph[id] != nil
      case .list(let values):
        depth < PhoneLimits.archiveDepth && values.allSatisfy { isSound($0, depth: depth + 1) }
      }
    }
    return graph.objects.count <= PhoneLimits.archiveObjects && graph.isSound
      && paths.count == graph.objects.count
      && graph.objects.allSatisfy { $0.entries.allSatisfy { isSound($0.value) } }
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
    var later = self
    later.appVersion = transform.to
    for change in transform.changes {
      switch change {
      case .rename(let path, let identifier):
        let new = StatePath(path.components.dropLast() + [identifier])
        guard later.graph.find(new) == nil, !identifier.isEmpty, !identifier.hasPrefix("(") else {
          continue
        }
        later.graph.rename(path, to: identifier)
      case .renameKey(let path, let key, let new):
        guard let id = later.graph.find(path), let value = later.graph[id]?[key] else { continue }
        later.graph.set(id, key, nil)
        later.graph.set(id, new, value)
      case .set(let path, let key, let value):
        later.graph.apply(.set(path, key: key, value))
      case .drop(let path):
        if let id = later.graph.find(path) { later.graph.cut(id) }
      }
    }
    return later
  }
}
