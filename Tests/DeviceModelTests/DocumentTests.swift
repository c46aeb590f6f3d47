import Primitives
import Testing

@testable import DeviceModel

@Suite struct CoordinationTests {
  private func access(
    _ number: UInt64, _ kind: Coordination.Kind, _ app: AppID = mail
  ) -> Coordination.Access {
    Coordination.Access(id: AccessID(number: number), party: .app(app), kind: kind)
  }

  @Test func readersShareAWriterIsAlone() {
    var coordination = Coordination()
    // Behind a waiting writer a reader waits too, or the writer might wait forever.
    let kinds: [Coordination.Kind] = [.read, .read, .write, .read, .read]
    let atOnce = kinds.enumerated().map { index, kind in
      coordination.request(access(UInt64(index + 1), kind))
    }
    #expect(atOnce == [true, true, false, false, false])
    let next = (1...3).map { number in coordination.end { $0.id.number == number } }
    #expect(
      next == [[], [access(3, .write)], [access(4, .read), access(5, .read)]])
    let none = coordination.end { _ in true }
    #expect(none.isEmpty)
    #expect(coordination == Coordination())
  }

  @Test func whoGivesUpWaitingLetsOthersThrough() {
    var coordination = Coordination()
    _ = coordination.request(access(1, .read))
    _ = coordination.request(access(2, .write, news))
    _ = coordination.request(access(3, .read))
    let next = coordination.end { $0.party == .app(news) }
    #expect(next == [access(3, .read)])
  }

  /// One writer at a time, and never beside readers; everybody has their turn.
  @Test func randomUse() {
    for seed in UInt64(1)...200 {
      var random = SeededRandom(seed: seed)
      var coordination = Coordination()
      var held: [Coordination.Access] = []
      var number: UInt64 = 0
      for _ in 0..<100 {
        if random.below(2) == 0 || held.isEmpty {
          number += 1
          let one = access(number, random.below(3) == 0 ? .write : .read)
          if coordination.request(one) { held.append(one) }
        } else {
          let over = held.remove(at: Int(random.below(Int64(held.count))))
          held += coordination.end { $0 == over }
        }
        let writers = held.count { $0.kind == .write }
        #expect(writers == 0 || held.count == 1, "seed \(seed)")
        #expect(!held.isEmpty || coordination.waiting.isEmpty, "seed \(seed)")
        for one in held { #expect(coordination.held(one.id) == one, "seed \(seed)") }
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

  private func granted(_ bench: Bench) -> [Coordination.Access] {
    steps(bench).compactMap { if case .granted(let access) = $0 { access } else { nil } }
  }

  private let first = DocumentID(1)

  @Test func creatingRenamingDeletingShowAtOnce() {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    bench.send(.document(.created(by: mail, name: "diary", bytes: 20)))
    func names() -> [String] {
      bench.phone.documents.listing(for: mail, references: []).map(\.name)
    }
    #expect(names() == ["diary", "plan"])
    bench.send(.document(.renamed(first, by: mail, to: "a plan")))
    #expect(names() == ["a plan", "diary"])
    bench.send(.document(.deleted(first, by: mail)))
    #expect(names() == ["diary"])
    #expect(steps(bench).contains(.uploadNeeded(revision: 1)))
  }

  @Test func aPlaceholderComesFirstAndTheContentOnDemand() {
    var bench = opened()
    let day = Bench.start - .days(1)
    bench.send(
      .document(
        .announced(
          in: mail, name: "film", bytes: 25_000_000, modifiedAt: day, hasThumbnail: true)))
    let listed = bench.phone.documents.listing(for: mail, references: []).first
    #expect(listed?.content == .placeholder)
    #expect(listed?.bytes == 25_000_000)
    #expect(listed?.modifiedAt == day)
    #expect(listed?.hasThumbnail == true)
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

  @Test func readersWaitUntilTheServiceHasWritten() {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    bench.send(.document(.changedElsewhere(first, bytes: 500)))
    bench.send(
      .transferQueued(mail, TransferRequest(name: "diff", bytes: 500, document: first)))
    bench.wait(.milliseconds(1))
    #expect(bench.phone.documents.documents[first]?.coordination.holders != .nobody)
    bench.send(.document(.accessRequested(first, by: mail, .read)))
    #expect(granted(bench).map(\.party) == [.syncService])
    bench.wait(.seconds(1))
    #expect(granted(bench).map(\.party) == [.syncService, .app(mail)])
    // What it reads is whole: the write was over before.
    let changed = steps(bench).firstIndex { $0 == .changed(revision: 2, bytes: 500) }
    let read = steps(bench).lastIndex { if case .granted = $0 { true } else { false } }
    #expect((changed ?? .max) < (read ?? -1))
    #expect(bench.phone.documents.documents[first]?.bytes == 500)
  }

  @Test func theServiceWaitsForReadersAndWriters() {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    bench.send(.document(.uploaded(first, revision: 1)))
    bench.send(.document(.accessRequested(first, by: mail, .write)))
    bench.send(.document(.changedElsewhere(first, bytes: 500)))
    bench.send(
      .transferQueued(mail, TransferRequest(name: "diff", bytes: 500, document: first)))
    bench.wait(.minutes(5))
    #expect(granted(bench).map(\.party) == [.app(mail)])
    guard let writing = granted(bench).first else { return }
    bench.send(.document(.accessEnded(first, writing.id, bytes: 30)))
    #expect(steps(bench).contains(.uploadNeeded(revision: 3)))
    // Both versions are there: the one from elsewhere is kept.
    let kept = steps(bench).compactMap { if case .conflict(let kept) = $0 { kept } else { nil } }
    #expect(kept.map(\.revision) == [2] && kept.first?.isFromHere == false)
    #expect(bench.phone.documents.documents[first]?.versions == kept)
    bench.wait(.seconds(1))
    #expect(granted(bench).map(\.party) == [.app(mail), .syncService])
  }

  @Test func anAppThatEndsOrIsSuspendedBlocksNobody() {
    for isKilled in [true, false] {
      var bench = opened()
      bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
      bench.send(.document(.accessRequested(first, by: mail, .write)))
      if isKilled { bench.send(.appCrashed(mail)) } else { bench.send(.appLeft) }
      bench.wait(.seconds(10))
      let document = bench.phone.documents.documents[first]
      #expect(document?.coordination.holders == .nobody)
      // Half written is not written.
      #expect(document?.revision == 1)
      #expect(bench.phone.busyDocuments.isEmpty)
    }
  }

  @Test func outsideItsContainerAnAppNeedsAReference() {
    var bench = opened()
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
    bench.send(.appOpened(news), .document(.accessRequested(first, by: news, .read)))
    #expect(bench.actions.last == .ignored(.notAllowed))
    bench.send(.document(.picked(first, by: news)))
    bench.send(.document(.accessRequested(first, by: news, .read)))
    #expect(granted(bench).map(\.party) == [.app(news)])
    let references = bench.phone[news]?.process.references ?? []
    #expect(bench.phone.documents.listing(for: news, references: references).count == 1)
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
    bench.send(.document(.accessRequested(first, by: news, .read)))
    #expect(bench.actions.last == .ignored(.notAllowed))
    guard case .data(let data) = value else { return }
    bench.send(.document(.bookmarkResolved(by: news, Bookmark(data: data))))
    bench.send(.document(.accessRequested(first, by: news, .read)))
    #expect(granted(bench).count == 1)
    // It is of no use to others, nor is an invented one.
    bench.send(.appOpened(mail), .document(.bookmarkResolved(by: mail, bookmark)))
    #expect(bench.actions.last == .ignored(.unknownDocument))
    bench.send(.document(.bookmarkResolved(by: mail, Bookmark(data: [1, 2, 3]))))
    #expect(bench.actions.last == .ignored(.unknownDocument))
    // Nor after the document is gone.
    bench.send(.document(.deletedElsewhere(first)), .appOpened(news))
    bench.send(.document(.bookmarkResolved(by: news, bookmark)))
    #expect(bench.actions.last == .ignored(.unknownDocument))
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
    let film = DocumentEvent.announced(
      in: mail, name: "film", bytes: 100, modifiedAt: Bench.start, hasThumbnail: false)
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
    limits.waitingAccesses = 1
    var bench = Bench([.ordinary("files")], limits: limits)
    bench.send(.unlocked, .appOpened(mail))
    let film = DocumentEvent.announced(
      in: mail, name: "film", bytes: 100, modifiedAt: Bench.start, hasThumbnail: false)
    let plan = DocumentEvent.created(by: mail, name: "plan", bytes: 10)
    bench.send(.document(plan), .document(film), .document(plan))
    #expect(bench.actions.last == .ignored(.limitReached))
    bench.send(.document(film))
    #expect(bench.actions.last == .ignored(.limitReached))
    for _ in 0..<3 { bench.send(.document(.accessRequested(first, by: mail, .write))) }
    #expect(bench.actions.last == .ignored(.limitReached))
    #expect(bench.phone.documents.documents[first]?.coordination.waiting.count == 1)
    bench.send(.document(.created(by: AppID(9), name: "plan", bytes: 10)))
    #expect(bench.actions.last == .ignored(.unknownApp))
  }

  @Test func onlyRunningAppsTouchDocuments() {
    var bench = Bench([.ordinary("files")])
    let events: [DocumentEvent] = [
      .created(by: mail, name: "a", bytes: 1), .renamed(first, by: mail, to: "b"),
      .deleted(first, by: mail), .accessRequested(first, by: mail, .read),
      .contentRequested(first, by: mail), .picked(first, by: mail),
      .bookmarkResolved(by: mail, Bookmark(data: [])),
    ]
    for event in events {
      bench.clear()
      bench.send(.document(event))
      #expect(bench.actions == [.ignored(.notRunning)], "\(event)")
    }
    for event in [
      DocumentEvent.changedElsewhere(first, bytes: 1), .deletedElsewhere(first),
      .uploaded(first, revision: 1),
    ] {
      bench.clear()
      bench.send(.document(event))
      #expect(bench.actions == [.ignored(.unknownDocument)], "\(event)")
    }
  }
}
