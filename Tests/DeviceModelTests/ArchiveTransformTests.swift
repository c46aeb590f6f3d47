import Primitives
import Testing

@testable import DeviceModel

/// Archives of older versions, and what objects apply when restoring has finished (WWDC 2013
/// session 222).
@Suite struct ArchiveTransformTests {
  private func saved() -> StateArchive {
    var graph = sampleInterface()
    graph.apply(
      .add(
        className: "Detail", identifier: "detail", parent: ["window"], restorationClass: "Maker",
        isRegistered: false))
    graph.apply(.link(["window", "detail"], key: "model", to: ["model"]))
    graph.apply(.set(["model"], key: "title", .text("Inbox")))
    graph.apply(.show(["window", "detail"]))
    return archive(graph)
  }

  private func words(_ archive: StateArchive) -> [String] {
    zip(archive.graph.objects, archive.paths).map { object, path in
      let keys = object.entries.map { entry in
        if case .reference(let id) = entry.value {
          "\(entry.key)>\(archive.graph.path(of: id)?.description ?? "nothing")"
        } else {
          entry.key
        }
      }
      return "\(path) \(keys.joined(separator: " "))"
    }
  }

  @Test func theSameArchiveAsTheLaterVersionWouldHaveSaved() {
    let transform = ArchiveTransform(
      from: "1.0", to: "2.0",
      changes: [
        .rename(["window"], to: "main"), .renameKey(["main", "list"], key: "row", to: "line"),
        .set(["model"], key: "kind", .text("mail")), .set(["gone"], key: "a", .flag(true)),
        .rename(["main", "list"], to: "detail"), .rename(["nowhere"], to: "x"),
      ])
    let later = saved().transformed(by: transform)
    #expect(later.appVersion == "2.0" && later.savedAt == Bench.start)
    #expect(
      words(later) == [
        "main ", "main/list line model>model", "model kind title", "main/detail model>model",
      ])
    #expect(later.graph.top == saved().graph.top)
  }

  @Test func whatIsDroppedTakesWhatIsBelowAndWhatRefersToItAlong() {
    for (path, left) in [
      (["model"] as StatePath, ["window ", "window/list row", "window/detail "]),
      (["window"], ["model title"]), (["window", "detail"], nil),
    ] as [(StatePath, [String]?)] {
      let transform = ArchiveTransform(from: "1.0", to: "2.0", changes: [.drop(path)])
      let later = saved().transformed(by: transform)
      let expected = left ?? ["window ", "window/list model>model row", "model title"]
      #expect(words(later) == expected, "\(path)")
      #expect((later.graph.top == nil) == (path != ["model"]), "\(path)")
      #expect((try? StateArchive(decoding: later.encoded())) == later)
    }
  }

  /// Whatever is done to it, an archive stays one: its bytes are read again, parents stand before
  /// their children.
  @Test func randomTransforms() throws {
    for seed in UInt64(1)...200 {
      var random = SeededRandom(seed: seed)
      var archive = archive(randomInterface(&random))
      for _ in 0..<5 {
        let paths = archive.paths + [["nowhere"]]
        let path = paths[Int(random.below(Int64(paths.count)))]
        let change: ArchiveChange =
          switch random.below(4) {
          case 0: .rename(path, to: "id\(random.below(6))")
          case 1: .renameKey(path, key: "key\(random.below(5))", to: "key\(random.below(5))")
          case 2: .set(path, key: "key\(random.below(5))", .number(1))
          default: .drop(path)
          }
        archive = archive.transformed(
          by: ArchiveTransform(from: "1.0", to: "1.0", changes: [change]))
        #expect(
          try archive.isSound && StateArchive(decoding: archive.encoded()) == archive,
          "seed \(seed)")
        #expect(Set(archive.paths).count == archive.graph.objects.count, "seed \(seed)")
      }
    }
  }

  // MARK: The finish pass

  private let applies = [
    StateApplication(path: ["window", "detail"], key: "heading", through: "model", theirs: "title")
  ]

  @Test func whenAllHaveDecodedAnObjectAppliesWhatAnotherDecoded() {
    let restoration = StateRestoration(saved(), base: sampleInterface(), applies: applies) {
      $1.className
    }
    let detail = restoration.graph.find(["window", "detail"]).flatMap { restoration.graph[$0] }
    #expect(detail?["heading"] == .text("Inbox"))
    let decoded = restoration.steps.lastIndex { if case .decoded = $0 { true } else { false } }
    let applied = restoration.steps.firstIndex(of: .applied(["window", "detail"], key: "heading"))
    #expect((decoded ?? .max) < (applied ?? -1))
    // What is not there again is not applied.
    let without = StateRestoration(saved(), base: StateGraph(), applies: applies) { $1.className }
    #expect(!without.steps.contains(.applied(["window", "detail"], key: "heading")))
  }

  /// Nobody depends on the order: whoever of the objects comes first in the archive, the same is
  /// there in the end, also where one applies what another one has that applies something itself.
  @Test func theOrderInTheArchiveDoesNotMatter() {
    for seed in UInt64(1)...200 {
      var random = SeededRandom(seed: seed)
      let archive = archive(randomInterface(&random))
      let keys = (0..<5).map { "key\($0)" } + ["model", "row"]
      func key() -> String { keys[Int(random.below(Int64(keys.count)))] }
      let applies = archive.paths.map { path in
        StateApplication(path: path, key: key(), through: key(), theirs: key())
      }
      let states = [archive, shuffled(archive, &random)].map { archive in
        let graph = StateRestoration(archive, base: sampleInterface(), applies: applies) {
          $1.className
        }.graph
        let restored = DeviceModelTests.archive(graph)
        return Dictionary(
          uniqueKeysWithValues: zip(restored.paths, restored.graph.objects).map { path, object in
            (path, words(object, restored.graph))
          })
      }
      #expect(states[0] == states[1], "seed \(seed)")
    }
  }

  private func words(_ object: StateObject, _ graph: StateGraph) -> [String] {
    func text(_ value: StateValue) -> String {
      switch value {
      case .reference(let id): "-> \(graph.path(of: id)?.description ?? "nothing")"
      case .list(let values): "\(values.map(text))"
      case .number, .text, .flag, .data, .bookmark: "\(value)"
      }
    }
    return object.entries.map { "\($0.key): \(text($0.value))" }
  }

  /// The same objects in another order, parents before their children.
  private func shuffled(_ archive: StateArchive, _ random: inout SeededRandom) -> StateArchive {
    var left = archive.graph.objects
    var graph = StateGraph()
    var ids: [StateObjectID: StateObjectID] = [:]
    while !left.isEmpty {
      let free = left.indices.filter { left[$0].parent.map { ids[$0] != nil } ?? true }
      let object = left.remove(at: free[Int(random.below(Int64(free.count)))])
      ids[object.id] = graph.add(
        object.className, identifier: object.identifier, parent: object.parent.flatMap { ids[$0] },
        restorationClass: object.restorationClass, isRegistered: object.isRegistered)
    }
    for object in archive.graph.objects {
      guard let id = ids[object.id] else { continue }
      for entry in object.entries {
        graph.set(id, entry.key, entry.value.mapReferences { ids[$0] })
      }
    }
    graph.top = archive.graph.top.flatMap { ids[$0] }
    return DeviceModelTests.archive(graph)
  }

  // MARK: Versions

  private func left(_ change: (inout AppScript) -> Void) -> Bench {
    var bench = Bench([
      .ordinary("app") {
        $0.interface = sampleInterface()
        change(&$0)
      }
    ])
    bench.send(
      .unlocked, .appOpened(mail),
      .stateChanged(mail, [.set(["window", "list"], key: "row", .number(12))]), .appLeft)
    bench.wait(.seconds(10))
    return bench
  }

  private func update(_ bench: inout Bench, to version: String) {
    guard var definition = bench.phone[mail]?.definition else { return }
    definition.version = version
    bench.clear()
    bench.send(.appInstalled(definition), .appOpened(mail))
  }

  private func row(_ bench: Bench, _ key: String) -> StateValue? {
    let graph = bench.phone[mail]?.process.interface
    return graph?.find(["window", "list"]).flatMap { graph?[$0] }?[key]
  }

  @Test func anotherVersionsArchiveIsTakenDeclinedOrTransformed() {
    func transform(_ from: String, _ to: String, _ key: String, _ new: String) -> ArchiveTransform {
      ArchiveTransform(
        from: from, to: to, changes: [.renameKey(["window", "list"], key: key, to: new)])
    }
    let path = [transform("1.0", "2.0", "row", "line"), transform("2.0", "3.0", "line", "place")]
    for (transforms, declines, key, isDeclined) in [
      ([], false, "row", false), ([], true, "row", true), (path, true, "place", false),
      ([path[0]], false, "line", false), ([path[0]], true, "line", true),
      // A circle is gone around once.
      ([path[0], transform("2.0", "1.0", "line", "row")], false, "row", false),
    ] {
      var bench = left {
        $0.restoration.transforms = transforms
        $0.restoration.declinesOtherVersions = declines
      }
      update(&bench, to: "3.0")
      #expect(row(bench, key) == (isDeclined ? (key == "row" ? .number(0) : nil) : .number(12)))
      #expect(bench.steps(of: mail).contains(.startedFresh(.otherVersion)) == isDeclined)
      let told = bench.archiveSteps(of: mail).count {
        if case .transformed = $0 { true } else { false }
      }
      #expect(told == transforms.count)
      // Left again, the state is the new version's.
      bench.send(.appLeft)
      #expect((try? bench.phone.vault.read(mail, .unlocked))?.appVersion == "3.0")
    }
  }

  @Test func theStateOfTheSameVersionIsTakenAsItIs() {
    var bench = left {
      $0.restoration.transforms = [
        ArchiveTransform(from: "1.0", to: "2.0", changes: [.drop(["window"])])
      ]
    }
    bench.send(.memoryRanOut, .appOpened(mail))
    #expect(row(bench, "row") == .number(12))
  }

  @Test func developerModeTellsEachStepOfSavingToo() {
    var bench = left { _ in }
    #expect(!bench.archiveSteps(of: mail).contains(.encoded(["window"])))
    bench.send(.developerModeSwitched(isOn: true), .appOpened(mail), .appLeft)
    let steps = bench.archiveSteps(of: mail).suffix(4)
    #expect(
      steps.prefix(3) == [.encoded(["window"]), .encoded(["window", "list"]), .encoded(["model"])])
    guard case .saved? = steps.last else {
      Issue.record("\(steps)")
      return
    }
  }

  /// What an app stores of a document outside its container is a bookmark, and with its state comes
  /// its access.
  @Test func aBookmarkIsResolvedWithTheArchive() {
    let first = DocumentID(1)
    var bench = Bench([
      .ordinary("files"), .ordinary("editor") { $0.interface = sampleInterface() },
    ])
    bench.send(.unlocked, .appOpened(mail))
    bench.send(.document(.created(by: mail, name: "plan", bytes: 10)), .appOpened(news))
    bench.send(.document(.bookmarkKept(first, by: news, at: ["model"], key: "document")))
    #expect(bench.actions.last == .ignored(.notAllowed))
    bench.send(.document(.picked(first, by: news)))
    bench.send(.document(.bookmarkKept(first, by: news, at: ["model"], key: "document")))
    bench.send(.locked, .rebooted, .unlocked, .appOpened(news))
    #expect(bench.phone[news]?.process.references == [first])
    guard let saved = try? bench.phone.vault.read(news, .unlocked) else {
      Issue.record("nothing was saved")
      return
    }
    #expect((try? StateArchive(decoding: saved.encoded())) == saved)
    #expect("\(saved)".contains("document = a bookmark"))
    // Of a document that is gone it leads nowhere, and the rest is there all the same.
    bench.send(.document(.elsewhere(.deleted(first))), .locked, .rebooted, .unlocked)
    bench.clear()
    bench.send(.appOpened(news))
    #expect(bench.actions.contains(.ignored(.staleBookmark)))
    #expect(bench.phone[news]?.process.references == [] && bench.state(news) == .foreground)
  }
}
