import Foundation
import Primitives
import Testing

@testable import DeviceModel

/// Whether the same lasts of both.
func isAlike(_ one: PhoneMemory, _ other: PhoneMemory) -> Bool {
  let (one, other) = (one.phone, other.phone)
  return one.now == other.now && one.apps == other.apps && one.network == other.network
    && [one.isCharging, one.isLowPower, one.isRefreshOn, one.isDeveloper]
      == [other.isCharging, other.isLowPower, other.isRefreshOn, other.isDeveloper]
    && one.switcher == other.switcher && one.banners.banners == other.banners.banners
    && one.service == other.service && one.documents == other.documents
    && one.callbacks == other.callbacks && one.callbackNumbering == other.callbackNumbering
    && one.energy == other.energy && one.data == other.data && one.usage == other.usage
    && one.random == other.random && one.recentPushes.known == other.recentPushes.known
    && one.silentAllowance == other.silentAllowance && one.radio == other.radio
    && one.reported == other.reported
}

/// A memory as it comes back from a file.
func reread(_ memory: PhoneMemory) throws -> PhoneMemory {
  try JSONDecoder().decode(PhoneMemory.self, from: JSONEncoder().encode(memory))
}

extension Bench {
  /// The power goes, and comes back after that time; what is told before is forgotten.
  mutating func powerCut(_ lapse: Interval, limits: PhoneLimits = PhoneLimits()) throws {
    let memory = try reread(phone.memory())
    now = now + lapse
    clear()
    phone = Phone(restoring: memory, limits: limits, at: now, into: &effects)
  }
}

