import Primitives

/// The pattern that every background opportunity follows (WWDC 2013 session 204): the app is run,
/// called with a handler and limited time, does its work, calls the handler; then come snapshot,
/// archive, suspension. Or it is killed.
extension Phone {
  /// Calls an app that may be called. False if it crashed on the way.
  @discardableResult
  mutating func startCallback(
    _ index: Int, _ kind: RunningCallback.Kind, _ effects: inout [PhoneEffect]
  ) -> Bool {
    wake(&effects)
    let cause = kind.cause
    let delay = bringToRun(index, cause, &effects)
    guard apps[index].state.hasProcess else { return false }
    let id = CallbackID(number: callbackNumbering.next())
    let app = AppID(index)
    let work = duration(kind, apps[index].definition.script)
    let isInForeground = apps[index].state == .foreground
    let callback = RunningCallback(
      id: id, app: app, kind: kind, startedAt: now, workEndsAt: now + delay + work,
      deadline: isInForeground ? nil : now + limits.callbackTime)
    callbacks.append(callback)
    apps[index].callbackCount += 1
    if apps[index].definition.script.handlers == .oneProperty {
      apps[index].process.keptHandler = id
    }
    emit(.callback(id, app, .began(cause)), &effects)
    timers.set(.workEnds(id), at: callback.workEndsAt)
    if let deadline = callback.deadline { timers.set(.deadline(id), at: deadline) }
    return true
  }

  private mutating func duration(_ kind: RunningCallback.Kind, _ script: AppScript) -> Interval {
    switch kind {
    case .authentication:
      switch script.onAuthentication {
      case .provides(let time), .cancels(let time), .wrong(let time): return max(time, .zero)
      }
    case .push, .fetch, .transfers, .region:
      let script = script.callback(kind)
      let jitter = random.below(saturatingSum(max(0, script.workJitter.milliseconds), 1))
      return max(script.work, .zero) + .milliseconds(jitter)
    }
  }

  /// The app's work is done.
  mutating func workEnded(_ id: CallbackID, _ effects: inout [PhoneEffect]) {
    guard let place = callbacks.firstIndex(where: { $0.id == id }),
      callbacks[place].phase == .working
    else { return }
    let callback = callbacks[place]
    let index = callback.app.number
    if case .authentication(let transfer) = callback.kind {
      answer(transfer, apps[index].definition.script.onAuthentication, &effects)
      return finishWork(place, .noData, .afterWork, &effects)
    }
    let script = apps[index].definition.script.callback(callback.kind)
    let cost = charge(callback, share: 1000, script)
    emit(.app(callback.app, .spent(cost)), &effects)
    let outcome = result(of: script, index, &effects)
    if outcome != .failed { followUp(script, index, outcome, &effects) }
    finishWork(place, outcome, script.handler, &effects)
  }

  /// What comes of the work, given which keys and files can be had now (Apple, "Encrypting Your
  /// App's Files").
  private mutating func result(
    of script: CallbackScript, _ index: Int, _ effects: inout [PhoneEffect]
  ) -> CallbackOutcome {
    let isLimited = script.hasLimitedCredential == true && lock == .locked
    if isLimited, !script.reads.isReadable(lock) {
      emit(.app(AppID(index), .limitedCredential), &effects)
    } else if !script.reads.isReadable(lock) {
      emit(.app(AppID(index), .dataUnavailable(script.reads)), &effects)
      return .failed
    }
    let outcome: CallbackOutcome =
      switch script.outcome {
      case .always(let outcome): outcome
      case .newDataPercent(let percent): random.below(100) < percent ? .newData : .noData
      }
    guard outcome == .newData else { return outcome }
    guard script.writes.isWritable(lock) else {
      emit(.app(AppID(index), .dataUnavailable(script.writes)), &effects)
      return .failed
    }
    apps[index].content.updatedAt = now
    if script.writes == .unlessOpen && lock != .unlocked {
      apps[index].content.unmerged += 1
    } else {
      apps[index].content.revision += 1
    }
    return outcome
  }

  private mutating func followUp(
    _ script: CallbackScript, _ index: Int, _ outcome: CallbackOutcome,
    _ effects: inout [PhoneEffect]
  ) {
    if let interval = script.setsFetchInterval {
      apps[index].fetchInterval = interval
      replan(index, &effects)
    }
    guard outcome == .newData else { return }
    for change in script.changes { apps[index].process.interface.apply(change) }
    for request in script.transfers { queue(request, of: index, &effects) }
    if script.ignoresNextSnapshot { apps[index].ignoresNextSnapshot = true }
    if let notification = script.notification { post(notification, index, &effects) }
    if let task = script.task, apps[index].state == .background {
      begin(task, of: index, limits.callbackTaskTime, &effects)
    }
  }

