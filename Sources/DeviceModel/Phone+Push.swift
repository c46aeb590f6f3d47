import Primitives

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
    guard apps.indices.contains(push.app.number) else {
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
    if push.isSilent, let until = heldUntil(index) {
      return hold(push, index, until: until, &effects)
    }
    // The keys that background work needs are not there yet. What can be seen is shown anyway.
    if lock == .beforeFirstUnlock {
      present(push, isContentReady: false, &effects)
      var silent = push
      (silent.alert, silent.badge, silent.hasSound) = (nil, nil, false)
      return hold(silent, index, until: .never, &effects)
    }
    deliver(push, index, &effects)
  }

  private mutating func deliver(
    _ push: RemotePush, _ index: Int, _ effects: inout [PhoneEffect]
  ) {
    if push.isSilent { takeSilent(index) }
    if !startCallback(index, .push(push), &effects) {
      present(push, isContentReady: false, &effects)
      report(push.id, .failed, &effects)
    }
  }

  /// Why the app may not be woken for this. A visible push is not discretionary: its user sees it
  /// and so can manage it.
  func refusal(of push: RemotePush, _ index: Int) -> LaunchRefusal? {
    let app = apps[index]
    if app.state == .forceQuit { return .forceQuit }
    if !app.definition.modes.contains(.remoteNotification) { return .modeMissing }
    if app.callbackCount >= limits.callbacksPerApp { return .tooManyCallbacks }
    if app.state == .foreground { return nil }
    if !isRefreshOn { return .refreshOffForAll }
    if !app.isRefreshOn { return .refreshOff }
    guard push.isSilent else { return nil }
    if isLowPower { return .lowPower }
    return shortage(index).map { $0.isEnergy ? .energyBudget : .dataBudget }
  }

  // MARK: The phone's own silent limit

  /// Until when the limit holds silent pushes of an app back; nil if it does not. In the foreground
  /// and on charger and Wi-Fi there is none.
  private func heldUntil(_ index: Int) -> Instant? {
    if apps[index].state == .foreground || isCharging && network == .wifi { return nil }
    let app = silentLimit(of: index).nextAllowed(apps[index].silentAllowance)
    let phone = silentLimit.nextAllowed(silentAllowance)
    let until = max(app, phone)
    return until > now ? until : nil
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
    _ push: RemotePush, _ index: Int, until: Instant, _ effects: inout [PhoneEffect]
  ) {
    if let older = apps[index].heldPush { report(older.id, .notLaunched(.replaced), &effects) }
    apps[index].heldPush = push
    if until != .never { timers.set(.heldPush(push.app), at: until) }
  }

  /// Looks at a held push again: the limit's time has come, or the phone is in use anyway, which
  /// suits its power as well as waiting would.
  mutating func releaseHeld(_ index: Int, _ effects: inout [PhoneEffect]) {
    guard let push = apps[index].heldPush, lock != .beforeFirstUnlock else { return }
    if let refusal = refusal(of: push, index) {
      apps[index].heldPush = nil
      return report(push.id, .notLaunched(refusal), &effects)
    }
    if lock != .unlocked, let until = heldUntil(index) {
      timers.set(.heldPush(push.app), at: until)
      return
    }
    apps[index].heldPush = nil
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
