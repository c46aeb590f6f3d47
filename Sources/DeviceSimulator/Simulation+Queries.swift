public import DeviceModel
import RelayCore

/// Queries for tests.
extension Simulation {
  /// Status 0 means not answered, or a push of another simulation.
  public func life(of push: PushHandle) -> PushLife {
    let index = Int(push.index)
    guard pushes.indices.contains(index) else {
      return PushLife(
        status: 0, reason: "this simulation has no such push", steps: [], ending: nil, outcome: nil)
    }
    var steps: [TraceLine] = []
    var ending: TraceKind?
    var outcome: String?
    for place in entries.indices where entries[place].push == push.index {
      guard case .life(let step) = entries[place].fact else { continue }
      let line = line(place)
      steps.append(line)
      if step.isTerminal { ending = line.kind }
      if case .outcome = step { outcome = line.why }
    }
    var (status, reason): (Int, String?) = (200, nil)
    switch pushes[index].answer {
    case .given(.accepted): break
    case .awaited: if relay != nil { (status, reason) = (0, "not answered yet") }
    case .missing(let why): (status, reason) = (0, why)
    case .given(.rejected(let rejection)):
      (status, reason) = (Int(rejection.status), rejection.reason)
    case .given(.gone):
      (status, reason) = (Int(Rejection.unregistered.status), Rejection.unregistered.reason)
    }
    return PushLife(status: status, reason: reason, steps: steps, ending: ending, outcome: outcome)
  }

  /// Newest last.
  public func banners(on phone: PhoneHandle) -> [ShownBanner] {
    let entry = phones[Int(phone.number)]
    return entry.model.banners.banners.map { banner in
      ShownBanner(
        app: apps[Int(entry.apps[banner.app.number])].name, text: banner.text,
        isContentReady: banner.isContentReady)
    }
  }

  public func badge(of app: AppHandle) -> Int { model(of: app)?.badge ?? 0 }

  public func state(of app: AppHandle) -> AppState { model(of: app)?.state ?? .notRunning }

  /// Why the system would not run the app in the background now, such as `refresh off`; nil if it
  /// would.
  public func backgroundRefusal(of app: AppHandle) -> String? {
    let entry = apps[Int(app.number)]
    return phones[Int(entry.phone)].model.backgroundRefusal(of: entry.id)?.rawValue
  }

  /// A saved value of an object; nil if there is none or the app has no process.
  public func memo(under key: String, at path: StatePath, in app: AppHandle) -> StateValue? {
    guard let model = model(of: app), model.state.hasProcess,
      let id = model.process.interface.find(path)
    else { return nil }
    return model.process.interface[id]?.entries.first { $0.key == key }?.value
  }

  /// Background calls, oldest first.
  public func runs(of app: AppHandle) -> [AppRun] {
    var runs: [AppRun] = []
    var open: [CallbackID: Int] = [:]
    for entry in entries where entry.app == app.number {
      if case .fetchBegan(let id, _) = entry.fact {
        open[id] = runs.count
        runs.append(AppRun(time: .milliseconds(entry.at), cause: .fetch))
      }
      guard case .phone(.callback(let id, _, let step)) = entry.fact else { continue }
      switch step {
      case .began(let cause):
        open[id] = runs.count
        runs.append(AppRun(time: .milliseconds(entry.at), cause: cause))
      case .completed(let outcome): open[id].map { runs[$0].ending = outcome.rawValue }
      case .abandoned(let reason): open[id].map { runs[$0].ending = reason.rawValue }
      }
    }
    return runs
  }

  public func fetches(of app: AppHandle) -> [AppRun] { runs(of: app).filter { $0.cause == .fetch } }

  /// Steps of the app's transfers, oldest first.
  public func transfers(of app: AppHandle) -> [TraceLine] {
    entries.indices.filter { entries[$0].app == app.number }.map { line($0) }
      .filter { TraceKind.transfers.contains($0.kind) }
  }

  public func isConnected(_ phone: PhoneHandle) -> Bool {
    if case .live = phones[Int(phone.number)].link { true } else { false }
  }

  var relayCounts: ShardCounters { relay?.counters ?? ShardCounters() }
  var addsUp: Bool { relay?.addsUp ?? true }

  func model(of app: AppHandle) -> DeviceModel.App? {
    let entry = apps[Int(app.number)]
    return phones[Int(entry.phone)].model[entry.id]
  }
}

/// The history of a push.
public struct PushLife: Hashable, Sendable {
  public let status: Int
  public let reason: String?
  /// Steps at the relay.
  public let steps: [TraceLine]
  /// `.delivered` or `.discarded`; nil while it is pending.
  public let ending: TraceKind?
  /// The app's report: `newData`, `not launched: force-quit`, …; nil if not known.
  public let outcome: String?

  public var isDelivered: Bool { ending == .delivered }
}

/// A banner in the notification list.
public struct ShownBanner: Hashable, Sendable {
  public let app: String
  public let text: String
  /// The app was woken and already has the content.
  public let isContentReady: Bool
}

/// A background call of an app.
public struct AppRun: Hashable, Sendable {
  public let time: Duration
  /// Names pushes by their numbers.
  public let cause: RunCause
  /// `newData`, `noData`, `failed`, or why the process ended; nil while running.
  public internal(set) var ending: String?
}
