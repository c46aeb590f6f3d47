import DeviceLink
import DeviceModel
package import DeviceSimulator
import Primitives
package import RelayClient
import RelayCore

/// Simulated phones in real time: the model decides, this actor does. It owns the simulation of the
/// phones, gives it the time and what the relay sends, and performs what it orders: streams and the
/// lines on them, transfers, archives.
package actor PhoneDriver {
  package typealias Identify =
    @Sendable (Int, _ gone: Set<String>, DeviceAPI) async throws -> DeviceIdentity

  /// What a driver needs from outside.
  package struct Configuration: Sendable {
    /// The phones, what happens to them, and what must come of it.
    package var scenario: Scenario
    package var seed: UInt64
    /// How many phones share a connection.
    package var phonesPerConnection = 1
    /// Ends when every phone has reported so many pushes; nil goes on.
    package var reportsWanted: Int?
    /// Where phones keep their files, each in a directory of its name; nil for nowhere.
    package var storageDirectory: String?
    /// What unlocks the phones.
    package var passcode = PhoneStorage.defaultPasscode
    /// How bad the link is on purpose.
    package var link = LinkModel.plain
    /// Certificates, in PEM, that transfers trust beside the system's; nil for none.
    package var transferTrustRoots: String?
    /// Connects with the relay.
    package var connect: @Sendable () async throws -> RelayClient
    /// Who a phone, by its place, is to the relay, with its apps registered but for those that are
    /// not there any more; asked before each stream.
    package var identify: Identify
    /// Shown to people, as it happens.
    package var tell: @Sendable ([TraceLine]) -> Void
    /// Shown to people: what could not be kept or done, and what to do.
    package var warn: @Sendable (String) -> Void = { _ in }
    /// Milliseconds since the UNIX epoch.
    package var now: @Sendable () -> Int64
    /// The relay's time, if that moves only when told: the phones follow it.
    package var relayTime: Int64?

    package init(
      scenario: Scenario, seed: UInt64,
      connect: @escaping @Sendable () async throws -> RelayClient,
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

  /// What a driver does for one phone.
  struct Phone {
    /// The session that speaks for it; an older one is deaf.
    var session = 0
    /// Its own link, if somebody has made it another than all have.
    var link: LinkModel?
    var task: Task<Void, Never>?
    /// A stream that the relay is to give up by itself, for the phone has no coverage.
    var abandoned: Task<Void, Never>?
    var lines: AsyncStream<PhoneSession.SentLine>.Continuation?
    var hasConnected = false
    /// Whether the relay wants to hear what the phone decides.
    var tellsDecisions = false
    var reports = 0
  }

  let configuration: Configuration
  let pool: LinkPool
  /// The files of each phone; none when nothing is kept.
  private var storages: [PhoneStorage] = []
  var simulation: LiveSimulation
  var phones: [Phone]
  /// What is being carried out.
  var transfers: [TransferKey: Task<Void, Never>] = [:]
  var transferClient: TransferClient?
  /// What the relay is being told of a phone's apps.
  private var registrations: [Int: Task<Void, Never>] = [:]
  /// When what lasts of the phones is to be kept next.
  var saveAt = Int64.max
  /// Phones that something has happened to since they were last kept.
  var unsaved: Set<Int> = []
  private static let savePauseMilliseconds: Int64 = 1000
  private static let urgent: Set<TraceKind> = [
    .transferQueued, .transferEnded, .terminated, .changed, .document, .waits,
  ]
  private var timer: Task<Void, Never>?
  private var timerAt = Int64.max
  /// With a relay whose clock moves only when told: its time, and what it asks.
  var clock: FollowedClock?
  /// Whether any phone has.
  var hasConnected = false
  private(set) var ending: Result<Void, any Error>?
  private var waiter: CheckedContinuation<Void, Never>?
  /// What has happened since the start.
  package internal(set) var counts = Counts()

  /// Numbers for a progress line.
  package struct Counts: Sendable {
    package var phones = 0
    package var listening = 0
    package var arrived = 0
    package var reported = 0
    package var reconnects = 0
  }

  /// Reads what is left of the phones from their last run. Throws when that is damaged, or the
  /// passcode is another.
  package init(_ configuration: Configuration) throws(PhoneStorageError) {
    self.configuration = configuration
    pool = LinkPool(
      phonesPerConnection: configuration.phonesPerConnection, connect: configuration.connect)
    var last: [String: LastingPhone] = [:]
    if let directory = configuration.storageDirectory {
      for name in configuration.scenario.phones.map(\.name) {
        let storage = try PhoneStorage(directory: "\(directory)/\(name)")
        last[name] = try Self.lastingPhone(storage, configuration)
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

  /// What is left from the last run. For a moment the passcode opens the archives; their phones put
  /// them where they cannot be read until they are unlocked.
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
    for app in try open.archives() { archives[app] = try open.archive(of: app) }
    return LastingPhone(memory: memory, archives: archives)
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
    (simulation.verdicts(), simulation.unjudged)
  }

  /// Does what a person says, such as `open com.example.app`.
  package func perform(command: String) throws(LiveCommandError) {
    try simulation.perform(command: command, at: now)
    settle()
  }

  // MARK: What the simulation wants

  /// Does what has been ordered, tells what has happened, sets the timer.
  func settle() {
    guard ending == nil else { return }
    for order in simulation.drainOrders() { perform(order) }
    let lines = simulation.drainTrace()
    if !lines.isEmpty {
      for line in lines { count(line) }
      configuration.tell(lines)
    }
    let now = self.now
    keep(lines, now)
    if saveAt <= now { save() }
    if simulation.isOver(at: now) || hasAllReports { return end(.success(())) }
    if clock == nil { setTimer(now) } else { answerBarriers() }
  }

  /// The phones' time.
  var now: Int64 { clock?.time ?? configuration.now() }

  /// What must outlast a kill is kept at once, the rest soon; archives are kept as they come.
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

  /// The phones are switched off in good order: what is in front saves its state as it leaves.
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
    // They have had the time that the streams took to end.
    for task in registrations.values { task.cancel() }
    for task in registrations.values { await task.value }
    for transfer in transfers.values { transfer.cancel() }
    for transfer in transfers.values { await transfer.value }
    await transferClient?.shutdown()
    await pool.closeAll()
    if !storages.isEmpty { putAway() }
  }
}

/// What the simulation orders.
extension PhoneDriver {
  func perform(_ order: LiveOrder) {
    let phone = order.phone
    switch order.task {
    case .connect:
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
    case .register(let topic), .unregister(let topic): tellRelay(of: topic, phone)
    case .archive, .lock, .unlock:
      if !storages.isEmpty { attempt { try keep(order.task, phone) } }
    }
  }

  /// An order's part in the phone's files; most have none.
  private func keep(_ task: LiveOrder.Task, _ phone: Int) throws(PhoneStorageError) {
    switch task {
    case .archive(let app, .saved(let archive)): try storages[phone].save(archive, of: app)
    case .archive(let app, .deleted): try storages[phone].deleteArchive(of: app)
    case .lock: storages[phone].lock()
    case .unlock: try storages[phone].unlock(passcode: configuration.passcode)
    case .archive, .connect, .link, .disconnect, .ack, .decision, .state, .keepAlive, .transfer,
      .register, .unregister:
      break
    }
  }

  /// Who a phone is to the relay, with the apps that it has.
  func identity(of phone: Int, _ api: DeviceAPI) async throws -> DeviceIdentity {
    try await configuration.identify(phone, uninstalled(on: phone), api)
  }

  private func uninstalled(on phone: Int) -> Set<String> {
    let gone = simulation.model(of: phone).apps.filter { $0.state == .uninstalled }
    return Set(gone.map(\.definition.name))
  }

  /// Of an app that was uninstalled, or is there again, one after the other: how it is by then, for
  /// what is there again must not be unregistered because of a push that came before.
  private func tellRelay(of topic: String, _ phone: Int) {
    let (pool, configuration, before) = (pool, configuration, registrations[phone])
    registrations[phone] = Task {
      await before?.value
      do {
        let api = DeviceAPI(try await pool.client(for: phone))
        let gone = uninstalled(on: phone)
        let identity = try await configuration.identify(phone, gone, api)
        if gone.contains(topic) { try await api.unregister(topic: topic, of: identity) }
      } catch DeviceAPIError.refused(let refusal)
        where refusal.reason == RelayCore.DeviceRefusal.unknownApp.row.reason
      {
        // It was told before.
      } catch {
        configuration.warn("\(topic): the relay could not be told: \(error)")
      }
    }
  }

  /// The phone goes on without, and its owner is told.
  func attempt(_ work: () throws -> Void) {
    do {
      try work()
    } catch {
      configuration.warn("\(error)")
    }
  }

  func write(_ line: UpLine, _ phone: Int) {
    var bytes: [UInt8] = []
    line.write(to: &bytes)
    phones[phone].lines?.yield(PhoneSession.SentLine(bytes: bytes))
  }

  func disconnect(_ phone: Int, saysGoodbye: Bool) {
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

  // MARK: Transfers

  /// A transfer with an address is carried out from each start to the next other step.
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
    // What the phone has stopped meanwhile is no news.
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

  /// Made when the first transfer needs it.
  private func client() throws(TransferClientError) -> TransferClient {
    if let transferClient { return transferClient }
    var options = TransferOptions()
    options.trustRoots = configuration.transferTrustRoots
    let client = try TransferClient(options)
    transferClient = client
    return client
  }
}

/// A transfer of one of the phones.
struct TransferKey: Hashable, Sendable {
  let phone: Int
  let id: TransferID
}

extension TransferReport {
  fileprivate var isFailure: Bool {
    if case .failed = self { true } else { false }
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
