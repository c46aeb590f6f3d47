package import DequeModule
package import Primitives

/// The complete state of one event loop's partitions: one value, one entry point, no I/O, no clock.
///
/// ```
///   provider ─ submitted ─▶ ┌───────────┐ ─ respond ─▶ provider
///   journal ── persisted ─▶ │   Shard   │ ─ persist, forget ─▶ journal
///   device ─── connected ─▶ │  .handle  │ ─ send, close ─▶ device
///              acked, heard └───────────┘ ─ log
/// ```
///
/// Invariants between calls of `handle`:
/// 1. Every accepted notification is in exactly one place: waiting for the journal, in a slot, in
///    flight, or ended (`counters.addsUp`).
/// 2. A slot holds an entry that the journal has. One waiting for the journal never displaces it,
///    as its write may fail.
/// 3. A slot holds the newest of its app and class by order of acceptance.
/// 4. A provider is answered 200 once per submission: when the journal has it or the device has
///    acknowledged it, whichever is first (docs/ARCHITECTURE.md, "What it promises, and the caveats
///    first"). If the journal fails while it is in flight, the acknowledgement decides. A push
///    tried only once (`apns-expiration: 0`) is answered at the attempt.
/// 5. At most `inFlightPerDevice` entries of a device are in flight; the slots hold back the rest.
/// 6. An entry that may be stored has an expiration timer until its end, also in flight.
/// 7. Per app, silents not paid from the budget never exceed the rides opened (`RideCause`). A ride
///    pays for at most one silent of each app, the one in its slot. A silent is paid for once:
///    `isPaid` survives lost connections. Answers to what was sent (an acknowledgement, a
///    keep-alive's answer, a drained stream) open no ride, or each silent's acknowledgement would
///    carry the next.
///
/// Transitions of an entry and their functions:
/// ```
///   submit ──▶ waiting ──place──▶ stored ──transmit──▶ inFlight ──acked──▶ ended (delivered)
///      └────────transmit────────────────────────────────▲  │
///   any ──discard──▶ ended (expired, replaced, …)          ├──giveBack──▶ stored | waiting | ended
///                                                          └──resend──▶ inFlight
/// ```
package struct Shard: Sendable {
  package struct Configuration: Hashable, Sendable {
    package var policy: SilentPolicy
    /// Between two keep-alives.
    package var keepAlive: Interval
    package var keepAliveTimeout: Interval
    /// The time to acknowledge a frame before it is sent again.
    package var ackTimeout: Interval
    /// Rides opened at will: by connecting, changed conditions, or unsolicited keep-alives.
    package var rides: RateLimit
    /// How long a visible push of priority 5 waits for a sleeping phone in Low Power Mode.
    package var lowPriorityHold: Interval
    /// `TooManyRequests` per device token; nil is off.
    package var requestsPerToken: RateLimit?
    package var inFlightPerDevice: Int
    package var pendingPersists: Int
    /// Of all shards together.
    package var partitionCount: Int
    /// Keep-alives and acknowledgements have timers only on streams that follow the relay's clock
    /// (`StreamEvent.clockFollowed`): for a clock that leaps.
    package var deadlinesNeedClock = false

    package init(
      policy: SilentPolicy = .documented, keepAlive: Interval = .minutes(15),
      keepAliveTimeout: Interval = .seconds(30), ackTimeout: Interval = .seconds(60),
      rides: RateLimit = RateLimit(1, per: .minutes(1), burst: 3),
      lowPriorityHold: Interval = .minutes(15),
      requestsPerToken: RateLimit? = nil, inFlightPerDevice: Int = Limits.inFlightPerDevice,
      pendingPersists: Int = Limits.pendingPersists,
      partitionCount: Int = PartitionTable.defaultCount
    ) {
      self.policy = policy
      self.keepAlive = keepAlive
      self.keepAliveTimeout = keepAliveTimeout
      self.ackTimeout = ackTimeout
      self.rides = rides
      self.lowPriorityHold = lowPriorityHold
      self.requestsPerToken = requestsPerToken
      self.inFlightPerDevice = inFlightPerDevice
      self.pendingPersists = pendingPersists
      self.partitionCount = partitionCount
    }
  }

  /// The consequence of the journal's answer, one per sequence.
  package enum Pending: Hashable, Sendable {
    /// Answer the provider, then place the entry; none if its life has ended.
    case submission(RequestID, uniqueID: UniqueID, entry: EntryNumber)
    /// Give the next of `pendingAnswers`. The routing key is the record's, also below.
    case device(key: UInt64)
    /// Continue with the next of `aliasSteps`.
    case alias(key: UInt64)
    /// Nobody waits.
    case note(key: UInt64)
    /// Nobody waits, and the record is no longer needed.
    case nothing
  }

  package var configuration: Configuration
  package var counters = ShardCounters()
  package var now: Instant
  package var devices = Slab(vacant: Device.vacant)
  package var apps = Slab(vacant: App.vacant)
  package var entries = Slab(vacant: AcceptedNotification.vacant)
  package var timers: TimerWheel
  /// By id, by token, and connected devices by connection.
  var deviceIndex = HashIndex()
  var appIndex = HashIndex()
  var connectionIndex = HashIndex()
  /// Tokens brought along that this shard decides about (`Shard+Aliases.swift`).
  package var aliases = Slab(vacant: Alias.vacant)
  var aliasIndex = HashIndex()
  /// Pending changes of this shard's devices to such tokens.
  package var tokenChanges = TokenChanges()
  package var goneTokens = GoneTokens(limit: Limits.unregisteredTokens)
  package var formerBudgets = FormerBudgets()
  /// Recently acknowledged pushes (`Shard+Repetitions.swift`).
  package var takenPushes = TakenPushes(limit: Limits.takenPushes)
  /// Entries whose record failed while in flight, with the request waiting for the acknowledgement.
  package var unanswered: [EntryNumber: RequestID] = [:]
  package var awaitedOutcomes = AwaitedOutcomes(limit: Limits.awaitedOutcomes)
  package var lastOrder: UInt64 = 0
  package var pending = Deque<Pending>()
  /// One for each `.device` in `pending`, in order.
  package var pendingAnswers = Deque<TokenChanges.Reply>()
  /// One for each `.alias` in `pending`, in order.
  package var aliasSteps = Deque<AliasStep>()
  package var sequences: SequenceRanges
  /// Of `pending.first`.
  package var firstPendingOrdinal: UInt64 = 0
  package var firstPendingSequence: UInt64
  /// Has the policy in force; `configuration.policy` is the initial one.
  package var budgets: SilentBudgets
  /// Of devices with their own policy (`OwnBudgets.swift`).
  package var ownBudgets: [DeviceID: SilentBudgets] = [:]
  /// Who listens to broadcast channels (`Shard+Channels.swift`).
  package var subscriptions = Slab(vacant: Subscription.vacant)
  package var channels: [ChannelID: ShardChannel] = [:]
  package var fanOuts = Deque<FanOut>()
  /// The next app whose held silents are to be reviewed after a policy change.
  package var nextToReview: AppNumber?
  /// The partition that moves to another node (`Shard+Partitions.swift`).
  package var leaving: PartitionID?
  var checkpoints: [UInt32: ShardCheckpoint] = [:]
  /// Scratch space, empty between calls; kept for its memory.
  var drainScratch: [EntryNumber] = []

  /// - Parameters:
  ///   - sequences: above all sequences in the journal.
  ///   - budgets: those in the journal, if any.
  package init(
    configuration: Configuration, at now: Instant,
    sequences: SequenceRanges = SequenceRanges(first: 1), budgets: SilentBudgets? = nil
  ) {
    self.configuration = configuration
    self.now = now
    self.timers = TimerWheel(now: now)
    self.sequences = sequences
    self.firstPendingSequence = sequences.first
    self.budgets = budgets ?? SilentBudgets(configuration.policy, at: now)
  }

  /// When `tick` is needed next if nothing else happens; nil for never.
  package var nextWake: Instant? {
    guard nextToReview == nil, fanOuts.isEmpty else { return now }
    guard let question = tokenChanges.nextQuestion else { return timers.nextWake }
    return min(question, timers.nextWake ?? .never)
  }

  /// The exact next timer; slower than `nextWake`.
  package var nextTimer: (deadline: Instant, subject: TimerWheel.Subject)? { timers.earliest }

  /// Nothing waits for the journal or another shard.
  package var isSettled: Bool {
    pending.isEmpty && tokenChanges.count == 0 && nextToReview == nil && fanOuts.isEmpty
  }

  /// The number of items besides devices and apps; bounded under any failure.
  package var keptCount: Int {
    entries.count + timers.count + pending.count + pendingAnswers.count + goneTokens.placeCount
      + aliases.count + aliasSteps.count + tokenChanges.count + formerBudgets.count
      + takenPushes.placeCount + unanswered.count + subscriptions.count + channels.count
      + fanOuts.count
  }

  /// The only entry point: appends the event's effects.
  package mutating func handle(_ event: Event, at instant: Instant, into effects: inout [Effect]) {
    if case .clock(.clockStepped(let interval)) = event { stepClock(by: interval) }
    now = max(now, instant)
    switch event {
    case .submitted(let notification, let request):
      submit(notification, from: request, into: &effects)
    case .journal(let event): handle(event, into: &effects)
    case .stream(let connection, let event): handle(event, on: connection, into: &effects)
    case .asked(let wanted, let credential, let request):
      handle(wanted, of: credential, from: request, into: &effects)
    case .alias(let event): handle(event, into: &effects)
    case .broadcast(let event): handle(event, into: &effects)
    case .operated(let event): handle(event, into: &effects)
    case .clock(.tick): tick(into: &effects)
    case .clock(.clockStepped): break
    }
  }

  func deviceNumber(_ id: DeviceID) -> DeviceNumber? {
    deviceIndex.find(KeyedHash.hash(id)) { devices[.init($0)].id == id }.map { .init($0) }
  }

  @inline(__always)
  func deviceNumber(of connection: ConnectionID) -> DeviceNumber? {
    connectionIndex.find(KeyedHash.hash(connection)) {
      devices[.init($0)].connection == connection
    }.map { .init($0) }
  }

  /// The registered app with this token.
  @inline(__always)
  func appNumber(_ token: DeviceToken) -> AppNumber? {
    appIndex.find(KeyedHash.hash(token)) { apps[.init($0)].token == token }.map { .init($0) }
  }

  func logReceived(
    _ notification: Notification, for app: AppNumber, at moment: Instant,
    into effects: inout [Effect]
  ) {
    let step = DeliveryStep.received(
      notification.notificationClass, apnsID: notification.apnsID,
      device: devices[apps[app].device].id,
      notification.topic)
    effects.append(.log(DeliveryEvent(at: moment, uniqueID: notification.uniqueID, step: step)))
  }

  func log(_ step: DeliveryStep, _ uniqueID: UniqueID, into effects: inout [Effect]) {
    effects.append(.log(DeliveryEvent(at: now, uniqueID: uniqueID, step: step)))
  }
}

