import DeviceModel
import Primitives
import Testing

@testable import DeviceSimulator

/// Object graphs, restoration and uses of documents from JSON.
struct StateReadingTests {
  private func app(_ keys: String) throws -> AppDefinition {
    let text = scenarioText(phones: #"[{"name":"a","apps":[{"name":"m",\#(keys)}]}]"#)
    return try Scenario(json: Array(text.utf8), file: "test.json").phones[0].apps[0]
  }

  @Test func aGraph() throws {
    let graph = try app(
      """
      "state": {"window": {"box": {"reference": "box"}, "row": 3}},
      "objects": [
        {"path": "window/list", "class": "List", "madeBy": "Maker",
         "remembers": {"box": {"reference": "box"}}},
        {"path": "box", "class": "Mailbox", "registered": true}]
      """
    ).script.interface
    #expect(
      graph.objects.map { graph.path(of: $0.id)?.description } == ["window", "window/list", "box"])
    let box = try #require(graph.find(["box"]))
    #expect(graph[box]?.isRegistered == true && graph[box]?.className == "Mailbox")
    // Both refer to the one.
    for path in [["window"], ["window", "list"]] as [StatePath] {
      let object = graph.find(path).flatMap { graph[$0] }
      #expect(object?.entries.first { $0.key == "box" }?.value == .reference(box))
    }
    #expect(graph.find(["window", "list"]).flatMap { graph[$0] }?.restorationClass == "Maker")
  }

  @Test func restoration() throws {
    let script = try app(
      """
      "restoration": {"otherVersions": "declined",
       "applies": [{"path": "a/b", "key": "k", "through": "t", "theirs": "v"}],
       "transforms": [{"from": "1", "to": "2", "changes": [
         {"rename": "a/b", "to": "c"}, {"rename": "a", "key": "k", "to": "l"},
         {"set": "a", "key": "k", "value": true}, {"drop": "d"}]}]}
      """
    ).script.restoration
    #expect(script.declinesOtherVersions == true)
    #expect(
      script.applies == [
        StateApplication(path: ["a", "b"], key: "k", through: "t", theirs: "v")
      ])
    #expect(
      script.transforms == [
        ArchiveTransform(
          from: "1", to: "2",
          changes: [
            .rename(["a", "b"], to: "c"), .renameKey(["a"], key: "k", to: "l"),
            .set(["a"], key: "k", .flag(true)), .drop(["d"]),
          ])
      ])
  }

  @Test func whatACallBringsAndUses() throws {
    let work = try app(
      """
      "onPush": {"brings": ["a"], "remembers": {"w": {"k": {"reference": "o"}}}, "uses": [
        {"documents": "write:1,read:2", "for": "3s", "bytes": 9},
        {"documents": "write:1", "line": 2, "text": "x"}]}
      """
    ).script.onPush
    #expect(work.brings == ["a"] && work.changes == [.link(["w"], key: "k", to: ["o"])])
    let wants = [
      DocumentUse.Want(DocumentID(1), isWriting: true),
      DocumentUse.Want(DocumentID(2), isWriting: false),
    ]
    #expect(
      work.uses == [
        DocumentUse(wants: wants, time: .seconds(3), edit: .size(9)),
        DocumentUse(wants: [wants[0]], time: .seconds(1), edit: .line(2, "x")),
      ])
  }

  @Test(arguments: [
    (#""objects":[{"path":"a/b"}]"#, "a/b is there already, or what it is to lie below is not"),
    (#""state":{"a":{}},"objects":[{"path":"a"}]"#, "a is there already"),
    (#""objects":[{"path":""}]"#, "a path such as window/inbox is wanted"),
    (#""objects":[{"class":"a"}]"#, "path is missing"),
    (#""state":{"a":{"k":{"reference":"b"}}}"#, "there is no object b"),
    (#""state":{"a":{"k":{"copy":"b"}}}"#, "there is no such key; there are reference"),
    (#""restoration":{"transforms":[{"from":"1"}]}"#, "to is missing"),
    (#""restoration":{"transforms":[{"from":"1","to":"2","changes":[{}]}]}"#, "one of rename"),
    (
      #""restoration":{"transforms":[{"from":"1","to":"2","changes":[{"drop":"a","to":"b"}]}]}"#,
      "drop does not have it"
    ),
    (#""restoration":{"otherVersions":"no"}"#, #""no" is none of declined, taken"#),
    (#""restoration":{"applies":[{"path":"a"}]}"#, "key is missing"),
    (#""onPush":{"uses":[{"documents":"write"}]}"#, "a text such as read:1,write:2 is wanted"),
    (#""onPush":{"uses":[{"documents":""}]}"#, "one to 16 documents are wanted"),
    (#""onPush":{"uses":[{"documents":"read:1","after":"1s"}]}"#, "there is no such key"),
    (#""onPush":{"brings":"a"}"#, "a list is wanted"),
  ])
  func saysWhatIsWrong(keys: String, problem: String) throws {
    let error = #expect(throws: ScenarioError.self) { try app(keys) }
    #expect(error?.text.hasPrefix(problem) == true, "\(error?.text ?? "")")
  }
}
