import DequeModule
package import Primitives

/// Checks restored states and recorded events for what a shard would trap or loop on, as a
/// recording may contain anything. A running shard does not use this.
extension Shard {
  /// Takes a shard and its checkpoints from a file; throws if no events can have produced them.
  package init(restoring parts: Shard, checkpoints kept: [UInt32: Shard] = [:]) throws(StateFlaw) {
    self = parts
    try checkSoundness()
    fillIndexes()
    checkpoints = [:]
    for (number, parts) in kept {
      checkpoints[number] = ShardCheckpoint(try Shard(restoring: parts))
    }
  }

  private mutating func fillIndexes() {
    (deviceIndex, connectionIndex) = (HashIndex(), HashIndex())
    (appIndex, aliasIndex) = (HashIndex(), HashIndex())
    for number in devices.indices {
      deviceIndex.insert(number.number, KeyedHash.hash(devices[number].id))
      if let connection = devices[number].connection {
        connectionIndex.insert(number.number, KeyedHash.hash(connection))
      }
    }
    for number in apps.indices where apps[number].isRegistered {
      appIndex.insert(number.number, KeyedHash.hash(apps[number].token))
    }
    for number in aliases.indices {
      aliasIndex.insert(number.number, KeyedHash.hash(aliases[number].own.token))
    }
  }

  private func checkSoundness() throws(StateFlaw) {
    let soundness = Soundness(devices: devices, apps: apps, entries: entries)
    try soundness.check()
    try Soundness.check(subscriptions, channels, fanOuts, of: apps)
    try checkTimers(soundness)
    try checkPending()
    try checkCounters()
    try require(Soundness.moments.contains(now) && timers.moment <= now, "it is at no moment")
    try require(lastOrder <= UInt64(Soundness.counts.upperBound), "it has accepted too much")
    try require(
      awaitedOutcomes.state.allSatisfy { $0.value.map { devices.mayBeTaken($0.device) } ?? true },
      "an outcome is awaited of a device that is not there")
    try require(
      unanswered.keys.allSatisfy { entries.mayBeTaken($0) && !entries[$0].isStorable },
      "somebody waits for an entry that is none")
    try require(
      nextToReview.map { (0...apps.placeCount).contains(Int($0)) } ?? true,
      "an app is to be reviewed that is not there")
  }

  /// Each timer has an owner, and each owner's timer is set.
  private func checkTimers(_ soundness: Soundness) throws(StateFlaw) {
    for timer in timers.state {
      try require(soundness.timer(of: timer.subject) == timer.id, "timer \(timer.id) is nobody's")
    }
    try require(soundness.timerCount == timers.count, "a timer is not set")
  }

  /// Pending records match the waiting entries, in order.
  private func checkPending() throws(StateFlaw) {
    try require(
      firstPendingOrdinal <= SequenceRanges.latestOrdinal
        && firstPendingSequence == sequences.sequence(firstPendingOrdinal),
      "its records are not numbered in a row")
    var (answers, steps) = (0, 0)
    for (index, item) in pending.enumerated() {
      switch item {
      case .submission(_, _, let entry):
        guard entry != .none else { continue }
        try require(
          entries.mayBeTaken(entry)
            && entries[entry].sequence == sequences.sequence(firstPendingOrdinal + UInt64(index))
            && entries[entry].phase != .stored,
          "record \(index) waits for entry \(entry), which does not wait for it")
      case .device: answers += 1
      case .alias: steps += 1
      case .note, .nothing: break
      }
    }
    try require(
      answers == pendingAnswers.count && steps == aliasSteps.count, "answers wait for no record")
    for number in entries.indices {
      let sequence = entries[number].sequence
      guard sequence != 0, isPending(sequence) else {
        try require(entries[number].phase != .waiting, "entry \(number) waits for no record")
        continue
      }
      let index = pendingIndex(of: sequence)
      guard pending.indices.contains(index), case .submission(_, _, number) = pending[index]
      else { throw StateFlaw("entry \(number) waits for a record that is not its own") }
    }
  }

  private func checkCounters() throws(StateFlaw) {
    var counted = counters
    counted.devices = devices.count
    counted.apps = apps.indices.count { apps[$0].isRegistered }
    counted.aliases = aliases.count
    counted.subscriptions = subscriptions.count
    counted.connections = connections.count
    (counted.waiting, counted.inSlots, counted.inFlight) = (0, 0, 0)
    for number in entries.indices {
      switch entries[number].phase {
      case .waiting: counted.waiting += 1
      case .stored: counted.inSlots += 1
      case .inFlight: counted.inFlight += 1
      }
    }
    try require(counted == counters, "there are others than it counts")
    let sums =
      ShardCounters.numbers.map { counters[keyPath: $0] }
      + ShardCounters.lists.flatMap { counters[keyPath: $0] }
    try require(sums.allSatisfy(Soundness.counts.contains), "a count is none")
  }

  /// Why an event is impossible for this shard now. `mutating` as `verdict` is.
  package mutating func flaw(in event: Event, at instant: Instant) -> StateFlaw? {
    guard Soundness.moments.contains(max(now, instant)) else {
      return StateFlaw("no shard is at the moment \(max(now, instant).milliseconds)")
    }
    switch event {
    case .clock(.clockStepped(let interval)):
      return Soundness.moments.contains(now + interval)
        ? nil : StateFlaw("no clock is set to \((now + interval).milliseconds)")
    case .asked(.enrolled, let credential, _):
      let id = credential.device
      return deviceNumber(id) == nil ? nil : StateFlaw("device \(id) was enrolled before")
    case .journal(.restored(.notification(_, let sequence, _))),
      .journal(.restored(.forwarded(_, _, let sequence, _))),
      .alias(.restored(_, _, let sequence, _)):
      return isForeign(sequence) ? nil : StateFlaw("record \(sequence) is not of another run")
    case .operated(.checkpointSaved(let number)):
      return mayKeep(number) ? nil : StateFlaw("more states are kept than a relay keeps")
    case .submitted, .asked, .stream, .journal, .alias, .broadcast, .operated, .clock: return nil
    }
  }

  private func isForeign(_ sequence: UInt64) -> Bool { sequence > 0 && !isPending(sequence) }

  /// Whether one more state may be kept; one beyond the limits while it replaces another.
  private func mayKeep(_ number: UInt32) -> Bool {
    guard checkpoints[number] == nil else { return true }
    return checkpoints.count <= Limits.checkpoints
      && checkpoints.values.reduce(placeBytes) { $0 + $1.placeBytes } <= 2 * Limits.checkpointBytes
  }
}
