import Primitives

/// Snapshots and state restoration (WWDC 2013 session 204 and WWDC 2013 session 222).
extension Phone {
  /// The picture for the app switcher; whatever is sensitive is hidden before, by apps that care.
  mutating func takeSnapshot(
    _ index: Int, for callback: CallbackID?, _ effects: inout [PhoneEffect]
  ) {
    let app = apps[index]
    let interface = app.process.interface
    let shows: ScreenContent =
      app.definition.script.hidesContent
      ? .hidden
      : .content(
        revision: app.content.revision, top: interface.top.flatMap { interface.path(of: $0) })
    let snapshot = AppSnapshot(takenAt: now, shows: shows, callback: callback)
    apps[index].snapshot = snapshot
    emit(.snapshot(app.id, snapshot), &effects)
  }

  /// Saves what the process shows. Not while locked; and not from a process that never had the
  /// state it would replace.
  mutating func saveState(_ index: Int, _ effects: inout [PhoneEffect]) {
    let app = AppID(index)
    guard lock == .unlocked, apps[index].process.isRestored else {
      return emit(.archive(app, .kept), &effects)
    }
    let archive = StateArchive(
      of: apps[index].process.interface, appVersion: apps[index].definition.version,
      systemVersion: systemVersion, at: now)
    do {
      try vault.save(archive, of: app, lock)
      emit(.archive(app, .saved(archive)), &effects)
    } catch {
      emit(.archive(app, .kept), &effects)
    }
  }

  /// Gives a new process the state of the last one.
  mutating func restore(_ index: Int, _ effects: inout [PhoneEffect]) {
    let app = AppID(index)
    let script = apps[index].definition.script
    let archive: StateArchive
    do {
      archive = try vault.read(app, lock)
    } catch {
      let isLocked = error == .locked
      apps[index].process.isRestored = !isLocked
      return emit(.app(app, .startedFresh(isLocked ? .locked : .noArchive)), &effects)
    }
    if let oldest = script.restoration.oldest, now - archive.savedAt > oldest {
      apps[index].process.isRestored = true
      return emit(.app(app, .startedFresh(.declined)), &effects)
    }
    if script.restoration.crashes { return terminate(index, .crashWhileRestoring, &effects) }
    let restoration = StateRestoration(archive, base: script.interface) { name, path in
      !script.restoration.answersNothing.contains(name) && !script.restoration.gone.contains(path)
    }
    if isDeveloper {
      for step in restoration.steps { emit(.archive(app, .step(step)), &effects) }
    }
    apps[index].process.interface = restoration.graph
    apps[index].process.isTopRestored = restoration.hasTop
    apps[index].process.isRestored = true
    emit(.app(app, .restored(archive)), &effects)
  }

  /// A swipe or a crash while restoring costs the archive, unless a developer wants to look at it.
  mutating func deleteArchive(_ index: Int, _ effects: inout [PhoneEffect]) {
    guard !isDeveloper, vault.delete(AppID(index)) else { return }
    emit(.archive(AppID(index), .deleted), &effects)
  }

  /// The storage brings back what it kept from an earlier run.
  mutating func archiveFound(
    _ app: AppID, _ archive: StateArchive, _ effects: inout [PhoneEffect]
  ) {
    guard apps.indices.contains(app.number) else { return ignore(.unknownApp, &effects) }
    // A process that ran without its state so far may still get it.
    let hasState = apps[app.number].state.hasProcess && apps[app.number].process.isRestored
    guard !hasState else { return ignore(.notAllowed, &effects) }
    do {
      try vault.putBack(archive, of: app, lock)
    } catch {
      ignore(.locked, &effects)
    }
  }
}
