import AdminAPI
import DeviceLink
import Foundation
import Primitives
import RelayClient
import RelayCore

/// A phone that enrols, registers its apps, comes and goes, acknowledges or does not. It outlives
/// the relay: what it was told once must hold after each restart.
actor CrashPhone {
  /// What a phone does with what it gets.
  enum Habit: CaseIterable { case acknowledgeAll, acknowledgeSome, acknowledgeNone }

  /// How long it stays.
  enum Stay {
    case pause(Duration)
    case untilEmpty
  }

  let number: Int
  let ledger: CrashLedger
  var random: SeededRandom
  private(set) var identity: DeviceIdentity?
  private let topics: [String]
  /// Topics whose registration was answered, and those whose removal was not.
  private var registered: Set<String> = []
  private var leaving: Set<String> = []
  /// Of the present stream: what came and was acknowledged, and what was not.
  var acknowledged: Set<UniqueID> = []
  var unacknowledged: Set<UniqueID> = []
  /// The last stream began with `empty`.
  var wasEmpty = false
  /// What stood in the way last, for whoever asks why it does not get done.
  var trouble = "nothing has been tried"

  init(number: Int, ledger: CrashLedger, random: SeededRandom) {
    self.number = number
    self.ledger = ledger
    self.random = random
    topics = number % 4 == 0 ? ["com.example.app", "com.example.other"] : ["com.example.app"]
  }

  /// Lives for a while of the relay's life: until that winds down or ends, or the connection does.
  func live(_ life: CrashLife, on api: DeviceAPI) async throws {
    // Some are not there at all this time, and some enrol only later.
    if random.chance(identity == nil ? 40 : 12) { return }
    try await Task.sleep(for: random.milliseconds(0...200))
    while !life.isEnding {
      try await settleIn(life, on: api)
      switch random.number(0...99) {
      case 0..<72:
        let habit = Habit.allCases[max(0, random.number(0...9) - 7)]
        let pause = random.milliseconds(5...400) * life.pace
        try await listen(life, on: api, habit, .pause(pause))
      case 72..<76:
        try await removeApp(life, on: api)
      default:
        try await Task.sleep(for: random.milliseconds(5...300) * life.pace)
      }
    }
  }

  /// Comes and acknowledges until nothing is held for it.
  func drain(_ life: CrashLife, on api: DeviceAPI) async throws {
    do {
      try await settleIn(life, on: api)
      for _ in 0..<20 {
        try await listen(life, on: api, .acknowledgeAll, .untilEmpty)
        if wasEmpty { return }
      }
    } catch {
      trouble += ", then \(error)"
      throw error
    }
    ledger.violated("the mailbox of device \(number) does not become empty: \(trouble)")
  }

  // MARK: Apps

  /// Makes sure of what has been said: an identity, tokens, removals.
  private func settleIn(_ life: CrashLife, on api: DeviceAPI) async throws {
    let known = identity
    let device: DeviceIdentity
    if let known { device = known } else { device = try await api.enroll() }
    if known == nil { ledger.count { $0.devices += 1 } }
    identity = device
    for topic in topics {
      if leaving.contains(topic) { try await remove(topic, of: device, life, on: api) }
      // A registration that was answered is now and then asked for again: the same token.
      if registered.contains(topic), !random.chance(5) { continue }
      let token = try await api.register(topic: topic, of: device)
      ledger.registered(device: number, topic: topic, token: token)
      registered.insert(topic)
    }
  }

  private func removeApp(_ life: CrashLife, on api: DeviceAPI) async throws {
    guard let device = identity, let topic = topics.randomElement(using: &random) else { return }
    registered.remove(topic)
    leaving.insert(topic)
    ledger.leaving(device: number, topic: topic)
    try await remove(topic, of: device, life, on: api)
    // Providers meet a token that is gone for a while.
    try await Task.sleep(for: random.milliseconds(0...60))
  }

  private func remove(
    _ topic: String, of device: DeviceIdentity, _ life: CrashLife, on api: DeviceAPI
  ) async throws {
    do throws(ClientError) {
      try await api.unregister(topic: topic, of: device)
    } catch {
      ledger.note("refused with \(error)", device: number, topic: topic)
      // Unknown: the relay had removed it and died before it said so.
      guard case .refused(let refusal) = error, refusal.reason == "UnknownApp" else { throw error }
      // A relay that could not write the removal down says this, too, when it is asked again
      // (`rollBack` in `Shard+Registration.swift`), and the node that takes over has the app still.
      guard life.weather == .calm else {
        leaving.remove(topic)
        return
      }
    }
    leaving.remove(topic)
    ledger.left(device: number, topic: topic)
  }

  // MARK: Acknowledgements

  /// Asks how the relay sees this device. When all that is in flight is what was not acknowledged,
  /// it has taken all acknowledgements; and when its slots are empty too, it holds nothing more:
  /// returns whether it is so.
  func confirm(_ stream: ClientStream, on api: DeviceAPI) async throws -> Bool {
    guard let identity else { return false }
    // A sign of life: what is held comes.
    try await stream.write(Self.line(.keepAlive))
    let (acknowledged, unacknowledged) = (acknowledged, unacknowledged)
    let since = ledger.moment()
    let status = try await api.status(of: identity)
    trouble = "\(unacknowledged.count) not acknowledged, the relay says \(status)"
    guard status.connected, status.inFlight == unacknowledged.count else { return false }
    ledger.confirmed(acknowledged)
    guard status.apps.allSatisfy({ $0.visible == nil && $0.silent == nil }) else { return false }
    ledger.checkpoint(device: number, since: since)
    return unacknowledged.isEmpty
  }

  static func line(_ line: UpLine) -> [UInt8] {
    var bytes: [UInt8] = []
    line.write(to: &bytes)
    return bytes
  }
}
