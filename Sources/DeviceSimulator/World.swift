import DeviceModel
import HeapModule
import Primitives
import RelayCore

/// One relay and any number of phones in virtual time: the relay's own core and the phone's own
/// model, joined by a modelled link. Nothing here waits; a month takes as long as its work.
///
/// ```swift
/// var world = World(seed: 7)
/// let anna = world.addPhone("anna")
/// let mail = world.install(AppDescription("com.example.mail"), on: anna)
/// let push = world.push(.silent, to: mail)
/// world.advance(by: .minutes(1))
/// #expect(world.life(of: push).outcome == "newData")
/// ```
///
/// The same seed and the same calls give the same run, to the byte of `timeline`. A world is a
/// value: a copy goes its own way.
///
/// Invariants, held between any two calls:
/// 1. Everything that was to happen until `now` has happened, in order of time and, at the same
///    time, in the order in which it was asked for.
/// 2. What two sides say to each other arrives in order, or not at all.
/// 3. The relay believes in a connection that the phone does not have at most until the keep-alive
///    shows it, and never the other way round but for the time that a connection takes.
public struct World: Sendable {
  /// What chance is drawn from.
  public let seed: UInt64
  let link: LinkModel
  /// The midnight that times are counted from, in UNIX milliseconds.
  let start: Int64
  /// Milliseconds since the start.
  var time: Int64 = 0
  /// When the time of a scenario that is played in it began.
  var origin: Int64 = 0
  /// The relay's core; nil when a real relay is at the other end, beyond `orders`.
  var shard: Shard?
  /// What the driver of a world without a relay of its own is to do, oldest first.
  var orders: [LiveOrder] = []
  /// The ids that a real relay gave to pushes, by their numbers; empty in a world with its own.
  var pushIDs: [PushID: Int32] = [:]
  /// Pushes that are forgotten by now: the number of the first in `pushes`.
  var firstPush: Int32 = 0
  var relayWake = Int64.max
  var phones: [PhoneEntry] = []
  var apps: [AppEntry] = []
  var pushes: [PushEntry] = []
  /// Everything that happened, in order.
  var entries: [TraceEntry] = []
  var queue = Heap<Scheduled>()
  var random: SeededRandom
  private var order: UInt64 = 0
  /// The phone of each connection, by the connection's number.
  var connections: [Int32] = []
  var lastRequest: UInt32 = 0
  /// Scratch space, empty between calls; kept for its memory.
  private var relayEffects: [Effect] = []
  private var phoneEffects: [PhoneEffect] = []
  /// The push that was last reported, to see whether that was at once.
  var lastReported: Int32 = -1

  /// Midnight before the first day in virtual time: 2026-11-21T00:00:00Z.
  static let virtualStart: Int64 = 1_795_219_200_000

  /// An empty world.
  public init(
    seed: UInt64, policy: RelayPolicy = .documented, keepAlive: Duration = .minutes(15),
    link: LinkModel = LinkModel()
  ) {
    self.init(seed: seed, link: link, start: Self.virtualStart)
    var configuration = Shard.Configuration(policy: policy.policy)
    configuration.keepAlive = .milliseconds(max(1000, keepAlive.worldMilliseconds))
    shard = Shard(configuration: configuration, at: Instant(milliseconds: start))
  }

  /// Without a relay.
  init(seed: UInt64, link: LinkModel, start: Int64) {
    self.seed = seed
    self.link = link
    self.start = start
    random = SeededRandom(seed: seed)
  }

  /// How long the world has been going.
  public var now: Duration { .milliseconds(time) }

  /// When something is to happen next.
  var nextHappening: Int64? { queue.min?.at }

  var instant: Instant { Instant(milliseconds: start + time) }
  var moment: Instant { Instant(milliseconds: start + time) }

  // MARK: Time

  /// Lets time pass.
  public mutating func advance(by duration: Duration) {
    advance(toMilliseconds: time + duration.worldMilliseconds)
  }

  /// Lets time pass until so long after the start; does nothing when that is over.
  public mutating func advance(until moment: Duration) {
    advance(toMilliseconds: moment.worldMilliseconds)
  }

  mutating func advance(toMilliseconds target: Int64) {
    let target = min(target, TimeText.longest)
    while let first = queue.min, first.at <= target {
      queue.removeMin()
      time = max(time, first.at)
      perform(first)
    }
    time = max(time, target)
  }

  mutating func schedule(_ happening: Happening, at moment: Int64) {
    order += 1
    queue.insert(Scheduled(at: moment, order: order, happening: happening))
  }

  private mutating func perform(_ scheduled: Scheduled) {
    switch scheduled.happening {
    case .relayWakes:
      guard relayWake == scheduled.at else { return }
      relayWake = .max
      tellRelay(.tick)
    case .phoneWakes(let phone):
      guard phones[Int(phone)].wake == scheduled.at else { return }
      phones[Int(phone)].wake = .max
      tell(phone, .tick)
    case .connects(let phone, let connection): connect(phone, connection)
    case .arrivesAtPhone(let phone, let connection, let item):
      arrive(item, at: phone, over: connection)
    case .arrivesAtRelay(let phone, let connection, let item):
      arrive(item, from: phone, over: connection)
    case .connectionEnds(let connection): connectionEnds(connection)
    }
  }

