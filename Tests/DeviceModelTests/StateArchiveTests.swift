import Primitives
import Testing

@testable import DeviceModel

/// The base objects of an app: a window with a list, and a registered model that two views share.
func sampleInterface() -> StateGraph {
  var graph = StateGraph()
  let window = graph.add("Window", identifier: "window")
  let list = graph.add("List", identifier: "list", parent: window)
  graph.add("Toolbar", identifier: nil, parent: window)
  let model = graph.add("Model", identifier: "model", isRegistered: true)
  graph.set(list, "model", .reference(model))
  graph.set(list, "row", .number(0))
  return graph
}

/// A graph of random dynamic objects with values and references.
func randomInterface(_ random: inout SeededRandom) -> StateGraph {
  var graph = sampleInterface()
  for _ in 0..<random.below(12) {
    let ids = graph.objects.map(\.id)
    let parent = ids[Int(random.below(Int64(ids.count)))]
    let id = graph.add(
      "Class\(random.below(4))",
      identifier: random.below(8) == 0 ? nil : "id\(random.below(6))", parent: parent,
      restorationClass: "Maker\(random.below(3))", origin: .dynamic,
      isRegistered: random.below(4) == 0)
    for _ in 0..<random.below(4) {
      graph.set(id, "key\(random.below(5))", randomValue(ids, &random))
    }
  }
  if random.below(2) == 0 { graph.top = graph.objects.last?.id }
  return graph
}

