package import Primitives

/// A whole shard as plain values, including places: a shard made from it decides the same. A
/// recording begins with it.
///
/// The same history gives the same state; what no decision depends on (a hash table's order) is
/// left out.
package struct ShardState: Hashable, Sendable {
  /// A slab's values and places.
  package struct Places<Element: Hashable & Sendable>: Hashable, Sendable {
    package struct Taken: Hashable, Sendable {
      package var number: Int32
      package var element: Element

      package init(number: Int32, element: Element) {
        self.number = number
        self.element = element
      }
    }

    /// By number.
    package var taken: [Taken] = []
    /// In the order of reuse.
    package var free: [Int32] = []

    package init() {}

    package init(taken: [Taken], free: [Int32]) {
      self.taken = taken
      self.free = free
    }
  }

  package struct Timer: Hashable, Sendable {
    package var id: TimerWheel.TimerID
    package var deadline: Instant
    package var subject: TimerWheel.Subject

    package init(id: TimerWheel.TimerID, deadline: Instant, subject: TimerWheel.Subject) {
      self.id = id
      self.deadline = deadline
      self.subject = subject
    }
  }

  /// An entry in flight whose record failed, and the waiting request.
  package struct Unanswered: Hashable, Sendable {
    package var entry: Int32
    package var request: RequestID

    package init(entry: Int32, request: RequestID) {
      self.entry = entry
      self.request = request
    }
  }

  package var configuration: Shard.Configuration
  package var sequences: SequenceRanges
  package var budgets: SilentBudgets
  package var now: Instant
  package var counters = ShardCounters()
  package var devices = Places<Device>()
  package var apps = Places<App>()
  package var entries = Places<AcceptedNotification>()
  package var aliases = Places<Alias>()
  /// The timers' time, which may be a little behind `now`.
  package var timersNow: Instant
  /// In firing order.
  package var timers: [Timer] = []
  /// In the order of reuse.
  package var freeTimers: [TimerWheel.TimerID] = []
  package var tokenChanges: [TokenChanges.Change] = []
  package var goneTokens: [GoneTokens.Place] = []
  package var awaitedOutcomes: [AwaitedOutcomes.Place] = []
  package var lastOrder: UInt64 = 0
  package var pending: [Shard.Pending] = []
  package var pendingAnswers: [TokenChanges.Reply] = []
  package var aliasSteps: [AliasStep] = []
  package var firstPendingOrdinal: UInt64 = 0
  package var firstPendingSequence: UInt64
  package var nextToReview: Int32?
  package var leaving: PartitionID?
  /// By device.
  package var ownBudgets: [OwnBudgets] = []
  package var formerBudgets: [FormerBudget] = []
  package var takenPushes: [TakenPushes.Place] = []
  /// By entry.
  package var unanswered: [Unanswered] = []

  package init(
    configuration: Shard.Configuration, sequences: SequenceRanges, budgets: SilentBudgets,
    at now: Instant
  ) {
    self.configuration = configuration
    self.sequences = sequences
    self.budgets = budgets
    self.now = now
    timersNow = now
    firstPendingSequence = sequences.first
  }
}

extension Shard {
  /// Everything but the checkpoints.
  package var state: ShardState {
    var state = ShardState(
      configuration: configuration, sequences: sequences, budgets: budgets, at: now)
    state.counters = counters
    state.devices = devices.state
    state.apps = apps.state
    state.entries = entries.state
    state.aliases = aliases.state
    state.timersNow = timers.moment
    state.timers = timers.state
    state.freeTimers = timers.freeTimers
    state.tokenChanges = tokenChanges.state
    state.goneTokens = goneTokens.state
    state.awaitedOutcomes = awaitedOutcomes.state
    state.lastOrder = lastOrder
    state.pending = Array(pending)
    state.pendingAnswers = Array(pendingAnswers)
    state.aliasSteps = Array(aliasSteps)
    state.firstPendingOrdinal = firstPendingOrdinal
    state.firstPendingSequence = firstPendingSequence
    state.nextToReview = nextToReview
    state.leaving = leaving
    state.ownBudgets = ownBudgetsState
    state.formerBudgets = formerBudgets.state
    state.takenPushes = takenPushes.state
    state.unanswered = unanswered.sorted { $0.key < $1.key }
      .map { ShardState.Unanswered(entry: $0.key, request: $0.value) }
    return state
  }

