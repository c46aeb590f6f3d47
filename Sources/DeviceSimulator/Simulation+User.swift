public import DeviceModel
public import Primitives
import RelayCore

/// What people do to their phones, and what happens to phones.
extension Simulation {
  // MARK: Apps

  /// Unlocks the phone and brings an app to the front.
  public mutating func open(_ app: AppHandle) {
    unlockIfLocked(app)
    tell(app) { .appOpened($0) }
  }

  /// Slides the newest banner of an app, which opens it. False if there is none.
  @discardableResult
  public mutating func openBanner(of app: AppHandle) -> Bool {
    let entry = apps[Int(app.number)]
    let banners = phones[Int(entry.phone)].model.banners.banners
    guard let banner = banners.last(where: { $0.app == entry.id }) else { return false }
    tell(entry.phone, .bannerOpened(banner.id))
    return true
  }

  /// Out of the app switcher, which the user unlocks the phone for. An app that was never opened is
  /// not in there.
  public mutating func swipeAway(_ app: AppHandle) {
    unlockIfLocked(app)
    tell(app) { .appSwipedAway($0) }
  }

  /// Uses an app for a while: unlocks, opens, and when the time is over leaves and locks.
  public mutating func use(_ app: AppHandle, for duration: Duration) {
    open(app)
    advance(by: duration)
    endUse(app)
  }

  /// Locks the phone if that app is still in front.
  mutating func endUse(_ app: AppHandle) {
    let entry = apps[Int(app.number)]
    guard phones[Int(entry.phone)].model.foreground == entry.id else { return }
    tell(entry.phone, .locked)
  }

  /// A developer has an app fetched now, as with Xcode's "Simulate Background Fetch".
  public mutating func fetch(_ app: AppHandle) { tell(app) { .fetchSimulated($0) } }

  /// Its user comes to a place that the app watches.
  public mutating func enterRegion(of app: AppHandle) { tell(app) { .regionEntered($0) } }

  /// Its user goes far: a significant change of the place, for whoever watches it.
  mutating func travel(_ phone: PhoneHandle) {
    for app in phones[Int(phone.number)].model.apps
    where app.definition.modes.contains(.location) && app.state != .uninstalled {
      tell(phone.number, .regionEntered(app.id))
    }
  }

  /// A running app begins to play sound, or ends it.
  public mutating func setPlaying(_ isPlaying: Bool, _ app: AppHandle) {
    tell(app) { .audioSwitched($0, isOn: isPlaying) }
  }

  /// With all that it has. Its provider is refused when the phone has been sent the next push.
  public mutating func uninstall(_ app: AppHandle) { tell(app) { .appUninstalled($0) } }

  /// An app that was uninstalled is installed again, new, and registers with a new token.
  public mutating func installAgain(_ app: AppHandle) {
    guard let model = model(of: app) else { return }
    guard model.state == .uninstalled else {
      // What is there already is not installed again, and says so.
      return tell(apps[Int(app.number)].phone, .appInstalled(model.definition))
    }
    let place = Int(app.number)
    let token = DeviceToken(
      random: (random.next(), random.next(), random.next()),
      routingKey: phones[Int(apps[place].phone)].credential.device.routingKey)
    if case .modelled = relay {
      unregister(apps[place])
      apps[place].token = token
    }
    tell(apps[place].phone, .appInstalled(model.definition))
    if apps[place].topic != .vacant { register(apps[place]) }
  }

  /// Background App Refresh for one app.
  public mutating func setRefresh(_ isOn: Bool, of app: AppHandle) {
    record(.changed(isOn ? "refresh on" : "refresh off"), app: app.number)
    tell(app) { .refreshSwitched($0, isOn: isOn) }
  }

  /// A running app crashes.
  public mutating func crash(_ app: AppHandle) { tell(app) { .appCrashed($0) } }

