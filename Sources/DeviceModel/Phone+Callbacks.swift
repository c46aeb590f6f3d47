import Primitives

/// The course of every background opportunity (WWDC 2013 session 204): run the app, call it with a
/// handler and limited time, let it work until it calls the handler; then snapshot, archive and
/// suspension. Or the app is killed.
extension Phone {
  /// Returns false if the app crashed while launching.
  @discardableResult
  mutating func startCallback(_ index: Int, _ kind: RunningCallback.Kind) -> Bool {
    wake()
    let cause = kind.cause
    let delay = bringToRun(index, cause)
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
    emit(.callback(id, app, .began(cause)))
    timers.set(.workEnds(id), at: callback.workEndsAt)
    if let deadline = callback.deadline { timers.set(.deadline(id), at: deadline) }
    if case .push(let push) = kind, !push.isSilent {
      timers.set(.bannerDue(id), at: now + limits.bannerWait)
    }
    return true
  }

  private mutating func duration(_ kind: RunningCallback.Kind, _ script: AppScript) -> Interval {
    switch kind {
    case .authentication:
      switch script.onAuthentication {
      case .provides(let time), .cancels(let time), .wrong(let time): return max(time, .zero)
      }
    case .push, .fetch, .transfers, .region, .document, .activity:
      let script = script.callback(kind)
      let jitter = random.below(saturatingSum(max(0, script.workJitter.milliseconds), 1))
      return max(script.work, .zero) + .milliseconds(jitter)
    }
  }

  mutating func workEnded(_ id: CallbackID) {
    guard let place = callbacks.firstIndex(where: { $0.id == id }),
      callbacks[place].phase == .working
    else { return }
    let callback = callbacks[place]
    let index = callback.app.number
    if case .authentication(let transfer) = callback.kind {
      answer(transfer, apps[index].definition.script.onAuthentication)
      return finishWork(place, .noData, .afterWork)
    }
    let script = apps[index].definition.script.callback(callback.kind)
    let (energy, bytes, radio) = charge(callback, share: 1000, script)
    emit(.app(callback.app, .spent(energy: energy, bytes: bytes, radio: radio)))
    // Before it is written: what is written may be merged at once.
    let isBeside = writesBeside(script, index)
    let outcome = result(of: script, callback, isBeside: isBeside)
    if outcome != .failed { followUp(script, index, outcome, isBeside: isBeside) }
    guard outcome == .newData else { return finishWork(place, outcome, script.handler) }
    if case .document(let id) = callback.kind { provide(id) }
    let hasUsed = (script.uses ?? []).map { begin($0, by: callback.app, for: id) }
    guard let place = callbacks.firstIndex(where: { $0.id == id }) else { return }
    let result: CallbackOutcome = hasUsed.allSatisfy(\.self) ? .newData : .failed
    callbacks[place].phase = .worked(result)
    if !uses.values.contains(where: { $0.callback == id }) {
      finishWork(place, result, script.handler)
    }
  }

  /// Finishes the callback's work with its last use. A use that was given up counts as failed.
  mutating func useEnded(_ id: CallbackID?, isGivenUp: Bool) {
    guard let place = callbacks.firstIndex(where: { $0.id == id }),
      case .worked(let outcome) = callbacks[place].phase
    else { return }
    let result = isGivenUp ? .failed : outcome
    callbacks[place].phase = .worked(result)
    guard !uses.values.contains(where: { $0.callback == id }) else { return }
    let script = apps[callbacks[place].app.number].definition.script
    finishWork(place, result, script.callback(callbacks[place].kind).handler)
  }

