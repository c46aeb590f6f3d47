import Primitives

@testable import DeviceModel

/// Watches everything a phone does and says what must not be. It knows the phone by its effects
/// only, and compares with its state in between.
struct Checker {
  private(set) var complaints: [String] = []
  private var isAwake = false
  private var lock = LockState.locked
  private var forceQuit: Set<AppID> = []
  private var open: [CallbackID: AppID] = [:]
  private var ended: Set<CallbackID> = []
  private var completed: Set<CallbackID> = []
  private var photographed: Set<CallbackID> = []
  private var reported: Set<PushID> = []
  private var received: Set<PushID> = []
  private(set) var lastSaved: [AppID: StateArchive] = [:]
  private var asked: Set<TransferID> = []
  /// Calls in which apps answer servers.
  private var questions: Set<CallbackID> = []
  private var over: Set<TransferID> = []
  private var last = Instant(milliseconds: .min)
  private(set) var counts: [String: Int] = [:]

  private mutating func demand(_ isFine: Bool, _ sentence: @autoclosure () -> String) {
    if !isFine { complaints.append(sentence()) }
  }

  mutating func saw(_ event: PhoneEvent, _ phone: Phone, _ effects: [PhoneEffect]) {
    switch event {
    case .pushReceived(let push), .pushRode(let push): received.insert(push.id)
    case .activity(.pushed(let push, _)):
      // Nobody waits for an answer to a broadcast.
      if !push.isBroadcast { received.insert(push.id) }
    default: break
    }
    for effect in effects {
      demand(effect.at >= last, "time went back: \(effect)")
      last = effect.at
      check(effect.action)
    }
    if case .appSwipedAway(let app) = event, phone[app]?.state == .forceQuit {
      forceQuit.insert(app)
    }
    compare(phone)
  }

  /// The power went, without a word from the phone.
  mutating func powerFailed() { isAwake = false }

  /// The name of a case. Its values are not written out: an archive is long.
  private func name<Step>(_ step: Step) -> String {
    Mirror(reflecting: step).children.first?.label ?? "\(step)"
  }

  private mutating func check(_ action: PhoneAction) {
    switch action {
    case .phone(let step): check(step)
    case .app(let app, let step): check(app, step)
    case .callback(let id, let app, let step): check(id, app, step)
    case .archive(let app, let step): check(app, step)
    case .snapshot(_, let snapshot):
      guard let id = snapshot.callback else { return }
      demand(completed.contains(id), "snapshot without completion \(id)")
      demand(photographed.insert(id).inserted, "second snapshot for \(id)")
    case .report(let push, _):
      demand(received.contains(push), "report of what never came: \(push)")
      demand(reported.insert(push).inserted, "second report of \(push)")
    case .transfer(let id, _, let step): check(id, step)
    case .document(_, .granted(let party, _)):
      if case .app = party { demand(isAwake, "document granted while asleep") }
    default: break
    }
  }

  private mutating func check(_ step: PhoneStep) {
    switch step {
    case .woke:
      demand(!isAwake, "woke twice")
      isAwake = true
    case .slept:
      demand(isAwake, "slept twice")
      isAwake = false
    case .locked: lock = .locked
    case .unlocked: lock = .unlocked
    case .booted: lock = .beforeFirstUnlock
    case .switchedOff:
      isAwake = false
      lock = .beforeFirstUnlock
    }
  }

  private mutating func check(_ app: AppID, _ step: AppStep) {
    switch step {
    case .installed, .uninstalled, .terminated, .notRun, .judged: break
    default: demand(isAwake, "asleep, but \(app) \(step)")
    }
    switch step {
    case .launched(.user), .uninstalled: forceQuit.remove(app)
    case .launched, .resumed: demand(!forceQuit.contains(app), "force-quit \(app) \(step)")
    case .opened: demand(lock == .unlocked, "opened while locked")
    case .restored(let archive, _):
      demand(lock == .unlocked, "archive read while locked")
      // One of an older version is transformed.
      let isSaved = lastSaved[app] == archive || lastSaved[app]?.appVersion != archive.appVersion
      demand(isSaved, "restored is not what was saved")
    case .merged: demand(lock == .unlocked, "merged while locked")
    default: break
    }
    counts[name(step), default: 0] += 1
  }

  private mutating func check(_ id: CallbackID, _ app: AppID, _ step: CallbackStep) {
    demand(!forceQuit.contains(app), "force-quit \(app) \(step)")
    switch step {
    case .began(let cause):
      if cause == .authentication { questions.insert(id) }
      demand(isAwake, "called while asleep")
      demand(lock != .beforeFirstUnlock, "called before the first unlock")
      demand(open.updateValue(app, forKey: id) == nil, "began twice")
    case .completed, .abandoned:
      demand(open.removeValue(forKey: id) == app, "ended without beginning")
      demand(ended.insert(id).inserted, "ended twice")
      if case .completed = step { completed.insert(id) }
      // With a call ends the answer to a server, which asks again if it had none: an app that
      // keeps one handler ends another's call.
      if questions.remove(id) != nil { asked = [] }
    }
    counts[name(step), default: 0] += 1
  }