  private mutating func finishWork(
    _ place: Int, _ outcome: CallbackOutcome, _ call: HandlerCall, _ effects: inout [PhoneEffect]
  ) {
    let id = callbacks[place].id
    callbacks[place].phase = .worked(outcome)
    switch call {
    case .afterWork: handlerDue(id, &effects)
    case .late(let lapse): timers.set(.handlerCalled(id), at: now + max(lapse, .zero))
    case .never: break
    }
  }

  /// The app comes to the place where it calls a handler: its own, or the one it has kept.
  mutating func handlerDue(_ id: CallbackID, _ effects: inout [PhoneEffect]) {
    guard let place = callbacks.firstIndex(where: { $0.id == id }),
      case .worked(let outcome) = callbacks[place].phase
    else { return }
    let index = callbacks[place].app.number
    switch apps[index].definition.script.handlers {
    case .eachItsOwn:
      complete(place, outcome, &effects)
    case .oneProperty:
      guard let kept = apps[index].process.keptHandler else { return }
      apps[index].process.keptHandler = nil
      if let place = callbacks.firstIndex(where: { $0.id == kept }) {
        complete(place, outcome, &effects)
      }
    }
  }

  /// A handler was called.
  private mutating func complete(
    _ place: Int, _ outcome: CallbackOutcome, _ effects: inout [PhoneEffect]
  ) {
    let callback = callbacks.remove(at: place)
    let index = callback.app.number
    apps[index].callbackCount -= 1
    emit(.callback(callback.id, callback.app, .completed(outcome)), &effects)
    let before = apps[index].behaviour.score
    apps[index].behaviour.completed(
      outcome, taking: now - callback.startedAt, limit: limits.callbackTime)
    tellStanding(index, before, &effects)
    if apps[index].state == .background {
      takeSnapshot(index, for: callback.id, &effects)
      saveState(index, &effects)
    }
    close(callback, PushOutcome(outcome), &effects)
    suspendIfIdle(index, &effects)
  }

  /// What waits for the end of a callback, however it ended.
  private mutating func close(
    _ callback: RunningCallback, _ outcome: PushOutcome, _ effects: inout [PhoneEffect]
  ) {
    let index = callback.app.number
    switch callback.kind {
    case .push(let push):
      present(push, isContentReady: outcome == .newData, &effects)
      report(push.id, outcome, &effects)
    case .fetch:
      apps[index].lastFetch = now
      apps[index].lastActivity = now
      replan(index, &effects)
    case .authentication, .transfers, .region:
      // A server that got no answer is asked about again when the app is next told of transfers.
      break
    }
  }

  /// The process is gone; its callbacks with it.
  mutating func abandonCallbacks(
    of index: Int, _ reason: TerminationReason, _ effects: inout [PhoneEffect]
  ) {
    guard apps[index].callbackCount > 0 else { return }
    let app = AppID(index)
    let lost = callbacks.filter { $0.app == app }
    callbacks.removeAll { $0.app == app }
    apps[index].callbackCount = 0
    for callback in lost {
      chargeBegunPart(of: callback)
      emit(.callback(callback.id, app, .abandoned(reason)), &effects)
      close(callback, .failed, &effects)
    }
  }

  /// Charges what a callback that is cut off has cost so far.
  mutating func chargeBegunPart(of callback: RunningCallback) {
    guard callback.phase == .working, callback.workEndsAt > callback.startedAt else { return }
    let total = (callback.workEndsAt - callback.startedAt).milliseconds
    let passed = max(0, min(total, (now - callback.startedAt).milliseconds))
    let script = apps[callback.app.number].definition.script.callback(callback.kind)
    charge(callback, share: saturatingProduct(passed, 1000) / total, script)
  }

  /// No call of the handler in time: the app is killed, and that counts against it.
  mutating func deadlinePassed(_ id: CallbackID, _ effects: inout [PhoneEffect]) {
    guard let place = callbacks.firstIndex(where: { $0.id == id }),
      let deadline = callbacks[place].deadline, deadline <= now
    else { return }
    let index = callbacks[place].app.number
    if apps[index].state == .foreground {
      callbacks[place].deadline = nil
      return
    }
    killed(index, &effects)
    terminate(index, .handlerNotCalled, &effects)
  }

  /// An app that leaves the foreground has its full time again for what it still owes.
  mutating func rearmDeadlines(_ index: Int) {
    guard apps[index].callbackCount > 0 else { return }
    for place in callbacks.indices where callbacks[place].app.number == index {
      callbacks[place].deadline = now + limits.callbackTime
      timers.set(.deadline(callbacks[place].id), at: now + limits.callbackTime)
    }
  }
}

