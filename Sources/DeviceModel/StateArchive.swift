package import Primitives

/// An app's saved state: all objects that take part in restoration, with their references (WWDC
/// 2013 session 222). Stored as sealed JSON; check `isSound` after decoding.
package struct StateArchive: Hashable, Codable, Sendable {
  package private(set) var appVersion: String
  package let systemVersion: String
  package let savedAt: Instant
  /// No two objects have the same path.
  package private(set) var graph = StateGraph()

  /// Of two objects with the same path the first is saved, and the other is left out with its
  /// descendants.
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
    // Without an identifier on top, use the nearest ancestor that has one.
    var shown = graph.top
    while let id = shown, kept[id] == nil { shown = graph[id]?.parent }
    self.graph.top = shown.flatMap { kept[$0] }
  }

  package var paths: [StatePath] { graph.objects.compactMap { graph.path(of: $0.id) } }

  /// Checks a decoded archive, including the limits of `PhoneLimits`.
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

/// The one error type of this module.
package enum ArchiveError: Error, Hashable, Sendable {
  case missing
  /// The phone is locked; the key does not exist now.
  case locked
}

/// The apps' archives, of protection class `complete`: private, so that nothing reads or writes one
/// while the phone is locked. (`putBack` may fill an empty place.)
package struct ArchiveVault: Sendable {
  private var archives: [AppID: StateArchive] = [:]

  package init() {}

  /// Throws `locked`, or `missing` when there is none.
  package func read(_ app: AppID, _ lock: LockState) throws(ArchiveError) -> StateArchive {
    guard lock == .unlocked else { throw .locked }
    guard let archive = archives[app] else { throw .missing }
    return archive
  }

  /// Replaces the app's archive. Throws `locked`.
  package mutating func save(
    _ archive: StateArchive, of app: AppID, _ lock: LockState
  ) throws(ArchiveError) {
    guard lock == .unlocked else { throw .locked }
    archives[app] = archive
  }

  /// Puts back an archive from an earlier run. Throws `locked` if it would overwrite one; while
  /// locked nobody can read it anyway.
  package mutating func putBack(
    _ archive: StateArchive, of app: AppID, _ lock: LockState
  ) throws(ArchiveError) {
    guard lock == .unlocked || archives[app] == nil else { throw .locked }
    archives[app] = archive
  }

  /// Needs no key: the file's name is no secret.
  package func holds(_ app: AppID) -> Bool { archives[app] != nil }

  /// Needs no key. Returns false if there was none.
  package mutating func delete(_ app: AppID) -> Bool { archives.removeValue(forKey: app) != nil }
}

/// Converts archives from one version of an app to another.
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

/// A change that does not apply has no effect.
public enum ArchiveChange: Hashable, Codable, Sendable {
  /// Also changes the paths of its descendants.
  case rename(StatePath, to: String)
  case renameKey(StatePath, key: String, to: String)
  case set(StatePath, key: String, StateValue)
  /// Removes an object, its descendants and all references to them.
  case drop(StatePath)
}

extension StateArchive {
  /// As the later version would have saved it.
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
      case .set(let path, let key, let value): later.graph.apply(.set(path, key: key, value))
      case .drop(let path):
        if let id = later.graph.find(path) { later.graph.cut(id) }
      }
    }
    return later
  }
}

/// An archive as text, for `pushrelay archive print` (WWDC 2013 session 222).
extension StateArchive: CustomStringConvertible {
  package var description: String {
    var lines = ["restoration classes:"]
    var seen: Set<String> = []
    let objects = Array(zip(graph.objects, paths))
    for case let name? in graph.objects.map(\.restorationClass)
    where name != StateObject.storyboard && seen.insert(name).inserted {
      let made = objects.filter { $0.0.restorationClass == name }.map(\.1.description)
      lines.append("  \(name): \(made.joined(separator: ", "))")
    }
    lines.append("app version: \(appVersion)")
    lines.append("system version: \(systemVersion)")
    lines.append("timestamp: \(savedAt.iso8601)")
    for (object, path) in objects {
      let marks = [
        object.isRegistered ? "registered" : nil,
        graph.top == object.id ? "on top" : nil,
      ].compactMap { $0 }
      let suffix = marks.isEmpty ? "" : " (\(marks.joined(separator: ", ")))"
      lines.append("\(path): \(object.className)\(suffix)")
      for entry in object.entries { lines.append("  \(entry.key) = \(text(entry.value))") }
    }
    return lines.joined(separator: "\n")
  }

  private func text(_ value: StateValue) -> String {
    switch value {
    case .number(let number): "\(number)"
    case .text(let text): "\"\(text)\""
    case .flag(let flag): flag ? "yes" : "no"
    case .data(let data): "\(data.count) bytes"
    case .bookmark: "a bookmark"
    case .reference(let id): "-> \(graph.path(of: id)?.description ?? "nothing")"
    case .list(let values): "[\(values.map(text).joined(separator: ", "))]"
    }
  }
}

extension RestorationStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .found(let path): "\(path): found"
    case .recreated(let path, let name): "\(path): recreated by \(name)"
    case .skipped(let path, .answeredNothing(let name)): "\(path): skipped, \(name) has it no more"
    case .skipped(let path, .noRestorationClass): "\(path): skipped, nobody can make it"
    case .skipped(let path, .parentSkipped): "\(path): skipped with its parent"
    case .wired(let path, let key): "\(path): \(key) refers again"
    case .unwired(let path, let key): "\(path): \(key) refers to nothing now"
    case .decoded(let path): "\(path): decoded"
    case .finished(let path): "\(path): finished"
    case .applied(let path, let key): "\(path): \(key) applied, of what another decoded"
    }
  }
}