  // MARK: The two cores

  /// Hands the relay a fact and does what it asks for.
  mutating func tellRelay(_ event: Event) {
    guard shard != nil else { return }
    let now = instant
    var effects = relayEffects
    relayEffects = []
    shard?.handle(event, at: now, into: &effects)
    var written: UInt64?
    var next = 0
    // The journal answers at once, which brings more to do.
    while next < effects.count {
      if case .persist(let record) = effects[next] {
        written = record.sequence
      } else {
        perform(effects[next])
      }
      next += 1
      if next == effects.count, let sequence = written {
        written = nil
        shard?.handle(.persisted(through: sequence), at: now, into: &effects)
      }
    }
    effects.removeAll(keepingCapacity: true)
    relayEffects = effects
    if let wake = shard?.nextWake {
      let at = max(time, wake.milliseconds - start)
      if at < relayWake {
        relayWake = at
        schedule(.relayWakes, at: at)
      }
    }
  }

  /// Hands a phone a fact and does what it asks for.
  mutating func tell(_ phone: Int32, _ event: PhoneEvent) {
    var effects = phoneEffects
    phoneEffects = []
    phones[Int(phone)].model.handle(event, at: moment, into: &effects)
    for effect in effects { perform(effect.action, of: phone) }
    effects.removeAll(keepingCapacity: true)
    phoneEffects = effects
    followNetwork(phone)
    if let wake = phones[Int(phone)].model.nextWake {
      let at = max(time, wake.milliseconds - start)
      if at < phones[Int(phone)].wake {
        phones[Int(phone)].wake = at
        schedule(.phoneWakes(phone), at: at)
      }
    }
  }
}

/// How relay and phones reach each other.
public struct LinkModel: Hashable, Sendable {
  /// One way, and a random part on top.
  public var latency: Duration
  public var jitter: Duration
  /// From the loss of a connection, or from having a network again, to the attempt to connect;
  /// each time with a random half more.
  public var reconnect: Duration

  public init(
    latency: Duration = .milliseconds(40), jitter: Duration = .milliseconds(20),
    reconnect: Duration = .seconds(2)
  ) {
    self.latency = latency
    self.jitter = jitter
    self.reconnect = reconnect
  }
}

/// A phone in the world.
struct PhoneEntry: Sendable {
  let name: String
  var model: Phone
  let credential: DeviceCredential
  var link = Link.down
  /// The connection that the relay takes for its own.
  var connectionAtRelay: UInt32?
  /// What apps made of pushes while nobody could be told, oldest first.
  var untoldOutcomes: [(push: Int32, outcome: DeliveryOutcome)] = []
  /// What the link was last matched to.
  var network: Network
  /// When it is woken next.
  var wake = Int64.max
  /// When the latest of what is under way arrives.
  var lastArrivalHere: Int64 = 0
  var lastArrivalThere: Int64 = 0
  /// By the place in the order of installation: the world's number of the app.
  var apps: [Int32] = []

  /// Were it more, the oldest are forgotten, as the relay forgets who owes it one.
  static let untoldOutcomes = 1000

  enum Link: Hashable, Sendable {
    case down
    /// An attempt is under way: the number of the connection that it becomes.
    case connecting(UInt32)
    case live(UInt32)
  }
}

/// An app in the world.
struct AppEntry: Sendable {
  let phone: Int32
  let id: AppID
  let name: String
  let topic: Topic
  let token: DeviceToken
  /// The head of every request to it, as far as it is always the same.
  let path: [UInt8]
  /// Why it is to be fetched next.
  var plannedBecause: FetchReason?
}

/// Something that will happen.
struct Scheduled: Comparable, Sendable {
  let at: Int64
  let order: UInt64
  let happening: Happening

  static func < (left: Scheduled, right: Scheduled) -> Bool {
    left.at == right.at ? left.order < right.order : left.at < right.at
  }

  static func == (left: Scheduled, right: Scheduled) -> Bool { left.order == right.order }
}

enum Happening: Sendable {
  case relayWakes
  case phoneWakes(Int32)
  case connects(Int32, connection: UInt32)
  case arrivesAtPhone(Int32, connection: UInt32, ItemDown)
  case arrivesAtRelay(Int32, connection: UInt32, ItemUp)
  /// The relay is told of the end of a connection.
  case connectionEnds(UInt32)
}

/// From the relay to a phone.
enum ItemDown: Sendable {
  case push(Int32)
  case empty
  case keepAlive
}

/// From a phone to the relay.
enum ItemUp: Sendable {
  case hello
  case condition(PhoneCondition)
  case ack(Int32, DeliveryOutcome?)
  case keepAlive
}
