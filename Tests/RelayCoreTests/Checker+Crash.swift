import Primitives

@testable import RelayCore

/// What must have survived a crash, and what is expected of the next shard.
extension Checker {
  /// The process is gone; this is what is on disk, and which sequences the next shard has.
  mutating func crash(_ disk: Disk, at moment: Instant, _ sequences: SequenceRanges) {
    now = moment
    eventAtHand = nil
    openRequests = []
    deviceRequests = [:]
    askedContents = [:]
    inFlight = []
    live = [:]
    slots = [:]
    conditions = [:]
    rides = Rides()
    journal = [:]
    restoredCount = 0
    restated = restated.filter { item in disk.apps.contains { $0.sequence == item.key } }
    self.sequences = sequences
    lastSequence = sequences.first - 1
    settledSequence = lastSequence
    crashDevices(disk)
    crashChannels(disk)
    crashTokens(disk)
    crashBudgets(disk)
    forgetOwnPolicies()
    crashLives(disk)
  }

  /// A policy of a device's own ends with the process. What it has used is on disk by the clocks of
  /// all, at whose rates it comes back from then on: of these devices nothing is known any more.
  private mutating func forgetOwnPolicies() {
    for device in ownPolicies.keys {
      deviceBudgets[device] = []
      appBudgets = appBudgets.filter { $0.key.device != device }
    }
    ownPolicies = [:]
    withOwnPolicy = []
  }

  /// Nothing that was answered 200 is lost.
  private mutating func crashLives(_ disk: Disk) {
    let stored = Set(disk.notifications.values.map(\.notification.uniqueID))
    // Of those whose record is that of a repetition, the repetitions.
    var adopted: [UniqueID: [UniqueID]] = [:]
    for (id, life) in lives {
      guard life.isAdopted, case .discarded(.repeated(of: let first)) = life.end else { continue }
      adopted[first, default: []].append(id)
    }
    for (id, life) in lives {
      var life = life
      if case .discarded(.replaced(let newer)) = life.end, stored.contains(id) {
        let records = [newer] + adopted[newer, default: []]
        expect(
          records.contains(where: stored.contains),
          "replaced, and back without what replaced it: \(id)")
      }
      guard let sequence = life.sequence, let stored = disk.notifications[sequence] else {
        lives[id] = nil
        // A journal may give it up with its app, and what was in flight to an app that was to be
        // removed.
        expect(
          life.end != nil || !life.isAccepted || life.sequence == nil || life.isForgotten
            || adopted[id] != nil
            || !registrations[life.registration].isAlive,
          "answered 200, and lost in the crash: \(id)")
        // Nobody knows whether its one attempt was successful.
        if life.end == nil, life.sequence == nil { end(&life, .discarded(.notStored)) }
        continue
      }
      expect(stored.notification == life.notification, "another notification on disk")
      expect(stored.acceptedAt == life.acceptedAt, "another time of acceptance on disk")
      // A record that failed was never asked back; that it is on disk all the same is no fault.
      expect(
        life.end == nil || life.isForgotten || !life.isPersisted || life.isAdopted,
        "ended, but never forgotten: \(id)")
      life.cameBack = life.cameBack || life.end != nil
      life.end = nil
      life.isAdopted = false
      life.isReceived = false
      life.isForgotten = false
      life.isPersisted = true
      life.isInSlot = false
      life.flight = nil
      journal[sequence] = id
      lives[id] = life
    }
  }

  private mutating func crashDevices(_ disk: Disk) {
    for (device, isAnswered) in enrolments where isAnswered {
      expect(disk.devices.contains { $0.id == device }, "an enrolled device is lost: \(device)")
    }
    let tokens = Set(disk.apps.map(\.token))
    expect(tokens.count == disk.apps.count, "two apps of one token on disk")
    enrolments = [:]
    for device in disk.devices { enrolments[device.id] = true }
    registrationOf = [:]
    for index in registrations.indices {
      let registration = registrations[index]
      let isStored = disk.apps.contains {
        $0.sequence == registration.sequence || restated[$0.sequence] == index
      }
      let isRemoved =
        registration.removal.map(disk.written.contains) ?? false
        || registration.failedRemovals.contains(where: disk.written.contains)
        || isReplaced(registration, on: disk)
      expect(
        isStored || isRemoved || !registration.isAnswered, "a registered app is lost: \(index)")
      expect(!isStored || !registration.isRemovalAnswered, "a removed app is back: \(index)")
      registrations[index].isAlive = isStored
      if isStored {
        registrations[index].isPersisted = true
        registrationOf[registration.app.token] = index
      }
    }
  }

  /// Whether its app was registered again. Then what became of its removal does not matter.
  private func isReplaced(_ registration: Registration, on disk: Disk) -> Bool {
    registrations.contains { other in
      other.sequence > registration.sequence && other.app.phone == registration.app.phone
        && other.app.topic == registration.app.topic && disk.written.contains(other.sequence)
    }
  }

  /// What was gone for good is gone since the same moment, unless somebody had it in between.
  private mutating func crashTokens(_ disk: Disk) {
    for (token, gone) in goneTokens
    where disk.written.contains(gone.sequence) && registrationOf[token] == nil {
      let wasGivenAgain = registrations.contains {
        $0.app.token == token && $0.sequence > gone.sequence && disk.written.contains($0.sequence)
      }
      guard !wasGivenAgain else { continue }
      let stored = disk.gone.first { $0.token == token }
      // The record is a little older than what comes of it.
      expect(
        stored.map { $0.since <= gone.since } ?? false,
        "gone since \(gone.since), after the crash since \(String(describing: stored?.since))")
    }
    goneTokens = [:]
    for (token, since) in disk.gone { goneTokens[token] = (since, 0) }
  }

  /// Forgives what was spent since the last note that is on disk. What was spent before a note is
  /// in it.
  private mutating func crashBudgets(_ disk: Disk) {
    for (key, spendings) in appBudgets {
      appBudgets[key] = noted(spendings, through: disk.appBudgets[key]?.sequence ?? 0)
    }
    for (device, spendings) in deviceBudgets {
      let stored = disk.devices.first { $0.id == device }
      deviceBudgets[device] = noted(spendings, through: stored?.spentSequence ?? 0)
    }
  }

  private mutating func noted(_ spendings: [Spending], through sequence: UInt64) -> [Spending] {
    let last = spendings.lastIndex { $0.sequence.map { $0 <= sequence } ?? false }
    let count = last.map { $0 + 1 } ?? 0
    forgivenSpendings += spendings.count - count
    return Array(spendings.prefix(count))
  }

  // MARK: After the restart

  /// What the new shard asks for while it is restored.
  mutating func checkRestoring(_ effects: [Effect]) {
    check(effects)
    for (id, life) in lives {
      if registrations[life.registration].isAlive {
        expect(life.isReceived, "on disk, but not restored: \(id)")
        expect(life.isInSlot || life.end != nil, "restored, but nowhere: \(id)")
      } else {
        let isEnded = life.end == .discarded(.unregistered)
        expect(life.isForgotten && isEnded, "of an app that is gone, and not forgotten: \(id)")
      }
    }
  }
}
