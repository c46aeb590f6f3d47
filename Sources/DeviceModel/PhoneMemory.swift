package import Primitives

/// What lasts of a phone when its power goes: the same as over `PhoneEvent.rebooted`, and what was
/// under way, so that the next start can say what became of it. Not the archives: they are sealed
/// and kept one by one, each under its own name.
///
/// It is `Codable` for whoever keeps it. Decoding checks everything that the phone relies on, so a
/// memory that exists can be restored; damaged ones throw `PhoneMemoryError` or the decoder's own.
package struct PhoneMemory: Codable, Equatable, Sendable {
  /// Goes up with every change that older readers would misunderstand.
  package static let format = 1

  var contents: Contents

  init(_ contents: Contents) { self.contents = contents }

  package init(from decoder: any Decoder) throws {
    let found = try decoder.container(keyedBy: FormatKey.self).decode(Int.self, forKey: .format)
    guard found == Self.format else { throw PhoneMemoryError.unknownFormat(found) }
    contents = try Contents(from: decoder)
    try contents.check()
  }

  package func encode(to encoder: any Encoder) throws { try contents.encode(to: encoder) }

  /// The last moment that the phone knew of.
  package var savedAt: Instant { contents.savedAt }

  /// The app that was in front of the user then.
  package var foreground: String? {
    contents.apps.first { $0.state == .foreground }?.definition.name
  }

  private enum FormatKey: CodingKey {
    case format
  }

  struct Contents: Codable, Equatable, Sendable {
    var format = PhoneMemory.format
    var savedAt: Instant
    var apps: [App]
    var network: Network
    var isCharging: Bool
    var isLowPower: Bool
    var isRefreshOn: Bool
    var isDeveloper: Bool
    var switcher: AppSwitcher
    var banners: [Banner]
    var bannerNumbering: Numbering
    var service: TransferService
    var documents: DocumentStore
    /// What apps were called for. They are paid for, and cannot go on.
    var callbacks: [RunningCallback]
    var callbackNumbering: Numbering
    var energy: Budget
    var data: Budget
    var usage: UsagePattern
    var random: SeededRandom
    var recentPushes: [RecentPushes.Known]
    var silentAllowance: RateLimit.State
    var radio: Radio
    var reported: DeviceCondition

    /// The clock was set back: all that lies in the past stays as long ago as it was.
    mutating func setClockBack(to now: Instant, timeZone: Interval) {
      let lapse = now - savedAt
      guard lapse < .zero else { return }
      savedAt = now
      for index in apps.indices {
        apps[index].moveClock(by: lapse)
        apps[index].usage.setBack(to: now + timeZone)
      }
      usage.setBack(to: now + timeZone)
      energy.moveClock(by: lapse)
      data.moveClock(by: lapse)
      silentAllowance.moveClock(by: lapse)
      radio.moveClock(by: lapse)
    }
  }
}

extension Phone {
  /// What of it lasts, as if the power went now. The phone itself goes on.
  package func memory() -> PhoneMemory {
    var phone = self
    phone.settleAccounts()
    return PhoneMemory(
      PhoneMemory.Contents(
        savedAt: now, apps: phone.apps, network: network, isCharging: isCharging,
        isLowPower: isLowPower, isRefreshOn: isRefreshOn, isDeveloper: isDeveloper,
        switcher: switcher, banners: banners.banners, bannerNumbering: banners.numbering,
        service: phone.service, documents: documents, callbacks: phone.callbacks,
        callbackNumbering: callbackNumbering, energy: phone.energy, data: phone.data,
        usage: usage, random: random, recentPushes: recentPushes.known,
        silentAllowance: silentAllowance, radio: phone.radio, reported: reported))
  }

