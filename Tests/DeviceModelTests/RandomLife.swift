import Primitives

@testable import DeviceModel

/// A random phone, its random apps, and what happens to them, all from one seed.
struct RandomLife {
  static let appCount: Int64 = 5

  private var random: SeededRandom
  private var pushNumber: UInt64 = 0

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  private mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int(random.below(Int64(elements.count)))]
  }

  mutating func chance(_ percent: Int64) -> Bool { random.below(100) < percent }

  // MARK: Apps

  mutating func definitions() -> [AppDefinition] {
    (0..<Self.appCount).map { definition($0) }
  }

  private mutating func definition(_ number: Int64) -> AppDefinition {
    var script = AppScript()
    script.interface = sampleInterface()
    script.onPush = callback()
    script.onFetch = callback()
    script.onTransfers = callback()
    script.onDocument = callback()
    script.onAuthentication =
      chance(70) ? .provides(after: .seconds(1)) : .cancels(after: .seconds(40))
    script.handlers = chance(80) ? .eachItsOwn : .oneProperty
    script.hidesContent = chance(20)
    if chance(40) {
      script.onLeave.task = TaskScript(work: .seconds(random.below(400)), endsInTime: chance(70))
    }
    if chance(30) { script.onLeave.transfers = [transfer()] }
    if chance(10) { script.restoration.oldest = .days(2) }
    if chance(10) { script.restoration.crashes = true }
    script.restoration.declinesOtherVersions = chance(30)
    script.restoration.transforms = [
      ArchiveTransform(
        from: "1.0", to: "2.0",
        changes: [.renameKey(["window", "list"], key: "row", to: "line")])
    ]
    var definition = AppDefinition(
      name: "app \(number)", version: pick(["1.0", "1.0", "2.0"]),
      modes: pick([
        [.fetch, .remoteNotification], [.fetch, .remoteNotification, .location, .audio],
        [.newsstand, .location], [.fetch, .remoteNotification], [],
      ]),
      fetchInterval: pick([.never, .minimum, .minimum, .seconds(3600)]), script: script,
      container: pick([nil, .own, .shared, .shared, .provider]))
    if number < 3 {
      definition.activities = ActivityPlan(types: ["Order"], isFrequent: chance(50))
    }
    return definition
  }

  private mutating func callback() -> CallbackScript {
    var script = CallbackScript()
    script.work = .milliseconds(random.below(20_000))
    script.workJitter = .milliseconds(random.below(15_000))
    script.bytes = random.below(3_000_000)
    script.energy = random.below(30_000)
    script.outcome = pick([.always(.newData), .always(.failed), .newDataPercent(50)])
    script.handler = pick([
      .afterWork, .afterWork, .afterWork, .late(.seconds(3)), .late(.seconds(25)), .never,
    ])
    script.reads = pick(DataProtection.allCases)
    script.writes = pick(DataProtection.allCases)
    if chance(40) { script.transfers = [transfer()] }
    if chance(30) { script.notification = LocalNotification(text: "new", hasSound: true) }
    script.changes = changes()
    if chance(30) { script.brings = ["item \(random.below(10))"] }
    if chance(20) {
      let want = DocumentUse.Want(document(), isWriting: chance(50))
      script.uses = [DocumentUse(wants: [want], time: .seconds(1), edit: .line(1, "new"))]
    }
    if chance(20) {
      script.task = TaskScript(work: .seconds(random.below(20)), endsInTime: chance(80))
    }
    return script
  }

  private mutating func transfer() -> TransferRequest {
    var request = TransferRequest(
      session: pick(["a", "b"]), name: "file", direction: pick([.download, .upload]),
      bytes: random.below(200_000_000), isDiscretionary: chance(30),
      demandsCredentials: chance(20), resumes: chance(70),
      document: chance(20) ? document() : nil,
      url: chance(40) ? "http://files.example/file" : nil,
      authorization: chance(50) ? "Bearer key" : nil
    )
    if chance(20) { request.breaksAt = random.below(100_000_000) }
    if chance(10) { request.actualBytes = .max }
    return request
  }

  private mutating func document() -> DocumentID { DocumentID(UInt64(1 + random.below(6))) }

  private mutating func changes() -> [StateChange] {
    (0..<random.below(4)).map { _ in
      let name = "object \(random.below(4))"
      return pick([
        .add(
          className: "Detail", identifier: name, parent: ["window"], restorationClass: "Maker",
          isRegistered: chance(30)),
        .set(["window", name], key: "row", .number(random.below(100))),
        .set(["window", "list"], key: "row", .number(random.below(100))),
        .link(["model"], key: "current", to: ["window", name]), .show(["window", name]),
        .remove(["window", name]), .unset(["window", name], key: "row"),
      ])
    }
  }

  // MARK: Events

  private mutating func app() -> AppID { AppID(Int(random.below(Self.appCount))) }

  mutating func lapse() -> Interval {
    switch random.below(10) {
    case 0: .zero
    case 1...3: .milliseconds(random.below(2000))
    case 4...7: .seconds(random.below(60))
    case 8: .minutes(random.below(120))
    default: .hours(random.below(12))
    }
  }

  mutating func event(_ phone: Phone) -> PhoneEvent {
    if phone.wakefulness == .off, chance(60) { return .switchedOn }
    return switch random.below(43) {
    case 0...7 where phone.wakefulness == .off: .linkHeard
    case 0...7: push()
    case 8...9: .unlocked
    case 10: .locked
    case 11...13: .appOpened(app())
    case 14: .appLeft
    case 15: .appSwipedAway(app())
    case 16: .rebooted
    case 17: .memoryRanOut
    case 18: .appCrashed(app())
    case 19: .refreshSwitched(chance(50) ? nil : app(), isOn: chance(80))
    case 20: .lowPowerSwitched(isOn: chance(30))
    case 21: .networkChanged(pick([.wifi, .wifi, .cellular, .none, .airplane]))
    case 22: .chargerChanged(isConnected: chance(50))
    case 23: .developerModeSwitched(isOn: chance(20))
    case 24: .fetchIntervalSet(app(), pick([.never, .minimum, .seconds(1800)]))
    case 25: .stateChanged(app(), changes())
    case 26: .transferQueued(app(), transfer())
    case 27: .bannerOpened(phone.banners.banners.last?.id ?? BannerID(number: 1))
    case 28: pick([.linkHeard, .snapshotIgnoredOnce(app())])
    case 29: .appInstalled(definition(random.below(Self.appCount)))
    case 30...31: report(phone)
    case 32: chance(40) ? .switchedOff : .switchedOn
    case 33: chance(30) ? .appUninstalled(app()) : .backgroundAsked(app())
    case 34: chance(50) ? .regionEntered(app()) : .fetchSimulated(app())
    case 38...42 where phone.wakefulness != .off: .activity(activityEvent(phone))
    case 35...36: .audioSwitched(app(), isOn: chance(60))
    default: .document(documentEvent(phone))
    }
  }

  private mutating func activityEvent(_ phone: Phone) -> ActivityEvent {
    let app = app()
    let id = ActivityID(max(1, phone[app]?.live.lastNumber ?? 1) - UInt64(chance(20) ? 1 : 0))
    let object = Array("{}".utf8)
    switch random.below(12) {
    case 0: return .started(app, type: "Order", attributes: object, content: object)
    case 1: return .updated(app, id, content: object)
    case 2: return .ended(app, id, content: chance(50) ? object : nil)
    case 3: return .renewed(app, id)
    case 4: return .swipedAway(app, id)
    case 5: return .allowed(chance(40) ? nil : app, isOn: chance(75))
    case 6: return .frequentAllowed(app, isOn: chance(60))
    default: return .pushed(activityPush(phone, app, id), rides: chance(20))
    }
  }

  private mutating func activityPush(_ phone: Phone, _ app: AppID, _ id: ActivityID) -> ActivityPush
  {
    pushNumber += 1
    let isStart = chance(40)
    var push = ActivityPush(
      id: PushID(pushNumber), app: app, to: isStart ? .start("Order") : .update(id),
      isStart ? .start : pick([.update, .update, .update, .end, .start, nil]))
    push.timestamp = chance(95) ? phone.now.milliseconds / 1000 - random.below(100) : nil
    (push.type, push.attributes, push.content) = ("Order", [], chance(90) ? [1] : nil)
    if chance(30) { push.staleAt = phone.now + .minutes(random.below(60)) }
    if chance(30) { push.leavesAt = phone.now + .minutes(random.below(600) - 60) }
    push.isUrgent = chance(50)
    push.channel = chance(20) ? "one" : nil
    if !isStart, chance(20) { push.address = .channel("one") }
    if chance(40) { push.alert = "ordered" }
    return push
  }

  /// Of some transfer, whether it is the driver's or not, active or not.
  private mutating func report(_ phone: Phone) -> PhoneEvent {
    let ids = phone.service.transfers.map(\.id)
    let id = ids.isEmpty ? TransferID(number: 1) : pick(ids)
    return switch random.below(5) {
    case 0...1: .transferProgressed(id, bytes: random.below(300_000_000))
    case 2...3: .transferChallenged(id)
    default: .transferEnded(id, pick(TransferResult.allCases))
    }
  }

  private mutating func push() -> PhoneEvent {
    pushNumber += 1
    let isVisible = chance(50)
    var push = RemotePush(
      id: PushID(pushNumber), app: chance(98) ? app() : AppID(99),
      alert: isVisible ? "hello" : nil, badge: isVisible && chance(30) ? 3 : nil,
      hasSound: isVisible && chance(30), wakesApp: !isVisible || chance(60),
      collapseID: chance(20) ? "one" : "")
    push.priority = pick([nil, 1, 5, 10])
    if !isVisible, chance(20) {
      (push.wakesApp, push.handler) = (false, pick(PushHandler.allCases))
      (push.subject, push.owner) = (chance(80) ? "it" : nil, chance(90) ? app() : AppID(99))
    }
    return chance(20) ? .pushRode(push) : .pushReceived(push)
  }

  private mutating func documentEvent(_ phone: Phone) -> DocumentEvent {
    let id = document()
    return switch random.below(14) {
    case 0: .created(by: app(), name: "plan", bytes: random.below(1000))
    case 1: pick([.providerSwitched(app(), isOn: true), .filed(id, by: app(), folder: "work")])
    case 8...11: .used(use(phone), by: app())
    case 12:
      pick([
        .listed(by: app()),
        .elsewhere(.changed(id, DocumentBody(text: DocumentText(lines: ["a", "b"])))),
      ])
    case 13: .bookmarkKept(id, by: app(), at: ["window"], key: "document")
    case 2, 3: .elsewhere(pick([.deleted(id), .changed(id, DocumentBody(bytes: 70))]))
    case 4: .picked(id, by: app())
    case 5: .elsewhere(.changed(id, DocumentBody(bytes: random.below(1000))))
    case 6:
      .elsewhere(
        .announced(
          in: app(), name: "film", DocumentBody(bytes: random.below(1000)), modifiedAt: Bench.start)
      )
    default: .contentRequested(id, by: app())
    }
  }

  private mutating func use(_ phone: Phone) -> DocumentUse {
    let wants = (0...random.below(3)).map { _ in
      DocumentUse.Want(document(), isWriting: chance(60))
    }
    let name = "app \(random.below(Self.appCount))"
    var use = DocumentUse(
      wants: wants, time: .milliseconds(random.below(4000)),
      edit: pick([
        .nothing, .size(random.below(1000)), .line(Int(1 + random.below(3)), "line"), .line(1, nil),
        .undo, .choose(.all), .choose(.revision(2)), .copied(to: name), .moved(to: name), .imported,
      ]))
    use.skipsCoordination = chance(20)
    return use
  }
}
