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
    var reported: PhoneCondition

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
    resumeCoordination()
    reboot(&effects)
    settle(&effects)
  }
}
