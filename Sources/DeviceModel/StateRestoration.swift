/// One step of restoring, as the log tool of developer mode tells it (WWDC 2013 session 222).
package enum RestorationStep: Hashable, Sendable {
  /// A base object that was there already.
  case found(StatePath)
  /// A dynamic object that its restoration class made anew.
  case recreated(StatePath, by: String)
  case skipped(StatePath, SkipReason)
  case wired(StatePath, key: String)
  /// A reference to what was skipped.
  case unwired(StatePath, key: String)
  case decoded(StatePath)
  case finished(StatePath)
  /// When all have decoded, it has taken over what another one decoded.
  case applied(StatePath, key: String)
}

/// Why an object of the archive is not restored.
package enum SkipReason: Hashable, Sendable {
  /// The restoration class answered nothing: the data is gone.
  case answeredNothing(String)
  /// It is no base object and nobody can make it.
  case noRestorationClass
  /// What it stands below was skipped.
  case parentSkipped
}

/// An archive turned back into objects.
///
/// The order is the whole point: base objects are there, dynamic ones are made on demand, parents
/// before children; then all references are wired; then each object decodes its own state; and at
/// the end each is told that restoring has finished, and applies what others have decoded. So no
/// object depends on the order of others.
package struct StateRestoration: Sendable {
  /// The objects that are there now.
  package private(set) var graph: StateGraph
  /// Everything that was done, in order.
  package private(set) var steps: [RestorationStep] = []
  /// Whether what was on top is there again; false leads to the plain launch image.
  package private(set) var hasTop = true
  /// Where each object of the archive is now.
  private var places: [StateObjectID: StateObjectID] = [:]

  /// How many of the archive's objects are there again.
  package var restoredCount: Int { places.count }

  /// `base` holds the objects that exist before restoring. `recreates` is asked once for each
  /// object with a restoration class, by its name and what was saved, and answers the class of the
  /// object that it makes; nil means that its data is gone, as it is of those in `gone`. `delegate`
  /// has what the app delegate makes when nobody else does.
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
      // What it was pushed on or presented by, back to one that exists.
      var shown: StateObjectID? = top
      while let id = shown, places[id] == nil { shown = archive.graph[id]?.parent }
      graph.top = shown.flatMap { places[$0] }
    }
    let decoded = graph
    for (object, path) in saved { finish(path, places[object.id], applies, decoded) }
  }

  /// What one applies is what others decoded, never what they applied.
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
    // Who has a restoration class is made by it, also where there is such an object already.
    guard let maker else {
      steps.append(
        found == nil ? .skipped(path, .noRestorationClass) : .found(path))
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
      steps.append(
        value == nil
          ? .unwired(path, key: entry.key) : .wired(path, key: entry.key))
    }
  }

  private mutating func decode(_ object: StateObject, _ path: StatePath) {
    guard let id = places[object.id] else { return }
    // A base object may start out with keys that it had given up when it was saved.
    let kept = Set(object.entries.map(\.key))
    for entry in graph[id]?.entries ?? [] where !kept.contains(entry.key) {
      // What it refers to outside of restoration is the app's own wiring.
      let isWiring = entry.value.refers { graph.path(of: $0) == nil }
      if !isWiring { graph.set(id, entry.key, nil) }
    }
    for entry in object.entries where !entry.value.hasReferences {
      graph.set(id, entry.key, entry.value)
    }
    steps.append(.decoded(path))
  }
}
