package import Primitives

/// Remote notifications (WWDC 2013 session 204): what is shown, and which apps are woken.
extension Phone {
  /// - Parameter rides: the relay sent it together with something else.
  mutating func received(_ push: RemotePush, rides: Bool) {
    if !push.isQuiet { wake() }
    switch recentPushes[push.id] {
    case .open?: return ignore(.duplicatePush)
    case .reported(let outcome)?:
      // The relay missed the report; the push itself is a duplicate.
      return emit(.report(push.id, outcome))
    case nil: recentPushes.add(push.id, atMost: limits.recentPushes)
    }
    guard apps.indices.contains(push.app.number), apps[push.app.number].state != .uninstalled else {
      return report(push.id, .notLaunched(.notInstalled))
    }
    guard push.wakesApp || push.handler != nil else {
      present(push, isContentReady: false)
      return report(push.id, nil)
    }
    if let refusal = refusal(of: push) {
      present(push, isContentReady: false)
      return report(push.id, .notLaunched(refusal))
    }
    if push.isSilent, let newer = apps[push.app.number].heldPush, push.isOlder(than: newer) {
      return report(push.id, .replaced(by: newer.id))
    }
    if let wait = wait(of: push, rides: rides) { return hold(push, wait) }
    deliver(push, isFree: isFree(rides: rides), isShown: false)
  }

  private mutating func deliver(_ push: RemotePush, isFree: Bool, isShown: Bool) {
    let index = push.app.number
    if let handler = push.handler { return handle(push, handler) }
    if push.isSilent {
      replaceHeld(by: push)
      if !isFree { spendSilentAllowance(index) }
    }
    if isNewsstand(index), apps[index].state != .foreground { apps[index].lastIssue = now }
    let push = isShown ? push.shown : push
    if !startCallback(index, .push(push)) {
      present(push, isContentReady: false)
      report(push.id, .failed)
    }
  }

  /// Permanent reasons not to wake the app. Low power only delays.
  private func refusal(of push: RemotePush) -> LaunchRefusal? {
    if push.hasExpired(at: now) { return .expired }
    if let handler = push.handler { return refusal(of: push, handler) }
    let index = push.app.number
    let isNewsstand = isNewsstand(index)
    let refusal = refusal(of: isNewsstand ? .newsstand : .remoteNotification, index)
    // For a silent push a busy app means delay.
    if let refusal, !(push.isSilent && refusal == .tooManyCallbacks) { return refusal }
    guard isNewsstand, apps[index].state != .foreground else { return nil }
    return newsstandRefusal(index)
  }

  /// Woken by the rules of newsstand apps.
  private func isNewsstand(_ index: Int) -> Bool {
    let modes = apps[index].definition.modes
    return modes.contains(.newsstand) && !modes.contains(.remoteNotification)
  }

  // MARK: What waits

  private typealias Wait = (limit: PushLimit, until: Instant)

  /// Nil for no wait. A visible push waits only to be allowed to wake its app: the user sees it.
  private func wait(of push: RemotePush, rides: Bool) -> Wait? {
    let index = push.app.number
    if lock == .beforeFirstUnlock { return (.firstUnlock, .never) }
    if push.isQuiet, wakefulness == .asleep { return (.nextWake, .never) }
    guard push.isSilent else { return nil }
    // All running callbacks have ended by then.
    if apps[index].callbackCount >= limits.callbacksPerApp {
      return (.app, now + limits.callbackTime)
    }
    guard apps[index].state != .foreground else { return nil }
    if isLowPower { return (.lowPower, .never) }
    if let shortage = shortage(index) {
      return (shortage.isEnergy ? .energyBudget : .dataBudget, shortage.until)
    }
    if isFree(rides: rides) { return nil }
    let app = RateLimit(interval: limits.silentInterval, burst: limits.silentBurst)
      .nextAllowed(apps[index].silentAllowance)
    let phone = silentLimit.nextAllowed(silentAllowance)
    guard max(app, phone) > now else { return nil }
    return app >= phone ? (.app, app) : (.phone, phone)
  }

