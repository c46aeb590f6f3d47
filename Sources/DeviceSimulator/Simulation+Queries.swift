public import DeviceModel
import RelayCore

/// What a test asks.
extension Simulation {
  /// What became of a push. One that was not answered, as by a relay that is down, has status 0; so
  /// has a push of another simulation, or of this one later on.
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
    return PushLife(
      status: status, reason: reason, steps: steps, ending: ending, outcome: outcome)
  }

  /// The banners that lie on a phone, newest last.
  public func banners(on phone: PhoneHandle) -> [ShownBanner] {
    let entry = phones[Int(phone.number)]
    return entry.model.banners.banners.map { banner in
      ShownBanner(
        app: apps[Int(entry.apps[banner.app.number])].name, text: banner.text,
        isContentReady: banner.isContentReady)
    }
  }

  /// The number on an app's icon.
  public func badge(of app: AppHandle) -> Int { model(of: app)?.badge ?? 0 }

  /// Where an app stands.
  public func state(of app: AppHandle) -> AppState { model(of: app)?.state ?? .notRunning }

  /// What keeps the system from running an app in the background, as far as is known now, such as
  /// `refresh off`; nil for nothing.
  public func backgroundRefusal(of app: AppHandle) -> String? {
    let entry = apps[Int(app.number)]
    return phones[Int(entry.phone)].model.backgroundRefusal(of: entry.id)?.rawValue
  }

  /// What an app's interface remembers under a key of an object; nil if it remembers nothing there,
  /// or does not run.
  public func memo(under key: String, at path: StatePath, in app: AppHandle) -> StateValue? {
    guard let model = model(of: app), model.state.hasProcess,
      let id = model.process.interface.find(path)
    else { return nil }
    return model.process.interface[id]?.entries.first { $0.key == key }?.value
  }

  /// The calls of an app in the background, oldest first: for pushes, fetches, transfers.
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
      case .abandoned(let reason): open[id].map { runs[$0].ending = reason.text }
      }
    }
    return runs
  }

  /// The background fetches of an app.
  public func fetches(of app: AppHandle) -> [AppRun] { runs(of: app).filter { $0.cause == .fetch } }

  /// What an app's transfers did, oldest first.
  public func transfers(of app: AppHandle) -> [TraceLine] {
    entries.indices.filter { entries[$0].app == app.number }.map { line($0) }
      .filter { TraceKind.transfers.contains($0.kind) }
  }

  /// Whether the relay has a phone on the line.
  public func isConnected(_ phone: PhoneHandle) -> Bool {
    if case .live = phones[Int(phone.number)].link { true } else { false }
  }

  /// What the relay did so far, and whether every push that it received is accounted for.
  var relayCounts: ShardCounters { relay?.counters ?? ShardCounters() }
  var addsUp: Bool { relay?.addsUp ?? true }

  func model(of app: AppHandle) -> DeviceModel.App? {
    let entry = apps[Int(app.number)]
    return phones[Int(entry.phone)].model[entry.id]
  }
}

/// The life of a push.
public struct PushLife: Hashable, Sendable {
  /// What its provider was answered.
  public let status: Int
  public let reason: String?
  /// What happened to it at the relay.
  public let steps: [TraceLine]
  /// `.delivered` or `.discarded`; nil while it lives.
  public let ending: TraceKind?
  /// What the app made of it: `newData`, `not launched: force-quit`, …; nil if that is not known.
  public let outcome: String?

  public var isDelivered: Bool { ending == .delivered }
}

/// A banner as its user sees it.
public struct ShownBanner: Hashable, Sendable {
  public let app: String
  public let text: String
  /// The app was woken before and has what it announces.
  public let isContentReady: Bool
}

/// A call of an app in the background.
public struct AppRun: Hashable, Sendable {
  /// When it began.
  public let time: Duration
  /// What it was called for; pushes by their numbers.
  public let cause: RunCause
  /// `newData`, `noData`, `failed`, or why the process ended; nil while it goes on.
  public internal(set) var ending: String?
}