  /// An app that runs asks for another fetch interval, on sign-in or sign-out for instance.
  public mutating func setFetch(_ interval: FetchInterval, of app: AppHandle) {
    tell(app) { .fetchIntervalSet($0, interval) }
  }

  /// An app that runs queues a transfer.
  public mutating func queue(_ transfer: TransferRequest, by app: AppHandle) {
    tell(app) { .transferQueued($0, transfer) }
  }

  /// A running app changes something about its own state. It is saved and there again after any
  /// restart; what does not apply, to an object that is not there for instance, changes nothing.
  public mutating func change(_ change: StateChange, in app: AppHandle) {
    tell(app) { .stateChanged($0, [change]) }
  }

  /// Another version of an app is installed: with its state, and what its user and the phone know
  /// of it.
  public mutating func update(_ app: AppHandle, to version: AppDefinition) {
    var version = version
    version.name = app.name
    tell(apps[Int(app.number)].phone, .appInstalled(version))
  }

  private mutating func update(_ app: AppHandle, to version: String) {
    guard var definition = model(of: app)?.definition else { return }
    definition.version = version
    update(app, to: definition)
  }

  private mutating func unlockIfLocked(_ app: AppHandle) {
    let phone = apps[Int(app.number)].phone
    if phones[Int(phone)].model.lock != .unlocked { tell(phone, .unlocked) }
  }

  mutating func tell(_ app: AppHandle, _ event: (AppID) -> PhoneEvent) {
    let entry = apps[Int(app.number)]
    tell(entry.phone, event(entry.id))
  }

  // MARK: Phones

  /// To the home screen.
  public mutating func leave(_ phone: PhoneHandle) { tell(phone.number, .appLeft) }

  /// What is in front leaves the foreground first.
  public mutating func lock(_ phone: PhoneHandle) { tell(phone.number, .locked) }

  /// Unlocks the phone; nothing is opened.
  public mutating func unlock(_ phone: PhoneHandle) { tell(phone.number, .unlocked) }

  /// Changes what the phone is connected to; `.airplane` says good-bye to the relay, `.none` does
  /// not.
  public mutating func setNetwork(_ network: Network, of phone: PhoneHandle) {
    change("network \(network.rawValue)", .networkChanged(network), phone)
  }

  /// Plugs the charger in, or out.
  public mutating func setCharging(_ isCharging: Bool, of phone: PhoneHandle) {
    let what = isCharging ? "charger on" : "charger off"
    change(what, .chargerChanged(isConnected: isCharging), phone)
  }

  /// Low Power Mode.
  public mutating func setLowPower(_ isOn: Bool, of phone: PhoneHandle) {
    change(isOn ? "low power on" : "low power off", .lowPowerSwitched(isOn: isOn), phone)
  }

  /// Background App Refresh for all apps of a phone.
  public mutating func setRefresh(_ isOn: Bool, of phone: PhoneHandle) {
    let what = isOn ? "refresh on for all" : "refresh off for all"
    change(what, .refreshSwitched(nil, isOn: isOn), phone)
  }

  /// Starts the phone anew; until somebody unlocks it, nothing runs.
  public mutating func reboot(_ phone: PhoneHandle) { tell(phone.number, .rebooted) }

  /// Switches the phone off, or on again: then it starts anew.
  public mutating func setPower(_ isOn: Bool, of phone: PhoneHandle) {
    tell(phone.number, isOn ? .switchedOn : .switchedOff)
  }

  /// Suspended apps have to make room.
  public mutating func exhaustMemory(of phone: PhoneHandle) { tell(phone.number, .memoryRanOut) }

  private mutating func change(_ what: String, _ event: PhoneEvent, _ phone: PhoneHandle) {
    record(.changed(what), phone: phone.number)
    tell(phone.number, event)
  }

  // MARK: The relay

  /// The relay is given another policy.
  public mutating func setPolicy(_ policy: RelayPolicy) {
    let now = instant
    relay.withModelled { $0.journal.budgets.change(to: policy.policy, at: now) }
    tellRelay(.operated(.policyChanged(policy.policy, at: instant)))
  }

