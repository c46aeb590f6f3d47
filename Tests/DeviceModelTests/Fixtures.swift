import Primitives

@testable import DeviceModel

/// A phone with its time and everything it did: what nearly every test begins with.
struct Bench {
  /// 2026-11-21T00:00:00Z: a day that begins at midnight, so that hours of the day read as such.
  static let start = Instant(milliseconds: 1_795_219_200_000)

  var phone: Phone
  var now = Bench.start
  /// Everything since the last `clear`.
  var effects: [PhoneEffect] = []

  init(
    _ definitions: [AppDefinition] = [], limits: PhoneLimits = PhoneLimits(),
    transferMode: TransferMode = .modelled, seed: UInt64 = 1
  ) {
    phone = Phone(limits: limits, transferMode: transferMode, seed: seed, at: Self.start)
    for definition in definitions { send(.appInstalled(definition)) }
    clear()
  }

  mutating func clear() { effects = [] }

  mutating func send(_ events: PhoneEvent...) {
    for event in events { phone.handle(event, at: now, into: &effects) }
  }

  mutating func wait(_ lapse: Interval) {
    now = now + lapse
    phone.handle(.tick, at: now, into: &effects)
  }

  /// Unlocks, opens, uses for a minute, leaves, locks.
  mutating func use(_ app: AppID) {
    if phone.lock != .unlocked { send(.unlocked) }
    send(.appOpened(app))
    wait(.minutes(1))
    send(.appLeft, .locked)
  }

  var actions: [PhoneAction] { effects.map(\.action) }

  func state(_ app: AppID) -> AppState? { phone[app]?.state }

  /// The reports to the relay.
  var reports: [PushID: [PushOutcome?]] {
    var found: [PushID: [PushOutcome?]] = [:]
    for case .report(let id, let outcome) in actions { found[id, default: []].append(outcome) }
    return found
  }

  /// Without what is told of costs.
  func steps(of app: AppID) -> [AppStep] {
    actions.compactMap { action in
      switch action {
      case .app(app, .spent), .app(app, .judged): nil
      case .app(app, let step): step
      default: nil
      }
    }
  }

  /// How many files each merge took in.
  func merged(of app: AppID) -> [Int] {
    steps(of: app).compactMap { if case .merged(let files) = $0 { files.count } else { nil } }
  }

  func callbackSteps(of app: AppID) -> [CallbackStep] {
    actions.compactMap { if case .callback(_, app, let step) = $0 { step } else { nil } }
  }

  func archiveSteps(of app: AppID) -> [ArchiveStep] {
    actions.compactMap { if case .archive(app, let step) = $0 { step } else { nil } }
  }

  var bannersShown: [Banner] {
    actions.compactMap { if case .banner(let banner) = $0 { banner } else { nil } }
  }

  /// When the first effect of that sort happened.
  func moment(of isIt: (PhoneAction) -> Bool) -> Instant? {
    effects.first { isIt($0.action) }?.at
  }
}

let mail = AppID(0)
let news = AppID(1)

extension AppDefinition {
  /// An app that is woken by pushes and fetches.
  static func ordinary(
    _ name: String = "app", modes: BackgroundModes = [.fetch, .remoteNotification],
    fetchInterval: FetchInterval = .never, _ change: (inout AppScript) -> Void = { _ in }
  ) -> AppDefinition {
    var script = AppScript()
    change(&script)
    return AppDefinition(
      name: name, modes: modes, fetchInterval: fetchInterval, script: script, container: .shared)
  }

  /// One that brings and takes documents.
  static func provider(_ change: (inout AppScript) -> Void = { _ in }) -> AppDefinition {
    var definition = ordinary("drive", change)
    definition.container = .provider
    return definition
  }
}

extension RemotePush {
  static func silent(_ id: UInt64, _ app: AppID = mail) -> RemotePush {
    RemotePush(id: PushID(id), app: app, wakesApp: true)
  }

  static func alert(_ id: UInt64, _ app: AppID = mail, wakesApp: Bool = false) -> RemotePush {
    RemotePush(id: PushID(id), app: app, alert: "message \(id)", wakesApp: wakesApp)
  }
}
