public import DeviceModel
public import Primitives
import RelayCore

/// Actions of users, and changes of phones.
extension Simulation {
  // MARK: Apps

  /// Unlocks the phone first.
  public mutating func open(_ app: AppHandle) { tell(app) { .appOpened($0) } }

  /// Opens the newest banner of an app. Returns false if there is none.
  @discardableResult
  public mutating func openBanner(of app: AppHandle) -> Bool {
    let entry = apps[Int(app.number)]
    let banners = phones[Int(entry.phone)].model.banners.banners
    let banner = banners.last { $0.app == entry.id }
    // One that is not there is ignored by the phone, with a trace entry.
    tell(entry.phone, .bannerOpened(banner?.id ?? .unknown))
    return banner != nil
  }

  /// Removes it from the app switcher, after unlocking. No effect on an app that was never opened.
  public mutating func swipeAway(_ app: AppHandle) {
    let phone = apps[Int(app.number)].phone
    if phones[Int(phone)].model.lock != .unlocked { tell(phone, .unlocked) }
    tell(app) { .appSwipedAway($0) }
  }

  /// Unlocks, opens, and after `duration` leaves and locks.
  public mutating func use(_ app: AppHandle, for duration: Duration) {
    open(app)
    advance(by: duration)
    endUse(app)
  }

  /// Leaves the app and locks the phone if it is still in the foreground.
  mutating func endUse(_ app: AppHandle) {
    let entry = apps[Int(app.number)]
    guard phones[Int(entry.phone)].model.foreground == entry.id else { return }
    tell(entry.phone, .appLeft)
    tell(entry.phone, .locked)
  }

  /// As with Xcode's "Simulate Background Fetch".
  public mutating func fetch(_ app: AppHandle) { tell(app) { .fetchSimulated($0) } }

  /// The user enters a place that the app watches.
  public mutating func enterRegion(of app: AppHandle) { tell(app) { .regionEntered($0) } }

  /// A significant location change, for all apps that watch places.
  mutating func travel(_ phone: PhoneHandle) {
    for app in phones[Int(phone.number)].model.apps
    where app.definition.modes.contains(.location) && app.state != .uninstalled {
      let number = phones[Int(phone.number)].apps[app.id.number]
      if host(of: number) == nil { tell(phone.number, .regionEntered(app.id)) }
    }
  }

  public mutating func setPlaying(_ isPlaying: Bool, _ app: AppHandle) {
    tell(app) { .audioSwitched($0, isOn: isPlaying) }
  }

  /// With all that it brought along: widgets, extensions, a complication. The provider is refused
  /// after the next push to the phone.
  public mutating func uninstall(_ app: AppHandle) {
    for part in parts(of: app) { tell(part) { .appUninstalled($0) } }
  }

  /// Installs an uninstalled app again, with new tokens.
  public mutating func installAgain(_ app: AppHandle) {
    let channel = PushType.pushtotalk.topicSuffix
    // The app joins a channel itself.
    for part in parts(of: app) where part == app || !part.name.hasSuffix(channel) {
      guard let before = model(of: part) else { continue }
      let phone = apps[Int(part.number)].phone
      // The phone ignores one that is there, with a trace entry.
      tell(phone, .appInstalled(before.definition))
      let isThere = model(of: part)?.state != .uninstalled
      if before.state == .uninstalled, isThere { tellRelay(.app(part.number), of: phone) }
    }
  }

  mutating func hasToken(_ token: String, of app: String, on phone: Int) {
    guard let number = phones[phone].apps.first(where: { apps[Int($0)].name == app }) else {
      return
    }
    record(.changed("has the token \(token)"), app: number)
  }

  private func parts(of app: AppHandle) -> [AppHandle] {
    let others = phones[Int(apps[Int(app.number)].phone)].apps
    return [app]
      + others.filter { host(of: $0) == app.number }
      .map { AppHandle(number: $0, name: apps[Int($0)].name) }
  }

  /// The app on the same phone whose extension, or the like, has the topic of this one.
  private func host(of app: Int32) -> Int32? {
    let (name, phone) = (apps[Int(app)].name, apps[Int(app)].phone)
    return phones[Int(phone)].apps.first { other in
      let whole = apps[Int(other)].name
      return other != app && PushType.allCases.contains { name == whole + $0.topicSuffix }
    }
  }

