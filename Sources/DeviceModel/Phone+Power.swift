import Primitives

/// Sleep, lock and power; background tasks; the cost of work.
extension Phone {
  // MARK: Awake and asleep

  mutating func wake() {
    let wasAsleep = wakefulness == .asleep
    stayAwake(until: now + limits.awakeLinger)
    guard wasAsleep else { return }
    mustCoalesce = true
    mustShowActivities = true
    emit(.phone(.woke))
    for index in apps.indices where apps[index].state == .background {
      startSlice(index)
      if let task = apps[index].task {
        emit(.app(AppID(index), .taskResumed(left: task.remaining)))
      }
    }
  }

  mutating func stayAwake(until moment: Instant) {
    switch wakefulness {
    case .asleep, .off: wakefulness = .awake(atLeastUntil: moment)
    case .awake(let least): wakefulness = .awake(atLeastUntil: max(least, moment))
    }
  }

  /// Stays awake for a user, a callback and shortly after. Since iOS 7 a background task is no
  /// reason (WWDC 2013 session 204).
  mutating func sleepIfIdle() {
    // The dark screen is reported in time, whatever keeps the phone awake.
    if litUntil > now { timers.set(.sleep, at: litUntil) }
    guard case .awake(let least) = wakefulness, lock != .unlocked, callbacks.isEmpty,
      !apps.contains(where: { $0.playsInBackground }), !isUsingDocuments
    else { return }
    let until = max(least, litUntil)
    guard until <= now else { return timers.set(.sleep, at: until) }
    for index in apps.indices where apps[index].state == .background {
      // The grace period may end just now, with its timer still to come.
      suspendIfIdle(index)
      stopSlice(index)
      if let task = apps[index].task {
        emit(.app(AppID(index), .taskPaused(left: task.remaining)))
      }
    }
    wakefulness = .asleep
    emit(.phone(.slept))
  }

  // MARK: Background tasks

  /// Adds the work to a task that is already running.
  mutating func begin(_ script: TaskScript, of index: Int, _ allowance: Interval) {
    let work = max(script.work, .zero)
    guard work > .zero else { return }
    spendEnergy(script.energy, index)
    if apps[index].task != nil {
      stopSlice(index)
      let left = apps[index].task?.remaining ?? .zero
      apps[index].task?.remaining = left + work
    } else {
      apps[index].task = BackgroundTask(
        remaining: work, allowance: allowance, endsInTime: script.endsInTime)
    }
    emit(.app(AppID(index), .taskBegan(work)))
    if wakefulness != .asleep { startSlice(index) }
  }

  private mutating func startSlice(_ index: Int) {
    guard let task = apps[index].task, task.runsSince == nil else { return }
    apps[index].task?.runsSince = now
    timers.set(.taskSliceEnds(AppID(index)), at: now + min(task.remaining, task.allowance))
  }

  private mutating func stopSlice(_ index: Int) {
    guard let since = apps[index].task?.runsSince else { return }
    let ran = now - since
    apps[index].task?.runsSince = nil
    apps[index].task?.remaining.milliseconds -= ran.milliseconds
    apps[index].task?.allowance.milliseconds -= ran.milliseconds
  }

  mutating func taskSliceEnded(_ index: Int) {
    guard let task = apps[index].task, let since = task.runsSince,
      since + min(task.remaining, task.allowance) <= now
    else { return }
    stopSlice(index)
    let isDone = task.remaining <= task.allowance
    apps[index].task = nil
    if isDone || task.endsInTime {
      emit(.app(AppID(index), isDone ? .taskEnded : .taskExpired))
      suspendIfIdle(index)
    } else {
      killed(index)
      terminate(index, .taskOverran)
    }
  }

  /// Lowers the score of an app before it is killed.
  mutating func killed(_ index: Int) {
    let before = apps[index].behaviour.score
    apps[index].behaviour.killed()
    tellStanding(index, before)
  }

  mutating func tellStanding(_ index: Int, _ before: Int64) {
    let behaviour = apps[index].behaviour
    let step = AppStep.judged(
      before: before, after: behaviour.score,
      silentInterval: behaviour.stretched(limits.silentInterval))
    emit(.app(AppID(index), step))
  }

  // MARK: Locked and unlocked

  mutating func unlock() {
    guard lock != .unlocked else { return ignore(.alreadySo) }
    let isFirst = lock == .beforeFirstUnlock
    wake()
    (lock, appBehindLock) = (.unlocked, nil)
    emit(.phone(.unlocked))
    usage.record(at: now + limits.timeZone)
    mustCoalesce = true
    for index in apps.indices {
      if isRunning(index) { mergeDownloads(index) }
      releaseHeld(index)
      if isFirst { deliverEndedTransfers(index) }
      if isFirst { runForTokens(index) }
    }
    if isFirst { replanAll() }
  }