  /// The outcome, given the network, keys and files available now (Apple, "Encrypting Your App's
  /// Files").
  private mutating func result(
    of script: CallbackScript, _ callback: RunningCallback, isBeside: Bool
  ) -> CallbackOutcome {
    let index = callback.app.number
    let isLimited = script.hasLimitedCredential == true && lock == .locked
    if isLimited, !script.reads.isReadable(lock) {
      emit(.app(AppID(index), .limitedCredential))
    } else if !script.reads.isReadable(lock) {
      emit(.app(AppID(index), .dataUnavailable(script.reads)))
      return .failed
    }
    let outcome: CallbackOutcome =
      switch script.outcome {
      case .always(let outcome): outcome
      case .newDataPercent(let percent): random.below(100) < percent ? .newData : .noData
      }
    guard outcome == .newData else { return outcome }
    if script.bytes > 0, !network.isConnected, callback.loads { return .failed }
    guard script.writes.isWritable(lock) else {
      emit(.app(AppID(index), .dataUnavailable(script.writes)))
      return .failed
    }
    apps[index].content.updatedAt = now
    let items = script.brings ?? []
    if isBeside {
      let file = ContentFile(items: items, changes: script.changes)
      apps[index].content.add(file, limits: limits)
    } else {
      apps[index].content.revision += 1
      apps[index].content.add(items, limits: limits)
    }
    if !items.isEmpty { emit(.app(AppID(index), .wrote(items, isBeside: isBeside))) }
    return outcome
  }

  /// A new file can be written while locked; the existing database cannot. What changes an
  /// interface that is not restored waits, too.
  private func writesBeside(_ script: CallbackScript, _ index: Int) -> Bool {
    script.writes == .unlessOpen && lock != .unlocked
      || !script.changes.isEmpty && lacksItsState(index)
  }

  private mutating func followUp(
    _ script: CallbackScript, _ index: Int, _ outcome: CallbackOutcome, isBeside: Bool
  ) {
    if let interval = script.setsFetchInterval {
      apps[index].fetchInterval = interval
      replan(index)
    }
    guard outcome == .newData else { return }
    if !isBeside {
      for change in script.changes { apps[index].process.interface.apply(change) }
    }
    for request in script.transfers { queue(request, of: index) }
    if script.ignoresNextSnapshot { apps[index].ignoresNextSnapshot = true }
    if let notification = script.notification { post(notification, index) }
    if let task = script.task, apps[index].state == .background {
      begin(task, of: index, limits.callbackTaskTime)
    }
  }

  /// Its app has what the push tells of, whether or not it has said so.
  func hasContent(_ callback: RunningCallback) -> Bool {
    callback.phase == .worked(.newData)
      && !uses.values.contains { $0.callback == callback.id }
  }

  private mutating func finishWork(_ place: Int, _ outcome: CallbackOutcome, _ call: HandlerCall) {
    let id = callbacks[place].id
    callbacks[place].phase = .worked(outcome)
    if hasContent(callbacks[place]), case .push(let push) = callbacks[place].kind {
      banners.contentIsReady(of: push.id)
    }
    switch call {
    case .afterWork: handlerDue(id)
    case .late(let lapse): timers.set(.handlerCalled(id), at: now + max(lapse, .zero))
    case .never: break
    }
  }

  /// Calls the callback's handler, or the one that the app has kept.
  mutating func handlerDue(_ id: CallbackID) {
    guard let place = callbacks.firstIndex(where: { $0.id == id }),
      case .worked(let outcome) = callbacks[place].phase
    else { return }
    let index = callbacks[place].app.number
    switch apps[index].definition.script.handlers {
    case .eachItsOwn: complete(place, outcome)
    case .oneProperty:
      guard let kept = apps[index].process.keptHandler else { return }
      apps[index].process.keptHandler = nil
      if let place = callbacks.firstIndex(where: { $0.id == kept }) {
        complete(place, outcome)
      }
    }
  }

  private mutating func complete(_ place: Int, _ outcome: CallbackOutcome) {
    let callback = callbacks.remove(at: place)
    let index = callback.app.number
    apps[index].callbackCount -= 1
    emit(.callback(callback.id, callback.app, .completed(outcome)))
    if apps[index].state != .foreground, !callback.isQuestion {
      let before = apps[index].behaviour.score
      apps[index].behaviour.completed(
        outcome, taking: now - callback.startedAt, limit: limits.callbackTime)
      tellStanding(index, before)
    }
    if apps[index].state == .background {
      saveSnapshot(index, for: callback.id)
      saveState(index)
    }
    close(callback, PushOutcome(outcome), hasHeard: true)
    deliverEndedTransfers(index)
    suspendIfIdle(index)
  }