  public mutating func setRefresh(_ isOn: Bool, of app: AppHandle) {
    if phones[Int(apps[Int(app.number)].phone)].model.wakefulness != .off {
      record(.changed(isOn ? "refresh on" : "refresh off"), app: app.number)
    }
    tell(app) { .refreshSwitched($0, isOn: isOn) }
  }

  public mutating func crash(_ app: AppHandle) { tell(app) { .appCrashed($0) } }

  /// By a running app, for instance on sign-in.
  public mutating func setFetch(_ interval: FetchInterval, of app: AppHandle) {
    tell(app) { .fetchIntervalSet($0, interval) }
  }

  /// By a running app.
  public mutating func queue(_ transfer: TransferRequest, by app: AppHandle) {
    tell(app) { .transferQueued($0, transfer) }
  }

  /// By a running app. Saved and restored across restarts; a change that does not apply has no
  /// effect.
  public mutating func change(_ change: StateChange, in app: AppHandle) {
    tell(app) { .stateChanged($0, [change]) }
  }

  /// Installs another version; the app's state and what was learned stay.
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

  mutating func tell(_ app: AppHandle, _ event: (AppID) -> PhoneEvent) {
    let entry = apps[Int(app.number)]
    tell(entry.phone, event(entry.id))
  }

  // MARK: Phones

  /// To the home screen.
  public mutating func leave(_ phone: PhoneHandle) { tell(phone.number, .appLeft) }

  public mutating func lock(_ phone: PhoneHandle) { tell(phone.number, .locked) }

  public mutating func unlock(_ phone: PhoneHandle) { tell(phone.number, .unlocked) }

  /// `.airplane` says good-bye to the relay, `.none` does not.
  public mutating func setNetwork(_ network: Network, of phone: PhoneHandle) {
    let isNews = phones[Int(phone.number)].model.network != network
    change("network \(network.rawValue)", .networkChanged(network), phone, isNews: isNews)
  }

  public mutating func setCharging(_ isCharging: Bool, of phone: PhoneHandle) {
    let what = isCharging ? "charger on" : "charger off"
    let isNews = phones[Int(phone.number)].model.isCharging != isCharging
    change(what, .chargerChanged(isConnected: isCharging), phone, isNews: isNews)
  }

  public mutating func setLowPower(_ isOn: Bool, of phone: PhoneHandle) {
    let model = phones[Int(phone.number)].model
    let isNews = model.isLowPower != isOn && model.wakefulness != .off
    let what = isOn ? "low power on" : "low power off"
    change(what, .lowPowerSwitched(isOn: isOn), phone, isNews: isNews)
  }

  /// For all apps.
  public mutating func setRefresh(_ isOn: Bool, of phone: PhoneHandle) {
    let what = isOn ? "refresh on for all" : "refresh off for all"
    let isNews = phones[Int(phone.number)].model.wakefulness != .off
    change(what, .refreshSwitched(nil, isOn: isOn), phone, isNews: isNews)
  }

  public mutating func reboot(_ phone: PhoneHandle) { tell(phone.number, .rebooted) }

  /// Switching on is a reboot.
  public mutating func setPower(_ isOn: Bool, of phone: PhoneHandle) {
    tell(phone.number, isOn ? .switchedOn : .switchedOff)
  }

  /// Ends suspended apps.
  public mutating func exhaustMemory(of phone: PhoneHandle) { tell(phone.number, .memoryRanOut) }

  /// The phone ignores what is so already, and most while it is off, with a trace entry.
  private mutating func change(
    _ what: String, _ event: PhoneEvent, _ phone: PhoneHandle, isNews: Bool
  ) {
    if isNews { record(.changed(what), phone: phone.number) }
    tell(phone.number, event)
  }

  // MARK: The relay

  public mutating func setPolicy(_ policy: RelayPolicy) {
    let now = instant
    relay?.journal.budgets.change(to: policy.policy, at: now)
    tellRelay(.operated(.policyChanged(policy.policy, at: now)))
  }
}
