import Primitives

/// The life cycle of apps, from installation to the end of the process.
extension Phone {
  mutating func install(_ definition: AppDefinition) {
    let known = app(named: definition.name)
    if let known, known.state != .uninstalled {
      guard known.definition != definition else { return ignore(.alreadySo) }
      return redefine(known.id.number, definition)
    }
    let id = known?.id ?? AppID(apps.count)
    var new = App(id, definition, limits: limits, at: now)
    // Numbers of activities are in topics, and are not used twice.
    if let last = known?.book?.lastNumber { new.live.lastNumber = last }
    if known == nil { apps.append(new) } else { apps[id.number] = new }
    emit(.app(id, .installed))
    followTokens(id.number, [])
    replan(id.number)
  }

  /// Ends the process. Archive, content, settings and what was learned stay.
  private mutating func redefine(_ index: Int, _ definition: AppDefinition) {
    if apps[index].state.hasProcess { terminate(index, .updated) }
    let (tokens, limit) = (addresses(of: AppID(index)), updateLimit(index))
    apps[index].redefine(definition)
    keepUsed(limit, index)
    emit(.app(AppID(index), .installed))
    followTokens(index, tokens)
    replan(index)
  }

  /// Makes the app callable in the background; returns how long that takes.
  mutating func bringToRun(_ index: Int, _ cause: RunCause) -> Interval {
    switch apps[index].state {
    case .notRunning:
      launch(index, cause)
      apps[index].process.readyAt = now + limits.launchTime
    case .suspended:
      apps[index].state = .background
      emit(.app(AppID(index), .resumed(cause)))
      mergeDownloads(index)
      apps[index].process.readyAt = now + limits.resumeTime
    case .background: break
    case .foreground: return .zero
    case .forceQuit, .uninstalled:
      preconditionFailure("callers refuse what may not be launched first")
    }
    return max(.zero, apps[index].process.readyAt - now)
  }

  /// Starts in the background. Restores its state only while unlocked (WWDC 2013 session 222).
  private mutating func launch(_ index: Int, _ cause: RunCause) {
    apps[index].state = .background
    apps[index].process = AppProcess()
    apps[index].process.interface = apps[index].definition.script.interface
    emit(.app(AppID(index), .launched(cause)))
    restore(index)
    if apps[index].state == .background { mergeDownloads(index) }
  }

  /// The phone is unlocked.
  mutating func open(_ index: Int, waitsForContent: Bool) {
    let id = AppID(index)
    recordUse(index)
    if foreground != id {
      if let other = foreground { leave(other.number) }
      switcher.bringToFront(id)
      bringToForeground(index)
    }
    // It crashed while restoring.
    guard foreground == id else { return }
    let age = apps[index].content.updatedAt.map { now - $0 }
    emit(.app(id, .opened(contentAge: age)))
    if waitsForContent {
      let until = now + apps[index].definition.script.contentTime
      apps[index].contentWait = ContentWait(since: now, until: until)
      timers.set(.foregroundContent(id), at: until)
    }
    deliverEndedTransfers(index)
    askAgain(index)
    uploadUnsent(index)
    releaseHeld(index)
    handTokens(index)
    apps[index].lastActivity = now
    replan(index)
  }

  private mutating func bringToForeground(_ index: Int) {
    let id = AppID(index)
    switch apps[index].state {
    case .uninstalled: preconditionFailure("what is not there is refused at the entry")
    case .notRunning, .forceQuit:
      let ignores = apps[index].ignoresNextSnapshot
      apps[index].ignoresNextSnapshot = false
      launch(index, .user)
      guard apps[index].state == .background else { return }
      let snapshot = apps[index].snapshot
      let isTopThere = apps[index].process.isTopRestored && snapshot?.isForSwitcherOnly != true
      let shown = ignores || !isTopThere ? nil : snapshot?.shows
      emit(.app(id, .launchImage(shown)))
    case .suspended: emit(.app(id, .resumed(.user)))
    case .background, .foreground: break
    }
    // Launched while locked, it has not restored its state yet.
    if !apps[index].process.isRestored { restore(index) }
    guard apps[index].state.hasProcess else { return }
    apps[index].state = .foreground
    foreground = id
    if apps[index].task != nil {
      // In the foreground it needs no background task.
      apps[index].task = nil
      emit(.app(id, .taskEnded))
    }
    mergeDownloads(index)
  }

