import Primitives

@testable import RelayCore

/// Watches everything a shard is told and asks for, and says what breaks a promise of
/// docs/ARCHITECTURE.md, "What it promises, and the caveats first". It knows nothing of the shard's
/// inner workings.
struct Checker {
  /// What has become of one accepted notification.
  struct Life {
    var notification: Notification
    var request: RequestID
    var acceptedAt: Instant
    /// The place in the order of acceptance.
    var order: Int
    /// Which registration of the token it belongs to.
    var registration: Int
    var sequence: UInt64?
    var isReceived = false
    /// The provider was answered 200.
    var isAccepted = false
    var isPersisted = false
    var isInSlot = false
    /// The connection on which it is in flight; `inFlight` lists those that are.
    var flight: ConnectionID?
    var end: DeliveryStep?
    var isForgotten = false
    /// Its record is that of what it repeated, from which on that is in the journal.
    var isAdopted = false
    /// It had ended before a crash, but that it is not needed any more had not reached the disk.
    var cameBack = false
  }

  /// A slot, or the line of what is sent to it.
  struct Slot: Hashable {
    var registration: Int
    var notificationClass: NotificationClass
  }

  /// A silent push that cost budget, and the note of it if there was room for one.
  struct Spending {
    var at: Int64
    var sequence: UInt64?
    /// Whether there was a limit that it counted for.
    var ofApp: Bool
    var ofDevice: Bool
  }

  /// A registered app as the outside knows it.
  struct Registration {
    var app: PhoneApp
    var sequence: UInt64
    var isAlive = true
    var isPersisted = false
    /// The device was answered 200.
    var isAnswered = false
    /// The record that removes or replaces it.
    var removal: UInt64? { didSet { if let oldValue { failedRemovals.append(oldValue) } } }
    /// Those before it, which may be on disk all the same.
    var failedRemovals: [UInt64] = []
    var isRemovalAnswered = false
  }

  /// What a device was asked for and waits to hear about.
  enum DeviceRequest: Hashable {
    case enroll(DeviceID)
    case register(PhoneApp, made: Int?)
    case unregister(made: Int?)
    case other
  }

  var problems: [String] = []
  var now = ShardFixture.start
  var inFlightLimit: Int
  var pendingLimit: Int
  /// Since when which policy has been in force.
  var policies: [(since: Int64, policy: SilentPolicy)]
  /// The same of devices that have, or had, a policy of their own.
  var ownPolicies: [DeviceID: [(since: Int64, policy: SilentPolicy)]] = [:]
  var withOwnPolicy: Set<DeviceID> = []
  var policy: SilentPolicy { policies[policies.count - 1].policy }
  var sequences: SequenceRanges
  var ackTimeout: Interval
  var rideLimit: RateLimit
  var rides = Rides()
  /// Of this run of the shard, and what an earlier one left to it.
  var lives: [UniqueID: Life] = [:]
  var lastOrder = 0
  /// How lives ended, over all runs.
  var ends: [String: Int] = [:]
  var registrations: [Registration] = []
  var registrationOf: [DeviceToken: Int] = [:]
  /// Tokens that are answered 410, the moment, and the record that says so.
  var goneTokens: [DeviceToken: (since: Instant, sequence: UInt64)] = [:]
  /// Devices that were enrolled, and whether they were told.
  var enrolments: [DeviceID: Bool] = [:]
  var conditions: [DeviceID: DeviceCondition] = [:]
  var appBudgets: [BudgetKey: [Spending]] = [:]
  var deviceBudgets: [DeviceID: [Spending]] = [:]
  /// Which apps the shard has said again are there, by those records.
  var restated: [UInt64: Int] = [:]
  /// The note of a budget that the next silent push spends.
  var spentSequence: UInt64?
  /// One by which the app has used nothing: of what has a limit for the device alone, or because an
  /// app that was removed has a full budget again.
  var fullSequence: UInt64?
  /// Spendings whose notes were not on disk at a crash.
  var forgivenSpendings = 0
  var openRequests: Set<RequestID> = []
  var deviceRequests: [RequestID: DeviceRequest] = [:]
  var inFlight: Set<UniqueID> = []
  var live: [ConnectionID: DeviceID] = [:]
  var slots: [Slot: UniqueID] = [:]
  /// The order of what was first sent last.
  var lastSent: [Slot: Int] = [:]
  var sentBefore: Set<UniqueID> = []
  var journal: [UInt64: UniqueID] = [:]
  /// What else the journal was asked for and has not answered.
  var askedContents: [UInt64: JournalRecord.Content] = [:]
  var lastSequence: UInt64 = 0
  var settledSequence: UInt64 = 0
  /// What was settled before the event at hand.
  var settledBefore: UInt64 = 0
  /// What the shard has the journal forget before its end, because its app is removed.
  var forgottenEarly: [UniqueID] = []
  /// nil while a shard is being restored.
  var eventAtHand: Event?
  var channels = ChannelChecks()
  /// Lives that the shard at hand took over.
  var restoredCount = 0

  init(_ configuration: Shard.Configuration, _ sequences: SequenceRanges) {
    policies = [(ShardFixture.start.milliseconds, configuration.policy)]
    self.sequences = sequences
    inFlightLimit = configuration.inFlightPerDevice
    pendingLimit = configuration.pendingPersists
    ackTimeout = configuration.ackTimeout
    rideLimit = configuration.rides
  }