private func randomValue(_ ids: [StateObjectID], _ random: inout SeededRandom) -> StateValue {
  switch random.below(6) {
  case 0: .number(Int64(bitPattern: random.next()))
  case 1: .text("text \(random.below(100)) ✓")
  case 2: .flag(random.below(2) == 0)
  case 3: .data((0..<random.below(20)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
  case 4: .reference(ids[Int(random.below(Int64(ids.count)))])
  default: .list([.number(1), .reference(ids[0]), .list([.text("deep")])])
  }
}

func archive(_ graph: StateGraph) -> StateArchive {
  StateArchive(of: graph, appVersion: "1.0", systemVersion: "7.0", at: Bench.start)
}

/// WWDC 2013 session 222.
@Suite struct StateArchiveTests {
  @Test func onlyObjectsWithAnIdentifierTakePart() {
    let archived = archive(sampleInterface())
    #expect(archived.paths == [["window"], ["window", "list"], ["model"]])
  }

  @Test func belowAnObjectWithoutOneOnlyRegisteredOnesDo() {
    var graph = StateGraph()
    let nobody = graph.add("View", identifier: nil)
    graph.add("View", identifier: "child", parent: nobody)
    graph.add("Model", identifier: "kept", parent: nobody, isRegistered: true)
    #expect(archive(graph).paths == [["kept"]])
  }

  @Test func identifiersAreScopedByTheirParents() {
    var graph = StateGraph()
    for root in ["left", "right"] {
      let id = graph.add("View", identifier: root)
      graph.add("View", identifier: "list", parent: id)
    }
    graph.add("View", identifier: "left")
    #expect(
      archive(graph).paths.map(\.description) == [
        "left", "left/list", "right", "right/list",
      ])
    #expect(graph.find(["right", "list"]) != nil)
    #expect(graph.find(["list"]) == nil)
  }

  @Test func twoOwnersShareOneObjectAgain() {
    var graph = sampleInterface()
    guard let window = graph.find(["window"]), let model = graph.find(["model"]) else {
      Issue.record("no base objects")
      return
    }
    let detail = graph.add(
      "Detail", identifier: "detail", parent: window, restorationClass: "DetailMaker",
      origin: .dynamic)
    graph.set(detail, "model", .reference(model))
    graph.set(model, "selected", .number(7))
    let restored = StateRestoration(archive(graph), base: sampleInterface()) { $1.className }.graph
    let owners = [["window", "list"], ["window", "detail"]] as [StatePath]
    let targets = owners.compactMap { restored.find($0).flatMap { restored[$0] } }
      .flatMap(\.entries).filter { $0.key == "model" }.map(\.value)
    #expect(targets.count == 2 && Set(targets).count == 1)
    #expect(restored.objects.count { $0.className == "Model" } == 1)
    #expect(archive(restored).hasSameState(as: archive(graph)))
  }

  @Test func theOrderOfRestoring() {
    var graph = sampleInterface()
    graph.apply(
      .add(
        className: "Detail", identifier: "detail", parent: ["window"],
        restorationClass: "DetailMaker", isRegistered: false))
    graph.apply(.link(["window", "detail"], key: "model", to: ["model"]))
    graph.apply(.set(["window", "detail"], key: "offset", .number(40)))
    let steps = StateRestoration(archive(graph), base: sampleInterface()) { $1.className }.steps
    let all: [StatePath] = [["window"], ["window", "list"], ["model"], ["window", "detail"]]
    #expect(
      steps
        == [.found(all[0]), .found(all[1]), .found(all[2])]
        + [.recreated(all[3], by: "DetailMaker")]
        + [.wired(all[1], key: "model"), .wired(all[3], key: "model")]
        + all.map { .decoded($0) } + all.map { .finished($0) })
  }

  @Test func whatCannotBeMadeIsSkippedWithWhatIsBelowIt() {
    var graph = sampleInterface()
    let add = { (name: String, parent: StatePath, maker: String) in
      StateChange.add(
        className: name, identifier: name, parent: parent, restorationClass: maker,
        isRegistered: false)
    }
    graph.apply(add("gone", ["window"], "Maker"))
    graph.apply(add("below", ["window", "gone"], "Maker"))
    graph.apply(add("stays", ["window"], "Maker"))
    graph.apply(.link(["window", "list"], key: "selected", to: ["window", "gone"]))
    graph.apply(.show(["window", "gone"]))
    let restoration = StateRestoration(archive(graph), base: sampleInterface()) {
      $1.identifier == "gone" ? nil : $1.className
    }
    #expect(restoration.steps.contains(.skipped(["window", "gone"], .answeredNothing("Maker"))))
    #expect(restoration.steps.contains(.skipped(["window", "gone", "below"], .parentSkipped)))
    #expect(restoration.steps.contains(.recreated(["window", "stays"], by: "Maker")))
    #expect(restoration.steps.contains(.unwired(["window", "list"], key: "selected")))
    // One back from what was on top.
    #expect(!restoration.hasTop)
    #expect(restoration.graph.top == restoration.graph.find(["window"]))
    #expect(restoration.graph.find(["window", "gone"]) == nil)
    // An object of an older version, without anybody to make it.
    let bare = StateRestoration(archive(sampleInterface()), base: StateGraph()) { $1.className }
    #expect(bare.steps.first == .skipped(["window"], .noRestorationClass))
  }

  @Test func aClassGoesBeforeTheBaseObject() {
    var base = StateGraph()
    base.add("List", identifier: "list", restorationClass: "Maker")
    var graph = base
    func add(_ name: String, _ maker: String?) {
      graph.apply(
        .add(
          className: "View", identifier: name, parent: [], restorationClass: maker,
          isRegistered: false))
    }
    add("forgotten", nil)
    add("scene", "storyboard")
    add("note", nil)
    graph.apply(.set(["list"], key: "row", .number(4)))
    for answer in ["Wide", nil] {
      let restoration = StateRestoration(archive(graph), base: base, delegate: [["note"]]) {
        $0 == "Maker" ? answer : $1.className
      }
      let list = restoration.graph.find(["list"]).flatMap { restoration.graph[$0] }
      #expect(list?.className == answer ?? "List")
      // What answered nothing is as it is at a first launch.
      #expect(list?["row"] == (answer == nil ? nil : StateValue.number(4)))
      #expect(restoration.restoredCount == (answer == nil ? 2 : 3))
      #expect(restoration.steps.contains(.skipped(["forgotten"], .noRestorationClass)))
      #expect(restoration.steps.contains(.recreated(["note"], by: "the app delegate")))
      #expect(restoration.graph.find(["scene"]) != nil)
    }
  }

  @Test func removingTakesWhatIsBelowAndReferencesAlong() {
    var graph = sampleInterface()
    graph.apply(
      .add(
        className: "A", identifier: "a", parent: ["window"], restorationClass: "M",
        isRegistered: false))
    graph.apply(
      .add(
        className: "B", identifier: "b", parent: ["window", "a"], restorationClass: "M",
        isRegistered: false))
    graph.apply(.link(["model"], key: "current", to: ["window", "a", "b"]))
    graph.apply(.show(["window", "a", "b"]))
    graph.apply(.remove(["window", "a"]))
    #expect(graph.find(["window", "a", "b"]) == nil)
    #expect(graph.top == nil)
    #expect(graph.find(["model"]).flatMap { graph[$0] }?.entries.isEmpty == true)
    // Base objects stay.
    graph.apply(.remove(["window"]))
    #expect(graph.find(["window"]) != nil)
  }

  @Test func changesThatDoNotApplyChangeNothing() {
    let graph = sampleInterface()
    let changes: [StateChange] = [
      .set(["nobody"], key: "a", .number(1)), .unset(["nobody"], key: "a"),
      .set(["window"], key: "a", .reference(StateObjectID(number: 1))),
      .link(["window"], key: "a", to: ["nobody"]), .remove(["nobody"]), .show(["nobody"]),
      .add(
        className: "A", identifier: "list", parent: ["window"], restorationClass: "M",
        isRegistered: false),
      .add(
        className: "A", identifier: "a", parent: ["nobody"], restorationClass: "M",
        isRegistered: false),
    ]
    for change in changes {
      var changed = graph
      changed.apply(change)
      #expect(changed == graph, "\(change)")
    }
  }

  @Test func restoredIsWhatWasSaved() {
    for seed in UInt64(1)...300 {
      var random = SeededRandom(seed: seed)
      let saved = archive(randomInterface(&random))
      let restored = StateRestoration(saved, base: sampleInterface()) { $1.className }
      #expect(archive(restored.graph).hasSameState(as: saved), "seed \(seed)")
    }
  }

  @Test func anArchiveAsText() {
    var graph = sampleInterface()
    graph.apply(
      .add(
        className: "Detail", identifier: "detail", parent: ["window"],
        restorationClass: "DetailMaker", isRegistered: false))
    graph.apply(.set(["window", "detail"], key: "data", .data([1, 2, 3])))
    graph.apply(.set(["window", "detail"], key: "list", .list([.text("a"), .flag(true)])))
    graph.apply(.show(["window", "detail"]))
    #expect(
      archive(graph).description == """
        restoration classes:
          DetailMaker: window/detail
        app version: 1.0
        system version: 7.0
        timestamp: 2026-11-21T00:00:00.000Z
        window: Window
        window/list: List
          model = -> model
          row = 0
        model: Model (registered)
        window/detail: Detail (on top)
          data = 3 bytes
          list = ["a", yes]
        """)
  }
}

extension StateArchive {
  /// Whether both hold the same objects in the same state, whenever and wherever saved.
  func hasSameState(as other: StateArchive) -> Bool {
    graph == other.graph
  }
}
