import DequeModule
import Primitives

/// Partitions leave a shard and come to another.
///
/// ```
///   requested ──▶ (the journal answers what waits) ──▶ handOver ──▶ received, by another shard
/// ```
///
/// Invariants:
/// 1. From `requested` on, whoever runs the shard keeps events of the partition back. Timers still
///    fire, and connections may end, until it leaves.
/// 2. What leaves has nothing that waits for this shard's journal line. So each answer of the
///    journal finds what it is about, and what the next shard writes of a device comes later.
/// 3. An entry keeps the sequence and the order of the shard that accepted it; a sequence of
///    another shard never waits here (`isPending`).
/// 4. A life is counted where it ends. In between, `handedOver` and `takenOver` keep both shards'
///    counters adding up.
extension Shard {
  /// The partition is wanted elsewhere.
  mutating func request(_ partition: PartitionID, into effects: inout [Effect]) {
    leaving = partition
    handOverWhenSettled(into: &effects)
  }

  /// Lets the partition go that was asked for, once the journal has nothing of it.
  mutating func handOverWhenSettled(into effects: inout [Effect]) {
    guard let partition = leaving, !isAwaited(partition) else { return }
    leaving = nil
    effects.append(.handOver(evict(partition)))
  }

  /// The partition of a device or of a token.
  @inline(__always)
  func partition(ofRoutingKey key: UInt64) -> PartitionID {
    PartitionID(routingKey: key, count: configuration.partitionCount)
  }

  /// Whether an app is about to leave, but pushes to its token still come: it is its device's own,
  /// and of another partition. They take the way over the alias, to be kept back.
  ///
  /// Changes nothing; `mutating` as `mayGoDirectly` is.
  mutating func isLeaving(_ app: Int32) -> Bool {
    guard apps[app].isOwn else { return false }
    return partition(ofRoutingKey: devices[apps[app].device].id.routingKey) == leaving
  }

  private func isAwaited(_ partition: PartitionID) -> Bool {
    pending.contains { item in
      switch item {
      case .submission(_, _, let entry):
        // One that has ended waits no longer; only its provider does.
        entry >= 0
          && self.partition(ofRoutingKey: devices[apps[entries[entry].app].device].id.routingKey)
            == partition
      case .device(let key), .alias(let key), .note(let key):
        self.partition(ofRoutingKey: key) == partition
      case .nothing: false
      }
    }
  }

  // MARK: Leaving

  private typealias Places = [Int32: Int32]

  private mutating func evict(_ partition: PartitionID) -> PartitionState {
    var state = PartitionState(
      partition, lastOrder: lastOrder, at: now,
      policy: nextToReview == nil ? budgets.policy : nil)
    let numbers = devices.indices
      .filter { self.partition(ofRoutingKey: devices[$0].id.routingKey) == partition }
      .sorted { devices[$0].id.precedes(devices[$1].id) }
    var devicePlaces: Places = [:]
    for (place, number) in numbers.enumerated() { devicePlaces[number] = Int32(place) }
    let (appNumbers, entryNumbers) = belongings(of: numbers)
    let appPlaces = Places(uniqueKeysWithValues: zip(appNumbers, Int32(0)...))
    let entryPlaces = Places(uniqueKeysWithValues: zip(entryNumbers, Int32(0)...))
    state.timers = takeTimers(devicePlaces, appPlaces, entryPlaces)
    state.awaitedOutcomes = awaitedOutcomes.take(of: devicePlaces)
    state.ownBudgets = numbers.compactMap { number in
      let id = devices[number].id
      return ownBudgets.removeValue(forKey: id).map { OwnBudgets(device: id, budgets: $0) }
    }
    state.unanswered = entryNumbers.enumerated().compactMap { place, number in
      defer { unanswered[number] = nil }
      return unansweredItem(number, as: Int32(place))
    }
    state.devices = numbers.map { takeDevice($0, appPlaces, entryPlaces) }
    state.apps = appNumbers.map { takeApp($0, devicePlaces, appPlaces, entryPlaces) }
    state.entries = entryNumbers.map { takeEntry($0, appPlaces, entryPlaces) }
    takeTokens(into: &state)
    counters.removeGauges(state.counts)
    counters.handedOver += state.entries.count
    return state
  }