  mutating func expect(_ holds: Bool, _ text: @autoclosure () -> String) {
    if !holds { problems.append(text()) }
  }

  /// Everything in flight on a connection, in no order.
  func flights(on connection: ConnectionID) -> [UniqueID] {
    inFlight.filter { lives[$0]!.flight == connection }.sorted { $0.low < $1.low }
  }

  /// The apps that are there now.
  var apps: [PhoneApp] { registrations.filter(\.isAlive).map(\.app) }

  /// What a provider posted that the shard decides about now: at once, or after a hop.
  var submissionAtHand: (notification: Notification, request: RequestID)? {
    switch eventAtHand {
    case .submitted(let notification, let request): (notification, request)
    case .alias(.forwarded(let notification, _, let request)): (notification, request)
    default: nil
    }
  }

  // MARK: What the shard is told

  /// Notes an event before the shard handles it.
  mutating func note(_ event: Event, at moment: Instant) {
    now = moment
    eventAtHand = event
    settledBefore = settledSequence
    noteRides(event)
    noteChannels(event)
    switch event {
    case .submitted(let notification, let request):
      openRequests.insert(request)
      guard let registration = registrationOf[notification.token] else { return }
      lastOrder += 1
      lives[notification.uniqueID] = Life(
        notification: notification, request: request, acceptedAt: moment, order: lastOrder,
        registration: registration)
    case .journal(.persisted(let sequence)): settle(through: sequence, isPersisted: true)
    case .journal(.persistFailed(let sequence)): settle(through: sequence, isPersisted: false)
    case .asked(.enrolled, let credential, let request):
      expectAnswer(to: request, .enroll(credential.device))
    case .asked(.registered(let topic, let token, _), let credential, let request):
      let app = PhoneApp(phone: Phone(credential: credential), topic: topic, token: token)
      expectAnswer(to: request, .register(app, made: nil))
    case .asked(.unregistered, _, let request): expectAnswer(to: request, .unregister(made: nil))
    case .asked(.inspected, _, let request), .asked(.subscribed, _, let request),
      .asked(.unsubscribed, _, let request):
      expectAnswer(to: request, .other)
    case .broadcast: break
    case .alias: break
    case .asked(.connected, let credential, let connection):
      live[connection] = credential.device
    case .stream(let connection, .disconnected): lose(connection)
    case .stream(let connection, .reported(let report)):
      if let device = live[connection] {
        conditions[device, default: DeviceCondition()].apply(report)
      }
    case .operated(.policyChanged(let policy, _)): change(to: policy)
    case .operated(.administered(let device, .setPolicy(let policy, _))):
      change(to: policy, of: device)
    case .stream, .journal, .operated, .clock: break
    }
  }

  mutating func change(to policy: SilentPolicy) {
    policies.append((now.milliseconds, policy))
    for device in ownPolicies.keys where !withOwnPolicy.contains(device) {
      ownPolicies[device]?.append((now.milliseconds, policy))
    }
  }

  /// A policy for one device, or (nil) that of all again.
  private mutating func change(to policy: SilentPolicy?, of device: DeviceID) {
    guard enrolments[device] != nil else { return }
    guard policy != nil || withOwnPolicy.contains(device) else { return }
    ownPolicies[device, default: policies].append((now.milliseconds, policy ?? self.policy))
    if policy == nil { withOwnPolicy.remove(device) } else { withOwnPolicy.insert(device) }
  }

  /// Since when which policy has been in force for a device.
  func policies(of device: DeviceID) -> [(since: Int64, policy: SilentPolicy)] {
    ownPolicies[device] ?? policies
  }

  /// How many records have sequences up to this one.
  func count(through sequence: UInt64) -> UInt64 {
    sequence < sequences.first ? 0 : sequences.ordinal(of: sequence) + 1
  }

  private mutating func expectAnswer(to request: RequestID, _ asked: DeviceRequest) {
    openRequests.insert(request)
    deviceRequests[request] = asked
  }

  private mutating func settle(through sequence: UInt64, isPersisted: Bool) {
    while true {
      let next = sequences.sequence(count(through: settledSequence))
      guard next <= min(sequence, lastSequence) else { return }
      settledSequence = next
      let content = askedContents.removeValue(forKey: settledSequence)
      guard isPersisted else { continue }
      if let id = journal[settledSequence] { lives[id]!.isPersisted = true }
      if case .registered(let device, let topic, let token, _) = content,
        let index = registrations.lastIndex(where: { $0.sequence == settledSequence })
      {
        registrations[index].isPersisted = true
        guard !registrations[index].isAlive, registrations[index].removal == nil else { continue }
        // One that was granted is there from now on.
        if let older = alive(device, topic) { remove(older, by: settledSequence) }
        expect(registrationOf[token] == nil, "a token of two apps")
        registrationOf[token] = index
        registrations[index].isAlive = true
      }
      if case .unregistered(_, _, _, let moment) = content,
        let index = registrations.lastIndex(where: { $0.removal == settledSequence }),
        registrations[index].isAlive
      {
        remove(index, by: settledSequence, since: moment)
      }
    }
  }

  mutating func lose(_ connection: ConnectionID) {
    live[connection] = nil
    rides.questioned.remove(connection)
    for id in flights(on: connection) {
      lives[id]!.flight = nil
      inFlight.remove(id)
    }
  }
}
