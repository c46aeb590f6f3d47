public import DeviceModel
import RelayCore

/// What people do to their phones, and what happens to phones.
extension Simulation {
  /// Unlocks the phone and brings an app to the front.
  public mutating func open(_ app: AppHandle) {
    let entry = apps[Int(app.number)]
    if phones[Int(entry.phone)].model.lock != .unlocked { tell(entry.phone, .unlocked) }
    tell(entry.phone, .appOpened(entry.id))
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

  /// To the home screen.
  public mutating func leave(_ phone: PhoneHandle) { tell(phone.number, .appLeft) }

  /// Out of the app switcher, which the user unlocks the phone for. An app that was never opened is
  /// not in there.
  public mutating func swipeAway(_ app: AppHandle) {
    let entry = apps[Int(app.number)]
    if phones[Int(entry.phone)].model.lock != .unlocked { tell(entry.phone, .unlocked) }
    tell(entry.phone, .appSwipedAway(entry.id))
  }

  /// What is in front leaves the foreground first.
  public mutating func lock(_ phone: PhoneHandle) { tell(phone.number, .locked) }

  /// Unlocks the phone; nothing is opened.
  public mutating func unlock(_ phone: PhoneHandle) { tell(phone.number, .unlocked) }

  /// Changes what the phone is connected to; `.airplane` says good-bye to the relay, `.none` does
  /// not.
  public mutating func setNetwork(_ network: Network, of phone: PhoneHandle) {
    record(.changed("network \(network.rawValue)"), phone: phone.number)
    tell(phone.number, .networkChanged(network))
  }

  /// Plugs the charger in, or out.
  public mutating func setCharging(_ isCharging: Bool, of phone: PhoneHandle) {
    record(.changed(isCharging ? "charger on" : "charger off"), phone: phone.number)
    tell(phone.number, .chargerChanged(isConnected: isCharging))
  }

  /// Low Power Mode.
  public mutating func setLowPower(_ isOn: Bool, of phone: PhoneHandle) {
    record(.changed(isOn ? "low power on" : "low power off"), phone: phone.number)
    tell(phone.number, .lowPowerSwitched(isOn: isOn))
  }

  /// Background App Refresh for all apps of a phone.
  public mutating func setRefresh(_ isOn: Bool, of phone: PhoneHandle) {
    record(.changed(isOn ? "refresh on for all" : "refresh off for all"), phone: phone.number)
    tell(phone.number, .refreshSwitched(nil, isOn: isOn))
  }

  /// Background App Refresh for one app.
  public mutating func setRefresh(_ isOn: Bool, of app: AppHandle) {
    let entry = apps[Int(app.number)]
    record(.changed(isOn ? "refresh on" : "refresh off"), app: app.number)
    tell(entry.phone, .refreshSwitched(entry.id, isOn: isOn))
  }

  /// Starts the phone anew; until somebody unlocks it, nothing runs.
  public mutating func reboot(_ phone: PhoneHandle) { tell(phone.number, .rebooted) }

  /// Suspended apps have to make room.
  public mutating func exhaustMemory(of phone: PhoneHandle) { tell(phone.number, .memoryRanOut) }

  /// A running app crashes.
  public mutating func crash(_ app: AppHandle) {
    let entry = apps[Int(app.number)]
    tell(entry.phone, .appCrashed(entry.id))
  }

  /// An app that runs asks for another fetch interval, on sign-in or sign-out for instance.
  public mutating func setFetch(_ interval: FetchInterval, of app: AppHandle) {
    let entry = apps[Int(app.number)]
    tell(entry.phone, .fetchIntervalSet(entry.id, interval))
  }

  /// An app that runs queues a transfer.
  public mutating func queue(_ transfer: TransferRequest, by app: AppHandle) {
    let entry = apps[Int(app.number)]
    tell(entry.phone, .transferQueued(entry.id, transfer))
  }

  /// An object in the interface of a running app remembers something from now on; an object that is
  /// not there does not. It is saved with the app's state and there again after any restart.
  public mutating func remember(
    _ value: StateValue, under key: String, at path: StatePath, in app: AppHandle
  ) {
    change(.set(path, key: key, value), in: app)
  }

  /// Brings an object to the top of a running app.
  public mutating func show(_ path: StatePath, in app: AppHandle) {
    change(.show(path), in: app)
  }

  /// A running app changes something about its own state.
  public mutating func change(_ change: StateChange, in app: AppHandle) {
    let entry = apps[Int(app.number)]
    tell(entry.phone, .stateChanged(entry.id, [change]))
  }

  /// An app that runs makes a document, which is then with the sync service too.
  public mutating func createDocument(_ name: String, bytes: Int64, by app: AppHandle) {
    let entry = apps[Int(app.number)]
    tell(entry.phone, .document(.created(by: entry.id, name: name, bytes: bytes)))
    let made = phones[Int(entry.phone)].model.documents.documents.values
      .filter { $0.name == name && $0.container == entry.id }.map(\.id.number).max()
    guard let made else { return }
    tell(entry.phone, .document(.uploaded(DocumentID(made), revision: 1)))
  }

  /// A document, the n-th that came to be on the phone, was edited on another device.
  public mutating func changeDocumentElsewhere(
    _ id: DocumentID, bytes: Int64, on phone: PhoneHandle
  ) {
    tell(phone.number, .document(.changedElsewhere(id, bytes: bytes)))
  }

  /// The relay is given another policy.
  public mutating func setPolicy(_ policy: RelayPolicy) {
    tellRelay(.policyChanged(policy.policy, at: instant))
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

  // MARK: The verbs

  mutating func perform(_ deed: AppDeed, of app: AppHandle) {
    let entry = apps[Int(app.number)]
    switch deed {
    // Whoever plays a use ends it.
    case .open, .use: open(app)
    case .openBanner: openBanner(of: app)
    case .swipeAway: swipeAway(app)
    case .refresh(let isOn): setRefresh(isOn, of: app)
    case .crash: crash(app)
    case .setFetch(let interval): setFetch(interval, of: app)
    case .queue(let transfer): queue(transfer, by: app)
    case .createDocument(let name, let bytes): createDocument(name, bytes: bytes, by: app)
    case .document(let id, .rename(let name)):
      tell(entry.phone, .document(.renamed(id, by: entry.id, to: name)))
    case .document(let id, .delete): tell(entry.phone, .document(.deleted(id, by: entry.id)))
    case .document(let id, .want):
      tell(entry.phone, .document(.contentRequested(id, by: entry.id)))
    case .document(let id, .pick): tell(entry.phone, .document(.picked(id, by: entry.id)))
    case .change(let change): self.change(change, in: app)
    case .ignoreSnapshot: tell(entry.phone, .snapshotIgnoredOnce(entry.id))
    }
  }

  mutating func perform(_ deed: PhoneDeed, of phone: PhoneHandle) {
    switch deed {
    case .unlock: unlock(phone)
    case .lock: lock(phone)
    case .leave: leave(phone)
    case .reboot: reboot(phone)
    case .exhaustMemory: exhaustMemory(of: phone)
    case .network(let network): setNetwork(network, of: phone)
    case .charger(let isOn): setCharging(isOn, of: phone)
    case .lowPower(let isOn): setLowPower(isOn, of: phone)
    case .developerMode(let isOn): tell(phone.number, .developerModeSwitched(isOn: isOn))
    case .refresh(let isOn): setRefresh(isOn, of: phone)
    case .changeDocument(let id, let bytes): changeDocumentElsewhere(id, bytes: bytes, on: phone)
    case .loseDocument(let id): tell(phone.number, .document(.deletedElsewhere(id)))
    }
  }
}
