import DeviceLink
import DeviceModel
package import DeviceSimulator
import Primitives
package import RelayClient
import RelayCore

/// Simulated phones in real time. Owns the simulation, feeds it the time and the relay's lines, and
/// performs its orders: streams and their lines, transfers, archives.
package actor PhoneDriver {
  package typealias Identify =
    @Sendable (Int, _ gone: Set<String>, DeviceAPI) async throws -> DeviceIdentity

  /// The environment of a driver.
  package struct Configuration: Sendable {
    package var scenario: Scenario
    package var seed: UInt64
    package var phonesPerConnection = 1
    /// Ends when every phone has reported this many pushes; nil goes on.
    package var reportsWanted: Int?
    /// Holds one directory per phone, by name; nil keeps nothing.
    package var storageDirectory: String?
    package var passcode = PhoneStorage.defaultPasscode
    /// Each phone has a stream for orders besides.
    package var takesOrders = true
    /// Makes the link worse on purpose.
    package var link = LinkModel.plain
    /// PEM certificates that transfers trust besides the system's.
    package var transferTrustRoots: String?
    /// A URL: apps `POST` their tokens of Live Activities to it, as to their server.
    package var tokensTo: String?
    package var connect: LinkPool.Connect
    /// The relay identity of a phone, by index, with all its apps registered but those `gone`.
    /// Called before each stream.
    package var identify: Identify
    package var tell: @Sendable ([TraceLine]) -> Void
    /// Reports what could not be kept or done, and what to do.
    package var warn: @Sendable (String) -> Void = { _ in }
    /// Milliseconds since the UNIX epoch.
    package var now: @Sendable () -> Int64
    /// Set if the relay's time moves only when told; the phones then follow it.
    package var relayTime: Int64?

    package init(
      scenario: Scenario, seed: UInt64,
      connect: @escaping LinkPool.Connect,
      identify: @escaping Identify,
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

  struct Phone {
    /// Sessions with an older number are ignored.
    var session = 0
    /// Nil for the common link.
    var link: LinkModel?
    var task: Task<Void, Never>?
    /// A stream left for the relay to give up: the phone has no coverage.
    var abandoned: Task<Void, Never>?
    /// To that stream: a relay whose clock moves only when told still waits for barriers.
    var unheard: AsyncStream<PhoneSession.SentLine>.Continuation?
    var lines: AsyncStream<PhoneSession.SentLine>.Continuation?
    var hasConnected = false
    /// Streams that it has had.
    var openings = 0
    /// Until the relay has greeted it, or an attempt has failed.
    var isOpening = false
    /// The relay accepts decisions.
    var tellsDecisions = false
    var reports = 0
    var orders = OrderBook()
  }

  let configuration: Configuration
  let pool: LinkPool
  /// Empty when nothing is kept.
  private var storages: [PhoneStorage] = []
  var simulation: LiveSimulation
  var phones: [Phone]
  var transfers: [TransferKey: Task<Void, Never>] = [:]
  var transferClient: TransferClient?
  /// Changes of a phone's apps being sent to the relay.
  var registrations: [Int: Task<Void, Never>] = [:]
  /// These, tokens for an app's server, and streams that are being opened.
  var untold = 0
  var saveAt = Int64.max
  var warned: Set<String> = []
  /// Tokens that the apps of a phone have handed to their servers.
  var handed: [Int: [String: String]] = [:]
  var handover: (bodies: AsyncStream<String>.Continuation, task: Task<Void, Never>)?
  /// Phones that changed since they were last saved.
  var unsaved: Set<Int> = []
  private static let savePauseMilliseconds: Int64 = 1000
  private static let farewell = Duration.seconds(5)
  private static let urgent: Set<TraceKind> = [
    .transferQueued, .transferEnded, .terminated, .changed, .document, .waits, .activity,
    .activityToken,
  ]
  private var timer: Task<Void, Never>?
  private var timerAt = Int64.max
  /// Set with a relay whose clock moves only when told.
  var clock: FollowedClock?
  var hasConnected = false
  /// That the relay cannot be reached; until a phone connects again.
  var isOutageTold = false
  private(set) var ending: Result<Void, any Error>?
  private var waiter: CheckedContinuation<Void, Never>?
  package internal(set) var counts = Counts()

  /// Numbers for a progress line.
  package struct Counts: Sendable {
    package var phones = 0
    package var listening = 0
    package var arrived = 0
    package var reported = 0
    package var reconnects = 0
  }

  /// Throws if files of the last run are damaged, or the passcode is wrong.
  package init(_ configuration: Configuration) throws(PhoneStorageError) {
    self.configuration = configuration
    pool = LinkPool(
      phonesPerConnection: configuration.phonesPerConnection, connect: configuration.connect)
    var last: [String: LastingPhone] = [:]
    if let directory = configuration.storageDirectory {
      for name in configuration.scenario.phones.map(\.name) {
        let storage = try PhoneStorage(directory: "\(directory)/\(name)")
        last[name] = try Self.lastingPhone(storage, configuration)
        if last[name] != nil, configuration.scenario.hasExpectations {
          configuration.warn(
            "\(name) goes on where it was, not as the scenario has it begin; with a state "
              + "directory of its own it begins anew")
        }
        storages.append(storage)
      }
    }
    clock = configuration.relayTime.map { FollowedClock(time: $0) }
    simulation = LiveSimulation(
      configuration.scenario, seed: configuration.seed,
      at: configuration.relayTime ?? configuration.now(),
      last: last)
    phones = Array(repeating: Phone(), count: simulation.phones.count)
    counts.phones = phones.count
  }

  /// Opens the archives with the passcode; the restored phones keep them unreadable until unlocked.
  private static func lastingPhone(
    _ storage: PhoneStorage, _ configuration: Configuration
  ) throws(PhoneStorageError) -> LastingPhone? {
    let memory: PhoneMemory?
    do throws(PhoneStorageError) {
      memory = try storage.memory()
    } catch .outdated(let path) {
      configuration.warn("\(PhoneStorageError.outdated(path: path))")
      try storage.clear()
      return nil
    }
    guard let memory else { return nil }
    var open = storage
    try open.unlock(passcode: configuration.passcode)
    var archives: [String: StateArchive] = [:]
    for app in memory.apps where (try? ArchiveName.file(of: app)) != nil {
      archives[app] = try open.archive(of: app)
    }
    return LastingPhone(memory: memory, archives: archives)
  }

  /// Runs until the scenario is over, every phone has sent its reports, or the task is cancelled.
  /// Throws if a first connection fails, the relay refuses, or another connection takes over a
  /// phone.
  package func run() async throws {
    settle()
    for phone in phones.indices { introduce(phone) }
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

  /// Results of the expectations, and those that cannot be judged here.
  package func verdicts() -> (judged: [Verdict], unjudged: [String]) {
    (simulation.verdicts(), simulation.unjudged)
  }

  /// Performs a typed command, such as `open com.example.app`.
  package func perform(command: String) throws(LiveCommandError) {
    try simulation.perform(command: command, at: now)
    settle()
  }

  // MARK: What the simulation wants

  /// Performs orders, passes on the trace, and sets the timer.
  func settle() {
    guard ending == nil else { return }
    for order in simulation.drainOrders() { perform(order) }
    let lines = simulation.drainTrace()
    if !lines.isEmpty {
      for line in lines { count(line) }
      noteForOrders(lines)
      configuration.tell(lines)
    }
    let now = self.now
    keep(lines, now)
    if saveAt <= now { save() }
    if simulation.isOver(at: now) || hasAllReports { return end(.success(())) }
    if clock == nil { setTimer(now) } else { answerBarriers() }
  }

  var now: Int64 { clock?.time ?? configuration.now() }

  /// Saves at once what must survive a kill, the rest soon. Archives are saved as they come.
  private func keep(_ lines: [TraceLine], _ now: Int64) {
    guard !storages.isEmpty, !lines.isEmpty else { return }
    let isUrgent = clock != nil || lines.contains { Self.urgent.contains($0.kind) }
    unsaved.formUnion(lines.compactMap { simulation.place(ofPhone: $0.phone) })
    saveAt = min(saveAt, isUrgent ? now : now + Self.savePauseMilliseconds)
  }

  private func save() {
    saveAt = .max
    for phone in storages.isEmpty ? [] : unsaved {
      attempt { try storages[phone].save(simulation.model(of: phone).memory()) }
    }
    unsaved.removeAll(keepingCapacity: true)
  }

  /// Switches the phones off in good order: foreground apps save their state.
  private func putAway() {
    let now = self.now
    let memories = phones.indices.map { simulation.model(of: $0).memory() }
    for phone in phones.indices { simulation.handle(.phone(.locked), of: phone, at: now) }
    for order in simulation.drainOrders() { attempt { try keep(order.task, order.phone) } }
    for (phone, memory) in memories.enumerated() {
      attempt { try storages[phone].save(memory) }
    }
  }

  private var hasAllReports: Bool {
    guard let wanted = configuration.reportsWanted else { return false }
    return phones.allSatisfy { $0.reports >= wanted }
  }

  private func count(_ line: TraceLine) {
    if line.kind == .arrived { counts.arrived += 1 }
    guard line.kind == .reported else { return }
    counts.reported += 1
    guard let phone = simulation.place(ofPhone: line.phone) else { return }
    phones[phone].reports += 1
  }

  private func setTimer(_ now: Int64) {
    let wake = min(simulation.nextWake, saveAt)
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
    simulation.advance(to: max(wake, now))
    settle()
  }

  // MARK: The end

  func end(_ result: Result<Void, any Error>) {
    guard ending == nil else { return }
    ending = result
    for phone in phones.indices { linkDecided(phone) }
    waiter?.resume()
    waiter = nil
  }

  /// Ends streams in good order, so that the last acknowledgements arrive.
  private func hangUp() async {
    timer?.cancel()
    let tasks = phones.flatMap { [$0.task, $0.abandoned, $0.orders.introduction, $0.orders.task] }
      .compactMap(\.self)
    for phone in phones {
      phone.abandoned?.cancel()
      phone.orders.introduction?.cancel()
      phone.orders.task?.cancel()
      phone.orders.pause?.cancel()
      if let lines = phone.lines { lines.finish() } else { phone.task?.cancel() }
    }
    // A link with a long latency would hold its last lines back for as long.
    let limit = Task {
      try await Task.sleep(for: Self.farewell)
      for task in tasks { task.cancel() }
    }
    for task in tasks { await task.value }
    limit.cancel()
    // They had time while the streams ended.
    handover?.bodies.finish()
    handover?.task.cancel()
    await handover?.task.value
    for task in registrations.values { task.cancel() }
    for task in registrations.values { await task.value }
    for transfer in transfers.values { transfer.cancel() }
    for transfer in transfers.values { await transfer.value }
    await pool.closeAll()
    if !storages.isEmpty { putAway() }
  }
}

extension PhoneDriver {
  func perform(_ order: LiveOrder) {
    let phone = order.phone
    switch order.task {
    case .connect:
      opens(phone, true)
      phones[phone].session += 1
      let session = PhoneSession(
        phone: phone, number: phones[phone].session, driver: self, configuration: configuration,
        pool: pool, link: phones[phone].link ?? configuration.link)
      phones[phone].task = Task { await session.run() }
    case .link(let link): phones[phone].link = link
    case .disconnect(let saysGoodbye): disconnect(phone, saysGoodbye: saysGoodbye)
    case .ack(let id, let outcome): write(.ack(id: id, outcome: outcome), phone)
    case .decision(let id, let decision):
      if phones[phone].tellsDecisions { write(.decision(id: id, decision), phone) }
    case .state(let report): write(.state(report), phone)
    case .keepAlive: write(.keepAlive, phone)
    case .transfer(let id, let step): perform(step, of: id, phone)
    case .register(let topic): tellRelay(of: topic, isNew: true, phone)
    case .unregister(let topic): tellRelay(of: topic, isNew: false, phone)
    case .address(let address, let app, let isValid):
      tellRelay(of: address, of: app, isValid: isValid, phone)
    case .archive, .lock, .unlock:
      if !storages.isEmpty { attempt { try keep(order.task, phone) } }
    }
  }

  private func keep(_ task: LiveOrder.Task, _ phone: Int) throws(PhoneStorageError) {
    switch task {
    case .archive(let app, .saved(let archive)): try storages[phone].save(archive, of: app)
    case .archive(let app, .deleted): try storages[phone].deleteArchive(of: app)
    case .lock: storages[phone].lock()
    case .unlock: try storages[phone].unlock(passcode: configuration.passcode)
    case .archive, .connect, .link, .disconnect, .ack, .decision, .state, .keepAlive, .transfer,
      .register, .unregister, .address:
      break
    }
  }

  func uninstalled(on phone: Int) -> Set<String> {
    let gone = simulation.model(of: phone).apps.filter { $0.state == .uninstalled }
    return Set(gone.map(\.definition.name))
  }

  /// Reports an app as uninstalled, or as installed again with a new token, by its state at that
  /// time: an app that is back must not be unregistered because of an earlier push.
  private func tellRelay(of topic: String, isNew: Bool, _ phone: Int) {
    let environment = simulation.model(of: phone).app(named: topic)?.definition.environment
    tellRelay(of: topic, isOver: true, phone, without: isNew ? topic : nil) {
      driver, gone, api, identity in
      guard gone.contains(topic) else { return }
      do {
        try await api.unregister(topic: topic, of: identity)
      } catch ClientError.refused(let refusal)
        where isNew && refusal.reason == DeviceRefusal.unknownApp.row.reason
      {}
      let others = driver.uninstalled(on: phone)
      guard isNew, !others.contains(topic) else { return }
      let identity = try await driver.configuration.identify(phone, others, api)
      let token = try await api.register(topic: topic, environment: environment, of: identity)
      driver.simulation.handle(.registered(app: topic, token: token), of: phone, at: driver.now)
      driver.settle()
    }
  }

  /// The phone goes on without it.
  func attempt(_ work: () throws -> Void) {
    do {
      try work()
    } catch {
      configuration.warn("\(error)")
    }
  }

  func write(_ line: UpLine, _ phone: Int) {
    phones[phone].lines?.yield(PhoneSession.SentLine(line))
  }

  func disconnect(_ phone: Int, saysGoodbye: Bool) {
    phones[phone].session += 1
    opens(phone, false)
    if phones[phone].lines != nil { counts.listening -= 1 }
    linkDecided(phone)
    if saysGoodbye {
      // Pending lines still arrive; then the stream and its task end.
      phones[phone].lines?.finish()
    } else {
      // The stream stays unanswered, for the relay to find out.
      phones[phone].abandoned?.cancel()
      phones[phone].abandoned = phones[phone].task
      phones[phone].unheard = phones[phone].lines
    }
    phones[phone].lines = nil
    phones[phone].task = nil
    // The relay forgets what that stream has told it.
    clock?.told = .max
  }

  // MARK: Transfers

  /// Runs from each `started` step to the transfer's next step.
  private func perform(_ step: TransferStep, of id: TransferID, _ phone: Int) {
    let key = TransferKey(phone: phone, id: id)
    transfers.removeValue(forKey: key)?.cancel()
    guard case .started = step, let transfer = simulation.model(of: phone).service[id],
      transfer.isPerformed
    else { return }
    guard transfer.request.actualBytes == nil, transfer.request.breaksAt == nil else {
      let why = "actualBytes and breaksAt are for transfers without a url; here its server decides"
      return reported(.failed(why), key)
    }
    attempt {
      guard !storages.isEmpty else {
        return reported(.failed("there is no directory to keep it in"), key)
      }
      let file = try storages[phone].transferFile(number: id.number, name: transfer.request.name)
      guard let order = TransferOrder(transfer, file: file) else { return }
      let client = try client()
      transfers[key] = Task {
        await client.perform(order) { await self.reported($0, key) }
      }
    }
  }

  private func reported(_ report: TransferReport, _ key: TransferKey) {
    // The phone has stopped the transfer meanwhile.
    guard ending == nil, transfers[key] != nil || report.isFailure else { return }
    if case .failed(let why) = report {
      let transfer = simulation.model(of: key.phone).service[key.id]
      configuration.warn(
        "\(simulation.phones[key.phone]): \(transfer?.request.name ?? "a transfer"): \(why)")
    }
    let now = self.now
    for event in report.events(of: key.id) {
      simulation.handle(.phone(event), of: key.phone, at: now)
    }
    settle()
  }

  func client() throws(TransferClientError) -> TransferClient {
    if let transferClient { return transferClient }
    var options = TransferOptions()
    options.trustRoots = configuration.transferTrustRoots
    let client = try TransferClient(options)
    transferClient = client
    return client
  }
}

struct TransferKey: Hashable, Sendable {
  let phone: Int
  let id: TransferID
}

extension TransferReport {
  fileprivate var isFailure: Bool {
    if case .failed = self { true } else { false }
  }
}

/// Why a run ended early: another one plays the phone.
package struct SupersededPhone: Error, Hashable, CustomStringConvertible {
  let phone: String

  package var description: String {
    "\(phone): another connection of this device has taken over; give it another name"
  }
}