  /// The apps and entries of devices, in an order that does not depend on their numbers.
  private func belongings(of devices: [Int32]) -> (apps: [Int32], entries: [Int32]) {
    var (appNumbers, entryNumbers): ([Int32], [Int32]) = ([], [])
    var removed: Set<Int32> = []
    for device in devices {
      let first = appNumbers.count
      var app = self.devices[device].firstApp
      while app >= 0 {
        appNumbers.append(app)
        for entry in [apps[app].slots.visible, apps[app].slots.silent] where entry >= 0 {
          entryNumbers.append(entry)
        }
        app = apps[app].next
      }
      // Oldest first, as they have their numbers: a changed policy looks at them in this order.
      appNumbers[first...].reverse()
      var entry = self.devices[device].firstInFlight
      while entry >= 0, case .inFlight(let next) = entries[entry].phase {
        entryNumbers.append(entry)
        // A removed app stays until its last frame is acknowledged.
        let app = entries[entry].app
        if !apps[app].isRegistered, removed.insert(app).inserted { appNumbers.append(app) }
        entry = next
      }
    }
    precondition(
      entryNumbers.count == appNumbers.reduce(0) { $0 + Int(apps[$1].entryCount) },
      "what leaves does not wait for the journal")
    return (appNumbers, entryNumbers)
  }

  private mutating func takeTimers(
    _ devicePlaces: Places, _ appPlaces: Places, _ entryPlaces: Places
  ) -> [PartitionState.Timer] {
    timers.take { subject in
      switch subject {
      case .expiration(let entry): entryPlaces[entry].map { .expiration(entry: $0) }
      case .hold(let app): appPlaces[app].map { .hold(app: $0) }
      case .refill(let app): appPlaces[app].map { .refill(app: $0) }
      case .keepAlive(let device): devicePlaces[device].map { .keepAlive(device: $0) }
      case .acknowledgement(let device): devicePlaces[device].map { .acknowledgement(device: $0) }
      }
    }.map { PartitionState.Timer(deadline: $0.deadline, subject: $0.subject) }
  }

  private mutating func takeDevice(
    _ number: Int32, _ appPlaces: Places, _ entryPlaces: Places
  ) -> Device {
    var device = devices[number]
    deviceIndex.remove(number, KeyedHash.hash(device.id))
    if let connection = device.connection {
      connectionIndex.remove(number, KeyedHash.hash(connection))
    }
    devices.remove(at: number)
    device.firstApp = appPlaces[device.firstApp] ?? -1
    device.firstInFlight = entryPlaces[device.firstInFlight] ?? -1
    device.keepAliveTimer = TimerWheel.none
    device.ackTimer = TimerWheel.none
    return device
  }

  private mutating func takeApp(
    _ number: Int32, _ devicePlaces: Places, _ appPlaces: Places, _ entryPlaces: Places
  ) -> App {
    var app = apps[number]
    if app.isRegistered { appIndex.remove(number, KeyedHash.hash(app.token)) }
    apps.remove(at: number)
    app.device = devicePlaces[app.device] ?? -1
    app.next = appPlaces[app.next] ?? -1
    app.slots = PerClass(
      visible: entryPlaces[app.slots.visible] ?? -1, silent: entryPlaces[app.slots.silent] ?? -1)
    app.refillTimer = TimerWheel.none
    app.holdTimer = TimerWheel.none
    return app
  }

  private mutating func takeEntry(
    _ number: Int32, _ appPlaces: Places, _ entryPlaces: Places
  ) -> AcceptedNotification {
    var entry = entries[number]
    entries.remove(at: number)
    entry.app = appPlaces[entry.app] ?? -1
    if case .inFlight(let next) = entry.phase {
      entry.phase = .inFlight(next: entryPlaces[next] ?? -1)
    }
    entry.expirationTimer = TimerWheel.none
    return entry
  }

  /// What the partition has of tokens: a token is where its own routing key says.
  private mutating func takeTokens(into state: inout PartitionState) {
    let (partition, count) = (state.partition, configuration.partitionCount)
    func isIts(_ key: UInt64) -> Bool { PartitionID(routingKey: key, count: count) == partition }
    for number in aliases.indices where isIts(aliases[number].own.token.routingKey) {
      let alias = aliases[number]
      aliasIndex.remove(number, KeyedHash.hash(alias.own.token))
      aliases.remove(at: number)
      state.aliases.append(alias)
    }
    state.aliases.sort { $0.own.token.bytes.lexicographicallyPrecedes($1.own.token.bytes) }
    state.tokenChanges = tokenChanges.take { isIts($0.routingKey) }
    state.goneTokens = goneTokens.take { isIts($0.routingKey) }
    state.formerBudgets = formerBudgets.take(ofAll: { isIts($0.key.device.routingKey) })
    state.takenPushes = takenPushes.take { isIts($0.device.routingKey) }
      .filter { $0.value.takenAt + Limits.takenPushAge > now }
  }