extension Shard {
  // MARK: Time passes

  mutating func tick(into effects: inout [Effect]) {
    while let subject = timers.popDue(at: now) {
      counters.fired[subject.kind.rawValue] += 1
      switch subject {
      case .expiration(let entry):
        entries[entry].expirationTimer = .none
        expire(entry, into: &effects)
      case .refill(let app):
        apps[app].refillTimer = .none
        releaseHeld(app, .silent, into: &effects)
      case .hold(let app):
        apps[app].holdTimer = .none
        releaseHeld(app, .visible, into: &effects)
      case .keepAlive(let device): keepAliveFired(device, into: &effects)
      case .acknowledgement(let device): ackTimerFired(device, into: &effects)
      }
    }
    askAgain(into: &effects)
    reviewHeld(into: &effects)
    fanOut(into: &effects)
  }

  /// The machine's clock was set. Durations stay: timers, used budgets and limits, the age of a
  /// frame. Expirations stay at their moments, as do times for people.
  mutating func stepClock(by interval: Interval) {
    now = now + interval
    timers.stepClock(by: interval) { $0.kind == .expiration }
    tokenChanges.stepClock(by: interval)
    takenPushes.changeValues { $0.takenAt = $0.takenAt + interval }
    budgets.stepClock(by: interval)
    for device in ownBudgets.keys { ownBudgets[device]?.stepClock(by: interval) }
    for device in devices.indices { devices[device].rides.moveClock(by: interval) }
    for app in apps.indices { apps[app].requests.moveClock(by: interval) }
    for entry in entries.indices { entries[entry].sentAt = entries[entry].sentAt + interval }
  }

  /// The policy has changed: held pushes are sent or get a new time. Limited apps per tick;
  /// `nextWake` asks for the next at once, and events are handled in between.
  private mutating func reviewHeld(into effects: inout [Effect]) {
    guard let first = nextToReview else { return }
    let end = min(Int(first) + Limits.reviewedApps, apps.placeCount)
    nextToReview = end < apps.placeCount ? AppNumber(Int32(end)) : nil
    for app in (Int(first)..<max(Int(first), end)).lazy.map({ AppNumber(Int32($0)) })
    where apps.isTaken(app) {
      if apps[app].slots.silent.exists { releaseHeld(app, .silent, into: &effects) }
    }
  }

  /// An expired entry in flight frees its place in the window, so that held ones may be sent.
  private mutating func expire(_ entry: EntryNumber, into effects: inout [Effect]) {
    let device = apps[entries[entry].app].device
    let wasInFlight = if case .inFlight = entries[entry].phase { true } else { false }
    discard(entry, .expired, into: &effects)
    if wasInFlight {
      sendHeld(of: device, .piggyback, with: .line(.room), .none, into: &effects)
    }
  }
}