  package var checkpointStates: [UInt32: ShardState] { checkpoints.mapValues(\.state) }

  /// Restores a shard with its checkpoints; throws if no events can have produced the state.
  package init(
    _ state: ShardState, checkpoints kept: [UInt32: ShardState] = [:]
  ) throws(StateFlaw) {
    guard let devices = Slab(state.devices, vacant: Device.vacant),
      let apps = Slab(state.apps, vacant: App.vacant),
      let entries = Slab(state.entries, vacant: AcceptedNotification.vacant),
      let aliases = Slab(state.aliases, vacant: Alias.vacant),
      let timers = TimerWheel(now: state.timersNow, state.timers, free: state.freeTimers)
    else { throw StateFlaw("places are not numbered from 0, each once") }
    self.init(
      configuration: state.configuration, at: state.now, sequences: state.sequences,
      budgets: state.budgets)
    self.devices = devices
    self.apps = apps
    self.entries = entries
    self.aliases = aliases
    self.timers = timers
    counters = state.counters
    for change in state.tokenChanges { tokenChanges.add(change) }
    goneTokens.fill(state.goneTokens)
    awaitedOutcomes.fill(state.awaitedOutcomes)
    lastOrder = state.lastOrder
    pending = .init(state.pending)
    pendingAnswers = .init(state.pendingAnswers)
    aliasSteps = .init(state.aliasSteps)
    firstPendingOrdinal = state.firstPendingOrdinal
    firstPendingSequence = state.firstPendingSequence
    nextToReview = state.nextToReview
    leaving = state.leaving
    for own in state.ownBudgets { ownBudgets[own.device] = own.budgets }
    for former in state.formerBudgets { formerBudgets.add(former) }
    takenPushes.fill(state.takenPushes)
    for item in state.unanswered { unanswered[item.entry] = item.request }
    try checkSoundness(state)
    fillIndexes()
    for (number, state) in kept { checkpoints[number] = ShardCheckpoint(try Shard(state)) }
  }

  private mutating func fillIndexes() {
    for number in devices.indices {
      deviceIndex.insert(number, KeyedHash.hash(devices[number].id))
      if let connection = devices[number].connection {
        connectionIndex.insert(number, KeyedHash.hash(connection))
      }
    }
    for number in apps.indices where apps[number].isRegistered {
      appIndex.insert(number, KeyedHash.hash(apps[number].token))
    }
    for number in aliases.indices {
      aliasIndex.insert(number, KeyedHash.hash(aliases[number].own.token))
    }
  }
}

extension Slab where Element: Hashable {
  var state: ShardState.Places<Element> {
    ShardState.Places(
      taken: indices.map { ShardState.Places.Taken(number: $0, element: self[$0]) },
      free: freePlaces)
  }

  /// nil unless the numbers are places from 0, each once.
  init?(_ state: ShardState.Places<Element>, vacant: Element) {
    let count = state.taken.count + state.free.count
    var isUsed = [Bool](repeating: false, count: count)
    for number in state.taken.map(\.number) + state.free {
      guard isUsed.indices.contains(Int(number)), !isUsed[Int(number)] else { return nil }
      isUsed[Int(number)] = true
    }
    self.init(
      vacant: vacant, placeCount: count, free: state.free,
      taken: state.taken.map { ($0.number, $0.element) })
  }

  func mayBeTaken(_ number: Int32) -> Bool {
    (0..<placeCount).contains(Int(number)) && isTaken(number)
  }
}
