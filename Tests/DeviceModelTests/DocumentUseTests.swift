import Primitives
import Testing

@testable import DeviceModel

/// What apps do with documents under coordination, and who provides their content.
@Suite struct DocumentUseTests {
  private let first = DocumentID(1)
  private let second = DocumentID(2)

  private func want(_ id: DocumentID, isWriting: Bool = true) -> DocumentUse.Want {
    DocumentUse.Want(id, isWriting: isWriting)
  }

  private func edit(_ edit: DocumentEdit, isWriting: Bool = true) -> DocumentUse {
    DocumentUse(wants: [want(first, isWriting: isWriting)], edit: edit)
  }

  private func steps(_ bench: Bench) -> [DocumentStep] {
    bench.actions.compactMap { if case .document(_, let step) = $0 { step } else { nil } }
  }

  /// Two apps that play, so that both run, may use two documents of the first.
  private func bench(_ count: Int = 2, limits: PhoneLimits = PhoneLimits()) -> Bench {
    let names = ["files", "editor", "third", "fourth"].prefix(count)
    var bench = Bench(names.map { .ordinary($0, modes: [.audio]) }, limits: limits)
    bench.send(.unlocked)
    for app in 0..<count {
      bench.send(.appOpened(AppID(app)), .audioSwitched(AppID(app), isOn: true))
      if app == 0 {
        bench.send(.document(.created(by: mail, name: "plan", bytes: 10)))
        bench.send(.document(.created(by: mail, name: "diary", bytes: 20)))
        for id in [first, second] { bench.send(.document(.uploaded(id, revision: 1))) }
      } else {
        for id in [first, second] { bench.send(.document(.picked(id, by: AppID(app)))) }
      }
    }
    bench.clear()
    return bench
  }

  @Test func readersShareAndAWriterIsAlone() {
    var bench = bench()
    let read = DocumentUse(wants: [want(first, isWriting: false)], time: .seconds(2))
    let write = DocumentUse(wants: [want(first)], time: .seconds(3), edit: .size(99))
    bench.send(.document(.used(read, by: mail)), .document(.used(read, by: news)))
    bench.send(.document(.used(write, by: mail)))
    bench.wait(.seconds(10))
    let moments = bench.effects.compactMap { effect -> Int64? in
      guard case .document(_, .granted) = effect.action else { return nil }
      return (effect.at - Bench.start).milliseconds
    }
    #expect(moments == [0, 0, 2000])
    #expect(steps(bench).contains(.changed(revision: 2, bytes: 99)))
    #expect(bench.phone.uses.isEmpty)
  }

  /// Whatever apps ask for in whatever order, everybody is done in the end, and in between one
  /// writer is alone.
  @Test func nobodyWaitsForever() {
    for seed in UInt64(1)...60 {
      var random = SeededRandom(seed: seed)
      var bench = bench(4)
      for _ in 0..<40 {
        let wants = (0...random.below(3)).map { _ in
          want(random.below(2) == 0 ? first : second, isWriting: random.below(2) == 0)
        }
        let use = DocumentUse(
          wants: wants, time: .milliseconds(random.below(3000)), edit: .size(random.below(100)))
        bench.send(.document(.used(use, by: AppID(Int(random.below(4))))))
        bench.wait(.milliseconds(random.below(2500)))
      }
      bench.wait(.minutes(10))
      #expect(bench.phone.uses.isEmpty, "seed \(seed)")
      #expect(bench.phone.coordination == Coordination(), "seed \(seed)")
      let isGivenUp = steps(bench).contains { if case .givenUp = $0 { true } else { false } }
      #expect(!isGivenUp, "seed \(seed)")
    }
  }

  // MARK: The model value