  // MARK: The verbs

  mutating func perform(_ deed: AppDeed, of app: AppHandle) {
    switch deed {
    // Whoever plays a use ends it.
    case .open, .use: open(app)
    case .openBanner: openBanner(of: app)
    case .swipeAway: swipeAway(app)
    case .refresh(let isOn): setRefresh(isOn, of: app)
    case .crash: crash(app)
    case .enterRegion: enterRegion(of: app)
    case .fetch: fetch(app)
    case .play(let isOn): setPlaying(isOn, app)
    case .ask: tell(app) { .backgroundAsked($0) }
    case .uninstall: uninstall(app)
    case .installAgain: installAgain(app)
    case .setFetch(let interval): setFetch(interval, of: app)
    case .queue(let transfer): queue(transfer, by: app)
    case .createDocument(let name, let bytes): createDocument(name, bytes: bytes, by: app)
    case .announceDocument(let name, let bytes): announceDocument(name, bytes: bytes, to: app)
    case .listDocuments: tell(app) { .document(.listed(by: $0)) }
    case .coordinate(let use): self.use(use, by: app)
    case .importDocument(let id):
      let want = DocumentUse.Want(id, isWriting: false)
      use(DocumentUse(wants: [want], edit: .imported), by: app)
    case .switchProvider(let isOn): tell(app) { .document(.providerSwitched($0, isOn: isOn)) }
    case .keepBookmark(let id, let path, let key):
      tell(app) { .document(.bookmarkKept(id, by: $0, at: path, key: key)) }
    case .update(let version): update(app, to: version)
    case .document(let id, .rename(let name)):
      tell(app) { .document(.renamed(id, by: $0, to: name)) }
    case .document(let id, .delete): tell(app) { .document(.deleted(id, by: $0)) }
    case .document(let id, .want): tell(app) { .document(.contentRequested(id, by: $0)) }
    case .document(let id, .pick): tell(app) { .document(.picked(id, by: $0)) }
    case .document(let id, .file(let folder)):
      tell(app) { .document(.filed(id, by: $0, folder: folder)) }
    case .change(let change): self.change(change, in: app)
    case .ignoreSnapshot: tell(app) { .snapshotIgnoredOnce($0) }
    }
  }

  mutating func perform(_ deed: PhoneDeed, of phone: PhoneHandle) {
    switch deed {
    case .unlock: unlock(phone)
    case .lock: lock(phone)
    case .leave: leave(phone)
    case .reboot: reboot(phone)
    case .power(let isOn): setPower(isOn, of: phone)
    case .exhaustMemory: exhaustMemory(of: phone)
    case .travel: travel(phone)
    case .network(let network): setNetwork(network, of: phone)
    case .charger(let isOn): setCharging(isOn, of: phone)
    case .lowPower(let isOn): setLowPower(isOn, of: phone)
    case .developerMode(let isOn): tell(phone.number, .developerModeSwitched(isOn: isOn))
    case .refresh(let isOn): setRefresh(isOn, of: phone)
    case .changeDocument(let id, let body):
      tell(phone.number, .document(.elsewhere(.changed(id, body, modifiedAt: moment))))
    case .migrate: migrate(phone)
    case .loseDocument(let id): tell(phone.number, .document(.elsewhere(.deleted(id))))
    case .link(let change): setLink(change.applied(to: phones[Int(phone.number)].path), of: phone)
    case .connectAgain: connectAgain(phone)
    }
  }

  mutating func perform(_ deed: RelayDeed) {
    switch deed {
    case .policy(let policy): setPolicy(policy)
    case .journalTakes(let delay): setJournalDelay(.milliseconds(delay))
    case .journalFails(let isFailing): setJournalFailing(isFailing)
    case .crash(let lapse): crashRelay(for: .milliseconds(lapse))
    }
  }
}