  private mutating func check(_ id: TransferID, _ step: TransferStep) {
    demand(!over.contains(id), "\(id) is over, but \(step)")
    switch step {
    case .credentialsDemanded: demand(asked.insert(id).inserted, "asked twice about \(id)")
    case .ended: over.insert(id)
    case .queued, .started, .brokeOff, .held: break
    }
    counts["transfer " + name(step), default: 0] += 1
  }

  private mutating func check(_ app: AppID, _ step: ArchiveStep) {
    switch step {
    case .saved(let archive):
      demand(lock == .unlocked, "archive written while locked")
      lastSaved[app] = archive
    case .deleted: lastSaved[app] = nil
    case .kept, .transformed, .encoded, .step, .row: break
    }
  }

  /// Whether what the phone is agrees with what it has told, and its invariants hold.
  private mutating func compare(_ phone: Phone) {
    let isOff = phone.wakefulness == .off
    demand((phone.wakefulness != .asleep && !isOff) == isAwake, "awake or not?")
    demand(!isOff || phone.nextWake == nil, "something falls due while off")
    demand(phone.lock == lock, "locked or not?")
    demand(Set(phone.callbacks.map(\.id)) == Set(open.keys), "callbacks differ")
    demand(isOff || phone.condition == phone.reported, "the relay was not told")
    if !isAwake {
      demand(phone.callbacks.isEmpty, "asleep with callbacks")
      demand(lock != .unlocked, "asleep while somebody looks")
    }
    let inFront = phone.apps.filter { $0.state == .foreground }.map(\.id)
    demand(inFront == phone.foreground.map { [$0] } ?? [], "foreground differs")
    if lock != .unlocked { demand(inFront.isEmpty, "an app in front while locked") }
    demand(phone.energy.level(at: phone.now) >= 0, "energy below zero")
    demand(phone.data.level(at: phone.now) >= 0, "data below zero")
    for app in phone.apps { compare(app, phone) }
    for access in phone.coordination.accesses where access.party != .syncService {
      demand(phone.uses[access.id] != nil, "a forgotten access")
    }
    demand(phone.banners.banners.count <= phone.limits.banners, "too many banners")
    demand(phone.service.transfers.count <= phone.limits.transfers, "too many transfers")
    for transfer in phone.service.transfers {
      let isAsked = transfer.phase == .awaitingCredentials
      demand(!isAsked || !transfer.hasCredentials, "asked in vain: \(transfer)")
      let isActive = transfer.phase == .active
      demand(!isActive || phone.network.isConnected, "no network: \(transfer)")
      demand(transfer.done >= 0, "less than nothing: \(transfer)")
      demand(
        transfer.isPerformed || transfer.done <= transfer.request.bytes, "too much: \(transfer)")
    }
    let active = phone.service.transfers.count { $0.phase == .active }
    demand(active <= phone.limits.transfersAtOnce, "too many at once")
  }

  private mutating func compare(_ app: App, _ phone: Phone) {
    demand(app.energy.level(at: phone.now) >= 0, "energy of \(app.id) below zero")
    demand(app.data.level(at: phone.now) >= 0, "data of \(app.id) below zero")
    let running = phone.callbacks.count { $0.app == app.id }
    demand(app.callbackCount == running, "\(app.id) counts wrong")
    if !app.state.hasProcess || app.state == .suspended {
      demand(running == 0 && app.task == nil, "\(app.id) is \(app.state) with work")
    }
    demand((app.task?.runsSince != nil) == (app.task != nil && isAwake), "task slices of \(app.id)")
    if let task = app.task {
      demand(task.remaining > .zero && task.allowance >= .zero, "task of \(app.id): \(task)")
    }
    if app.state == .background, running == 0, app.task == nil, !app.playsInBackground {
      demand(app.graceUntil > phone.now, "\(app.id) lingers")
    }
    demand(
      app.state != .uninstalled
        || app.heldPushes.isEmpty && !phone.service.transfers.contains { $0.app == app.id },
      "\(app.id) has left something")
    demand((app.state == .forceQuit) == forceQuit.contains(app.id), "\(app.id) force-quit?")
  }

  /// What must have come to an end once the phone has rested for long.
  mutating func finish(_ phone: Phone) {
    let held = phone.apps.flatMap(\.heldPushes).map(\.id)
    let running = phone.callbacks.compactMap { callback -> PushID? in
      if case .push(let push) = callback.kind { push.id } else { nil }
    }
    let activities = phone.apps.flatMap(\.live.activities)
    let waiting = phone.wakefulness != .asleep ? [] : activities.compactMap(\.waiting).map(\.id)
    let open = received.subtracting(reported).subtracting(held).subtracting(running)
      .subtracting(waiting)
    demand(open.isEmpty, "never reported: \(open)")
    for callback in phone.callbacks {
      let isInTime = callback.deadline.map { $0 > phone.now } ?? false
      demand(isInTime, "a callback without end: \(callback)")
    }
  }
}
