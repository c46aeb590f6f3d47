import DeviceLink
package import DeviceSimulator
package import RelayClient
import RelayCore

/// Simulated phones in real time: the model decides, this actor does. It owns the world of the
/// phones, gives it the time and what the relay sends, and performs what it orders: streams and the
/// lines on them, transfers, archives.
package actor PhoneDriver {
  /// What a driver needs from outside.
  package struct Configuration: Sendable {
    /// The phones, what happens to them, and what must come of it.
    package var scenario: Scenario
    package var seed: UInt64
    /// How many phones share a connection.
    package var phonesPerConnection = 1
    /// Ends when every phone has reported so many pushes; nil goes on.
    package var reportsWanted: Int?
    /// Connects with the relay.
    package var connect: @Sendable () async throws -> RelayClient
    /// Who a phone, by its place, is to the relay; asked before each stream.
    package var identify: @Sendable (Int, DeviceAPI) async throws -> DeviceIdentity
    /// Shown to people, as it happens.
    package var tell: @Sendable ([TraceLine]) -> Void
    /// Milliseconds since the UNIX epoch.
    package var now: @Sendable () -> Int64

    package init(
      scenario: Scenario, seed: UInt64,
      connect: @escaping @Sendable () async throws -> RelayClient,
      identify: @escaping @Sendable (Int, DeviceAPI) async throws -> DeviceIdentity,
      tell: @escaping @Sendable ([TraceLine]) -> Void, now: @escaping @Sendable () -> Int64
    ) {
      self.scenario = scenario
      self.seed = seed
      self.connect = connect
      self.identify = identify
      self.tell = tell
      self.now = now
    }
  }

  /// What a driver does for one phone.
  private struct Phone {
    /// The session that speaks for it; an older one is deaf.
    var session = 0
    var task: Task<Void, Never>?
    /// A stream that the relay is to give up by itself, for the phone has no coverage.
    var abandoned: Task<Void, Never>?
    var lines: AsyncStream<[UInt8]>.Continuation?
    var hasConnected = false
    var reports = 0
  }

  private let configuration: Configuration
  private let pool: LinkPool
  private var world: LiveWorld
  private var phones: [Phone]
  private var timer: Task<Void, Never>?
  private var timerAt = Int64.max
  /// Whether any phone has.
  private var hasConnected = false
  private var ending: Result<Void, any Error>?
  private var waiter: CheckedContinuation<Void, Never>?
  /// What has happened since the start.
  package private(set) var counts = Counts()

  /// Numbers for a progress line.
  package struct Counts: Sendable {
    package var phones = 0
    package var listening = 0
    package var arrived = 0
    package var reported = 0
    package var reconnects = 0
  }

  package init(_ configuration: Configuration) {
    self.configuration = configuration
    pool = LinkPool(
      phonesPerConnection: configuration.phonesPerConnection, connect: configuration.connect)
    world = LiveWorld(
      configuration.scenario, seed: configuration.seed, at: configuration.now())
    phones = Array(repeating: Phone(), count: world.phones.count)
    counts.phones = phones.count
  }

  /// Plays the phones' part until the scenario is over, every phone has reported what it was to, or
  /// the task is cancelled. Throws when a first connection cannot be made, when the relay refuses,
  /// or when another connection takes a phone over.
  package func run() async throws {
    settle()
    if ending == nil {
      await withTaskCancellationHandler {
        await withCheckedContinuation { waiter = $0 }
      } onCancel: {
        Task { await self.end(.success(())) }
      }
    }
    await hangUp()
    try ending?.get()
  }

  /// What came of the scenario's expectations, and which could not be judged from here.
  package func verdicts() -> (judged: [Verdict], unjudged: [String]) {
    (world.verdicts(), world.unjudged)
  }

  /// Does what a person says, such as `open com.example.app`.
  package func perform(command: String) throws(LiveCommandProblem) {
    try world.perform(command: command, at: configuration.now())
    settle()
  }

  // MARK: What sessions say

  /// Whether the phone still wants this session.
  func isWanted(_ session: PhoneSession) -> Bool {
    phones[session.phone].session == session.number && ending == nil
  }

  /// A stream is open; false if nobody wants it any more.
  func opened(_ session: PhoneSession, _ lines: AsyncStream<[UInt8]>.Continuation) -> Bool {
    guard isWanted(session) else { return false }
    if phones[session.phone].hasConnected { counts.reconnects += 1 }
    phones[session.phone].hasConnected = true
    hasConnected = true
    phones[session.phone].lines = lines
    phones[session.phone].abandoned?.cancel()
    phones[session.phone].abandoned = nil
    counts.listening += 1
    world.handle(.connected, of: session.phone, at: configuration.now())
    settle()
    return true
  }

  func happened(_ events: [LiveWorld.Event], to session: PhoneSession) {
    guard isWanted(session) else { return }
    let now = configuration.now()
    for event in events { world.handle(event, of: session.phone, at: now) }
    settle()
  }

  /// The stream is gone; false if the phone does not want another.
  func lost(_ session: PhoneSession, _ reason: String) -> Bool {
    guard isWanted(session) else { return false }
    if phones[session.phone].lines != nil { counts.listening -= 1 }
    phones[session.phone].lines = nil
    world.handle(.lost(reason: reason), of: session.phone, at: configuration.now())
    settle()
    if reason == CloseReason.superseded.name {
      end(.failure(PhoneDriverError.superseded(phone: world.phones[session.phone].name)))
      return false
    }
    return true
  }

  /// Whether another attempt makes sense. What fails the first time ends it all, for it is likely a
  /// mistake in the command.
  func mayTryAgain(_ session: PhoneSession, after error: any Error) -> Bool {
    guard isWanted(session) else { return false }
    var isFinal = !hasConnected
    if case .refused(let refusal)? = error as? DeviceAPIError { isFinal = refusal.status < 500 }
    if isFinal { end(.failure(error)) }
    return !isFinal
  }

  // MARK: What the world wants

  /// Does what has been ordered, tells what has happened, sets the timer.
  private func settle() {
    guard ending == nil else { return }
    for order in world.takeOrders() { perform(order) }
    let lines = world.takeTrace()
    if !lines.isEmpty {
      for line in lines { count(line) }
      configuration.tell(lines)
    }
    let now = configuration.now()
    if world.isOver(at: now) || hasAllReports { return end(.success(())) }
    setTimer(now)
  }

  private var hasAllReports: Bool {
    guard let wanted = configuration.reportsWanted else { return false }
    return phones.allSatisfy { $0.reports >= wanted }
  }

  private func count(_ line: TraceLine) {
    switch line.kind {
    case .arrived: counts.arrived += 1
    case .reported:
      counts.reported += 1
      guard let phone = world.place(ofPhone: line.phone) else { return }
      phones[phone].reports += 1
    default: break
    }
  }

  private func setTimer(_ now: Int64) {
    let wake = world.nextWake
    guard wake < timerAt else { return }
    timer?.cancel()
    timerAt = wake
    let pause = max(0, wake - now)
    timer = Task { [weak self] in
      do {
        try await Task.sleep(for: .milliseconds(pause))
      } catch {
        return
      }
      await self?.timerFired(wake)
    }
  }

  private func timerFired(_ wake: Int64) {
    guard timerAt == wake else { return }
    timerAt = .max
    world.advance(to: max(wake, configuration.now()))
    settle()
  }

  private func perform(_ order: LiveOrder) {
    let phone = order.phone
    switch order {
    case .connect:
      phones[phone].session += 1
      let session = PhoneSession(
        phone: phone, number: phones[phone].session, driver: self, configuration: configuration,
        pool: pool)
      phones[phone].task = Task { await session.run() }
    case .disconnect(_, let saysGoodbye): disconnect(phone, saysGoodbye: saysGoodbye)
    case .ack(_, let id, let outcome): write(.ack(id: id, outcome: outcome), phone)
    case .state(_, let report):
      write(.state(power: report.power, network: report.network, screen: report.screen), phone)
    case .keepAlive: write(.keepAlive, phone)
    case .transfer, .archive, .lock, .unlock: break
    }
  }

  private func write(_ line: UpLine, _ phone: Int) {
    var bytes: [UInt8] = []
    line.write(to: &bytes)
    phones[phone].lines?.yield(bytes)
  }

  private func disconnect(_ phone: Int, saysGoodbye: Bool) {
    phones[phone].session += 1
    if phones[phone].lines != nil { counts.listening -= 1 }
    if saysGoodbye {
      // What was said last still arrives; then the stream ends, and its task with it.
      phones[phone].lines?.finish()
    } else {
      // The relay is to find out by itself: the stream stays, and nobody answers.
      phones[phone].abandoned?.cancel()
      phones[phone].abandoned = phones[phone].task
    }
    phones[phone].lines = nil
    phones[phone].task = nil
  }

  // MARK: The end

  private func end(_ result: Result<Void, any Error>) {
    guard ending == nil else { return }
    ending = result
    waiter?.resume()
    waiter = nil
  }

  /// Streams end in good order, such that what was acknowledged last arrives.
  private func hangUp() async {
    timer?.cancel()
    let tasks = phones.flatMap { [$0.task, $0.abandoned] }.compactMap(\.self)
    for phone in phones {
      phone.abandoned?.cancel()
      if let lines = phone.lines { lines.finish() } else { phone.task?.cancel() }
    }
    for task in tasks { await task.value }
    await pool.closeAll()
  }

  /// Half to all of 0.5 s, 1 s, 2 s, … 30 s: many phones must not come back at the same moment.
  package static func pauseMilliseconds(failures: Int) -> Int64 {
    let longest = Int64(min(30_000, 500 << min(failures, 6)))
    return Int64.random(in: longest / 2...longest)
  }
}

/// Why phones cannot go on.
package enum PhoneDriverError: Error, Hashable, Sendable, CustomStringConvertible {
  case superseded(phone: String)

  package var description: String {
    switch self {
    case .superseded(let phone):
      "\(phone): another connection of this device has taken over; give it another name"
    }
  }
}
