import Primitives
import Testing

@testable import DeviceModel

/// State restoration as the phone plays it (WWDC 2013 session 222).
@Suite struct RestorationTests {
  private func definition(_ change: (inout AppScript) -> Void = { _ in }) -> AppDefinition {
    .ordinary("app") {
      $0.interface = sampleInterface()
      change(&$0)
    }
  }

  private let walk: [StateChange] = [
    .add(
      className: "Detail", identifier: "detail", parent: ["window"],
      restorationClass: "DetailMaker", isRegistered: false),
    .set(["window", "detail"], key: "page", .number(12)),
    .link(["window", "detail"], key: "model", to: ["model"]),
    .show(["window", "detail"]),
  ]

  /// The user has walked to some place and left.
  private func left(_ change: (inout AppScript) -> Void = { _ in }) -> Bench {
    var bench = Bench([definition(change)])
    bench.send(.unlocked, .appOpened(mail), .stateChanged(mail, walk), .appLeft)
    bench.wait(.seconds(10))
    return bench
  }

  private func page(_ bench: Bench) -> StateValue? {
    let graph = bench.phone[mail]?.process.interface
    return graph?.find(["window", "detail"]).flatMap { graph?[$0] }?
      .entries.first { $0.key == "page" }?.value
  }

  @Test func theUserIsWhereTheyWere() {
    for event in [PhoneEvent.memoryRanOut, .rebooted] {
      var bench = left()
      bench.send(event)
      #expect(page(bench) == nil)
      if event == .rebooted { bench.send(.unlocked) }
      bench.send(.appOpened(mail))
      #expect(page(bench) == .number(12))
      #expect(
        bench.steps(of: mail).contains(
          .launchImage(.content(revision: 0, top: ["window", "detail"]))))
    }
  }

  @Test func whatCameAfterSavingIsNotThere() {
    var bench = left()
    bench.send(.appOpened(mail))
    bench.send(
      .stateChanged(
        mail,
        [
          .add(
            className: "Late", identifier: "late", parent: ["window"],
            restorationClass: "DetailMaker", isRegistered: false)
        ]))
    bench.send(.appCrashed(mail), .appOpened(mail))
    let graph = bench.phone[mail]?.process.interface
    #expect(graph?.find(["window", "late"]) == nil && page(bench) == .number(12))
  }

  @Test func swipingAwayDeletesTheArchiveUnlessADeveloperLooks() {
    for isDeveloper in [false, true] {
      var bench = left()
      bench.send(.developerModeSwitched(isOn: isDeveloper), .appSwipedAway(mail))
      #expect(bench.archiveSteps(of: mail).contains(.deleted) == !isDeveloper)
      bench.clear()
      bench.send(.appOpened(mail))
      #expect(page(bench) == (isDeveloper ? .number(12) : nil))
      let told = bench.archiveSteps(of: mail).filter {
        if case .step = $0 { true } else { false }
      }
      #expect(told.isEmpty == !isDeveloper)
    }
  }

  @Test func launchedWhileLockedItNeitherRestoresNorOverwrites() throws {
    var bench = left { $0.onPush.changes = [.set(["window", "list"], key: "row", .number(99))] }
    bench.send(.memoryRanOut, .locked)
    bench.clear()
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(bench.steps(of: mail).contains(.startedFresh(.locked)))
    #expect(bench.archiveSteps(of: mail) == [.kept])
    #expect(bench.steps(of: mail).last == .terminated(.notRestored))
    // Unlocked amid its work, the process still lacks its state: it must not overwrite it.
    bench.send(.pushReceived(.silent(2)))
    bench.wait(.seconds(1))
    bench.send(.unlocked)
    bench.wait(.minutes(1))
    #expect(bench.archiveSteps(of: mail) == [.kept, .kept])
    #expect(bench.steps(of: mail).last == .terminated(.notRestored))
    #expect(!bench.actions.contains { if case .snapshot = $0 { true } else { false } })
    // Its user comes: now it is restored, and saves as usual.
    bench.send(.appOpened(mail))
    #expect(page(bench) == .number(12))
    bench.send(.appLeft)
    guard case .saved(let archive)? = bench.archiveSteps(of: mail).last else {
      Issue.record("\(bench.archiveSteps(of: mail))")
      return
    }
    #expect(try archive == bench.phone.vault.read(mail, .unlocked))
  }

  @Test func launchedUnlockedItRestoresAndSavesAsUsual() {
    var bench = left { $0.onPush.changes = [.set(["window", "list"], key: "row", .number(99))] }
    bench.send(.memoryRanOut)
    bench.clear()
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(
      bench.steps(of: mail).contains { if case .restored = $0 { true } else { false } })
    guard case .saved(let archive)? = bench.archiveSteps(of: mail).first else {
      Issue.record("\(bench.archiveSteps(of: mail))")
      return
    }
    let row = archive.graph.find(["window", "list"]).flatMap { archive.graph[$0] }?.entries.last
    #expect(row?.value == .number(99))
  }

  @Test func completingWhileLockedKeepsTheArchive() {
    var bench = left()
    bench.send(.locked)
    bench.clear()
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(bench.steps(of: mail).first == .resumed(.push(PushID(1))))
    #expect(bench.archiveSteps(of: mail) == [.kept])
  }

  @Test func anOldArchiveMayBeDeclined() {
    for (wait, isDeclined) in [(Interval.hours(1), false), (.days(2), true)] {
      var bench = left { $0.restoration.oldest = .days(1) }
      bench.send(.memoryRanOut)
      bench.wait(wait)
      bench.send(.appOpened(mail))
      #expect(page(bench) == (isDeclined ? nil : .number(12)))
      #expect(bench.steps(of: mail).contains(.startedFresh(.declined)) == isDeclined)
    }
  }

  @Test func whatIsGoneIsSkippedAndThePlainImageShown() {
    for isClass in [true, false] {
      var bench = left {
        if isClass {
          $0.restoration.answersNothing = ["DetailMaker"]
        } else {
          $0.restoration.gone = [["window", "detail"]]
        }
      }
      bench.send(.memoryRanOut)
      bench.clear()
      bench.send(.appOpened(mail))
      #expect(page(bench) == nil)
      #expect(bench.steps(of: mail).contains(.launchImage(nil)))
    }
  }

  @Test func aCrashWhileRestoringCostsTheArchive() {
    for isDeveloper in [false, true] {
      var bench = left { $0.restoration.crashes = true }
      bench.send(.developerModeSwitched(isOn: isDeveloper), .memoryRanOut, .appOpened(mail))
      #expect(bench.state(mail) == .notRunning)
      #expect(bench.phone.foreground == nil)
      #expect(bench.phone.vault.holds(mail) == isDeveloper)
      // Without it the next start works; kept, it crashes again.
      bench.send(.appOpened(mail))
      #expect(bench.state(mail) == (isDeveloper ? .notRunning : .foreground))
    }
    // In the background too: the push is reported all the same.
    var bench = left { $0.restoration.crashes = true }
    bench.send(.memoryRanOut, .pushReceived(.alert(1, wakesApp: true)))
    #expect(bench.reports == [PushID(1): [.failed]])
    #expect(bench.bannersShown.count == 1)
  }

  @Test func anyOtherCrashDoesNot() {
    var bench = left()
    bench.send(.appOpened(mail), .appCrashed(mail))
    #expect(bench.state(mail) == .notRunning)
    bench.send(.appOpened(mail))
    #expect(page(bench) == .number(12))
  }

  @Test func anArchiveFromAnEarlierRunIsTakenUp() throws {
    var first = left()
    let kept = try first.phone.vault.read(mail, first.phone.lock)
    let bytes = try kept.encoded()
    var second = Bench([definition()])
    // Into its empty place it comes at any time; to overwrite it and to read it takes the key.
    second.send(.archiveFound(mail, try StateArchive(decoding: bytes)))
    #expect(second.actions == [])
    second.send(.archiveFound(mail, archive(StateGraph())))
    #expect(second.actions == [.ignored(.locked)])
    let vault = second.phone.vault
    #expect(throws: ArchiveError.locked) { try vault.read(mail, .locked) }
    second.send(.unlocked)
    second.send(.appOpened(mail))
    #expect(page(second) == .number(12))
    second.send(.archiveFound(mail, kept))
    #expect(second.actions.last == .ignored(.notAllowed))
    // A process that was launched while locked has no state to lose.
    var third = Bench([definition()])
    third.send(.pushReceived(.silent(1)))
    third.wait(.minutes(1))
    third.send(.unlocked, .archiveFound(mail, kept), .appOpened(mail))
    #expect(page(third) == .number(12))
    first.clear()
  }

  @Test func anAppWithoutStateIsNotRestoring() {
    var bench = Bench([.ordinary()])
    bench.use(mail)
    bench.wait(.minutes(1))
    #expect(!bench.phone.vault.holds(mail) && bench.archiveSteps(of: mail).isEmpty)
    bench.send(.memoryRanOut)
    bench.clear()
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(bench.state(mail) == .suspended && bench.archiveSteps(of: mail).isEmpty)
    #expect(bench.phone[mail]?.snapshot?.callback != nil)
  }

  @Test func aTopWithoutAnIdentifierCostsTheSnapshot() {
    var bench = left()
    let sheet = StateChange.add(
      className: "Sheet", identifier: "(sheet)", parent: ["window"], restorationClass: nil,
      isRegistered: false)
    bench.send(.appOpened(mail), .stateChanged(mail, [sheet, .show(["window", "(sheet)"])]))
    bench.send(.appLeft)
    bench.wait(.seconds(10))
    bench.send(.memoryRanOut)
    bench.clear()
    bench.send(.appOpened(mail))
    #expect(bench.steps(of: mail).contains(.launchImage(nil)))
    let graph = bench.phone[mail]?.process.interface
    #expect(graph?.find(["window", "(sheet)"]) == nil)
    #expect(graph?.top.flatMap { graph?.path(of: $0) } == ["window"])
  }

  /// The coder that the class is given is the archive's.
  @Test func aClassDecidesByWhatWasSaved() {
    for photo in ["beach", "harbour"] {
      var bench = left {
        $0.restoration.classes = [
          RestorationClass(name: "DetailMaker", needs: "photo", answers: "Wide")
        ]
        $0.onPush.brings = ["beach"]
      }
      bench.send(
        .appOpened(mail),
        .stateChanged(
          mail,
          [
            .set(["window", "detail"], key: "photo", .text(photo))
          ]))
      bench.send(.pushReceived(.silent(1)))
      bench.wait(.minutes(1))
      bench.send(.appLeft)
      bench.wait(.seconds(10))
      bench.send(.memoryRanOut, .appOpened(mail))
      let graph = bench.phone[mail]?.process.interface
      let made = graph?.find(["window", "detail"]).flatMap { graph?[$0] }?.className
      #expect(made == (photo == "beach" ? "Wide" : nil))
    }
  }

  @Test func aRowIsFoundWhereItIsNow() {
    for limit in [1000, 1] {
      var limits = PhoneLimits()
      limits.contentItems = limit
      var bench = Bench(
        [
          definition {
            $0.restoration.tables = [StateTable(path: ["window", "list"], key: "selected")]
            $0.onPush.brings = ["letter"]
            $0.onFetch.brings = ["advert"]
          }
        ], limits: limits)
      bench.send(.unlocked, .appOpened(mail), .pushReceived(.silent(1)))
      bench.wait(.minutes(1))
      bench.send(.stateChanged(mail, [.set(["window", "list"], key: "selected", .text("letter"))]))
      bench.send(.fetchSimulated(mail))
      bench.wait(.minutes(1))
      bench.send(.memoryRanOut)
      bench.clear()
      bench.send(.appOpened(mail))
      let row = ArchiveStep.row(["window", "list"], key: "selected", place: limit == 1 ? nil : 2)
      #expect(bench.archiveSteps(of: mail).contains(row))
    }
  }
}