  /// When a silent push may next wake the app, as long as the phone is locked and on battery.
  package func nextSilent(of app: AppID) -> Instant {
    let limit = RateLimit(interval: limits.silentInterval, burst: limits.silentBurst)
    return max(
      limit.nextAllowed(apps[app.number].silentAllowance), silentLimit.nextAllowed(silentAllowance))
  }

  /// Waking is nearly free when radio and processor are already awake, or on mains power and Wi-Fi.
  private func isFree(rides: Bool) -> Bool {
    rides || lock == .unlocked || isCharging && network == .wifi
  }

  private var silentLimit: RateLimit {
    RateLimit(interval: limits.phoneSilentInterval, burst: limits.phoneSilentBurst)
  }

  /// The app's score changes the cost of one push, not the burst: a burst of a well-behaved app
  /// never waits where another's does not.
  private mutating func spendSilentAllowance(_ index: Int) {
    let interval = apps[index].behaviour.stretched(limits.silentInterval)
    RateLimit(interval: interval, burst: limits.silentBurst)
      .consume(&apps[index].silentAllowance, at: now)
    silentLimit.consume(&silentAllowance, at: now)
  }

  /// Holds the newest silent push, and all visible ones, which are shown at once; none of those
  /// that are tried once.
  private mutating func hold(_ push: RemotePush, _ wait: Wait) {
    let index = push.app.number
    if push.isOnce == true {
      if !push.isSilent, push.handler == nil { present(push, isContentReady: false) }
      return report(push.id, .notLaunched(.expired))
    }
    if push.isSilent || push.handler != nil {
      replaceHeld(by: push)
      apps[index].heldPush = push
    } else {
      present(push, isContentReady: false)
      let others = apps[index].shownPushes ?? []
      guard others.count < limits.callbacksPerApp else {
        return report(push.id, .notLaunched(.tooManyCallbacks))
      }
      apps[index].shownPushes = others + [push]
    }
    setExpiryTimer(push)
    letWait(push, wait)
  }

  mutating func replaceHeld(by push: RemotePush) {
    guard let older = apps[push.app.number].heldPush else { return }
    apps[push.app.number].heldPush = nil
    report(older.id, .replaced(by: push.id))
  }

  private mutating func letWait(_ push: RemotePush, _ wait: Wait) {
    let until = wait.until == .never ? nil : wait.until
    if let until { timers.set(.heldPush(push.app), at: until) }
    emit(.decision(push.app, push.id, .waits(wait.limit, until: until)))
  }

  /// Checks held pushes again after a timer or a change.
  mutating func releaseHeld(_ index: Int) {
    dropExpired(index)
    guard lock != .beforeFirstUnlock else { return }
    for push in apps[index].shownPushes ?? [] { release(push) }
    apps[index].shownPushes = nil
    guard let push = apps[index].heldPush else { return }
    if let wait = wait(of: push, rides: false) { return letWait(push, wait) }
    apps[index].heldPush = nil
    release(push)
  }

  /// Something has woken the phone.
  mutating func releaseQuiet() {
    for index in apps.indices {
      let mayRun = apps[index].heldPush.map { $0.isQuiet && wait(of: $0, rides: false) == nil }
      if mayRun == true || apps[index].shownPushes != nil { releaseHeld(index) }
    }
  }

  private mutating func release(_ push: RemotePush) {
    if let refusal = refusal(of: push) {
      return report(push.id, .notLaunched(refusal))
    }
    if push.handler == nil { emit(.decision(push.app, push.id, .runs)) }
    deliver(push, isFree: isFree(rides: false), isShown: true)
  }

  mutating func setExpiryTimer(_ push: RemotePush) {
    if let end = push.expiresAt { timers.set(.heldExpires(push.app), at: max(end, now)) }
  }

