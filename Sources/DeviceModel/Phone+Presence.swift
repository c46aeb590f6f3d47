import Primitives

/// Switching off, uninstalling; and the other reasons to run in the background: places and sound.
extension Phone {
  // MARK: Off and on

  /// Like a reboot; no timer fires until the phone is on again.
  mutating func switchOff() {
    endAll(.switchedOff)
    timers = TimerQueue()
    wakefulness = .off
    emit(.phone(.switchedOff))
  }

  /// Records only what matters once the phone is on again.
  mutating func performOff(_ event: PhoneEvent) {
    switch event {
    case .switchedOn:
      wakefulness = .asleep
      accountTransfers()
      resumeCoordination()
      for push in apps.flatMap(\.heldPushes) { setExpiryTimer(push) }
      reboot()
    case .networkChanged(let network): self.network = network
    case .chargerChanged(let isConnected): isCharging = isConnected
    case .archiveFound(let app, let archive): archiveFound(app, archive)
    case .document(.elsewhere(let change)): hear(change)
    case .document(.driveSwitched(let isOn)): documents.lacksDrive = isOn ? nil : true
    case .tick, .appInstalled, .pushReceived, .pushRode, .linkHeard, .rebooted, .switchedOff,
      .regionEntered, .fetchSimulated, .memoryRanOut, .appCrashed, .transferProgressed,
      .transferChallenged, .transferEnded,
      .unlocked, .locked, .appOpened, .bannerOpened, .appLeft, .appUninstalled, .appSwipedAway,
      .refreshSwitched, .lowPowerSwitched, .developerModeSwitched, .fetchIntervalSet,
      .stateChanged, .transferQueued, .snapshotIgnoredOnce, .audioSwitched, .backgroundAsked,
      .document, .activity:
      ignore(.switchedOff)
    }
  }

  // MARK: Uninstalled

  /// Removes everything of the app but its place.
  mutating func uninstall(_ index: Int) {
    let id = AppID(index)
    let tokens = addresses(of: id)
    if apps[index].state.hasProcess { terminate(index, .uninstalled) }
    if appBehindLock == id { appBehindLock = nil }
    apps[index].state = .uninstalled
    followTokens(index, tokens)
    switcher.remove(id)
    banners.remove(of: id)
    (apps[index].snapshot, apps[index].badge) = (nil, 0)
    if vault.delete(id) { emit(.archive(id, .deleted)) }
    dropHeld(index, .notInstalled)
    accountTransfers()
    for transfer in service.transfers where transfer.app == id && !transfer.phase.hasEnded {
      emit(.transfer(transfer.id, id, .ended(.failed)))
    }
    service.transfers.removeAll { $0.app == id }
    mustReviewTransfers = true
    let own = documents.documents.values.filter { $0.container == id }.map(\.id)
    for document in own.sorted(by: { $0.number < $1.number }) { remove(document) }
    documents.forget { app, _ in app == id }
    emit(.app(id, .uninstalled))
    replan(index)
  }

  // MARK: Places, and fetches by hand

  /// Calls an app outside the schedule: at a place it watches, or for a developer's fetch. Not
  /// after a force quit (WWDC 2013 session 204).
  mutating func call(_ index: Int, _ kind: RunningCallback.Kind, _ mode: BackgroundModes) {
    let refusal = lock == .beforeFirstUnlock ? .beforeFirstUnlock : refusal(of: mode, index)
    if let refusal { return emit(.app(AppID(index), .notRun(kind.cause, refusal))) }
    startCallback(index, kind)
  }

  /// Sends a foreground app to the background first, as Xcode does.
  mutating func simulateFetch(_ index: Int) {
    if refusal(of: .fetch, index) == nil, foreground == AppID(index) { leave(index) }
    call(index, .fetch, .fetch)
    replan(index)
  }

  // MARK: Sound

  /// With the mode `audio` an app runs, and keeps the phone awake, while it plays.
  mutating func audioSwitched(_ index: Int, _ isOn: Bool) {
    guard apps[index].process.isPlaying != isOn else { return ignore(.alreadySo) }
    apps[index].process.isPlaying = isOn
    emit(.app(AppID(index), .audio(isOn: isOn)))
    suspendIfIdle(index)
  }

  // MARK: Whether an app will run

  /// Why the system would not run an app in the background now; nil if it would.
  package func backgroundRefusal(of app: AppID) -> LaunchRefusal? {
    guard let found = self[app] else { return .notInstalled }
    switch found.state {
    case .uninstalled: return .notInstalled
    case .forceQuit: return .forceQuit
    case .notRunning, .foreground, .background, .suspended: break
    }
    if found.definition.modes.isEmpty { return .noModes }
    if lock == .beforeFirstUnlock { return .beforeFirstUnlock }
    return refreshRefusal(app.number) ?? scarcityRefusal(app.number)
  }

  /// Why an app may not be run now for a mode.
  func refusal(of mode: BackgroundModes, _ index: Int) -> LaunchRefusal? {
    let app = apps[index]
    if app.state == .uninstalled { return .notInstalled }
    if app.state == .forceQuit { return .forceQuit }
    // In front it gets its pushes, and declares nothing for that.
    let isInFront = mode == .remoteNotification && app.state == .foreground
    if !isInFront, !app.definition.modes.contains(mode) {
      return mode == .location
        ? .locationModeMissing : mode == .fetch ? .fetchModeMissing : .modeMissing
    }
    if app.callbackCount >= limits.callbacksPerApp { return .tooManyCallbacks }
    return app.state == .foreground ? nil : refreshRefusal(index)
  }

  func refreshRefusal(_ index: Int) -> LaunchRefusal? {
    if !isRefreshOn { return .refreshOffForAll }
    return apps[index].isRefreshOn ? nil : .refreshOff
  }

  private func scarcityRefusal(_ index: Int) -> LaunchRefusal? {
    if isLowPower { return .lowPower }
    return shortage(index).map { $0.isEnergy ? .energyBudget : .dataBudget }
  }

  /// One issue a day, over Wi-Fi (WWDC 2013 session 204).
  func newsstandRefusal(_ index: Int) -> LaunchRefusal? {
    if network != .wifi { return .newsstandNeedsWiFi }
    if let last = apps[index].lastIssue, now - last < .days(1) { return .newsstandOncePerDay }
    return nil
  }
}