  mutating func leave(_ index: Int) {
    let id = AppID(index)
    foreground = nil
    apps[index].state = .background
    apps[index].contentWait = nil
    apps[index].lastActivity = now
    apps[index].graceUntil = now + limits.leaveGrace
    emit(.app(id, .enteredBackground))
    saveSnapshot(index, for: nil)
    saveState(index)
    let script = apps[index].definition.script.onLeave
    for request in script.transfers { queue(request, of: index, fromForeground: true) }
    if let task = script.task { begin(task, of: index, limits.backgroundTaskTime) }
    rearmDeadlines(index)
    timers.set(.graceEnds(id), at: apps[index].graceUntil)
    stayAwake(until: apps[index].graceUntil)
    replan(index)
  }

  mutating func suspendIfIdle(_ index: Int) {
    guard apps[index].state == .background, apps[index].callbackCount == 0,
      apps[index].task == nil, apps[index].graceUntil <= now, !apps[index].playsInBackground
    else { return }
    guard !lacksItsState(index) else { return terminate(index, .notRestored) }
    if apps[index].process.isPlaying {
      // Without the audio mode, sound ends with the app's time.
      apps[index].process.isPlaying = false
      emit(.app(AppID(index), .audio(isOn: false)))
    }
    apps[index].state = .suspended
    endAccesses(of: index)
    emit(.app(AppID(index), .suspended))
  }

  /// From now on only the user starts it (WWDC 2013 session 204).
  mutating func swipedAway(_ index: Int) {
    guard lock == .unlocked else { return ignore(.locked) }
    guard switcher.apps.contains(AppID(index)) else { return ignore(.notInSwitcher) }
    switcher.remove(AppID(index))
    if apps[index].state.hasProcess { terminate(index, .swipedAway) }
    apps[index].state = .forceQuit
    apps[index].snapshot = nil
    deleteArchive(index)
    dropHeld(index, .forceQuit)
    cancelTransfers(of: index)
    replan(index)
  }

  mutating func terminate(_ index: Int, _ reason: TerminationReason) {
    let id = AppID(index)
    // Of what runs in front nothing is charged.
    for callback in callbacks where callback.app == id { chargeBegunPart(of: callback) }
    if foreground == id {
      foreground = nil
      apps[index].lastActivity = now
    }
    apps[index].state = .notRunning
    apps[index].task = nil
    apps[index].contentWait = nil
    apps[index].process = AppProcess()
    emit(.app(id, .terminated(reason)))
    abandonCallbacks(of: index, reason)
    endAccesses(of: index)
    removeTemporary(of: id)
    if reason == .crashWhileRestoring { deleteArchive(index) }
    replan(index)
  }

  /// Archives, snapshots, the switcher, force-quit states, transfers, documents and what was
  /// learned survive.
  mutating func reboot() {
    endAll(.reboot)
    service.forgetPauses()
    emit(.phone(.booted))
    wake()
    if network.isConnected { catchUp() }
    replanAll()
  }

  /// Ends all processes, so only the sync service keeps its accesses.
  mutating func endAll(_ reason: TerminationReason) {
    // No keys exist until the code is entered, so nothing is archived while shutting down.
    (lock, appBehindLock) = (.beforeFirstUnlock, nil)
    uses = [:]
    endAccesses() { $0.party != .syncService }
    for index in apps.indices where apps[index].state.hasProcess {
      terminate(index, reason)
    }
    interruptTransfers()
    litUntil = now
  }
}

/// Snapshots and state restoration (WWDC 2013 session 204 and WWDC 2013 session 222).
extension Phone {
  /// The picture for the app switcher, with sensitive content hidden by apps that do so.
  mutating func saveSnapshot(_ index: Int, for callback: CallbackID?) {
    guard !lacksItsState(index) else { return }
    let app = apps[index]
    let interface = app.process.interface
    let top = interface.top.flatMap { interface.path(of: $0) }
    let shows: ScreenContent =
      app.definition.script.hidesContent
      ? .hidden : .content(revision: app.content.revision, top: top)
    var snapshot = AppSnapshot(takenAt: now, shows: shows, callback: callback)
    if interface.top != nil, top == nil { snapshot.isForSwitcherOnly = true }
    apps[index].snapshot = snapshot
    emit(.snapshot(app.id, snapshot))
  }