  // MARK: Coming

  /// Takes over what another shard has let go.
  mutating func load(_ state: PartitionState) {
    precondition(
      state.devices.allSatisfy { deviceNumber($0.id) == nil }, "a partition has one holder")
    now = max(now, state.now)
    lastOrder = max(lastOrder, state.lastOrder)
    let deviceNumbers = state.devices.map { devices.insert($0) }
    let appNumbers = state.apps.map { apps.insert($0) }.sorted()
    for (number, app) in zip(appNumbers, state.apps) { apps[number] = app }
    let entryNumbers = state.entries.map { entries.insert($0) }
    func app(_ place: Int32) -> Int32 { place < 0 ? -1 : appNumbers[Int(place)] }
    func entry(_ place: Int32) -> Int32 { place < 0 ? -1 : entryNumbers[Int(place)] }
    for number in deviceNumbers {
      devices[number].firstApp = app(devices[number].firstApp)
      devices[number].firstInFlight = entry(devices[number].firstInFlight)
      deviceIndex.insert(number, KeyedHash.hash(devices[number].id))
      if let connection = devices[number].connection {
        connectionIndex.insert(number, KeyedHash.hash(connection))
      }
    }
    for number in appNumbers {
      apps[number].device = deviceNumbers[Int(apps[number].device)]
      apps[number].next = app(apps[number].next)
      apps[number].slots = PerClass(
        visible: entry(apps[number].slots.visible), silent: entry(apps[number].slots.silent))
      if apps[number].isRegistered {
        appIndex.insert(number, KeyedHash.hash(apps[number].token))
      }
    }
    for number in entryNumbers {
      entries[number].app = app(entries[number].app)
      if case .inFlight(let next) = entries[number].phase {
        entries[number].phase = .inFlight(next: entry(next))
      }
    }
    setTimers(state.timers, deviceNumbers, appNumbers, entryNumbers)
    for promise in state.awaitedOutcomes {
      awaitedOutcomes.insert(
        promise.id, of: deviceNumbers[Int(promise.device)], decisions: promise.decisions)
    }
    for alias in state.aliases {
      aliasIndex.insert(aliases.insert(alias), KeyedHash.hash(alias.own.token))
    }
    for change in state.tokenChanges { tokenChanges.add(change) }
    for gone in state.goneTokens { _ = goneTokens.insert(gone.value, for: gone.key) }
    for former in state.formerBudgets { formerBudgets.add(former) }
    for taken in state.takenPushes { _ = takenPushes.insert(taken.value, for: taken.key) }
    for item in state.unanswered { unanswered[entry(item.entry)] = item.request }
    for own in state.ownBudgets { ownBudgets[own.device] = own.budgets }
    counters = counters + state.counts
    counters.takenOver += state.entries.count
    // One of both has not heard of the policy yet, or the other was not through with it.
    if state.policy != budgets.policy { nextToReview = 0 }
  }

  private mutating func setTimers(
    _ list: [PartitionState.Timer], _ deviceNumbers: [Int32], _ appNumbers: [Int32],
    _ entryNumbers: [Int32]
  ) {
    for timer in list {
      switch timer.subject {
      case .expiration(let place):
        let entry = entryNumbers[Int(place)]
        entries[entry].expirationTimer = timers.set(timer.deadline, .expiration(entry: entry))
      case .hold(let place):
        let app = appNumbers[Int(place)]
        apps[app].holdTimer = timers.set(timer.deadline, .hold(app: app))
      case .refill(let place):
        let app = appNumbers[Int(place)]
        apps[app].refillTimer = timers.set(timer.deadline, .refill(app: app))
      case .keepAlive(let place):
        let device = deviceNumbers[Int(place)]
        devices[device].keepAliveTimer = timers.set(timer.deadline, .keepAlive(device: device))
      case .acknowledgement(let place):
        let device = deviceNumbers[Int(place)]
        devices[device].ackTimer = timers.set(timer.deadline, .acknowledgement(device: device))
      }
    }
  }
}