  @Test func editsAreDifferencesAndCanBeTakenBack() {
    var bench = bench()
    var bodies: [DocumentBody?] = []
    let edited: [(Int, String?)] = [(1, "milk"), (2, "bread"), (1, "oat milk"), (2, nil)]
    for (line, words) in edited {
      bodies.append(bench.phone.documents.documents[first]?.body)
      bench.send(.document(.used(edit(.line(line, words)), by: mail)))
      bench.wait(.seconds(1))
      // The size is right at once.
      let document = bench.phone.documents.documents[first]
      #expect(document?.bytes == document?.text?.bytes)
    }
    #expect(bench.phone.documents.documents[first]?.text?.lines == ["oat milk"])
    let edits = steps(bench).compactMap { step -> String? in
      if case .edited(_, let difference) = step { difference.words } else { nil }
    }
    #expect(
      edits == [
        "+1 \"milk\"", "+2 \"bread\"", "-1 \"milk\", +1 \"oat milk\"", "-2 \"bread\"",
      ])
    for body in bodies.reversed() {
      bench.send(.document(.used(edit(.undo), by: mail)))
      bench.wait(.seconds(1))
      #expect(bench.phone.documents.documents[first]?.body == body)
    }
    bench.send(.document(.used(edit(.undo), by: mail)))
    bench.wait(.seconds(1))
    #expect(bench.actions.contains(.ignored(.nothingToUndo)))
    bench.send(.document(.used(edit(.line(7, "far")), by: mail)))
    bench.wait(.seconds(1))
    #expect(bench.actions.contains(.ignored(.unknownLine)))
  }

  /// A difference makes the new value of the old one; an edit changes one line and no other.
  @Test func differencesFit() {
    for seed in UInt64(1)...100 {
      var random = SeededRandom(seed: seed)
      var text = DocumentText()
      var values = [text]
      for _ in 0..<20 {
        let line = Int(1 + random.below(Int64(text.lines.count) + 1))
        _ = text.set(line: line, to: random.below(4) == 0 ? nil : "line \(random.below(5))")
        values.append(text)
      }
      for (old, new) in zip(values, values.dropFirst() + [values[0]]) {
        let lines = old.lines.applying(new.difference(from: old))
        #expect(lines == new.lines, "seed \(seed)")
        #expect(new.difference(from: old).isEmpty == (old == new), "seed \(seed)")
      }
    }
  }

  @Test func aThumbnailChangesWithWhatItShows() {
    let bodies = [["", "four"], ["", "five"], ["four"], []].map { lines in
      DocumentBody(text: DocumentText(lines: lines))
    }
    #expect(Set((bodies + [DocumentBody(bytes: 9)]).map(\.thumbnail)).count == 5)
    #expect(bodies[0].thumbnail.count == 8)
  }

  // MARK: Conflicts

  /// Changed here while there was no network, and elsewhere: the service brings that version.
  private func conflict() -> Bench {
    var bench = bench()
    bench.send(.networkChanged(.airplane), .document(.used(edit(.line(1, "here")), by: mail)))
    bench.wait(.seconds(1))
    let there = DocumentBody(text: DocumentText(lines: ["there"]))
    bench.send(.document(.elsewhere(.changed(first, there))))
    bench.clear()
    bench.send(.networkChanged(.wifi))
    bench.wait(.seconds(2))
    return bench
  }

  @Test func theLaterWriteStands() {
    var bench = bench()
    bench.send(.networkChanged(.airplane))
    bench.wait(.minutes(1))
    bench.send(.document(.used(edit(.line(1, "here")), by: mail)))
    bench.wait(.seconds(1))
    let there = DocumentBody(text: DocumentText(lines: ["there"]))
    bench.send(.document(.elsewhere(.changed(first, there, modifiedAt: Bench.start))))
    bench.send(.networkChanged(.wifi))
    bench.wait(.seconds(2))
    let document = bench.phone.documents.documents[first]
    #expect(document?.text?.lines == ["here"] && document?.isUnsent == true)
    let kept = document?.versions?.first
    #expect(kept?.body == there && kept?.isFromHere == false)
  }

  @Test func bothVersionsAreKept() {
    let bench = conflict()
    let document = bench.phone.documents.documents[first]
    #expect(document?.text?.lines == ["there"] && document?.revision == 3)
    let kept = document?.versions?.first
    #expect(document?.versions?.count == 1)
    #expect(kept?.body.text?.lines == ["here"] && kept?.revision == 2 && kept?.isFromHere == true)
  }

  @Test(arguments: [(2, ["here"], 4), (3, ["there"], 3)])
  func oneIsChosen(revision: Int, lines: [String], newest: Int) {
    var bench = conflict()
    bench.send(.document(.used(edit(.choose(.revision(9))), by: mail)))
    bench.wait(.seconds(1))
    #expect(bench.actions.contains(.ignored(.unknownVersion)))
    bench.send(.document(.used(edit(.choose(.revision(revision))), by: mail)))
    bench.wait(.seconds(1))
    let document = bench.phone.documents.documents[first]
    #expect(document?.text?.lines == lines && document?.versions == nil)
    #expect(document?.revision == newest)
  }

  @Test func orAllOfThem() {
    var bench = conflict()
    bench.send(.document(.used(edit(.choose(.all)), by: mail)))
    bench.wait(.seconds(1))
    let names = bench.phone.documents.listing(for: mail).map(\.name)
    #expect(names == ["diary", "plan", "plan (revision 2)"])
    let copy = bench.phone.documents.documents[DocumentID(3)]
    #expect(copy?.text?.lines == ["here"])
  }

  @Test func keptVersionsAreBounded() {
    var limits = PhoneLimits()
    limits.documentVersions = 2
    var bench = bench(limits: limits)
    for number in 0..<5 {
      bench.send(.networkChanged(.none), .document(.used(edit(.size(Int64(number))), by: mail)))
      bench.wait(.seconds(1))
      bench.send(.document(.elsewhere(.changed(first, DocumentBody(bytes: 100)))))
      bench.send(.networkChanged(.wifi))
      bench.wait(.seconds(1))
    }
    #expect(bench.phone.documents.documents[first]?.versions?.map(\.body.bytes) == [3, 4])
  }

  // MARK: From container to container

  @Test func importExportAndMove() {
    var bench = bench()
    let third = DocumentID(3)
    // To import needs no reference: its user has just chosen it.
    let viewer = AppID(2)
    bench.send(.appInstalled(.ordinary("viewer")), .appOpened(viewer))
    let read = edit(.copied(to: "viewer"), isWriting: false)
    let copying = edit(.imported, isWriting: false)
    bench.send(.document(.used(copying, by: viewer)))
    bench.wait(.seconds(1))
    #expect(bench.phone.documents.documents[third]?.container == viewer)
    #expect(bench.phone.documents.documents[third]?.body.bytes == 10)
    // The copy is nobody else's, is in no listing, and goes when its app ends; the original is as
    // far away as before.
    #expect(bench.phone.documents.listing(for: viewer).isEmpty)
    #expect(bench.phone[viewer]?.process.references == [])
    bench.send(.appCrashed(viewer), .audioSwitched(mail, isOn: true), .appOpened(mail))
    #expect(bench.phone.documents.documents[third] == nil)
    bench.send(.document(.used(read, by: mail)))
    bench.wait(.seconds(1))
    #expect(bench.phone.documents.documents[DocumentID(4)]?.container == AppID(2))
    bench.send(.document(.used(edit(.moved(to: "editor")), by: mail)))
    bench.wait(.seconds(1))
    #expect(bench.phone.documents.documents[first]?.container == news)
    // The one that it lay with may still use it.
    #expect(bench.phone.documents.folder(of: first, for: mail) == "")
    for name in ["nobody", "editor"] {
      bench.clear()
      bench.send(.document(.used(edit(.moved(to: name)), by: mail)))
      bench.wait(.seconds(1))
      #expect(bench.actions.contains(.ignored(name == "nobody" ? .unknownApp : .alreadySo)))
    }
  }

  @Test func aReaderWaitsForTheContent() {
    var bench = bench()
    let film = DocumentEvent.elsewhere(
      .announced(in: mail, name: "film", DocumentBody(bytes: 2_500_000), modifiedAt: Bench.start))
    bench.send(.document(film))
    let use = DocumentUse(
      wants: [want(DocumentID(3), isWriting: false)], edit: .copied(to: "editor"))
    bench.send(.document(.used(use, by: mail)))
    bench.wait(.milliseconds(500))
    #expect(bench.phone.documents.documents.count == 3)
    bench.wait(.seconds(2))
    #expect(bench.phone.documents.documents[DocumentID(4)]?.body.bytes == 2_500_000)
    // What is deleted meanwhile does not come.
    bench.send(.document(film), .document(.elsewhere(.deleted(DocumentID(5)))))
    bench.send(.document(film))
    let other = DocumentUse(wants: [want(DocumentID(6))])
    bench.send(.document(.used(other, by: mail)), .document(.elsewhere(.deleted(DocumentID(6)))))
    #expect(bench.phone.uses.isEmpty)
  }

  // MARK: Providers

  /// The provider's own transfers bring and take the content; other apps see nothing of it.
  @Test func aProviderBringsAndTakesContent() {
    var bench = Bench([
      .provider(), .ordinary("editor"),
    ])
    let plan = DocumentEvent.elsewhere(
      .announced(in: mail, name: "plan", DocumentBody(bytes: 0), modifiedAt: Bench.start))
    bench.send(
      .document(plan),
      .document(.elsewhere(.changed(first, DocumentBody(text: DocumentText(lines: ["one"]))))))
    bench.send(.document(.providerSwitched(mail, isOn: true)))
    bench.send(.unlocked, .appOpened(news), .document(.picked(first, by: news)))
    let listed = bench.phone.documents.documents[first]
    #expect(listed?.content != .local && listed?.body.bytes == 4)
    #expect(listed?.modifiedAt == bench.now)
    let write = DocumentUse(wants: [want(first)], edit: .line(2, "two"))
    bench.send(.document(.used(write, by: news)))
    bench.wait(.minutes(1))
    #expect(
      bench.callbackSteps(of: mail) == [
        .began(.document), .completed(.newData), .began(.transfers), .began(.document),
        .completed(.newData), .completed(.newData), .began(.transfers), .completed(.newData),
      ])
    let queued = bench.actions.compactMap { action -> TransferRequest? in
      if case .transfer(_, mail, .queued(let request, _)) = action { request } else { nil }
    }
    #expect(queued.map(\.direction) == [.download, .upload] && queued.map(\.bytes) == [4, 8])
    let document = bench.phone.documents.documents[first]
    #expect(document?.text?.lines == ["one", "two"] && document?.isUnsent == false)
    #expect(document?.isStale == false && document?.remoteRevision == document?.revision)
    #expect(bench.callbackSteps(of: news).isEmpty)
  }

  @Test func aProviderThatMayNotRunSaysSo() {
    var bench = Bench([
      .provider(), .ordinary("editor"),
    ])
    let plan = DocumentEvent.elsewhere(
      .announced(in: mail, name: "plan", DocumentBody(bytes: 9), modifiedAt: Bench.start))
    bench.send(.document(plan), .document(.providerSwitched(mail, isOn: true)))
    bench.send(.unlocked, .appOpened(mail), .appSwipedAway(mail))
    bench.send(.appOpened(news), .document(.picked(first, by: news)))
    bench.send(.document(.contentRequested(first, by: news)))
    #expect(bench.steps(of: mail).contains(.notRun(.document, .forceQuit)))
    #expect(bench.phone.documents.documents[first]?.content == .placeholder)
    // Nobody waits for what does not come.
    bench.send(.document(.used(edit(.undo), by: news)))
    #expect(bench.phone.uses.isEmpty && steps(bench).last == .givenUp(by: news))
  }

  /// Asked before every read, it brings what is newer; what an app has open it keeps current; and
  /// where it may not run a reader has what is here.
  @Test func aReaderSeesTheNewestOfAProvider() {
    var bench = Bench([.provider(), .ordinary("editor")])
    bench.send(.document(.providerSwitched(mail, isOn: true)), .unlocked, .appOpened(mail))
    bench.send(.document(.created(by: mail, name: "plan", bytes: 6000)))
    bench.send(.document(.uploaded(first, revision: 1)), .appOpened(news))
    bench.wait(.minutes(1))
    let nine = DocumentBody(bytes: 9000)
    bench.send(.document(.elsewhere(.changed(first, nine))), .document(.picked(first, by: news)))
    bench.clear()
    let read = DocumentUse(wants: [want(first, isWriting: false)])
    bench.send(.document(.used(read, by: news)))
    bench.wait(.seconds(10))
    let changed = steps(bench).firstIndex(of: .changed(revision: 2, bytes: 9000))
    let granted = steps(bench).firstIndex(of: .granted(.app(news), isWriting: false))
    #expect((changed ?? .max) < (granted ?? -1))
    // It is open now.
    bench.clear()
    bench.send(.document(.elsewhere(.changed(first, DocumentBody(bytes: 7)))))
    bench.wait(.seconds(10))
    #expect(steps(bench).contains(.changed(revision: 3, bytes: 7)))
    // Current as it is, the provider is asked all the same.
    bench.clear()
    bench.send(.document(.used(read, by: news)))
    bench.wait(.seconds(10))
    #expect(bench.callbackSteps(of: mail) == [.began(.document), .completed(.newData)])
    #expect(steps(bench).contains(.granted(.app(news), isWriting: false)))
    bench.send(.appOpened(mail), .appSwipedAway(mail), .appOpened(news))
    bench.clear()
    bench.send(.document(.used(read, by: news)))
    #expect(steps(bench) == [.granted(.app(news), isWriting: false)])
    #expect(bench.steps(of: mail) == [.notRun(.document, .forceQuit)])
  }

  @Test func aProviderThatFailsLeavesNobodyWaiting() {
    for handler in [HandlerCall.afterWork, .never] {
      var bench = Bench([
        .provider {
          $0.onDocument = CallbackScript()
          $0.onDocument?.outcome = .always(.failed)
          $0.onDocument?.handler = handler
        }, .ordinary("editor"),
      ])
      let plan = DocumentEvent.elsewhere(
        .announced(in: mail, name: "plan", DocumentBody(bytes: 9), modifiedAt: Bench.start))
      bench.send(.document(plan), .document(.providerSwitched(mail, isOn: true)))
      bench.send(.unlocked, .appOpened(news), .document(.picked(first, by: news)))
      bench.send(.document(.used(edit(.undo), by: news)))
      #expect(bench.phone.uses.count == 1)
      bench.wait(.minutes(1))
      #expect(bench.phone.uses.isEmpty && steps(bench).last == .givenUp(by: news))
    }
  }

  /// In a call the handler waits for the work with documents; what is given up has failed.
  @Test(arguments: [true, false]) func aCallEndsAfterItsUses(isThere: Bool) {
    var bench = Bench([
      .ordinary("files") {
        let want = DocumentUse.Want(DocumentID(isThere ? 1 : 9), isWriting: true)
        $0.onPush.uses = [DocumentUse(wants: [want], time: .seconds(4), edit: .line(1, "new"))]
      }
    ])
    bench.send(.unlocked, .appOpened(mail), .document(.created(by: mail, name: "plan", bytes: 1)))
    bench.send(.locked)
    bench.wait(.minutes(1))
    let start = bench.now
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    let end = bench.moment { if case .callback(_, _, .completed) = $0 { true } else { false } }
    #expect(bench.callbackSteps(of: mail).last == .completed(isThere ? .newData : .failed))
    #expect((end ?? start) - start == .milliseconds(isThere ? 6080 : 2080))
    #expect(bench.phone.documents.documents[first]?.text?.lines == (isThere ? ["new"] : nil))
  }
}