extension RunningCallback.Kind {
  /// Why the app runs for it.
  var cause: RunCause {
    switch self {
    case .push(let push): .push(push.id)
    case .fetch: .fetch
    case .transfers: .transfers
    case .authentication: .authentication
    case .region: .region
    }
  }
}

extension AppScript {
  /// What it does in a callback. Answers to servers cost nothing worth counting.
  func callback(_ kind: RunningCallback.Kind) -> CallbackScript {
    switch kind {
    case .push: return onPush
    case .fetch: return onFetch
    case .transfers: return onTransfers
    case .region: return onRegion ?? CallbackScript()
    case .authentication:
      var script = CallbackScript()
      script.bytes = 0
      script.energy = 0
      return script
    }
  }
}

/// Remote notifications (WWDC 2013 session 204): what is shown, who is woken, who is not and why.
extension Phone {
  mutating func received(_ push: RemotePush, _ effects: inout [PhoneEffect]) {
    wake(&effects)
    switch recentPushes[push.id] {
    case .open?: return ignore(.duplicatePush, &effects)
    case .reported(let outcome)?:
      // The relay has not heard the report; the push itself is dropped.
      return emit(.report(push.id, outcome), &effects)
    case nil: recentPushes.add(push.id)
    }
    guard apps.indices.contains(push.app.number), apps[push.app.number].state != .uninstalled
    else {
      return report(push.id, .notLaunched(.notInstalled), &effects)
    }
    let index = push.app.number
    guard push.wakesApp else {
      present(push, isContentReady: false, &effects)
      return report(push.id, nil, &effects)
    }
    if let refusal = refusal(of: push, index) {
      present(push, isContentReady: false, &effects)
      return report(push.id, .notLaunched(refusal), &effects)
    }
    if push.isSilent, let wait = wait(of: index) {
      return hold(push, index, wait, &effects)
    }
    // The keys that background work needs are not there yet. What can be seen is shown anyway.
    if lock == .beforeFirstUnlock {
      present(push, isContentReady: false, &effects)
      var silent = push
      (silent.alert, silent.badge, silent.hasSound) = (nil, nil, false)
      return hold(silent, index, (.firstUnlock, .never), &effects)
    }
    deliver(push, index, &effects)
  }

  private mutating func deliver(
    _ push: RemotePush, _ index: Int, _ effects: inout [PhoneEffect]
  ) {
    if push.isSilent { takeSilent(index) }
    if isNewsstand(index), apps[index].state != .foreground { apps[index].lastIssue = now }
    if !startCallback(index, .push(push), &effects) {
      present(push, isContentReady: false, &effects)
      report(push.id, .failed, &effects)
    }
  }

  /// Why the app may not be woken for this. A visible push is not discretionary: its user sees it
  /// and so can manage it.
  func refusal(of push: RemotePush, _ index: Int) -> LaunchRefusal? {
    let isNewsstand = isNewsstand(index)
    if let refusal = refusal(of: isNewsstand ? .newsstand : .remoteNotification, index) {
      return refusal
    }
    guard apps[index].state != .foreground else { return nil }
    if isNewsstand, let refusal = newsstandRefusal(index) { return refusal }
    return push.isSilent ? scarcityRefusal(index) : nil
  }

  /// Whether it is woken as newsstand's apps were, and not as others are.
  private func isNewsstand(_ index: Int) -> Bool {
    let modes = apps[index].definition.modes
    return modes.contains(.newsstand) && !modes.contains(.remoteNotification)
  }

  // MARK: The phone's own silent limit

  /// What holds a silent push back, and until when.
  private typealias Wait = (limit: PushLimit, until: Instant)

  /// Which limit holds silent pushes of an app back; nil if none does. In the foreground and on
  /// charger and Wi-Fi there is none.
  private func wait(of index: Int) -> Wait? {
    if apps[index].state == .foreground || isCharging && network == .wifi { return nil }
    let app = silentLimit(of: index).nextAllowed(apps[index].silentAllowance)
    let phone = silentLimit.nextAllowed(silentAllowance)
    guard max(app, phone) > now else { return nil }
    return app >= phone ? (.app, app) : (.phone, phone)
  }

  private func silentLimit(of index: Int) -> RateLimit {
    RateLimit(
      interval: apps[index].behaviour.stretched(limits.silentInterval), burst: limits.silentBurst)
  }

  private var silentLimit: RateLimit {
    RateLimit(interval: limits.phoneSilentInterval, burst: limits.phoneSilentBurst)
  }