  /// Runs however the callback ended; `hasHeard` if not before the end of the app's work.
  private mutating func close(
    _ callback: RunningCallback, _ outcome: PushOutcome, hasHeard: Bool
  ) {
    let index = callback.app.number
    switch callback.kind {
    case .push(let push):
      present(push, isContentReady: hasContent(callback))
      report(push.id, outcome)
    case .fetch:
      apps[index].lastFetch = now
      apps[index].lastActivity = now
      replan(index)
    case .document(let id):
      // However the call ended: without a download under way, nobody waits for one.
      if !isOnItsWay(id) { contentSettled(id) }
    case .activity:
      // A failed app has not come to read it.
      if outcome != .failed { handTokens(index) }
    case .transfers:
      service.told(by: callback.id, hasHeard: hasHeard)
      mustReviewTransfers = true
    case .authentication(let transfer): leftUnanswered(transfer)
    case .region: break
    }
  }

  mutating func abandonCallbacks(of index: Int, _ reason: TerminationReason) {
    guard apps[index].callbackCount > 0 else { return }
    let app = AppID(index)
    let lost = callbacks.filter { $0.app == app }
    callbacks.removeAll { $0.app == app }
    apps[index].callbackCount = 0
    for var callback in lost {
      // Of an app that goes nothing is shown.
      if reason == .uninstalled, case .push(let push) = callback.kind {
        callback.kind = .push(push.shown)
      }
      emit(.callback(callback.id, app, .abandoned(reason)))
      close(callback, .failed, hasHeard: callback.phase != .working)
    }
  }

  /// Charges the cost so far of a callback that is cut off.
  mutating func chargeBegunPart(of callback: RunningCallback) {
    guard callback.phase == .working, callback.workEndsAt > callback.startedAt else { return }
    let total = (callback.workEndsAt - callback.startedAt).milliseconds
    let passed = max(0, min(total, (now - callback.startedAt).milliseconds))
    let script = apps[callback.app.number].definition.script.callback(callback.kind)
    charge(callback, share: saturatingProduct(passed, 1000) / total, script)
  }

  /// Kills an app that did not call its handler in time.
  mutating func deadlinePassed(_ id: CallbackID) {
    guard let place = callbacks.firstIndex(where: { $0.id == id }),
      let deadline = callbacks[place].deadline, deadline <= now
    else { return }
    let index = callbacks[place].app.number
    if apps[index].state == .foreground {
      callbacks[place].deadline = nil
      return
    }
    killed(index)
    terminate(index, .handlerNotCalled)
  }

  /// An app that leaves the foreground gets its full time again for open callbacks.
  mutating func rearmDeadlines(_ index: Int) {
    guard apps[index].callbackCount > 0 else { return }
    for place in callbacks.indices where callbacks[place].app.number == index {
      callbacks[place].deadline = now + limits.callbackTime
      timers.set(.deadline(callbacks[place].id), at: now + limits.callbackTime)
    }
  }
}

extension RunningCallback {
  fileprivate var isQuestion: Bool {
    if case .authentication = kind { true } else { false }
  }

  /// Its news come over the network meanwhile: they are not there already, nor queued.
  fileprivate var loads: Bool {
    switch kind {
    case .push, .fetch, .region, .activity: true
    case .transfers, .authentication, .document: false
    }
  }
}

extension RunningCallback.Kind {
  var cause: RunCause {
    switch self {
    case .push(let push): .push(push.id)
    case .fetch: .fetch
    case .transfers: .transfers
    case .authentication: .authentication
    case .region: .region
    case .document: .document
    case .activity: .activity
    }
  }
}

extension AppScript {
  /// Answering a challenge costs nothing worth counting.
  func callback(_ kind: RunningCallback.Kind) -> CallbackScript {
    switch kind {
    case .push: return onPush
    case .fetch: return onFetch
    case .transfers: return onTransfers
    case .region: return onRegion ?? CallbackScript()
    case .document: return onDocument ?? CallbackScript()
    case .activity:
      if let onActivity { return onActivity }
      var script = CallbackScript()
      script.outcome = .always(.noData)
      return script
    case .authentication:
      var script = CallbackScript()
      script.bytes = 0
      script.energy = 0
      return script
    }
  }
}
