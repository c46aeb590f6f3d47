package import Primitives

/// A phone with its apps, as one value that only `handle` changes; no I/O, no clock. It models iOS
/// 7: pushes, background fetches, transfers, archives, documents (WWDC 2013 session 204 on
/// multitasking and 222 on state restoration).
///
/// ```
///   relay ── pushReceived ──▶ ┌──────────┐ ── report, condition ──▶ relay
///   user ─── appOpened, … ──▶ │  Phone   │ ── banner, sound, … ───▶ user
///   network, charger, … ────▶ │ .handle  │ ── transfer, archive ──▶ network, storage
///   time ─── tick ──────────▶ └──────────┘ ── app, callback, … ───▶ timeline
/// ```
///
/// Invariants, held between any two calls of `handle`:
/// 1. A force-quit app has no callbacks and no task; only `appOpened` or `bannerOpened` ends that,
///    and of one that was uninstalled only `appInstalled`.
/// 2. A callback ends exactly once: its handler is called, or it is abandoned with its process.
/// 3. While the phone sleeps or is off there are no callbacks, no app in the foreground, and no
///    task runs.
/// 4. `foreground` is the one app in that state; there is none while the phone is locked.
/// 5. Archives are read and written while unlocked only; `ArchiveVault` sees to it.
/// 6. Every push that was received is reported exactly once, sooner or later.
///
/// Where the states of an app change:
/// ```
///   notRunning ──launch──▶ background ◀──leave── foreground
///    ▲     └──open──▶ foreground ◀──open── suspended │
///    │ terminate        background ──suspend──▶ suspended ──resume──▶ background
///    └─ any with a process; by the app switcher into forceQuit ──open──▶ foreground
/// ```
package struct Phone: Codable, Sendable {
  package internal(set) var limits = PhoneLimits()
  package internal(set) var systemVersion = "7.0"
  package internal(set) var transferMode = TransferMode.modelled
  /// The time of the latest event.
  package internal(set) var now: Instant
  /// Of the call of `handle` that runs.
  var effects: [PhoneEffect] = []

  /// Indexed by `AppID.number`.
  package internal(set) var apps: [App] = []
  package internal(set) var lock = LockState.locked
  package internal(set) var wakefulness = Wakefulness.asleep
  package internal(set) var foreground: AppID?
  /// Was in front when the phone was locked; unlocking brings it back (ours).
  var appBehindLock: AppID?
  package internal(set) var network = Network.wifi
  package internal(set) var isCharging = false
  package internal(set) var isLowPower = false
  package internal(set) var isRefreshOn = true
  /// By the user, for all apps; nil means no. Older memories have none.
  var hasActivitiesOff: Bool?
  /// Keeps archives and reports each step of restoring.
  package internal(set) var isDeveloper = false

  package internal(set) var switcher = AppSwitcher()
  package internal(set) var banners = BannerList()
  package internal(set) var vault = ArchiveVault()
  package internal(set) var service = TransferService()
  package internal(set) var documents = DocumentStore()
  /// Running callbacks, oldest first.
  package internal(set) var callbacks: [RunningCallback] = []
  /// Millijoules for all background work.
  package internal(set) var energy: Budget
  /// Cellular bytes for all background work.
  package internal(set) var data: Budget
  package internal(set) var usage: UsagePattern

  var timers = TimerQueue()
  var random: SeededRandom
  var recentPushes = RecentPushes()
  var silentAllowance = RateLimit.State()
  /// Of handlers, by app; -1 for all location extensions. Nil while there were no such pushes.
  var handlerAllowances: [Int: RateLimit.State]?
  var radio = Radio()
  var callbackNumbering = Numbering()
  /// Until when a banner lights the locked screen.
  var litUntil = Instant(milliseconds: .min)
  /// As last reported to the relay.
  var reported: DeviceCondition
  var coordination = Coordination()
  var uses: [AccessID: RunningUse] = [:]
  var useNumbering = Numbering()
  /// Set by changes that transfers, or the fetches of an awake period, depend on.
  var mustReviewTransfers = false
  var mustCoalesce = false
  /// Something has woken the phone: what waited for that is shown, or run.
  var mustShowActivities = false

  /// Survives a power loss: as over `PhoneEvent.rebooted`, and work under way, so that the
  /// next start can report what became of it. Archives are sealed separately.
  private enum CodingKeys: CodingKey {
    case now, apps, network, isCharging, isLowPower, isRefreshOn, isDeveloper, switcher, banners
    case service, documents, callbacks, callbackNumbering, energy, data, usage, random
    case recentPushes, silentAllowance, radio, reported, hasActivitiesOff
    case handlerAllowances
  }

  /// A phone that is locked after its first unlock, asleep, and on Wi-Fi.
  package init(
    limits: PhoneLimits = PhoneLimits(), systemVersion: String = "7.0",
    transferMode: TransferMode = .modelled, seed: UInt64, at now: Instant
  ) {
    self.limits = limits
    self.systemVersion = systemVersion
    self.transferMode = transferMode
    let now = max(Instant(milliseconds: 0), min(now, .endOfCalendar))
    self.now = now
    energy = Budget(perDay: limits.phoneEnergyPerDay, at: now)
    data = Budget(perDay: limits.phoneDataPerDay, at: now)
    usage = UsagePattern(at: now + limits.timeZone)
    random = SeededRandom(seed: seed)
    reported = DeviceCondition(power: .battery, network: .wifi, screen: .off)
  }

  /// When `tick` is due next if nothing else happens; nil for never.
  package var nextWake: Instant? { timers.nextMoment }

  package subscript(app: AppID) -> App? {
    apps.indices.contains(app.number) ? apps[app.number] : nil
  }

  package func app(named name: String) -> App? { apps.first { $0.definition.name == name } }

  /// The only entry point: takes an event and its time, appends the effects. Everything due earlier
  /// runs first, each at its own time, so calls may be any time apart.
  package mutating func handle(
    _ event: PhoneEvent, at instant: Instant, into effects: inout [PhoneEffect]
  ) {
    swap(&self.effects, &effects)
    defer { swap(&self.effects, &effects) }
    let instant = min(instant, .endOfCalendar)
    while let timer = timers.popDue(at: instant) {
      now = max(now, timer.at)
      fire(timer.kind)
      settle()
    }
    now = max(now, instant)
    if case .tick = event { return }
    perform(event)
    settle()
  }

  mutating func emit(_ action: PhoneAction) {
    effects.append(PhoneEffect(at: now, action: action))
  }

  mutating func ignore(_ reason: IgnoreReason) {
    emit(.ignored(reason))
  }

  package var condition: DeviceCondition {
    DeviceCondition(
      power: isLowPower ? .low : isCharging ? .charging : .battery, network: network,
      screen: isScreenOn ? .on : .off)
  }

  package var isScreenOn: Bool { lock == .unlocked || litUntil > now }
}

