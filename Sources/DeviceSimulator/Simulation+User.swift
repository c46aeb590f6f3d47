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
    if relay != nil {
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

  mutating func update(_ app: AppHandle, to version: String) {
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
    relay?.journal.budgets.change(to: policy.policy, at: now)
    tellRelay(.operated(.policyChanged(policy.policy, at: now)))
  }
}
