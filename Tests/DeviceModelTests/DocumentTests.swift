import Primitives
import Testing

@testable import DeviceModel

@Suite struct CoordinationTests {
  private let documents = [DocumentID(1), DocumentID(2), DocumentID(3)]

  private func access(
    _ number: UInt64, _ wants: [(Int, isWriting: Bool)], _ app: AppID = mail
  ) -> Coordination.Access {
    Coordination.Access(
      id: AccessID(number: number), party: .app(app),
      wants: wants.map { DocumentUse.Want(documents[$0.0], isWriting: $0.isWriting) })
  }

  @Test func readersShareAWriterIsAlone() {
    var coordination = Coordination()
    // Behind a waiting writer a reader waits too, or the writer might wait forever.
    let atOnce = [false, false, true, false, false].enumerated().map { index, isWriting in
      coordination.request(access(UInt64(index + 1), [(0, isWriting)]))
    }
    #expect(atOnce == [true, true, false, false, false])
    let next = (1...3).map { number in coordination.end { $0.id.number == number }.map(\.id.number)
    }
    #expect(next == [[], [3], [4, 5]])
    let none = coordination.end { _ in true }
    #expect(none.isEmpty && coordination == Coordination())
  }

  @Test func whoGivesUpWaitingLetsOthersThrough() {
    var coordination = Coordination()
    for (number, isWriting) in [(1, false), (2, true), (3, false)] {
      let app = isWriting ? news : mail
      _ = coordination.request(access(UInt64(number), [(0, isWriting)], app))
    }
    let next = coordination.end { $0.party == .app(news) }
    #expect(next == [access(3, [(0, false)])])
  }

  /// Each has what the other wants, were they given one by one.
  @Test func severalAreGrantedTogether() {
    var coordination = Coordination()
    let isFirst = coordination.request(access(1, [(0, true), (1, true)]))
    let isSecond = coordination.request(access(2, [(1, true), (0, true)]))
    #expect(isFirst && !isSecond)
    // What nobody wants is free, and who wants one twice does not block themselves.
    let isThird = coordination.request(access(3, [(2, false), (2, true)]))
    #expect(isThird && coordination.granted.map(\.id.number) == [1, 3])
    let next = coordination.end { $0.id.number == 1 }
    #expect(next.map(\.id.number) == [2])
  }

  /// One writer at a time, and never beside readers; everybody has their turn.
  @Test func randomUse() {
    for seed in UInt64(1)...200 {
      var random = SeededRandom(seed: seed)
      var coordination = Coordination()
      var number: UInt64 = 0
      for _ in 0..<100 {
        let held = coordination.granted
        if random.below(2) == 0 || held.isEmpty {
          number += 1
          let wants = (0...random.below(2)).map { _ in
            (Int(random.below(3)), isWriting: random.below(3) == 0)
          }
          _ = coordination.request(access(number, wants))
        } else {
          let over = held[Int(random.below(Int64(held.count)))]
          _ = coordination.end { $0 == over }
        }
        for document in documents {
          let users = coordination.granted.filter { $0.wants.contains { $0.document == document } }
          let writers = users.filter { $0.isWriting(document) }
          #expect(writers.isEmpty || users.count == 1, "seed \(seed)")
          #expect(coordination.writer(of: document) == writers.first, "seed \(seed)")
        }
        let isIdle = coordination.granted.isEmpty
        #expect(!isIdle || coordination.accesses.isEmpty, "seed \(seed)")
      }
    }
  }
}

/// Apple, "File System Programming Guide".
@Suite struct DocumentTests {
  private func opened() -> Bench {
    var bench = Bench([.ordinary("files"), .ordinary("editor")])
    bench.send(.unlocked, .appOpened(mail))
    bench.clear()
    return bench
  }

  private func steps(_ bench: Bench) -> [DocumentStep] {
    bench.actions.compactMap { if case .document(_, let step) = $0 { step } else { nil } }
  }

  private func granted(_ bench: Bench) -> [Coordination.Party] {
    steps(bench).compactMap { if case .granted(let party, _) = $0 { party } else { nil } }
  }

  private func use(
    isWriting: Bool = false, for time: Interval = .zero, _ edit: DocumentEdit = .nothing
  ) -> DocumentUse {
    DocumentUse(wants: [.init(first, isWriting: isWriting)], time: time, edit: edit)
  }

  private let first = DocumentID(1)