/// What a phone is after its power was away.
@Suite struct PhoneMemoryTests {
  /// Which who switches it on again has to know.
  @Test func itKnowsWhetherItWasUnlocked() throws {
    var bench = Bench([.ordinary()])
    #expect(try !reread(bench.phone.memory()).isBeforeFirstUnlock)
    bench.send(.rebooted)
    #expect(try reread(bench.phone.memory()).isBeforeFirstUnlock)
    bench.send(.unlocked, .locked)
    #expect(try !reread(bench.phone.memory()).isBeforeFirstUnlock)
    // Memories of before do not say it.
    let text = String(decoding: try JSONEncoder().encode(bench.phone.memory()), as: UTF8.self)
    let older = text.replacing(#""isBeforeFirstUnlock":false,"#, with: "")
      .replacing(#","isBeforeFirstUnlock":false"#, with: "")
    #expect(older != text)
    let memory = try JSONDecoder().decode(PhoneMemory.self, from: Data(older.utf8))
    #expect(!memory.isBeforeFirstUnlock)
  }

  @Test func itStartsLockedWithoutProcesses() throws {
    var bench = Bench([.ordinary("mail"), .ordinary("news"), .ordinary("maps")])
    let maps = AppID(2)
    bench.send(.unlocked, .appOpened(maps), .appSwipedAway(maps))
    bench.send(.appOpened(news), .fetchIntervalSet(news, .seconds(9000)), .appOpened(mail))
    bench.send(.refreshSwitched(news, isOn: false), .lowPowerSwitched(isOn: true))
    bench.wait(.seconds(10))
    let before = bench.phone
    try bench.powerCut(.days(2))
    #expect(bench.phone.apps.map(\.state) == [.notRunning, .notRunning, .forceQuit])
    #expect(bench.phone.lock == .beforeFirstUnlock)
    #expect(bench.phone.foreground == nil && bench.phone.callbacks.isEmpty)
    #expect(bench.phone.switcher == before.switcher)
    #expect(bench.phone[news]?.fetchInterval == .seconds(9000))
    #expect(bench.phone[news]?.isRefreshOn == false && bench.phone.isLowPower)
    #expect(bench.phone[mail]?.usage == before[mail]?.usage)
    #expect(bench.actions.contains(.phone(.booted)))
    #expect(bench.steps(of: mail) == [.terminated(.reboot)])
    #expect(bench.steps(of: maps) == [])
    bench.wait(.minutes(1))
    #expect(bench.phone.wakefulness == .asleep)
  }

  @Test func whatWasUnderWayIsReportedAtTheStart() throws {
    var bench = Bench([.ordinary { $0.onPush.work = .seconds(20) }])
    bench.send(.pushReceived(.alert(1, wakesApp: true)), .pushReceived(.silent(2)))
    bench.wait(.seconds(10))
    #expect(bench.reports.isEmpty)
    let memory = try reread(bench.phone.memory())
    try bench.powerCut(.hours(5))
    #expect(bench.reports == [PushID(1): [.failed], PushID(2): [.failed]])
    #expect(bench.bannersShown.map(\.push) == [PushID(1)])
    #expect(bench.effects.allSatisfy { $0.at == bench.now })
    // Half of the work was done, and is paid for; nothing is for the time without power.
    let paid = try #require(memory.phone.apps.first).behaviour
    #expect(paid.averageEnergy > 0 && bench.phone[mail]?.behaviour == paid)
  }

  @Test func doublesAreKnownAcrossTheCut() throws {
    var bench = Bench([.ordinary()])
    bench.send(.pushReceived(.silent(1)), .pushReceived(.alert(2)))
    bench.wait(.minutes(1))
    try bench.powerCut(.minutes(1))
    bench.clear()
    bench.send(.pushReceived(.silent(1)), .pushReceived(.alert(2)))
    #expect(bench.reports == [PushID(1): [.newData], PushID(2): [nil]])
    #expect(bench.bannersShown.isEmpty && bench.callbackSteps(of: mail).isEmpty)
  }

  @Test func aHeldPushWaitsForTheFirstUnlock() throws {
    var bench = Bench([.ordinary { $0.interface = sampleInterface() }])
    bench.send(.unlocked, .appOpened(mail))
    bench.send(.stateChanged(mail, [.set(["window", "list"], key: "row", .number(5))]))
    bench.send(.appLeft, .locked)
    let kept = try bench.phone.vault.read(mail, .unlocked)
    for number in UInt64(1)...4 {
      bench.send(.pushReceived(.silent(number)))
      bench.wait(.seconds(5))
    }
    #expect(bench.phone[mail]?.heldPush?.id == PushID(4))
    try bench.powerCut(.hours(3))
    bench.wait(.hours(3))
    #expect(bench.reports.isEmpty && bench.callbackSteps(of: mail).isEmpty)
    // The key brings the archive, then the unlocking: launched by it, the app has its state.
    bench.send(.archiveFound(mail, kept), .unlocked)
    bench.wait(.seconds(10))
    #expect(bench.reports == [PushID(4): [.newData]])
    #expect(bench.steps(of: mail).contains(.restored(kept, objects: kept.paths.count)))
    #expect(!bench.actions.contains(.ignored(.notAllowed)))
  }

  @Test func nothingThatFellDueMeanwhileHappens() throws {
    var bench = Bench([.ordinary(fetchInterval: .minimum)])
    guard case .fetch(let planned)? = bench.phone[mail]?.plan.when else {
      Issue.record("no fetch is planned")
      return
    }
    try bench.powerCut(.days(1))
    #expect(planned < bench.now)
    bench.send(.unlocked)
    bench.wait(.hours(6))
    #expect(bench.effects.allSatisfy { $0.at >= Bench.start + .days(1) })
    #expect(bench.callbackSteps(of: mail).contains(.began(.fetch)))
  }

  @Test func aTransferGoesOnWhereItWasOrStartsOver() throws {
    for resumes in [true, false] {
      var bench = Bench([.ordinary()])
      bench.send(.unlocked, .appOpened(mail))
      bench.send(
        .transferQueued(mail, TransferRequest(name: "film", bytes: 25_000_000, resumes: resumes)))
      bench.wait(.seconds(4))
      try bench.powerCut(.days(1))
      bench.wait(.minutes(1))
      let steps = bench.actions.compactMap { action -> TransferStep? in
        if case .transfer(_, _, let step) = action { step } else { nil }
      }
      #expect(steps == [.started(offset: resumes ? 10_000_000 : 0), .ended(.finished)])
      // 25 MB at 2.5 MB/s, and none of it without power.
      let end = bench.moment { if case .transfer(_, _, .ended) = $0 { true } else { false } }
      #expect(end == Bench.start + .seconds(4) + .days(1) + .seconds(resumes ? 6 : 10))
    }
  }

  @Test func documentsAndBookmarksLast() throws {
    var bench = Bench([.ordinary("mail"), .ordinary("news")])
    bench.send(.unlocked, .appOpened(mail))
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    let document = DocumentID(1)
    bench.send(.appOpened(news), .document(.picked(document, by: news)), .appOpened(mail))
    let bookmark = bench.actions.compactMap { action -> Bookmark? in
      if case .document(_, .referenced(news, let bookmark)) = action { bookmark } else { nil }
    }.first
    let read = DocumentUse(wants: [.init(document, isWriting: false)], time: .minutes(5))
    bench.send(.document(.used(read, by: mail)))
    bench.send(.document(.elsewhere(.changed(document, DocumentBody(bytes: 20)))))
    bench.wait(.seconds(1))
    // The download is there; the sync service waits for the reader, whom the cut ends.
    #expect(bench.phone.coordination.accesses.map(\.party) == [.app(mail), .syncService])
    bench.send(.networkChanged(.none))
    bench.send(.document(.elsewhere(.deleted(DocumentID(7)))))
    try bench.powerCut(.hours(1))
    bench.wait(.seconds(1))
    #expect(bench.phone.documents.documents[document]?.revision == 2)
    #expect(bench.phone.coordination == Coordination())
    #expect(bench.phone.documents.unheard == [.deleted(DocumentID(7))])
    #expect(bench.phone.documents.listing(for: news).map(\.id) == [document])
    let found = try bench.phone.documents.resolve(#require(bookmark), by: news)
    #expect(found == document)
  }

  @Test func theSyncServiceWritesAnew() throws {
    var bench = Bench([.ordinary()])
    bench.send(
      .document(
        .elsewhere(
          .announced(in: mail, name: "film", DocumentBody(bytes: 5), modifiedAt: Bench.start))))
    bench.send(.unlocked, .appOpened(mail))
    bench.send(.document(.contentRequested(DocumentID(1), by: mail)))
    bench.wait(.milliseconds(100))
    #expect(bench.phone.coordination.granted.map(\.party) == [.syncService])
    try bench.powerCut(.hours(1))
    #expect(bench.phone.documents.documents[DocumentID(1)]?.content != .local)
    bench.wait(.milliseconds(200))
    #expect(bench.phone.documents.documents[DocumentID(1)]?.content == .local)
  }

  @Test func aClockThatWasSetBackIsNoObstacle() throws {
    var script = AppScript()
    script.onPush.energy = 150_000
    var bench = Bench([
      AppDefinition(
        name: "app", modes: [.fetch, .remoteNotification], fetchInterval: .minimum, script: script)
    ])
    for number in UInt64(1)...3 {
      bench.use(mail)
      bench.send(.pushReceived(.silent(number)))
      bench.wait(.days(1))
    }
    bench.send(.pushReceived(.silent(4)))
    bench.wait(.seconds(10))
    let level = bench.phone[mail]?.energy.level(at: bench.now)
    try bench.powerCut(.days(-30))
    #expect(bench.phone.now == bench.now)
    #expect(bench.phone[mail]?.energy.level(at: bench.now) == level)
    #expect(bench.effects.allSatisfy { $0.at == bench.now })
    bench.send(.unlocked, .locked)
    bench.wait(.days(1))
    #expect(bench.phone[mail]?.energy.level(at: bench.now) ?? 0 > level ?? 0)
    bench.send(.pushReceived(.silent(5)))
    bench.wait(.minutes(1))
    #expect(bench.reports[PushID(5)] == [.newData])
    #expect(bench.callbackSteps(of: mail).contains(.began(.fetch)))
    let days = bench.phone[mail]?.usage.days ?? 0
    bench.use(mail)
    bench.wait(.days(2))
    #expect(bench.phone[mail]?.usage.days ?? 0 > days)
  }

  @Test func anyMomentOfTheStartIsSurvived() throws {
    var bench = Bench([.ordinary(fetchInterval: .minimum)])
    bench.use(mail)
    let memory = try reread(bench.phone.memory())
    for milliseconds in [Int64.min, -1, 0, Instant.endOfCalendar.milliseconds, .max] {
      var effects: [PhoneEffect] = []
      var phone = Phone(
        restoring: memory, at: Instant(milliseconds: milliseconds), into: &effects)
      phone.handle(.unlocked, at: phone.now, into: &effects)
      phone.handle(.tick, at: phone.now + .days(1), into: &effects)
      #expect(phone.now <= .endOfCalendar && phone.lock == .unlocked)
    }
  }

  @Test func smallerLimitsCutWhatIsKept() throws {
    var bench = Bench([.ordinary()])
    for number in UInt64(1)...20 { bench.send(.pushReceived(.alert(number))) }
    bench.wait(.minutes(1))
    var limits = PhoneLimits()
    limits.banners = 5
    limits.recentPushes = 7
    limits.appEnergyPerDay = 10
    try bench.powerCut(.minutes(1), limits: limits)
    #expect(bench.phone.banners.banners.map(\.push) == (16...20).map { PushID($0) })
    #expect(bench.phone.recentPushes.known.map(\.id) == (14...20).map { PushID($0) })
    #expect(bench.phone[mail]?.energy.level(at: bench.now) == 10)
  }
}
