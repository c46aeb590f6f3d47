import DequeModule
package import Primitives

/// The whole truth of the devices of one event loop's partitions: one value, one entry, no I/O, no
/// clock.
///
/// ```
///   provider ─ submitted ─▶ ┌───────────┐ ─ respond ─▶ provider
///   journal ── persisted ─▶ │   Shard   │ ─ persist, forget ─▶ journal
///   device ─── connected ─▶ │  .handle  │ ─ send, close ─▶ device
///              acked, heard └───────────┘ ─ log
/// ```
///
/// Invariants, held between any two calls of `handle`:
/// 1. Every accepted notification is in exactly one place: waiting for the journal, in a slot, in
///    flight, or ended. `counters.addsUp` says so.
/// 2. A slot holds an entry that the journal has. What waits for the journal never displaces what
///    is stored: were the write to fail, the older one must still be there.
/// 3. A slot holds the newest by order of acceptance of its app and class.
/// 4. A provider is answered 200 once per submission: after the journal has it or the device has
///    acknowledged it, whichever comes first (docs/ARCHITECTURE.md, "What it promises, and the
///    caveats first"). When the journal fails while it is in flight, the acknowledgement decides.
///    What is tried only once (`apns-expiration: 0`) is answered when it was.
/// 5. At most `inFlightPerDevice` entries of a device are in flight; the slots hold the rest back.
/// 6. An entry that may be stored has its expiration timer set until its end, also in flight.
/// 7. Silents that the budget has not paid for never exceed, per app, the rides opened
///    (`RideCause`). A ride pays for at most one silent of each app, the one in its slot, and a
///    silent is paid for once: `isPaid` stays with it through lost connections. Whatever only
///    answers what was sent (an acknowledgement, a keep-alive's answer, a drained stream) opens
///    none, or each silent's acknowledgement would carry the next and the budget were void.
///
/// Transitions of an entry and where they are made:
/// ```
///   submit ──▶ waiting ──place──▶ stored ──transmit──▶ inFlight ──acked──▶ ended (delivered)
///      └────────transmit────────────────────────────────▲  │
///   any ──discard──▶ ended (expired, replaced, …)          ├──giveBack──▶ stored | waiting | ended
///                                                          └──resend──▶ inFlight
/// ```
package struct Shard: Sendable {
  /// What a caller decides once, at start.
  package struct Configuration: Hashable, Sendable {
    package var policy: SilentPolicy
    /// Between a keep-alive and the next.
    package var keepAlive: Interval
    /// How long a device has for its answer.
    package var keepAliveTimeout: Interval
    /// How long a device has to acknowledge a frame before it is sent again.
    package var ackTimeout: Interval
    /// Rides that a device may open at will: by connecting, by a change of its condition, by
    /// keep-alives that nobody asked for. Beyond it these are signs of life and no more.
    package var rides: RateLimit
    /// How long a visible push of low priority waits for a sleeping phone in Low Power Mode.
    package var lowPriorityHold: Interval
    /// `TooManyRequests` per device token; nil is off.
    package var requestsPerToken: RateLimit?
    package var inFlightPerDevice: Int
    package var pendingPersists: Int
    /// How many partitions all shards hold together.
    package var partitionCount: Int
    /// Whether keep-alives and acknowledgements have timers only on streams whose phones go by the
    /// relay's time (`StreamEvent.clockFollowed`): with a clock that leaps nobody else could keep them.
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

  /// What waits for the journal's word, one per sequence.
  package enum Pending: Hashable, Sendable {
    /// Answer the provider, then place the entry; -1 when its life ended meanwhile.
    case submission(RequestID, uniqueID: UniqueID, entry: Int32)
    /// Give the next of `pendingAnswers`, which would make copies of all others dear. The key says
    /// which partition's the record is, as below.
    case device(key: UInt64)
    /// Go on with the next of `aliasSteps`.
    case alias(key: UInt64)
    /// Nobody waits.
    case note(key: UInt64)
    /// Nobody waits, and nobody needs the record any more.
    case nothing
  }

  package internal(set) var configuration: Configuration
  package internal(set) var counters = ShardCounters()
  var now: Instant
  var devices = Slab(vacant: Device.vacant)
  var apps = Slab(vacant: App.vacant)
  var entries = Slab(vacant: AcceptedNotification.vacant)
  var timers: TimerWheel
  /// Finds devices by their ids, apps by their tokens, connected devices by their connections.
  var deviceIndex = HashIndex()
  var appIndex = HashIndex()
  var connectionIndex = HashIndex()
  /// Tokens that devices brought along and that this shard decides about (`Shard+Aliases.swift`).
  var aliases = Slab(vacant: Alias.vacant)
  var aliasIndex = HashIndex()
  /// What devices of this shard have under way with such tokens.
  var tokenChanges = TokenChanges()
  var goneTokens = GoneTokens(limit: Limits.unregisteredTokens)
  /// What removed apps had used of their budgets (`OwnBudgets.swift`).
  var formerBudgets = FormerBudgets()
  /// What phones have taken of late (`Shard+Repetitions.swift`).
  var takenPushes = TakenPushes(limit: Limits.takenPushes)
  /// Whose record failed while it was in flight, and who waits for its acknowledgement.
  var unanswered: [Int32: RequestID] = [:]
  /// Outcomes that phones have yet to tell.
  var awaitedOutcomes = AwaitedOutcomes(limit: Limits.awaitedOutcomes)
  var lastOrder: UInt64 = 0
  var pending = Deque<Pending>()
  /// For each `.device` in `pending`, in the same order: what to answer whom.
  var pendingAnswers = Deque<TokenChanges.Reply>()
  /// For each `.alias` in `pending`, in the same order.
  var aliasSteps = Deque<AliasStep>()
  /// The numbers of this shard's records.
  let sequences: SequenceRanges
  /// Which record `pending.first` is, and its sequence.
  var firstPendingOrdinal: UInt64 = 0
  var firstPendingSequence: UInt64
  /// The silent policy in force. `configuration.policy` is the one that the shard began with.
  var budgets: SilentBudgets
  /// Budgets of devices that have a policy of their own (`OwnBudgets.swift`).
  var ownBudgets: [DeviceID: SilentBudgets] = [:]
  /// The app from which on held silents are to be looked at again, because the policy has changed;
  /// nil when all were.
  var nextToReview: Int32?
  /// The partition that another node has and that is still here (`Shard+Partitions.swift`).
  var leaving: PartitionID?
  /// The states that it can be taken back to (`Shard+Checkpoints.swift`).
  var checkpoints: [UInt32: ShardCheckpoint] = [:]
  /// Scratch space, empty between calls; kept for its memory.
  var drainScratch: [Int32] = []

  /// - Parameters:
  ///   - sequences: of its records; above every one that the journal holds.
  ///   - budgets: those that the journal's states are kept by; nil when it has none.
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

  /// When `tick` is wanted next, if nothing else happens; nil for never.
  package var nextWake: Instant? {
    guard nextToReview == nil else { return now }
    guard let question = tokenChanges.nextQuestion else { return timers.nextWake }
    return min(question, timers.nextWake ?? .never)
  }

  /// The timer that fires next, exactly; walks more than `nextWake` does.
  package var nextTimer: (deadline: Instant, subject: TimerWheel.Subject)? { timers.earliest }

  /// Nothing waits for the journal's word, nor for another shard's.
  package var isSettled: Bool { pending.isEmpty && tokenChanges.count == 0 && nextToReview == nil }

  /// Everything that is kept but for devices and their apps: bounded, whatever fails for how long.
  package var keptCount: Int {
    entries.count + timers.count + pending.count + pendingAnswers.count + goneTokens.placeCount
      + aliases.count + aliasSteps.count + tokenChanges.count + formerBudgets.count
      + takenPushes.placeCount + unanswered.count
  }

  /// The one entry: a fact and the time it is, in; requests, appended to `effects`.
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
    case .operated(let event): handle(event, into: &effects)
    case .clock(.tick): tick(into: &effects)
    case .clock(.clockStepped): break
    }
  }

  /// The device with this id.
  func deviceNumber(_ id: DeviceID) -> Int32? {
    deviceIndex.find(KeyedHash.hash(id)) { devices[$0].id == id }
  }

  /// The device that listens on this connection.
  @inline(__always)
  func deviceNumber(of connection: ConnectionID) -> Int32? {
    connectionIndex.find(KeyedHash.hash(connection)) { devices[$0].connection == connection }
  }

  /// The registered app with this token.
  @inline(__always)
  func appNumber(_ token: DeviceToken) -> Int32? {
    appIndex.find(KeyedHash.hash(token)) { apps[$0].token == token }
  }

  /// The first step of a life.
  func logReceived(
    _ notification: Notification, for app: Int32, at moment: Instant, into effects: inout [Effect]
  ) {
    let step = DeliveryStep.received(
      notification.notificationClass, apnsID: notification.apnsID,
      device: devices[apps[app].device].id,
      notification.topic)
    effects.append(.log(DeliveryEvent(at: moment, uniqueID: notification.uniqueID, step: step)))
  }

  /// Appends a log effect.
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
        entries[entry].expirationTimer = TimerWheel.none
        expire(entry, into: &effects)
      case .refill(let app):
        apps[app].refillTimer = TimerWheel.none
        releaseHeld(app, .silent, into: &effects)
      case .hold(let app):
        apps[app].holdTimer = TimerWheel.none
        releaseHeld(app, .visible, into: &effects)
      case .keepAlive(let device):
        keepAliveFired(device, into: &effects)
      case .acknowledgement(let device):
        ackTimerFired(device, into: &effects)
      }
    }
    askAgain(into: &effects)
    reviewHeld(into: &effects)
  }

  /// The machine's clock was set. Lengths of time stay what they are: timers, what was used of
  /// budgets and limits, when a frame was sent. Expirations stay moments, and so does what people
  /// read.
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

  /// The policy has changed: what is held is sent, or waits until another moment. So many apps with
  /// one tick; `nextWake` asks for the next one at once, and events are handled in between.
  private mutating func reviewHeld(into effects: inout [Effect]) {
    guard let first = nextToReview else { return }
    let end = min(Int(first) + Limits.reviewedApps, apps.placeCount)
    nextToReview = end < apps.placeCount ? Int32(end) : nil
    for app in first..<max(first, Int32(end)) where apps.isTaken(app) {
      if apps[app].slots.silent >= 0 { releaseHeld(app, .silent, into: &effects) }
    }
  }

  /// What is in flight is not awaited any longer; whatever its place in the window kept back may
  /// go.
  private mutating func expire(_ entry: Int32, into effects: inout [Effect]) {
    let device = apps[entries[entry].app].device
    let wasInFlight = if case .inFlight = entries[entry].phase { true } else { false }
    discard(entry, .expired, into: &effects)
    if wasInFlight {
      sendHeld(of: device, .piggyback, with: .line(.room), .none, into: &effects)
    }
  }
}