  @Test func creatingRenamingDeletingShowAtOnce() {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    #expect(steps(bench) == [.appeared(.local), .uploadNeeded(revision: 1)])
    bench.send(.document(.created(by: mail, name: "diary", bytes: 20)))
    func names() -> [String] {
      bench.phone.documents.listing(for: mail).map(\.name)
    }
    #expect(names() == ["diary", "plan"])
    bench.send(.document(.renamed(first, by: mail, to: "a plan")))
    #expect(names() == ["a plan", "diary"])
    bench.send(.document(.deleted(first, by: mail)))
    #expect(names() == ["diary"])
    // What the service never had it need not hear of.
    #expect(bench.phone.documents.deleted == nil)
    bench.send(
      .document(.uploaded(DocumentID(2), revision: 1)), .document(.deleted(DocumentID(2), by: mail))
    )
    #expect(bench.phone.documents.deleted?.map(\.id) == [DocumentID(2)])
    bench.send(.document(.deletionsSent))
    #expect(bench.phone.documents.deleted == nil)
  }

  @Test func aPlaceholderComesFirstAndTheContentOnDemand() {
    var bench = opened()
    let day = Bench.start - .days(1)
    bench.send(
      .document(
        .elsewhere(
          .announced(in: mail, name: "film", DocumentBody(bytes: 25_000_000), modifiedAt: day))))
    let listed = bench.phone.documents.listing(for: mail).first
    #expect(listed?.content == .placeholder)
    #expect(listed?.bytes == 25_000_000)
    #expect(listed?.modifiedAt == day)
    bench.send(.document(.contentRequested(first, by: mail)))
    bench.send(.document(.contentRequested(first, by: mail)))
    #expect(bench.actions.last == .ignored(.alreadySo))
    bench.wait(.seconds(11))
    #expect(bench.phone.documents.documents[first]?.content == .local)
    #expect(bench.phone.documents.documents[first]?.isStale == false)
    // The system fetched it, nobody was called for it.
    #expect(bench.callbackSteps(of: mail).isEmpty)
    #expect(bench.phone.service.transfers.isEmpty)
    bench.send(.document(.contentRequested(first, by: mail)))
    #expect(bench.actions.last == .ignored(.alreadySo))
  }

  /// A change elsewhere comes by itself, and a reader sees it.
  @Test func readersWaitUntilTheServiceHasWritten() {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    bench.send(.document(.elsewhere(.changed(first, DocumentBody(bytes: 500)))))
    bench.send(.document(.used(use(), by: mail)))
    bench.wait(.seconds(1))
    #expect(granted(bench) == [.syncService, .app(mail)])
    let changed = steps(bench).firstIndex { $0 == .changed(revision: 2, bytes: 500) }
    let read = steps(bench).lastIndex { if case .granted = $0 { true } else { false } }
    #expect((changed ?? .max) < (read ?? -1))
    #expect(bench.phone.documents.documents[first]?.bytes == 500)
    #expect(bench.phone.uses.isEmpty && bench.phone.coordination == Coordination())
  }

  @Test func theServiceWaitsForReadersAndWriters() {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    bench.send(.document(.uploaded(first, revision: 1)))
    bench.send(.document(.used(use(isWriting: true, for: .minutes(5), .size(30)), by: mail)))
    bench.send(.document(.elsewhere(.changed(first, DocumentBody(bytes: 500)))))
    bench.wait(.minutes(4))
    #expect(granted(bench) == [.app(mail)])
    bench.wait(.minutes(1))
    #expect(steps(bench).contains(.uploadNeeded(revision: 3)))
    // Both versions are there: the one from elsewhere is kept.
    let kept = steps(bench).compactMap { if case .conflict(let kept) = $0 { kept } else { nil } }
    #expect(kept.first?.revision == 2 && kept.first?.isFromHere == false)
    bench.wait(.seconds(1))
    #expect(granted(bench) == [.app(mail), .syncService])
  }

  @Test func anAppThatEndsOrIsSuspendedBlocksNobody() {
    for isKilled in [true, false] {
      var bench = opened()
      bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
      bench.send(.document(.used(use(isWriting: true, for: .hours(1), .size(30)), by: mail)))
      if isKilled { bench.send(.appCrashed(mail)) } else { bench.send(.appLeft) }
      bench.wait(.seconds(10))
      #expect(bench.phone.coordination == Coordination() && bench.phone.uses.isEmpty)
      // Half written is not written.
      #expect(bench.phone.documents.documents[first]?.revision == 1)
    }
  }

