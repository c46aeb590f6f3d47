import DeviceModel
import Primitives
import RelayCore

/// The relay's core, journal and link in virtual time.
struct ModelledRelay: Sendable {
  /// Nil while no process runs.
  var core: Shard?
  let link: LinkModel
  var journal: ModelledJournal
  var wake = Int64.max
  /// Phones, by number of their connection.
  var connections: [Int32] = []
  /// In the journal, with each channel's newest stored broadcast.
  var channels = ChannelRegistry()
  var published: [ChannelID: Broadcast] = [:]
  private var lastRequest: UInt32 = 0
  private let configuration: Shard.Configuration
  private var earlier = ShardCounters()
  private var hasAddedUp = true

  init(configuration: Shard.Configuration, link: LinkModel, at now: Instant) {
    core = Shard(configuration: configuration, at: now)
    self.configuration = configuration
    self.link = link
    journal = ModelledJournal(budgets: SilentBudgets(configuration.policy, at: now))
  }

  var counters: ShardCounters { core.map { earlier + $0.counters } ?? earlier }
  var addsUp: Bool { hasAddedUp && core?.counters.addsUp ?? true }

  /// Distinct from the ids of pushes.
  mutating func nextRequest() -> RequestID {
    lastRequest += 1
    return RequestID(
      loop: 1, connection: ConnectionNumber(.max), stream: Int32(truncatingIfNeeded: lastRequest))
  }

  mutating func crash(at time: Int64) {
    guard let core else { return }
    hasAddedUp = addsUp
    var last = core.counters
    // The journal now answers for what the core held.
    (last.waiting, last.inSlots, last.inFlight) = (0, 0, 0)
    earlier = earlier + last
    journal.crash(at: time)
    self.core = nil
    wake = .max
  }

  /// Starts the next process, still without the journal's records.
  mutating func start(at now: Instant) {
    var configuration = configuration
    configuration.policy = journal.budgets.policy
    core = Shard(
      configuration: configuration, at: now,
      sequences: SequenceRanges(first: journal.lastSequence + 1), budgets: journal.budgets)
  }
}

enum RelayStep: Sendable {
  /// A broadcast, on a channel with so many subscribers.
  case published(to: Int)
  case crashed(forMilliseconds: Int64)
  /// The number of notifications in its journal.
  case started(Int)
  case journalTakes(Int64)
  case journalFails(Bool)

  var told: Told {
    switch self {
    case .published(let count): Told(.received, "broadcast, \(count) subscribed")
    case .crashed(let lapse): Told(.crashed, "for \(TimeText.text(duration: lapse))")
    case .started(let count): Told(.started, "\(count) in its journal")
    case .journalTakes(0): Told(.journal, "writes at once")
    case .journalTakes(let lapse): Told(.journal, "a write takes \(TimeText.text(duration: lapse))")
    case .journalFails(let isFailing): Told(.journal, isFailing ? "cannot write" : "writes again")
    }
  }
}

/// Faults of a modelled relay.
extension Simulation {
  /// Kills the process: connections, open requests and pending writes are lost. A new one starts
  /// after `duration` with what the journal remembers.
  public mutating func crashRelay(for duration: Duration = .seconds(5)) {
    guard relay?.core != nil else { return }
    relay?.crash(at: time)
    let lapse = max(1, duration.simulatedMilliseconds)
    record(.crashed(forMilliseconds: lapse))
    for index in pushes.indices {
      if case .awaited = pushes[index].answer { unanswered(index, "no answer, the relay crashed") }
    }
    for phone in phones.indices {
      phones[phone].connectionAtRelay = nil
      guard case .live = phones[phone].link else { continue }
      record(.disconnected("the relay crashed"), phone: Int32(phone))
      connectSoon(Int32(phone))
    }
    schedule(.relayStarts, at: time + lapse)
  }

