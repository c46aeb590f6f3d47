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