  /// Everything that is under way is paid for up to now, in the order of `reboot`: nothing goes on
  /// without power, so it must not be paid for when the power is back.
  private mutating func settleAccounts() {
    for index in apps.indices {
      for place in callbacks.indices where callbacks[place].app.number == index {
        chargeBegunPart(of: callbacks[place])
        callbacks[place].phase = .worked(.failed)
      }
      apps[index].powerFailed()
    }
    accountTransfers()
    service.powerFailed()
  }

  /// A phone that is switched on again, `now`, as after `PhoneEvent.rebooted`: no process runs, it
  /// has not been unlocked yet, and whatever fell due meanwhile did not happen. The effects tell
  /// what became of that which was under way; none is dated earlier than `now`.
  ///
  /// A clock that was set back is no obstacle: for the phone no time has passed then. Archives are
  /// handed over by `PhoneEvent.archiveFound`. What the phone cannot know, network and charger for
  /// instance, is as it was until somebody says otherwise.
  package init(
    restoring memory: PhoneMemory, limits: PhoneLimits = PhoneLimits(),
    systemVersion: String = "7.0", transferMode: TransferMode = .modelled, at now: Instant,
    into effects: inout [PhoneEffect]
  ) {
    self.init(
      limits: limits, systemVersion: systemVersion, transferMode: transferMode, seed: 0, at: now)
    var last = memory.contents
    last.setClockBack(to: self.now, timeZone: limits.timeZone)
    apps = last.apps
    for index in apps.indices {
      apps[index].callbackCount = last.callbacks.count { $0.app.number == index }
      apps[index].energy = apps[index].energy.resized(perDay: limits.appEnergyPerDay)
      apps[index].data = apps[index].data.resized(perDay: limits.appDataPerDay)
    }
    network = last.network
    isCharging = last.isCharging
    isLowPower = last.isLowPower
    isRefreshOn = last.isRefreshOn
    isDeveloper = last.isDeveloper
    switcher = last.switcher
    banners = BannerList(
      limit: limits.banners, banners: last.banners, numbering: last.bannerNumbering)
    service = last.service
    service.accountedUntil = self.now
    documents = last.documents
    callbacks = last.callbacks
    callbackNumbering = last.callbackNumbering
    energy = last.energy.resized(perDay: limits.phoneEnergyPerDay)
    data = last.data.resized(perDay: limits.phoneDataPerDay)
    usage = last.usage
    random = last.random
    recentPushes = RecentPushes(limit: limits.recentPushes, known: last.recentPushes)
    silentAllowance = last.silentAllowance
    radio = last.radio
    reported = last.reported
    resumeCoordination(&effects)
    reboot(&effects)
    settle(&effects)
  }
}

/// Why a phone's memory cannot be restored.
package enum PhoneMemoryError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Another version of this program wrote it.
  case unknownFormat(Int)
  /// It was edited, or damaged: what about it cannot be.
  case impossible(String)

  package var description: String {
    switch self {
    case .unknownFormat(let format): "its format is \(format), not \(PhoneMemory.format)"
    case .impossible(let what): "\(what) cannot be as it says"
    }
  }
}

/// Everything that the phone relies on without looking: places of apps, counters that must not
/// overflow, parents that must not go in circles. Moments may be anything: their arithmetic
/// saturates.
extension PhoneMemory.Contents {
  func check() throws(PhoneMemoryError) {
    try demand("the time", savedAt >= Instant(milliseconds: 0) && savedAt <= .endOfCalendar)
    for (index, app) in apps.enumerated() {
      try demand("app \(index)", app.id.number == index && app.isSound)
    }
    try demand("an app's name", Set(apps.map(\.definition.name)).count == apps.count)
    try demand("the app switcher", isKnown(switcher.apps) && isDistinct(switcher.apps))
    try checkBanners()
    try demand(
      "a transfer",
      service.isSound && isKnown(service.transfers.map(\.app))
        && service.transfers.allSatisfy(\.isSound))
    try checkDocuments()
    try checkCallbacks()
    try demand("a budget", energy.isSound && data.isSound)
    try demand("the usage", usage.isSound)
    try checkPushes()
  }