  /// Nothing is run for a push behind its `apns-expiration`.
  mutating func dropExpired(_ index: Int) {
    for push in apps[index].heldPushes where push.hasExpired(at: now) {
      if apps[index].heldPush == push { apps[index].heldPush = nil }
      apps[index].shownPushes?.removeAll { $0 == push }
      report(push.id, .notLaunched(.expired))
    }
    if apps[index].shownPushes == [] { apps[index].shownPushes = nil }
  }

  mutating func dropHeld(_ index: Int, _ refusal: LaunchRefusal) {
    let held = apps[index].heldPushes
    apps[index].heldPush = nil
    apps[index].shownPushes = nil
    for push in held { report(push.id, .notLaunched(refusal)) }
  }

  // MARK: What the user perceives

  /// Shows nothing while the app is in front. What an app was still busy with does not undo what a
  /// later push has shown.
  mutating func present(_ push: RemotePush, isContentReady: Bool) {
    let index = push.app.number
    if let badge = push.badge.map({ max(0, $0) }), !push.wasAccepted(before: apps[index].badgeAt) {
      apps[index].badgeAt = push.acceptedAt
      if badge != apps[index].badge {
        apps[index].badge = badge
        emit(.badge(push.app, badge))
      }
    }
    let later = banners.moment(of: push.collapseID, push.app)
    guard foreground != push.app, !push.wasAccepted(before: later) else { return }
    if let alert = push.alert {
      show(
        Banner(
          id: banners.nextID(), app: push.app, push: push.id, text: alert,
          collapseID: push.collapseID, at: now, acceptedAt: push.acceptedAt,
          isContentReady: isContentReady, isQuiet: push.isQuiet && !isScreenOn ? true : nil))
    }
    if push.hasSound, !push.isQuiet || isScreenOn { emit(.sound(push.app)) }
  }

  mutating func post(_ notification: LocalNotification, _ index: Int) {
    let app = AppID(index)
    if let badge = notification.badge.map({ max(0, $0) }), badge != apps[index].badge {
      apps[index].badge = badge
      emit(.badge(app, badge))
    }
    guard foreground != app else { return }
    show(
      Banner(
        id: banners.nextID(), app: app, push: nil, text: notification.text, collapseID: "",
        at: now, isContentReady: true))
    if notification.hasSound { emit(.sound(app)) }
  }

  /// The app works too long for the banner to wait.
  mutating func bannerDue(_ id: CallbackID) {
    guard let place = callbacks.firstIndex(where: { $0.id == id }),
      case .push(let push) = callbacks[place].kind
    else { return }
    callbacks[place].kind = .push(push.shown)
    present(push, isContentReady: hasContent(callbacks[place]))
  }

  private mutating func show(_ banner: Banner) {
    banners.show(banner, atMost: limits.banners)
    if banner.isQuiet != true {
      wake()
      litUntil = max(litUntil, now + limits.litTime)
      stayAwake(until: litUntil)
    }
    emit(.banner(banner))
  }

  /// Unlocks and opens the app; the content is there, or has to be loaded now.
  mutating func bannerOpened(_ id: BannerID) {
    guard let banner = banners.remove(id) else { return ignore(.unknownBanner) }
    if lock != .unlocked { unlock() }
    // A held push may have ended its registration.
    guard self[banner.app]?.state != .uninstalled else { return ignore(.unknownApp) }
    open(banner.app.number, waitsForContent: !banner.isContentReady)
    if banner.isContentReady, foreground == banner.app {
      emit(.app(banner.app, .contentShown(waited: .zero)))
    }
  }

  mutating func contentArrived(_ index: Int) {
    guard let wait = apps[index].contentWait, wait.until <= now else { return }
    apps[index].contentWait = nil
    guard network.isConnected else { return }
    apps[index].content.updatedAt = now
    apps[index].content.revision += 1
    emit(.app(AppID(index), .contentShown(waited: now - wait.since)))
  }

  /// Exactly once per push.
  mutating func report(_ id: PushID, _ outcome: PushOutcome?) {
    recentPushes.report(id, outcome)
    emit(.report(id, outcome))
  }
}
