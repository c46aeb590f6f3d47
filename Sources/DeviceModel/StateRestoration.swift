/// One step of restoring, as in the developer mode log (WWDC 2013 session 222).
package enum RestorationStep: Hashable, Sendable {
  /// A base object that already exists.
  case found(StatePath)
  case recreated(StatePath, by: String)
  case skipped(StatePath, SkipReason)
  case wired(StatePath, key: String)
  /// A reference to a skipped object.
  case unwired(StatePath, key: String)
  case decoded(StatePath)
  case finished(StatePath)
  /// After decoding, it copied a value that another object decoded.
  case applied(StatePath, key: String)
}

/// Why an archived object is not restored.
package enum SkipReason: Hashable, Sendable {
  /// Returned nothing: the data is gone.
  case answeredNothing(String)
  case noRestorationClass
  case parentSkipped
}

/// Turns an archive back into objects.
///
/// Strictly in this order: dynamic objects are made, parents before children; all references are
/// wired; each object decodes its state; each is told that restoring has finished and applies what
/// others decoded. So no object depends on the order of others.
package struct StateRestoration: Sendable {
  package private(set) var graph: StateGraph
  package private(set) var steps: [RestorationStep] = []
  /// The object on top is restored; otherwise the plain launch image is shown.
  package private(set) var hasTop = true
  /// Ids in the archive to ids in `graph`.
  private var places: [StateObjectID: StateObjectID] = [:]

  package var restoredCount: Int { places.count }

  /// `base` holds the objects that exist before restoring; `delegate` those the app delegate makes
  /// if nothing else does; the data of `gone` no longer exists. `recreates` maps a restoration
  /// class and the saved object to the class of the new object, or nil if the data is gone.
  package init(
    _ archive: StateArchive, base: StateGraph, applies: [StateApplication] = [],
    delegate: Set<StatePath> = [], gone: Set<StatePath> = [],
    recreates: (String, StateObject) -> String?
  ) {
    graph = base
    let saved = zip(archive.graph.objects, archive.paths)
    for (object, path) in saved {
      places[object.id] = place(object, path, delegate) { maker in
        gone.contains(path) ? nil : recreates(maker, object)
      }
    }
    for (object, path) in saved { wire(object, path) }
    for (object, path) in saved { decode(object, path) }
    if let top = archive.graph.top {
      hasTop = places[top] != nil
      // The nearest ancestor that exists.
      var shown: StateObjectID? = top
      while let id = shown, places[id] == nil { shown = archive.graph[id]?.parent }
      graph.top = shown.flatMap { places[$0] }
    }
    let decoded = graph
    for (object, path) in saved { finish(path, places[object.id], applies, decoded) }
  }

  /// Applies what others decoded, never what they applied.
  private mutating func finish(
    _ path: StatePath, _ id: StateObjectID?, _ applies: [StateApplication], _ decoded: StateGraph
  ) {
    guard let id else { return }
    steps.append(.finished(path))
    for application in applies where application.path == path {
      guard case .reference(let other)? = decoded[id]?[application.through],
        let value = decoded[other]?[application.theirs]
      else { continue }
      graph.set(id, application.key, value)
      steps.append(.applied(path, key: application.key))
    }
  }

  private mutating func place(
    _ object: StateObject, _ path: StatePath, _ delegate: Set<StatePath>,
    _ recreates: (String) -> String?
  ) -> StateObjectID? {
    if let parent = object.parent, places[parent] == nil {
      steps.append(.skipped(path, .parentSkipped))
      return nil
    }
    let found = graph.find(path)
    var maker = object.restorationClass
    if maker == nil, found == nil, delegate.contains(path) { maker = "the app delegate" }
    // A restoration class makes its object even if one exists.
    guard let maker else {
      steps.append(found == nil ? .skipped(path, .noRestorationClass) : .found(path))
      return found
    }
    let isLasting = object.restorationClass == nil || maker == StateObject.storyboard
    guard let className = isLasting ? object.className : recreates(maker) else {
      steps.append(.skipped(path, .answeredNothing(maker)))
      return nil
    }
    let isSame = className == object.className
    steps.append(.recreated(path, by: isSame ? maker : "\(maker) as \(className)"))
    if let found {
      graph.remake(found, as: className)
      return found
    }
    return graph.add(
      className, identifier: object.identifier, parent: object.parent.flatMap { places[$0] },
      restorationClass: object.restorationClass, origin: .dynamic,
      isRegistered: object.isRegistered)
  }

  private mutating func wire(_ object: StateObject, _ path: StatePath) {
    guard let id = places[object.id] else { return }
    for entry in object.entries where entry.value.hasReferences {
      let value = entry.value.mapReferences { places[$0] }
      graph.set(id, entry.key, value)
      steps.append(value == nil ? .unwired(path, key: entry.key) : .wired(path, key: entry.key))
    }
  }

  private mutating func decode(_ object: StateObject, _ path: StatePath) {
    guard let id = places[object.id] else { return }
    // A base object may start with keys that were already removed when it was saved.
    let kept = Set(object.entries.map(\.key))
    for entry in graph[id]?.entries ?? [] where !kept.contains(entry.key) {
      // References to objects outside of restoration are the app's own.
      let isWiring = entry.value.refers { graph.path(of: $0) == nil }
      if !isWiring { graph.set(id, entry.key, nil) }
    }
    for entry in object.entries where !entry.value.hasReferences {
      graph.set(id, entry.key, entry.value)
    }
    steps.append(.decoded(path))
  }
}