  /// The foreground app leaves first, while its archive can still be written.
  mutating func lockScreen() {
    guard lock == .unlocked else { return ignore(.alreadySo) }
    appBehindLock = foreground
    if let id = foreground { leave(id.number) }
    lock = .locked
    litUntil = now
    emit(.phone(.locked))
    stayAwake(until: now + limits.awakeLinger)
  }

  /// Merges what was written beside the database while locked.
  mutating func mergeDownloads(_ index: Int) {
    let files = apps[index].content.files
    guard lock == .unlocked, !files.isEmpty else { return }
    // Changes merged into an interface that is not restored would be lost with it.
    let changes = files.flatMap(\.changes)
    guard changes.isEmpty || !lacksItsState(index) else { return }
    apps[index].content.files = []
    apps[index].content.revision += 1
    apps[index].content.add(files.flatMap(\.items), limits: limits)
    for change in changes { apps[index].process.interface.apply(change) }
    emit(.app(AppID(index), .merged(files)))
  }

  // MARK: Conditions

  mutating func networkChanged(_ network: Network) {
    guard network != self.network else { return ignore(.alreadySo) }
    accountTransfers()
    self.network = network
    if network.isConnected { catchUp() }
    conditionsChanged()
  }

  mutating func chargerChanged(_ isConnected: Bool) {
    guard isConnected != isCharging else { return ignore(.alreadySo) }
    accountTransfers()
    isCharging = isConnected
    wake()
    conditionsChanged()
  }

  mutating func lowPowerSwitched(_ isOn: Bool) {
    guard isOn != isLowPower else { return ignore(.alreadySo) }
    isLowPower = isOn
    conditionsChanged()
  }

  private mutating func conditionsChanged() {
    mustReviewTransfers = true
    for index in apps.indices { releaseHeld(index) }
    replanAll()
  }

  // MARK: Costs

  /// Charges a callback, or a part of it in thousandths: energy, radio and data.
  @discardableResult
  mutating func charge(
    _ callback: RunningCallback, share: Int64, _ script: CallbackScript
  ) -> (energy: Int64, bytes: Int64, radio: Interval) {
    let index = callback.app.number
    // Without a network there was nothing to load it over.
    let bytes =
      network.isConnected ? saturatingProduct(max(0, script.bytes), share) / 1000 : 0
    var energy = saturatingProduct(max(0, script.energy), share) / 1000
    var time = Interval.zero
    if bytes > 0 {
      let (milliwatts, tail) = radioCost
      time = radio.use(from: callback.startedAt, until: now, tail: tail)
      energy = saturatingSum(energy, saturatingProduct(time.milliseconds, milliwatts) / 1000)
    }
    // The budgets, and what an app is known for, are of the background.
    if apps[index].state != .foreground {
      spendEnergy(energy, index)
      spendData(bytes, index)
      apps[index].behaviour.spent(energy: energy, bytes: bytes)
    }
    return (energy, bytes, time)
  }

  var radioCost: (milliwatts: Int64, tail: Interval) {
    network == .cellular
      ? (limits.cellularMilliwatts, limits.cellularTail) : (limits.wifiMilliwatts, limits.wifiTail)
  }

  /// Free while charging.
  mutating func spendEnergy(_ millijoules: Int64, _ index: Int) {
    guard !isCharging else { return }
    apps[index].energy.spend(millijoules, at: now)
    energy.spend(millijoules, at: now)
  }

  /// Only cellular data counts.
  mutating func spendData(_ bytes: Int64, _ index: Int) {
    guard network == .cellular else { return }
    apps[index].data.spend(bytes, at: now)
    data.spend(bytes, at: now)
  }

  /// A budget that lacks this app's average cost, and when it will have it.
  func shortage(_ index: Int) -> (isEnergy: Bool, until: Instant)? {
    let app = apps[index]
    if !isCharging {
      let need = max(1, app.behaviour.averageEnergy)
      if app.energy.level(at: now) < min(need, app.energy.perDay) {
        return (true, app.energy.moment(of: need, from: now))
      }
      if energy.level(at: now) < min(need, energy.perDay) {
        return (true, energy.moment(of: need, from: now))
      }
    }
    if network == .cellular {
      let need = max(1, app.behaviour.averageBytes)
      if app.data.level(at: now) < min(need, app.data.perDay) {
        return (false, app.data.moment(of: need, from: now))
      }
      if data.level(at: now) < min(need, data.perDay) {
        return (false, data.moment(of: need, from: now))
      }
    }
    return nil
  }
}

/// Background fetch (WWDC 2013 session 204).
extension Phone {
  mutating func replan(_ index: Int) {
    let plan = makePlan(index)
    guard plan != apps[index].plan else { return }
    apps[index].plan = plan
    emit(.fetch(plan))
  }

  mutating func replanAll() {
    for index in apps.indices { replan(index) }
  }