  mutating func relayStarts() {
    let now = instant
    relay?.start(at: now)
    guard let journal = relay?.journal else { return }
    record(.started(journal.accepted.count))
    for record in journal.registrations { tellRelay(.journal(.restored(record))) }
    tellRelay(.alias(.allConfirmed))
    for record in journal.accepted { tellRelay(.journal(.restored(record))) }
    for broadcast in (relay?.published ?? [:]).values.sorted(by: { $0.number < $1.number }) {
      if broadcast.isStored(at: now) { tellRelay(.broadcast(.published(broadcast))) }
    }
    // Unanswered requests are repeated.
    for phone in phones where !journal.knows(phone.credential.device) {
      let (id, secret) = (phone.credential.device, phone.credential.secret)
      request { .asked(.enrolled, DeviceCredential(device: id, secret: secret), from: $0) }
    }
    for app in apps where app.topic != .vacant {
      let device = phones[Int(app.phone)].credential.device
      guard !journal.knows(app.token, of: device, app.topic) else { continue }
      let isThere = phones[Int(app.phone)].model[app.id]?.state != .uninstalled
      if isThere { register(app) }
    }
    for app in apps {
      for address in phones[Int(app.phone)].model.addresses(of: app.id) {
        let credential = phones[Int(app.phone)].credential
        if case .channel(let id) = address, let id = ChannelID(id) {
          request { .asked(.subscribed(app.topic, id), credential, from: $0) }
        }
        guard let token = app.activityTokens[address],
          let topic = Topic(address.topic(of: app.name))
        else { continue }
        guard !journal.knows(token, of: credential.device, topic) else { continue }
        request { .asked(.registered(topic, token, isOwn: false), credential, from: $0) }
      }
    }
  }

  /// How long journal writes take from now on; at zero they are answered at once.
  public mutating func setJournalDelay(_ delay: Duration) {
    relay?.journal.delay = delay.simulatedMilliseconds
    record(.journalTakes(delay.simulatedMilliseconds))
  }

  /// While the journal cannot write, pushes are answered with 503.
  public mutating func setJournalFailing(_ isFailing: Bool) {
    relay?.journal.isFailing = isFailing
    record(.journalFails(isFailing))
  }

  /// Beside a real relay the phone reconnects.
  public mutating func setLink(_ link: LinkModel, of phone: PhoneHandle) {
    phones[Int(phone.number)].path = link
    record(.changed(link.words), phone: phone.number)
    guard relay == nil else { return }
    order(.link(link), phone.number)
    connectAgain(phone)
  }

  /// Opens a second connection without closing the first: the relay has both until it ends the
  /// older.
  public mutating func connectAgain(_ phone: PhoneHandle) {
    guard case .live = phones[Int(phone.number)].link else { return }
    loseConnection(phone.number, saysGoodbye: false)
    connectSoon(phone.number)
  }

  mutating func record(_ step: RelayStep, push: Int32 = -1) {
    keep(TraceEntry(at: time, phone: -1, app: -1, push: push, fact: .relay(step)))
  }

  /// The phone reported the app as uninstalled: pushes to it are refused.
  mutating func unregister(_ app: AppEntry) {
    guard app.topic != .vacant, phones[Int(app.phone)].model[app.id]?.state == .uninstalled else {
      return
    }
    let credential = phones[Int(app.phone)].credential
    order(.unregister(topic: app.name), app.phone)
    request { .asked(.unregistered(app.topic), credential, from: $0) }
  }

  mutating func register(_ app: AppEntry) {
    let credential = phones[Int(app.phone)].credential
    order(.register(topic: app.name), app.phone)
    request { .asked(.registered(app.topic, app.token, isOwn: false), credential, from: $0) }
  }

  /// Of an app that was installed again.
  mutating func renewToken(of app: Int32) {
    let entry = apps[Int(app)]
    guard entry.topic != .vacant else { return }
    let credential = phones[Int(entry.phone)].credential
    if relay != nil {
      request { .asked(.unregistered(entry.topic), credential, from: $0) }
      apps[Int(app)].token = DeviceToken(
        random: (random.next(), random.next(), random.next()),
        routingKey: credential.device.routingKey)
    }
    register(apps[Int(app)])
  }

  mutating func unanswered(_ push: Int, _ reason: String) {
    pushes[push].answer = .missing(reason)
    refused(push, 0, reason)
  }
}