  private func demand(_ what: String, _ isSound: Bool) throws(PhoneMemoryError) {
    guard isSound else { throw .impossible(what) }
  }

  private func isKnown(_ ids: some Sequence<AppID>) -> Bool {
    ids.allSatisfy { apps.indices.contains($0.number) }
  }

  private func isDistinct(_ ids: [some Hashable]) -> Bool { Set(ids).count == ids.count }

  private func checkBanners() throws(PhoneMemoryError) {
    try demand(
      "a banner",
      isKnown(banners.map(\.app)) && isDistinct(banners.map(\.id))
        && bannerNumbering.isSound(after: banners.map(\.id.number)))
  }

  private func checkDocuments() throws(PhoneMemoryError) {
    try demand("the documents", documents.isSound)
    try demand("a bookmark", isKnown(documents.grantees))
    for (id, document) in documents.documents {
      try demand(
        "document \(id.number)",
        document.id == id && isKnown([document.container]) && document.isSound)
    }
  }

  private func checkCallbacks() throws(PhoneMemoryError) {
    let numbers = callbacks.map(\.id.number)
    try demand(
      "the callbacks", isDistinct(numbers) && callbackNumbering.isSound(after: numbers))
    for callback in callbacks {
      // A callback ends with its process; one without would never end.
      var isPossible = isKnown([callback.app]) && apps[callback.app.number].state.hasProcess
      if case .push(let push) = callback.kind, push.app != callback.app { isPossible = false }
      try demand("callback \(callback.id.number)", isPossible)
    }
  }

  /// A push that is not reported yet waits for something that will happen, else it would wait
  /// forever.
  private func checkPushes() throws(PhoneMemoryError) {
    var expected = Set(apps.flatMap(\.heldPushes).map(\.id))
    for case .push(let push) in callbacks.map(\.kind) { expected.insert(push.id) }
    try demand(
      "a push",
      isDistinct(recentPushes.map(\.id))
        && recentPushes.allSatisfy { $0.entry != .open || expected.contains($0.id) })
  }
}

extension App {
  fileprivate var isSound: Bool {
    definition.isSound && behaviour.isSound && energy.isSound && data.isSound && usage.isSound
      && Numbering.range.contains(Int64(content.revision))
      && plan.app == id
      && heldPushes.allSatisfy { $0.app == id }
  }
}

extension AppDefinition {
  fileprivate var isSound: Bool {
    let callbacks =
      [script.onPush, script.onFetch, script.onTransfers]
      + [script.onRegion, script.onDocument].compactMap(\.self)
    let transfers = callbacks.flatMap(\.transfers) + script.onLeave.transfers
    return script.interface.isSound && transfers.allSatisfy { $0.bytes >= 0 }
  }
}

extension Transfer {
  /// Of a performed one the size is a guess.
  fileprivate var isSound: Bool {
    request.bytes >= 0 && done >= 0 && (isPerformed || done <= request.bytes)
  }
}

extension Document {
  fileprivate var isSound: Bool {
    let kept = versions ?? []
    return bytes >= 0 && arrived ?? 0 >= 0 && remoteBody?.bytes ?? 0 >= 0
      && kept.allSatisfy { Numbering.range.contains(Int64($0.revision)) && $0.body.bytes >= 0 }
      && Numbering.range.contains(Int64(revision))
      && Numbering.range.contains(Int64(remoteRevision))
  }
}

extension DeviceCondition: Codable {
  private enum Key: CodingKey {
    case power, network, isScreenOn
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: Key.self)
    self.init(
      power: try values.decode(Power.self, forKey: .power),
      network: try values.decode(Network.self, forKey: .network),
      screen: try values.decode(Bool.self, forKey: .isScreenOn) ? .on : .off)
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    try values.encode(power, forKey: .power)
    try values.encode(network, forKey: .network)
    try values.encode(screen == .on, forKey: .isScreenOn)
  }
}
