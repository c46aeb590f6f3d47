package import DeviceModel

/// The phones of a scenario beside a real relay, in real time. A driver owns it, tells it what
/// happens and the time, does what `takeOrders` says, and shows what `takeTrace` tells.
///
/// All times are in UNIX milliseconds. What the scenario's provider would push, and which policy
/// its relay would have, is the real ones' affair and left out.
package struct LiveWorld: Sendable {
  private let scenario: Scenario
  private var player: ScenarioPlayer
  /// How much of the trace has been told.
  private var told = 0
  /// A scenario with expectations keeps everything that happened, up to a limit.
  private let keepsTrace: Bool
  private static let keptEntries = 1_000_000
  /// Whether more happened than is kept, so that nothing can be judged any more.
  private var hasForgotten = false
  private let places: [String: Int]

  /// Sets up the phones; they are about to connect. Those in `last`, by their names, go on where
  /// they were.
  package init(
    _ scenario: Scenario, seed: UInt64, at now: Int64, last: [String: LastingPhone] = [:]
  ) {
    self.scenario = scenario
    places = Dictionary(
      uniqueKeysWithValues: scenario.phones.enumerated().map { ($1.name, $0) })
    // Times of the trace are times of the day.
    let midnight = now - now % TimeText.day
    var world = World(seed: seed, link: scenario.link, start: midnight)
    world.time = now - midnight
    player = ScenarioPlayer(scenario, in: world, seed: seed, last: last)
    keepsTrace = !scenario.expectations.isEmpty
  }

  /// The phones' names, and the apps of each.
  package var phones: [(name: String, apps: [String])] { scenario.livePhones }

  /// The place of the phone with this name.
  package func place(ofPhone name: String?) -> Int? { name.flatMap { places[$0] } }

  /// When `advance` is wanted next, if nothing else happens.
  package var nextWake: Int64 {
    let next = player.nextMoment
    return next == .max ? .max : next + player.world.start
  }

  /// Whether the scenario's time is over.
  package func isOver(at now: Int64) -> Bool { now - player.world.start >= player.end }

  /// Lets time pass.
  package mutating func advance(to now: Int64) {
    player.play(until: now - player.world.start)
  }

  // MARK: What happens

  /// Something that the driver has seen of a phone.
  package enum Event: Sendable {
    case connected
    case lost(reason: String)
    case received(LiveArrival)
    /// Anything else from the relay; a keep-alive is answered.
    case heard(isKeepAlive: Bool)
    /// Of a transfer, an archive.
    case phone(PhoneEvent)
  }

  /// Takes in what has happened to a phone.
  package mutating func handle(_ event: Event, of phone: Int, at now: Int64) {
    advance(to: now)
    let number = Int32(phone)
    switch event {
    case .connected: player.world.linkOpened(number)
    case .lost(let reason): player.world.linkLost(number, reason)
    case .received(let arrival): player.world.receive(arrival, at: number)
    case .heard(let isKeepAlive): player.world.hear(number, isKeepAlive: isKeepAlive)
    case .phone(let event): player.world.tell(number, event)
    }
  }

  /// Does what a person says, in the words of a scenario's `do`: `open com.example.app`,
  /// `network airplane`, `lock`. Of several phones it names one: `anna: lock`.
  package mutating func perform(command: String, at now: Int64) throws(LiveCommandProblem) {
    let action = try LiveCommand(command, in: scenario).action
    advance(to: now)
    player.perform(action)
  }

  /// A phone's own state, for what the driver performs or keeps.
  package func model(of phone: Int) -> Phone { player.world.phones[phone].model }

  // MARK: What is to be done

  /// What the driver is to do, oldest first; each is told once.
  package mutating func takeOrders() -> [LiveOrder] {
    defer { player.world.orders.removeAll(keepingCapacity: true) }
    return player.world.orders
  }

  /// What has happened since it was last asked.
  package mutating func takeTrace() -> [TraceLine] {
    let lines = (told..<player.world.entries.count).map { player.world.line($0) }
    forgetTrace()
    return lines
  }

  private mutating func forgetTrace() {
    if keepsTrace, player.world.entries.count < Self.keptEntries {
      told = player.world.entries.count
    } else {
      hasForgotten = keepsTrace || hasForgotten
      player.world.entries.removeAll(keepingCapacity: true)
      told = 0
    }
  }

  /// What came of the scenario's expectations. What only the relay sees is not judged.
  package func verdicts() -> [Verdict] {
    scenario.expectations.filter { !$0.needsRelay }.map { expectation in
      guard !hasForgotten else {
        return Verdict(
          says: expectation.says, isPassed: false,
          found: "more than \(Self.keptEntries) things happened; make the scenario shorter")
      }
      return player.world.verdict(expectation)
    }
  }

  /// The expectations that are not judged, as they are told to people.
  package var unjudged: [String] {
    scenario.expectations.filter(\.needsRelay).map(\.says)
  }
}

/// What is left of a phone from its last run.
package struct LastingPhone: Sendable {
  package var memory: PhoneMemory
  /// The states of its apps, by their names.
  package var archives: [String: StateArchive]

  package init(memory: PhoneMemory, archives: [String: StateArchive]) {
    self.memory = memory
    self.archives = archives
  }
}

extension Expectation {
  /// Whether it looks at what only the relay sees, or at pushes by the names of the scenario.
  fileprivate var needsRelay: Bool {
    switch rule {
    case .expect(let match, _, _): match.needsRelay
    case .order(let matches): matches.contains { $0.needsRelay }
    case .fetchedBeforeUse: false
    }
  }
}

extension Expectation.Match {
  fileprivate var needsRelay: Bool {
    if push != nil { return true }
    switch kind {
    case .received, .refused, .sent, .stored, .discarded, .delivered, .outcome: return true
    default: return false
    }
  }
}