/// The power state of the processor.
package enum Wakefulness: Hashable, Sendable {
  case off
  case asleep
  /// Longer while there is a reason.
  case awake(atLeastUntil: Instant)
}

/// A call whose completion handler has not been called yet.
package struct RunningCallback: Hashable, Codable, Sendable {
  package enum Kind: Hashable, Codable, Sendable {
    case push(RemotePush)
    case fetch
    case transfers(session: String)
    case authentication(TransferID)
    case region
    case document(DocumentID)
    /// To read the update token of a new Live Activity.
    case activity
  }

  package enum Phase: Hashable, Codable, Sendable {
    case working
    case worked(CallbackOutcome)
  }

  package let id: CallbackID
  package let app: AppID
  package internal(set) var kind: Kind
  package let startedAt: Instant
  package let workEndsAt: Instant
  package internal(set) var phase = Phase.working
  /// When the app is killed; nil in the foreground, where the user decides.
  package internal(set) var deadline: Instant?
}

extension Phone {
  mutating func perform(_ event: PhoneEvent) {
    guard wakefulness != .off else { return performOff(event) }
    if let (app, mustRun) = event.appNeeded {
      guard apps.indices.contains(app.number), apps[app.number].state != .uninstalled else {
        return ignore(.unknownApp)
      }
      guard !mustRun || isRunning(app.number) else { return ignore(.notRunning) }
    }
    switch event {
    case .tick: break
    case .appInstalled(let definition): install(definition)
    case .pushReceived(let push): received(push, rides: false)
    case .pushRode(let push): received(push, rides: true)
    case .linkHeard: wake()
    case .networkChanged(let network): networkChanged(network)
    case .chargerChanged(let isConnected): chargerChanged(isConnected)
    case .rebooted: reboot()
    case .switchedOff: switchOff()
    case .switchedOn: ignore(.alreadySo)
    case .memoryRanOut:
      for index in apps.indices where apps[index].state == .suspended {
        terminate(index, .memory)
      }
    case .archiveFound(let app, let archive): archiveFound(app, archive)
    case .unlocked:
      let app = appBehindLock
      unlock()
      if let app { open(app.number, waitsForContent: false) }
    case .locked: lockScreen()
    case .bannerOpened(let banner): bannerOpened(banner)
    case .appLeft:
      guard let id = foreground else { return ignore(.notRunning) }
      leave(id.number)
    case .lowPowerSwitched(let isOn): lowPowerSwitched(isOn)
    case .developerModeSwitched(let isOn): isDeveloper = isOn
    case .transferProgressed(let transfer, let bytes): progressed(transfer, bytes)
    case .transferChallenged(let transfer): challenged(transfer)
    case .transferEnded(let transfer, let result): ended(transfer, result)
    case .document(let event): perform(event)
    case .activity(let event): perform(event)
    case .refreshSwitched(nil, let isOn):
      isRefreshOn = isOn
      replanAll()
    case .refreshSwitched(let app?, let isOn):
      apps[app.number].isRefreshOn = isOn
      replan(app.number)
    case .appOpened(let app):
      if lock != .unlocked { unlock() }
      open(app.number, waitsForContent: false)
    case .appSwipedAway(let app): swipedAway(app.number)
    case .appUninstalled(let app): uninstall(app.number)
    case .regionEntered(let app): call(app.number, .region, .location)
    case .fetchSimulated(let app): simulateFetch(app.number)
    case .audioSwitched(let app, let isOn): audioSwitched(app.number, isOn)
    case .backgroundAsked(let app): emit(.app(app, .asked(backgroundRefusal(of: app))))
    case .appCrashed(let app): terminate(app.number, .crash)
    case .fetchIntervalSet(let app, let interval):
      apps[app.number].fetchInterval = interval
      replan(app.number)
    case .stateChanged(let app, let changes):
      for change in changes { apps[app.number].process.interface.apply(change) }
    case .transferQueued(let app, let request): queue(request, of: app.number)
    case .snapshotIgnoredOnce(let app): apps[app.number].ignoresNextSnapshot = true
    }
  }