  @Test func outsideItsContainerAnAppNeedsAReference() {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    bench.send(.appOpened(news), .document(.used(use(), by: news)))
    #expect(bench.actions.contains(.ignored(.notAllowed)))
    bench.send(.document(.picked(first, by: news)), .document(.used(use(), by: news)))
    #expect(granted(bench) == [.app(news)])
    #expect(bench.phone.documents.listing(for: news).count == 1)
  }

  /// What its user picked stays in an app's listing, whatever ends; so does what it moved out.
  @Test(arguments: [PhoneEvent.appCrashed(news), .rebooted, .appSwipedAway(news)])
  func referencesLast(end: PhoneEvent) {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)), .appOpened(news))
    bench.send(.document(.picked(first, by: news)), end, .unlocked, .appOpened(news))
    bench.clear()
    bench.send(.document(.filed(first, by: news, folder: "work")), .document(.listed(by: news)))
    guard case .listed(news, let document, let folder)? = steps(bench).last else {
      Issue.record("\(bench.actions)")
      return
    }
    #expect(document.container == mail && folder == "work")
    bench.send(.document(.used(use(), by: news)))
    #expect(granted(bench) == [.app(news)])
    bench.wait(.seconds(1))
    bench.send(.appOpened(mail))
    bench.send(.document(.used(use(isWriting: true, .moved(to: "editor")), by: mail)))
    bench.wait(.seconds(1))
    bench.send(.appCrashed(mail), .appOpened(mail))
    #expect(bench.phone.documents.listing(for: mail).map(\.name) == ["plan"])
    // In whose container it lies now, that needs no reference to it any more.
    #expect(bench.phone.documents.folder(of: first, for: news) == nil)
    bench.clear()
    bench.send(.document(.used(use(), by: mail)))
    #expect(granted(bench) == [.app(mail)])
    // With the app that had it all of it goes.
    bench.send(.appUninstalled(mail), .appInstalled(.ordinary("files")))
    #expect(
      bench.phone.documents.listing(for: mail).isEmpty && bench.phone.documents.grants.count == 1)
  }

  /// The picker offers what opted in, as of the last version of its app, and what is asked for.
  @Test func thePickerOffersWhatOptedInAndIsAskedFor() {
    var files = AppDefinition(name: "files")
    var editor = AppDefinition.ordinary("editor")
    editor.documentTypes = ["txt"]
    var bench = Bench([files, editor])
    bench.send(.unlocked, .appOpened(mail))
    for name in ["plan", "plan.txt"] {
      bench.send(.document(.created(by: mail, name: name, bytes: 10)))
    }
    func pick(_ number: UInt64) -> PhoneAction? {
      bench.send(.appOpened(news), .document(.picked(DocumentID(number), by: news)))
      return bench.actions.last
    }
    #expect(pick(2) == .ignored(.notOffered))
    files.container = .shared
    bench.send(.appInstalled(files))
    #expect(pick(2) == .ignored(.notOffered))
    files.version = "2.0"
    bench.send(.appInstalled(files))
    #expect(pick(1) == .ignored(.wrongType))
    #expect(pick(2) != .ignored(.notOffered) && bench.phone.documents.listing(for: news).count == 1)
    files.container = .provider
    bench.send(.appInstalled(files))
    #expect(pick(2) == .ignored(.notOffered))
    // A provider is offered when its user has switched it on.
    bench = Bench([AppDefinition(name: "drive", container: .provider), .ordinary("editor")])
    bench.send(.unlocked, .appOpened(mail))
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    #expect(pick(1) == .ignored(.notOffered))
    bench.send(.document(.providerSwitched(mail, isOn: true)))
    #expect(pick(1) != .ignored(.notOffered))
    // A bookmark leads back there, no reference does.
    #expect(bench.phone.documents.listing(for: news).isEmpty)
    bench.send(.document(.used(use(), by: news)))
    #expect(!bench.actions.contains(.ignored(.notAllowed)))
    bench.send(.appCrashed(news), .appOpened(news), .document(.used(use(), by: news)))
    #expect(bench.actions.contains(.ignored(.notAllowed)))
    bench.send(.document(.providerSwitched(news, isOn: true)))
    #expect(bench.actions.last == .ignored(.notAllowed))
  }

  /// Without a network nobody hears of other devices, whatever ends meanwhile.
  @Test func offlineNothingIsHeard() {
    for isOff in [false, true] {
      var bench = opened()
      bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
      bench.send(.document(.uploaded(first, revision: 1)), .networkChanged(.airplane))
      if isOff { bench.send(.switchedOff) }
      bench.clear()
      bench.send(.document(.elsewhere(.changed(first, DocumentBody(bytes: 500)))))
      let film = CloudChange.announced(
        in: mail, name: "film", DocumentBody(bytes: 9), modifiedAt: bench.now)
      bench.send(.document(.elsewhere(film)), .document(.elsewhere(.deleted(DocumentID(2)))))
      #expect(bench.actions.isEmpty && bench.phone.documents.documents.count == 1)
      #expect(bench.phone.documents.documents[first]?.isStale == false)
      if isOff { bench.send(.switchedOn) } else { bench.send(.rebooted) }
      #expect(steps(bench).isEmpty)
      bench.send(.networkChanged(.wifi))
      #expect(steps(bench).contains(.appeared(.placeholder)) && steps(bench).contains(.deleted))
      bench.wait(.seconds(1))
      #expect(bench.phone.documents.documents[first]?.bytes == 500)
    }
  }

  /// Nothing is picked, and nothing of other devices is heard, before the user has moved.
  @Test func withoutTheDriveNothingIsHeard() {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    bench.send(.document(.uploaded(first, revision: 1)))
    bench.clear()
    bench.send(.document(.driveSwitched(isOn: true)))
    #expect(bench.actions == [.ignored(.alreadySo)])
    bench.send(.document(.driveSwitched(isOn: false)))
    bench.send(.document(.elsewhere(.deleted(first))))
    #expect(bench.phone.obstacle(to: mail, picking: first) == .notMigrated)
    #expect(bench.phone.documents.documents.count == 1)
    bench.clear()
    bench.send(.document(.driveSwitched(isOn: false)))
    #expect(bench.actions == [.ignored(.alreadySo)])
    bench.send(.document(.driveSwitched(isOn: true)))
    #expect(steps(bench).contains(.deleted) && bench.phone.documents.documents.isEmpty)
  }

  /// An app that writes two documents at once has the other one until it is done.
  @Test func aDeletedDocumentEndsNobodysUseOfAnother() {
    var bench = opened()
    let second = DocumentID(2)
    for (name, id) in [("plan", first), ("diary", second)] {
      bench.send(.document(.created(by: mail, name: name, bytes: 10)))
      bench.send(.document(.uploaded(id, revision: 1)))
    }
    let both = DocumentUse(
      wants: [.init(first, isWriting: true), .init(second, isWriting: true)], time: .seconds(5),
      edit: .size(30))
    bench.send(.document(.used(both, by: mail)))
    bench.send(.document(.elsewhere(.changed(second, DocumentBody(bytes: 500)))))
    bench.send(.document(.deleted(first, by: mail)))
    bench.wait(.seconds(1))
    #expect(!granted(bench).contains(.syncService))
    bench.wait(.seconds(10))
    #expect(granted(bench).contains(.syncService))
  }

  /// The mistake that coordination is there for.
  @Test(arguments: [false, true]) func withoutCoordinationTwoWritersCorrupt(isTogether: Bool) {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    bench.send(.document(.uploaded(first, revision: 1)))
    var scribble = use(isWriting: true, for: .seconds(2), .size(30))
    scribble.skipsCoordination = true
    bench.send(.document(.used(scribble, by: mail)))
    bench.wait(isTogether ? .seconds(1) : .seconds(3))
    bench.send(.document(.elsewhere(.changed(first, DocumentBody(bytes: 500)))))
    bench.wait(.seconds(3))
    #expect(steps(bench).contains(.corrupted(by: mail)) == isTogether)
    #expect((bench.phone.documents.documents[first]?.isCorrupt == true) == isTogether)
    // It goes up as any version does, and so to every device.
    #expect(steps(bench).contains(.uploadNeeded(revision: isTogether ? 3 : 2)))
    // A version that is written whole is whole.
    bench.send(.document(.used(use(isWriting: true, .size(30)), by: mail)))
    bench.wait(.seconds(1))
    #expect(bench.phone.documents.documents[first]?.isCorrupt != true)
  }

  @Test func aBookmarkHoldsOverARestart() {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    bench.send(.appOpened(news), .document(.picked(first, by: news)))
    guard case .referenced(_, let bookmark)? = steps(bench).last else {
      Issue.record("\(steps(bench))")
      return
    }
    // What state restoration stores is the bookmark, not a path.
    let value = StateValue.data(bookmark.data)
    bench.send(.rebooted, .unlocked, .appOpened(news))
    #expect(bench.phone[news]?.process.references == [])
    guard case .data(let data) = value else { return }
    bench.send(.document(.bookmarkResolved(by: news, Bookmark(data: data))))
    #expect(bench.phone[news]?.process.references == [first])
    bench.send(.document(.used(use(), by: news)))
    #expect(granted(bench).count == 1)
    // It is of no use to others, nor is an invented one.
    bench.send(.appOpened(mail), .document(.bookmarkResolved(by: mail, bookmark)))
    #expect(bench.actions.last == .ignored(.staleBookmark))
    bench.send(.document(.bookmarkResolved(by: mail, Bookmark(data: [1, 2, 3]))))
    #expect(bench.actions.last == .ignored(.staleBookmark))
    // Nor after the document is gone.
    bench.send(.document(.elsewhere(.deleted(first))), .appOpened(news))
    bench.send(.document(.bookmarkResolved(by: news, bookmark)))
    #expect(bench.actions.last == .ignored(.staleBookmark))
  }

  @Test func pickingAgainGivesTheSameBookmark() {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)), .appOpened(news))
    bench.send(.document(.picked(first, by: news)), .document(.picked(first, by: news)))
    let bookmarks = steps(bench).compactMap { step -> Bookmark? in
      if case .referenced(_, let bookmark) = step { bookmark } else { nil }
    }
    #expect(bookmarks.count == 2 && Set(bookmarks).count == 1)
  }

  @Test func aDownloadThatFailsLeavesThePlaceholder() {
    var bench = Bench([.ordinary("files")], transferMode: .performed)
    bench.send(.unlocked, .appOpened(mail))
    let film = DocumentEvent.elsewhere(
      .announced(in: mail, name: "film", DocumentBody(bytes: 100), modifiedAt: Bench.start))
    let request = TransferRequest(
      name: "film", bytes: 100, document: first, url: "https://files.example/film")
    for result in [TransferResult.failed, .notAuthenticated, .finished] {
      bench.send(.document(film), .transferQueued(mail, request))
      guard let transfer = bench.phone.service.transfers.last(where: { $0.phase == .active })?.id
      else {
        Issue.record("no transfer")
        return
      }
      // The server knows the size.
      bench.send(.transferProgressed(transfer, bytes: 120), .transferEnded(transfer, result))
      bench.wait(.seconds(1))
      let document = bench.phone.documents.documents[first]
      #expect(document?.content == (result == .finished ? .local : .placeholder))
      #expect(document?.bytes == (result == .finished ? 120 : 100))
    }
  }

  @Test func thereAreLimits() {
    var limits = PhoneLimits()
    limits.documents = 2
    var bench = Bench([.ordinary("files")], limits: limits)
    bench.send(.unlocked, .appOpened(mail))
    let film = DocumentEvent.elsewhere(
      .announced(in: mail, name: "film", DocumentBody(bytes: 100), modifiedAt: Bench.start))
    let plan = DocumentEvent.created(by: mail, name: "plan", bytes: 10)
    bench.send(.document(plan), .document(film), .document(plan))
    #expect(bench.actions.last == .ignored(.limitReached))
    bench.send(.document(film))
    #expect(bench.actions.last == .ignored(.limitReached))
    bench.send(.document(.created(by: AppID(9), name: "plan", bytes: 10)))
    #expect(bench.actions.last == .ignored(.unknownApp))
  }

  @Test func onlyRunningAppsTouchDocuments() {
    var bench = Bench([.ordinary("files")])
    let events: [DocumentEvent] = [
      .created(by: mail, name: "a", bytes: 1), .renamed(first, by: mail, to: "b"),
      .deleted(first, by: mail), .used(use(), by: mail), .filed(first, by: mail, folder: "a"),
      .contentRequested(first, by: mail), .picked(first, by: mail),
      .bookmarkResolved(by: mail, Bookmark(data: [])),
    ]
    for event in events {
      bench.clear()
      bench.send(.document(event))
      #expect(bench.actions == [.ignored(.notRunning)], "\(event)")
    }
    for event in [
      DocumentEvent.elsewhere(.changed(first, DocumentBody(bytes: 1))), .elsewhere(.deleted(first)),
      .uploaded(first, revision: 1),
    ] {
      bench.clear()
      bench.send(.document(event))
      #expect(bench.actions == [.ignored(.unknownDocument)], "\(event)")
    }
  }
}