  /// Launched while locked, it runs without its archived state (WWDC 2013 session 222): snapshot
  /// and archive stay, and the process ends with its work.
  func lacksItsState(_ index: Int) -> Bool {
    !apps[index].process.isRestored && vault.holds(AppID(index))
  }

  /// Not while locked, and not from a process that never had the state it would overwrite.
  mutating func saveState(_ index: Int) {
    let app = AppID(index)
    let takesPart = apps[index].process.interface.takesPart
    // An app that saves no state does not take part in restoration.
    guard takesPart || vault.holds(app) else { return }
    guard lock == .unlocked, apps[index].process.isRestored else {
      return emit(.archive(app, .kept))
    }
    guard takesPart else {
      _ = vault.delete(app)
      return emit(.archive(app, .deleted))
    }
    let archive = StateArchive(
      of: apps[index].process.interface, appVersion: apps[index].definition.version,
      systemVersion: systemVersion, at: now)
    do {
      try vault.save(archive, of: app, lock)
      if isDeveloper {
        for path in archive.paths { emit(.archive(app, .encoded(path))) }
      }
      emit(.archive(app, .saved(archive)))
    } catch {
      emit(.archive(app, .kept))
    }
  }

  mutating func restore(_ index: Int) {
    let app = AppID(index)
    let script = apps[index].definition.script
    var archive: StateArchive
    do {
      archive = try vault.read(app, lock)
    } catch {
      let isLocked = error == .locked
      apps[index].process.isRestored = !isLocked
      return emit(.app(app, .startedFresh(isLocked ? .locked : .noArchive)))
    }
    if let oldest = script.restoration.oldest, now - archive.savedAt > oldest {
      apps[index].process.isRestored = true
      return emit(.app(app, .startedFresh(.declined)))
    }
    let version = apps[index].definition.version
    for transform in script.restoration.path(from: archive.appVersion, to: version) {
      archive = archive.transformed(by: transform)
      emit(.archive(app, .transformed(from: transform.from, to: transform.to)))
    }
    if script.restoration.declinesOtherVersions == true, archive.appVersion != version {
      apps[index].process.isRestored = true
      return emit(.app(app, .startedFresh(.otherVersion)))
    }
    if script.restoration.crashes { return terminate(index, .crashWhileRestoring) }
    let content = apps[index].content
    // Items written while locked are merged next.
    let items = content.items + content.files.flatMap(\.items)
    let restoration = StateRestoration(
      archive, base: script.interface, applies: script.restoration.applies ?? [],
      delegate: script.restoration.appDelegate ?? [], gone: script.restoration.gone
    ) { script.restoration.answer($0, $1, items) }
    if isDeveloper {
      for step in restoration.steps { emit(.archive(app, .step(step))) }
    }
    apps[index].process.interface = restoration.graph
    apps[index].process.isTopRestored = restoration.hasTop
    apps[index].process.isRestored = true
    emit(.app(app, .restored(archive, objects: restoration.restoredCount)))
    findRows(index, items.reversed())
    for bookmark in restoration.graph.bookmarks {
      perform(.bookmarkResolved(by: app, Bookmark(data: bookmark)))
    }
  }

  /// Selects table rows by identifier, as data may have moved; a row that is gone is deselected.
  private mutating func findRows(_ index: Int, _ rows: [String]) {
    for table in apps[index].definition.script.restoration.tables ?? [] {
      guard let id = apps[index].process.interface.find(table.path),
        case .text(let row)? = apps[index].process.interface[id]?[table.key]
      else { continue }
      let place = rows.firstIndex(of: row).map { $0 + 1 }
      if place == nil { apps[index].process.interface.set(id, table.key, nil) }
      emit(.archive(AppID(index), .row(table.path, key: table.key, place: place)))
    }
  }

  /// A swipe, or a crash while restoring, costs the archive; in developer mode it stays.
  mutating func deleteArchive(_ index: Int) {
    guard !isDeveloper, vault.delete(AppID(index)) else { return }
    emit(.archive(AppID(index), .deleted))
  }

  mutating func archiveFound(_ app: AppID, _ archive: StateArchive) {
    guard apps.indices.contains(app.number) else { return ignore(.unknownApp) }
    // A process still without its state may get it.
    let hasState = apps[app.number].state.hasProcess && apps[app.number].process.isRestored
    guard !hasState else { return ignore(.notAllowed) }
    do {
      try vault.putBack(archive, of: app, lock)
    } catch {
      ignore(.locked)
    }
  }
}