  /// Each handler checks whether its timer still applies.
  mutating func fire(_ timer: TimerKind) {
    switch timer {
    case .workEnds(let callback): workEnded(callback)
    case .handlerCalled(let callback): handlerDue(callback)
    case .deadline(let callback): deadlinePassed(callback)
    case .graceEnds(let app): suspendIfIdle(app.number)
    case .taskSliceEnds(let app): taskSliceEnded(app.number)
    case .foregroundContent(let app): contentArrived(app.number)
    case .heldPush(let app): releaseHeld(app.number)
    case .heldExpires(let app): dropExpired(app.number)
    case .bannerDue(let callback): bannerDue(callback)
    case .documentWritten(let document): syncServiceWrote(document)
    case .documentUse(let use): documentWorked(use)
    // Each change looks.
    case .look(.sleep): break
    case .look(.fetches): fetchesDue()
    case .look(.transfers): mustReviewTransfers = true
    case .look(.activities):
      for index in apps.indices { reviewActivities(index) }
    }
  }

  /// Everything that is decided after each change: transfers, fetches that join an awake period,
  /// timers, the condition report, sleep.
  mutating func settle() {
    guard wakefulness != .off else { return }
    // Transfers that end wake apps; what those queue is reviewed later.
    if mustReviewTransfers { reviewTransfers() }
    if mustCoalesce { coalesceFetches() }
    if mustShowActivities { showWaiting() }
    setFetchTimer()
    setActivityTimer()
    sleepIfIdle()
    let condition = condition
    if condition != reported {
      reported = condition
      emit(.condition(condition))
    }
  }

  /// False for suspended apps, and in the background while the phone sleeps.
  func isRunning(_ index: Int) -> Bool {
    switch apps[index].state {
    case .foreground: true
    case .background: wakefulness != .asleep
    case .notRunning, .suspended, .forceQuit, .uninstalled: false
    }
  }
}