  private mutating func takeSilent(_ index: Int) {
    if apps[index].state == .foreground || isCharging && network == .wifi { return }
    silentLimit(of: index).take(&apps[index].silentAllowance, at: now)
    silentLimit.take(&silentAllowance, at: now)
  }

  /// Keeps the newest silent push of an app for a better moment.
  private mutating func hold(
    _ push: RemotePush, _ index: Int, _ wait: Wait, _ effects: inout [PhoneEffect]
  ) {
    if let older = apps[index].heldPush { report(older.id, .notLaunched(.replaced), &effects) }
    apps[index].heldPush = push
    letWait(push, wait, &effects)
  }

  private mutating func letWait(
    _ push: RemotePush, _ wait: Wait, _ effects: inout [PhoneEffect]
  ) {
    let until = wait.until == .never ? nil : wait.until
    if let until { timers.set(.heldPush(push.app), at: until) }
    emit(.decision(push.app, push.id, .waits(wait.limit, until: until)), &effects)
  }

  /// Looks at a held push again: the limit's time has come, or the phone is in use anyway, which
  /// suits its power as well as waiting would.
  mutating func releaseHeld(_ index: Int, _ effects: inout [PhoneEffect]) {
    guard let push = apps[index].heldPush, lock != .beforeFirstUnlock else { return }
    if let refusal = refusal(of: push, index) {
      apps[index].heldPush = nil
      return report(push.id, .notLaunched(refusal), &effects)
    }
    if lock != .unlocked, let wait = wait(of: index) {
      return letWait(push, wait, &effects)
    }
    apps[index].heldPush = nil
    emit(.decision(push.app, push.id, .runs), &effects)
    deliver(push, index, &effects)
  }

  // MARK: What the user perceives

  /// Shows what a push brings to see; in front of its app there is nothing to announce.
  mutating func present(
    _ push: RemotePush, isContentReady: Bool, _ effects: inout [PhoneEffect]
  ) {
    let index = push.app.number
    if let badge = push.badge, badge != apps[index].badge {
      apps[index].badge = badge
      emit(.badge(push.app, badge), &effects)
    }
    guard foreground != push.app else { return }
    if let alert = push.alert {
      show(
        Banner(
          id: banners.nextID(), app: push.app, push: push.id, text: alert,
          collapseID: push.collapseID, at: now, isContentReady: isContentReady), &effects)
    }
    if push.hasSound { emit(.sound(push.app), &effects) }
  }

  /// A notification of the app's own.
  mutating func post(
    _ notification: LocalNotification, _ index: Int, _ effects: inout [PhoneEffect]
  ) {
    let app = AppID(index)
    if let badge = notification.badge, badge != apps[index].badge {
      apps[index].badge = badge
      emit(.badge(app, badge), &effects)
    }
    guard foreground != app else { return }
    show(
      Banner(
        id: banners.nextID(), app: app, push: nil, text: notification.text, collapseID: "",
        at: now, isContentReady: true), &effects)
    if notification.hasSound { emit(.sound(app), &effects) }
  }

  private mutating func show(_ banner: Banner, _ effects: inout [PhoneEffect]) {
    wake(&effects)
    banners.show(banner)
    litUntil = max(litUntil, now + limits.litTime)
    // So that the report of the dark screen comes in time.
    stayAwake(until: litUntil)
    emit(.banner(banner), &effects)
  }

  /// The user slides a banner: the phone is unlocked, the app opened; what the banner announced is
  /// there, or has to be loaded now.
  mutating func bannerOpened(_ id: BannerID, _ effects: inout [PhoneEffect]) {
    guard let banner = banners.take(id) else { return ignore(.unknownBanner, &effects) }
    if lock != .unlocked { unlock(&effects) }
    open(banner.app.number, waitsForContent: !banner.isContentReady, &effects)
    if banner.isContentReady, foreground == banner.app {
      emit(.app(banner.app, .contentShown(waited: .zero)), &effects)
    }
  }

  /// The app in the foreground has loaded what the banner announced.
  mutating func contentArrived(_ index: Int, _ effects: inout [PhoneEffect]) {
    guard let wait = apps[index].contentWait, wait.until <= now else { return }
    apps[index].contentWait = nil
    guard network.isConnected else { return }
    apps[index].content.updatedAt = now
    apps[index].content.revision += 1
    emit(.app(AppID(index), .contentShown(waited: now - wait.since)), &effects)
  }

  /// Tells the relay what became of a push; once.
  mutating func report(_ id: PushID, _ outcome: PushOutcome?, _ effects: inout [PhoneEffect]) {
    recentPushes.report(id, outcome)
    emit(.report(id, outcome), &effects)
  }
}