  private mutating func makePlan(_ index: Int) -> FetchPlan {
    let id = AppID(index)
    let earliest = earliestFetch(index)
    if let reason = fetchObstacle(index) {
      return FetchPlan(app: id, when: .onChange, earliest: earliest, reason: reason)
    }
    if let shortage = shortage(index) {
      return FetchPlan(
        app: id, when: .reconsider(shortage.until), earliest: earliest,
        reason: shortage.isEnergy ? .energyBudget : .dataBudget)
    }
    let localTime = now + limits.timeZone
    apps[index].usage.roll(to: localTime)
    usage.roll(to: localTime)
    let next = FetchPlanner(limits: limits, phone: usage).next(
      apps[index].usage, apps[index].behaviour, earliest: max(earliest, now),
      settledUntil: apps[index].usedUntil,
      lastActivity: apps[index].lastActivity)
    return FetchPlan(app: id, when: .fetch(next.at), earliest: earliest, reason: next.reason)
  }

  /// The app's interval and the phone's spacing after the last activity; longer while the last
  /// fetch is fresh and unused.
  private func earliestFetch(_ index: Int) -> Instant {
    let app = apps[index]
    let last = app.lastActivity
    // At least a second, so that time advances whatever the limits say.
    var spacing = max(app.behaviour.stretched(limits.fetchFloor), .seconds(1))
    if case .seconds(let seconds) = app.fetchInterval { spacing = max(spacing, .seconds(seconds)) }
    if app.lastFetch == last {
      spacing = max(spacing, app.behaviour.stretched(limits.fetchFreshness))
    }
    return last + spacing
  }

  private func fetchObstacle(_ index: Int) -> FetchReason? {
    let app = apps[index]
    if !app.definition.modes.contains(.fetch) { return .modeMissing }
    if app.fetchInterval == .never { return .intervalNever }
    if app.state == .uninstalled { return .notInstalled }
    if app.state == .forceQuit { return .forceQuit }
    if !isRefreshOn { return .refreshOffForAll }
    if !app.isRefreshOn { return .refreshOff }
    if lock == .beforeFirstUnlock { return .beforeFirstUnlock }
    if isLowPower { return .lowPower }
    if !network.isConnected { return .offline }
    if app.callbackCount > 0, isFetching(index) { return .running }
    return nil
  }

  private func isFetching(_ index: Int) -> Bool {
    callbacks.contains { $0.app.number == index && $0.kind == .fetch }
  }

  mutating func fetchesDue() {
    for index in apps.indices where apps[index].plan.dueAt <= now {
      switch apps[index].plan.when {
      case .fetch: startFetch(index)
      case .reconsider, .onChange: replan(index)
      }
    }
  }

  /// An awake phone also does the fetches that are due soon.
  mutating func coalesceFetches() {
    mustCoalesce = false
    let soon = now + limits.fetchCoalescing
    for index in apps.indices {
      guard case .fetch(let moment) = apps[index].plan.when, moment <= soon,
        apps[index].plan.earliest <= now
      else { continue }
      if moment > now, apps[index].state != .foreground {
        emit(.app(AppID(index), .fetchedEarly(planned: moment)))
      }
      startFetch(index)
    }
  }

  private mutating func startFetch(_ index: Int) {
    // A foreground app looks for news itself.
    if apps[index].state == .foreground {
      apps[index].lastActivity = now
      return replan(index)
    }
    // Silent changes, of a budget for instance, may have moved the fetch.
    let checked = makePlan(index)
    guard case .fetch = checked.when, checked.earliest <= now,
      apps[index].callbackCount < limits.callbacksPerApp
    else {
      if case .fetch = checked.when {
        // Too busy: try after the next interval.
        apps[index].lastActivity = now
      }
      return replan(index)
    }
    guard startCallback(index, .fetch) else {
      apps[index].lastActivity = now
      return replan(index)
    }
    replan(index)
  }

  mutating func setFetchTimer() {
    var earliest = Instant.never
    for index in apps.indices { earliest = min(earliest, apps[index].plan.dueAt) }
    timers.set(.fetches, at: max(earliest, now))
  }

  /// Learns the use, and settles the expected use it belongs to.
  mutating func recordUse(_ index: Int) {
    let localTime = now + limits.timeZone
    apps[index].usage.record(at: localTime)
    var bin = UsagePattern.bin(localTime)
    var count: Int64 = 0
    let habits = apps[index].usage.habits(at: localTime, after: limits.fetchLearningDays)
    while count < 4, habits.isUsed(bin) {
      count += 1
      bin = (bin + 1) % UsagePattern.binCount
    }
    let binStart = floorQuotient(localTime.milliseconds, UsagePattern.binMilliseconds)
    let end = (binStart + count) * UsagePattern.binMilliseconds
    apps[index].usedUntil = max(now, Instant(milliseconds: end) - limits.timeZone)
  }
}
