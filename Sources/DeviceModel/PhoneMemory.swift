package import Primitives

/// The part of a phone that survives a power loss. Decoding checks everything the phone relies on;
/// damaged input throws `PhoneMemoryError` or the decoder's own error.
package struct PhoneMemory: Codable, Sendable {
  /// Raised by every change that older readers would misunderstand.
  package static let format = 2

  let phone: Phone
  /// Switched on, and not unlocked since.
  package let isBeforeFirstUnlock: Bool

  fileprivate init(_ phone: Phone, isBeforeFirstUnlock: Bool) {
    (self.phone, self.isBeforeFirstUnlock) = (phone, isBeforeFirstUnlock)
  }

  private enum Key: CodingKey {
    case format, phone, isBeforeFirstUnlock
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: Key.self)
    let found = try values.decode(Int.self, forKey: .format)
    guard found == Self.format else { throw PhoneMemoryError.unknownFormat(found) }
    phone = try values.decode(Phone.self, forKey: .phone)
    let lock = try values.decodeIfPresent(Bool.self, forKey: .isBeforeFirstUnlock)
    isBeforeFirstUnlock = lock ?? false
    try phone.check()
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    try values.encode(Self.format, forKey: .format)
    try values.encode(phone, forKey: .phone)
    try values.encode(isBeforeFirstUnlock, forKey: .isBeforeFirstUnlock)
  }

  package var apps: [String] { phone.apps.map(\.definition.name) }

  /// The name of the app that was in the foreground.
  package var foreground: String? {
    phone.apps.first { $0.state == .foreground }?.definition.name
  }
}

extension Phone {
  /// As if the power were lost now. The phone itself goes on.
  package func memory() -> PhoneMemory {
    var phone = self
    phone.powerFailed()
    return PhoneMemory(phone, isBeforeFirstUnlock: lock == .beforeFirstUnlock)
  }

  /// Charges all work up to now, in the order of `reboot`, so that the time without power is not
  /// charged later; then drops what does not survive.
  private mutating func powerFailed() {
    for index in apps.indices {
      for place in callbacks.indices where callbacks[place].app.number == index {
        chargeBegunPart(of: callbacks[place])
        if callbacks[place].phase == .working {
          service.told(by: callbacks[place].id, hasHeard: false)
        }
        callbacks[place].phase = .worked(.failed)
      }
      apps[index].powerFailed()
      if foreground == AppID(index) { apps[index].lastActivity = now }
    }
    accountTransfers()
    service.powerFailed()
    (lock, wakefulness, foreground) = (.locked, .asleep, nil)
    (timers, coordination, uses) = (TimerQueue(), Coordination(), [:])
    (mustReviewTransfers, mustCoalesce, mustShowActivities) = (false, false, false)
    litUntil = Instant(milliseconds: .min)
    vault = ArchiveVault()
    useNumbering = Numbering()
  }

  /// A phone that is switched on again at `now`, as after `PhoneEvent.rebooted`: no process runs,
  /// it has not been unlocked, and timers that fell due meanwhile did not fire. No effect is dated
  /// before `now`.
  ///
  /// If the clock was set back, no time has passed for the phone. Archives follow by
  /// `PhoneEvent.archiveFound`; network and charger keep their state until an event changes it.
  package init(
    restoring memory: PhoneMemory, limits: PhoneLimits = PhoneLimits(),
    transferMode: TransferMode = .modelled, at now: Instant, into effects: inout [PhoneEffect]
  ) {
    self = memory.phone
    swap(&self.effects, &effects)
    defer { swap(&self.effects, &effects) }
    self.limits = limits
    self.transferMode = transferMode
    let now = max(Instant(milliseconds: 0), min(now, .endOfCalendar))
    setClockBack(by: now - self.now, to: now)
    self.now = now
    for index in apps.indices {
      apps[index].callbackCount = callbacks.count { $0.app.number == index }
      apps[index].energy = apps[index].energy.resized(perDay: limits.appEnergyPerDay)
      apps[index].data = apps[index].data.resized(perDay: limits.appDataPerDay)
    }
    energy = energy.resized(perDay: limits.phoneEnergyPerDay)
    data = data.resized(perDay: limits.phoneDataPerDay)
    banners.trim(to: limits.banners)
    recentPushes.trim(to: limits.recentPushes)
    service.accountedUntil = now
    for push in apps.flatMap(\.heldPushes) { setExpiryTimer(push) }
    resumeCoordination()
    reboot()
    settle()
  }

  /// Keeps the age of all that lies in the past.
  private mutating func setClockBack(by lapse: Interval, to now: Instant) {
    guard lapse < .zero else { return }
    for index in apps.indices {
      apps[index].moveClock(by: lapse)
      apps[index].usage.setBack(to: now + limits.timeZone)
    }
    usage.setBack(to: now + limits.timeZone)
    energy.moveClock(by: lapse)
    data.moveClock(by: lapse)
    silentAllowance.moveClock(by: lapse)
    for place in handlerAllowances?.keys ?? [:].keys {
      handlerAllowances?[place]?.moveClock(by: lapse)
    }
    radio.moveClock(by: lapse)
    banners.forgetMoments()
  }
}

/// Why a memory cannot be restored.
package enum PhoneMemoryError: Error, Hashable, Sendable, CustomStringConvertible {
  case unknownFormat(Int)
  /// Edited or damaged; names the impossible part.
  case impossible(String)

  package var description: String {
    switch self {
    case .unknownFormat(let format): "its format is \(format), not \(PhoneMemory.format)"
    case .impossible(let what): "\(what) cannot be as it says"
    }
  }
}

/// Checks what the phone relies on without looking: indices of apps, counters that must not
/// overflow, parents without cycles. Times may be anything: their arithmetic saturates.
extension Phone {
  fileprivate func check() throws(PhoneMemoryError) {
    try demand("the time", now >= Instant(milliseconds: 0) && now <= .endOfCalendar)
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
      isKnown(banners.banners.map(\.app)) && isDistinct(banners.banners.map(\.id))
        && banners.isSound)
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
    try demand("the callbacks", isDistinct(numbers) && callbackNumbering.isSound(after: numbers))
    for callback in callbacks {
      // A callback ends with its process; without one it would never end.
      var isPossible = isKnown([callback.app]) && apps[callback.app.number].state.hasProcess
      if case .push(let push) = callback.kind, push.app != callback.app { isPossible = false }
      try demand("callback \(callback.id.number)", isPossible)
    }
  }

  /// An unreported push must wait for something that will happen.
  private func checkPushes() throws(PhoneMemoryError) {
    var expected = Set(apps.flatMap(\.heldPushes).map(\.id))
    expected.formUnion(apps.flatMap(\.live.activities).compactMap(\.waiting?.id))
    for case .push(let push) in callbacks.map(\.kind) { expected.insert(push.id) }
    try demand(
      "a push",
      isDistinct(recentPushes.known.map(\.id))
        && recentPushes.known.allSatisfy { $0.entry != .open || expected.contains($0.id) })
  }
}

extension App {
  fileprivate var isSound: Bool {
    definition.isSound && behaviour.isSound && energy.isSound && data.isSound && usage.isSound
      && Numbering.range.contains(Int64(content.revision))
      && plan.app == id
      && heldPushes.allSatisfy { $0.app == id } && live.isSound
      && live.activities.allSatisfy { $0.waiting?.app ?? id == id }
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
  /// The size of a performed transfer is an estimate.
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
