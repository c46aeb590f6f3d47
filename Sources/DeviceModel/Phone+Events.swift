import Primitives

/// Events and timers, handed to who answers them.
extension Phone {
  mutating func perform(_ event: PhoneEvent, _ effects: inout [PhoneEffect]) {
    switch event {
    case .tick: break
    case .appInstalled(let definition): install(definition, &effects)
    case .pushReceived(let push): received(push, &effects)
    case .linkHeard: wake(&effects)
    case .networkChanged(let network): networkChanged(network, &effects)
    case .chargerChanged(let isConnected): chargerChanged(isConnected, &effects)
    case .rebooted: reboot(&effects)
    case .memoryRanOut: memoryRanOut(&effects)
    case .archiveFound(let app, let archive): archiveFound(app, archive, &effects)
    case .unlocked: unlock(&effects)
    case .locked: lockScreen(&effects)
    case .bannerOpened(let banner): bannerOpened(banner, &effects)
    case .appLeft: appLeft(&effects)
    case .refreshSwitched(nil, let isOn):
      isRefreshOn = isOn
      replanAll(&effects)
    case .lowPowerSwitched(let isOn): lowPowerSwitched(isOn, &effects)
    case .developerModeSwitched(let isOn): isDeveloper = isOn
    case .transferProgressed(let transfer, let bytes): progressed(transfer, bytes, &effects)
    case .transferChallenged(let transfer): challenged(transfer, &effects)
    case .transferEnded(let transfer, let result): ended(transfer, result, &effects)
    case .document(let event): perform(event, &effects)
    case .appCrashed(let app), .appOpened(let app), .appSwipedAway(let app),
      .fetchIntervalSet(let app, _), .stateChanged(let app, _), .transferQueued(let app, _),
      .snapshotIgnoredOnce(let app), .refreshSwitched(let app?, _):
      guard apps.indices.contains(app.number) else { return ignore(.unknownApp, &effects) }
      perform(event, of: app.number, &effects)
    }
  }

  /// Events of one app that exists.
  private mutating func perform(
    _ event: PhoneEvent, of index: Int, _ effects: inout [PhoneEffect]
  ) {
    switch event {
    case .appOpened:
      guard lock == .unlocked else { return ignore(.locked, &effects) }
      open(index, waitsForContent: false, &effects)
    case .appSwipedAway: swipedAway(index, &effects)
    case .appCrashed:
      guard isRunning(index) else { return ignore(.notRunning, &effects) }
      terminate(index, .crash, &effects)
    case .refreshSwitched(_, let isOn):
      apps[index].isRefreshOn = isOn
      replan(index, &effects)
    case .fetchIntervalSet(_, let interval):
      guard isRunning(index) else { return ignore(.notRunning, &effects) }
      apps[index].fetchInterval = interval
      replan(index, &effects)
    case .stateChanged(_, let changes):
      guard isRunning(index) else { return ignore(.notRunning, &effects) }
      for change in changes { apps[index].process.interface.apply(change) }
    case .transferQueued(_, let request):
      guard isRunning(index) else { return ignore(.notRunning, &effects) }
      queue(request, of: index, &effects)
    case .snapshotIgnoredOnce:
      guard isRunning(index) else { return ignore(.notRunning, &effects) }
      apps[index].ignoresNextSnapshot = true
    default: break
    }
  }

  /// A timer that is due. Each checks whether it still means anything.
  mutating func fire(_ timer: TimerKind, _ effects: inout [PhoneEffect]) {
    switch timer {
    case .workEnds(let callback): workEnded(callback, &effects)
    case .handlerCalled(let callback): handlerDue(callback, &effects)
    case .deadline(let callback): deadlinePassed(callback, &effects)
    case .graceEnds(let app): suspendIfIdle(app.number, &effects)
    case .taskSliceEnds(let app): taskSliceEnded(app.number, &effects)
    case .sleepDue: sleepTimer = .never
    case .foregroundContent(let app): contentArrived(app.number, &effects)
    case .heldPush(let app): releaseHeld(app.number, &effects)
    case .fetchesDue:
      fetchTimer = .never
      fetchesDue(&effects)
    case .transfersDue:
      transferTimer = .never
      mustReviewTransfers = true
    case .documentWritten(let document): syncServiceWrote(document, &effects)
    }
  }

  /// What is decided once everything has its new state: transfers, fetches that join an awake
  /// period, timers, the report of the condition, sleep.
  mutating func settle(_ effects: inout [PhoneEffect]) {
    // Transfers that end wake apps, whose callbacks may queue others, at later moments.
    if mustReviewTransfers { reviewTransfers(&effects) }
    if mustCoalesce { coalesceFetches(&effects) }
    setFetchTimer()
    sleepIfIdle(&effects)
    let condition = condition
    if condition != reported {
      reported = condition
      emit(.condition(condition), &effects)
    }
  }

  /// Whether its code runs at this moment: suspended apps do not, nor does anybody while the phone
  /// sleeps.
  func isRunning(_ index: Int) -> Bool {
    switch apps[index].state {
    case .foreground: true
    case .background: wakefulness != .asleep
    case .notRunning, .suspended, .forceQuit: false
    }
  }
}
