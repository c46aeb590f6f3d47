import DeviceModel
import Primitives
import Testing

@testable import DeviceSimulator

struct LiveCommandTests {
  private func scenario(_ phones: Int = 1, apps: String) throws -> Scenario {
    let all = (1...phones).map { #"{"name":"phone\#($0)","apps":[\#(apps)]}"# }
    let text = scenarioText(phones: "[\(all.joined(separator: ","))]")
    return try Scenario(json: Array(text.utf8), file: "test.json")
  }

  private static let one = #"{"name":"chat"}"#
  private static let two = #"{"name":"chat"},{"name":"news"}"#

  /// Who does what in the ten seconds after a line, the others having been said before; and the
  /// simulation then.
  private func told(
    _ line: String, after others: [String] = [], apps: String
  ) throws -> (lines: [String], simulation: Simulation) {
    let scenario = try scenario(apps: apps)
    var player = ScenarioPlayer(scenario, seed: 1)
    var start = 0
    player.simulation.advance(by: .seconds(10))
    for line in others + [line] {
      start = player.simulation.entries.count
      player.perform(try LiveCommand(line, in: scenario).action)
      player.simulation.advance(by: .seconds(10))
    }
    let lines = player.simulation.trace()[start...].map { "\($0.who) \($0.what)" }
    return (lines, player.simulation)
  }

  private static let rich = """
    {"name":"chat","modes":["fetch","location"],"fetch":"minimum",
     "state":{"window":{"scroll":7},"window/list":{}},
     "onRegion":{"notification":{"text":"here"}}}
    """

  @Test(arguments: [
    ("open", "phone1/chat opened: no content yet"),
    ("open chat", "phone1/chat opened: no content yet"),
    ("  open   chat ", "phone1/chat opened: no content yet"),
    ("swipe away chat", "phone1/chat terminated: swiped away"),
    ("use 10s", "phone1/chat opened: no content yet"),
    ("refresh off", "phone1 changed: refresh off for all"),
    ("refresh chat off", "phone1/chat changed: refresh off"),
    ("lock", "phone1 locked"), ("network airplane", "phone1 changed: network airplane"),
    ("low power on", "phone1 changed: low power on"),
    ("charger on", "phone1 changed: charger on"), ("charger off", "phone1 ignored: alreadySo"),
    ("network wifi", "phone1 ignored: alreadySo"), ("low power off", "phone1 ignored: alreadySo"),
    ("open banner", "phone1 ignored: unknownBanner"),
    ("set fetch never", "phone1/chat fetch-planned: none, interval never"),
    ("phone1: reboot", "phone1 booted"), ("migrate", "phone1 ignored: alreadySo"),
    ("travel", "phone1/chat began: a place"), ("provider on", "phone1 ignored: notAllowed"),
    ("rename document 1 b", "phone1 document: document 1 renamed to b"),
  ])
  func understands(line: String, says: String) throws {
    let isRunning = !line.contains("open") && line != "travel"
    let others = isRunning ? ["open", "create document a 10"] : []
    let lines = try told(line, after: others, apps: Self.rich).lines
    #expect(lines.contains(says), "\(lines)")
    // What is so already has not changed.
    let hasChanged = lines.contains { $0.contains(" changed: ") }
    #expect(hasChanged == says.contains(" changed: "), "\(lines)")
  }

  @Test func theNewestBannerIsOpened() throws {
    let lines = try told("open banner", after: ["travel"], apps: Self.rich).lines
    #expect(lines.contains { $0.hasPrefix("phone1/chat content-shown") }, "\(lines)")
  }

  @Test func aUseHasItsLength() throws {
    for (line, wanted) in [("use 10s", 10_000), ("use", 60_000)] {
      let action = try LiveCommand(line, in: scenario(apps: Self.one)).action
      guard case .app(_, _, let length?) = action else {
        Issue.record("\(action)")
        continue
      }
      #expect(length == Int64(wanted))
    }
  }

  @Test func whatIsShownAndForgotten() throws {
    let (_, simulation) = try told(
      "forget chat window scroll", after: ["open", "show window/list"], apps: Self.rich)
    let phone = try #require(simulation.phone(named: "phone1"))
    let app = try #require(simulation.app(named: "chat", on: phone))
    #expect(simulation.memo(under: "scroll", at: ["window"], in: app) == nil)
    let graph = try #require(simulation.model(of: app)?.process.interface)
    #expect(graph.top.flatMap { graph.path(of: $0) } == ["window", "list"])
  }

  @Test(arguments: [
    ("frob", "there is no \"frob\"; 'help' lists what there is"), ("", "what is to be done?"),
    ("network", "network needs more: network wifi|cellular|none|airplane"),
    ("low power", "low power needs more: low power on|off"),
    ("remember window", "remember needs more: remember [APP] PATH KEY VALUE"),
    ("network moon", "to: \"moon\""),
    ("open chat now", "\"now\" is too much"),
    ("open nope", "phone1 has no app \"nope\", only chat"), ("lock x y", "\"x\" is too much"),
    ("bob: lock", "phone: \"bob\""), ("use forever", "for: "),
  ])
  func saysWhatIsWrong(line: String, problem: String) throws {
    let scenario = try scenario(apps: Self.one)
    let error = #expect(throws: LiveCommandError.self) { try LiveCommand(line, in: scenario) }
    #expect(error?.description.hasPrefix(problem) == true, "\(String(describing: error))")
  }

  /// An order says the same as the line, with all words in `do` or a member for each.
  @Test(arguments: [
    (#"{"do":"network airplane"}"#, "phone1 changed: network airplane"),
    (#"{"do":"network","to":"airplane"}"#, "phone1 changed: network airplane"),
    (#" { "app" : "chat" , "do" : "open" } "#, "phone1/chat opened: no content yet"),
    (#"{"do":"open"}"#, "phone1/chat opened: no content yet"),
    (#"{"do":"refresh","to":"off"}"#, "phone1 changed: refresh off for all"),
  ])
  func understandsOrders(order: String, says: String) throws {
    let scenario = try scenario(2, apps: Self.rich)
    var player = ScenarioPlayer(scenario, seed: 1)
    let start = player.simulation.entries.count
    player.order(try LiveCommand(order: Array(order.utf8), to: "phone1", in: scenario).action)
    player.simulation.advance(by: .seconds(10))
    let lines = player.simulation.trace()[start...].map { "\($0.who) \($0.what)" }
    #expect(lines.contains(says), "\(lines)")
  }

  @Test(arguments: [
    ("", "the file is empty"), ("[]", "this is not a JSON object"), ("{}", "say what to do"),
    (#"{"do":7}"#, "say what to do"), (#"{"do":"frob","app":"chat"}"#, "there is no \"frob\""),
    (#"{"do":"policy","to":"strict"}"#, "there is no \"policy\""),
    (#"{"do":"lock","at":"1h"}"#, "at: there is no such key"),
    (#"{"do":"lock","phone":"phone2"}"#, "phone: there is no such key"),
    (#"{"do":"open","app":"nope"}"#, "app: \"nope\""),
    (#"{"do":"network","to":"airplane","to":"wifi"}"#, "to: the key stands there twice"),
    (#"{"do":"phone2: lock"}"#, "there is no \"phone2:\""),
  ])
  func saysWhatIsWrongWithAnOrder(order: String, problem: String) throws {
    let scenario = try scenario(2, apps: Self.one)
    let error = #expect(throws: LiveCommandError.self) {
      try LiveCommand(order: Array(order.utf8), to: "phone1", in: scenario)
    }
    #expect(error?.description.hasPrefix(problem) == true, "\(String(describing: error))")
  }

  @Test func anOrderedUseEnds() throws {
    let scenario = try scenario(apps: Self.one)
    var player = ScenarioPlayer(scenario, seed: 1)
    player.play(until: 1000)
    for _ in 0..<2 { player.order(try LiveCommand("use 10s", in: scenario).action) }
    player.play(until: 10_999)
    #expect(player.simulation.phones[0].model.lock == .unlocked)
    player.play(until: 11_000)
    #expect(player.simulation.phones[0].model.lock == .locked)
  }

  @Test func documentsAreUsedUnderCoordination() throws {
    let start = ["open chat", "create document chat a 10", "create document chat b 20"]
    let text = ["edit line chat 1 1 one", "edit line chat 1 2 two"]
    let conflict = [
      "network none", "edit line chat 1 1 here", "change document 1 77", "network wifi",
    ]
    for (line, others, wanted) in [
      (
        "coordinate chat write:1,read:2 5s 900", [],
        [
          "document 1 write granted to chat", "document 2 read granted to chat",
          "document 1 changed, revision 2, 900 bytes",
        ]
      ),
      ("edit line chat 1 3 milk", text, [#"document 1 edited by chat: +3 "milk""#]),
      ("edit line chat 1 2", text, [#"document 1 edited by chat: -2 "two""#]),
      ("undo edit chat 1", text, [#"document 1 edited by chat: -2 "two""#]),
      ("choose version chat 1 2", conflict, ["document 1 revision 2 chosen"]),
      ("choose version chat 1 all", conflict, ["document 1 all versions chosen"]),
      (
        "export document chat 1 news", [],
        ["document 1 read granted to chat", "document 1 copied to news as document 3"]
      ),
      (
        "move document chat 1 news", [],
        ["document 1 write granted to chat", "document 1 moved to news"]
      ),
    ] as [(String, [String], [String])] {
      let lines = try told(line, after: start + others, apps: Self.two).lines
      for words in wanted { #expect(lines.contains("phone1 document: \(words)"), "\(lines)") }
    }
    for line in [
      "coordinate chat 1", "coordinate chat write:0", "coordinate chat look:1",
      "choose version chat 1 best",
    ] {
      #expect(throws: LiveCommandError.self, "\(line)") { try told(line, apps: Self.two) }
    }
  }

  /// It lets go of them when it has worked so long.
  @Test func aUseOfDocumentsTakesItsTime() throws {
    let (_, simulation) = try told(
      "coordinate write:1 5s 900", after: ["open", "create document a 10"], apps: Self.one)
    func time(_ words: String) -> Duration? {
      simulation.trace().last { $0.why.contains(words) }?.time
    }
    let granted = try #require(time("write granted to chat"))
    #expect(time("changed, revision 2") == granted + .seconds(5))
  }

  @Test func ofSeveralOneIsNamed() throws {
    let phones = try scenario(2, apps: Self.one)
    #expect(throws: LiveCommandError.self) { try LiveCommand("lock", in: phones) }
    #expect(place(try LiveCommand("phone2: open", in: phones).action) == 1)
    let apps = try scenario(apps: Self.two)
    #expect(throws: LiveCommandError.self) { try LiveCommand("open", in: apps) }
    #expect(throws: LiveCommandError.self) { try LiveCommand("open mail", in: apps) }
    #expect(place(try LiveCommand("open news", in: apps).action) == 0)
  }

  @Test func theHelpSaysWhatEachVerbNeeds() {
    let lines = LiveCommandHelp.lines
    for line in ["open [APP]", "network wifi|cellular|none|airplane", "low power on|off", "quit"] {
      #expect(lines.contains(line))
    }
    for verb in LiveCommand.verbs { #expect(lines.contains { $0.hasPrefix(verb.name) }) }
  }

  /// What a line cannot say is the relay's.
  @Test func almostEveryVerbCanBeSaid() {
    let silent = Verb.all.filter { !$0.isCommand }.map(\.name)
    #expect(silent == ["policy", "slow journal", "fail journal", "crash relay"])
    #expect(Set(Verb.all.map(\.name)).count == Verb.all.count)
  }

  @Test func aTransferIsALine() throws {
    let line = "queue transfer film,5000000,http://127.0.0.1:1/film"
    let one = try scenario(apps: Self.one)
    var player = ScenarioPlayer(one, seed: 1)
    for line in ["open", line] { player.perform(try LiveCommand(line, in: one).action) }
    #expect(
      player.simulation.phones[0].model.service.transfers.map(\.request) == [
        TransferRequest(name: "film", bytes: 5_000_000, url: "http://127.0.0.1:1/film")
      ])
    for wrong in ["queue transfer film", "queue transfer film,x", "queue transfer ,5"] {
      #expect(throws: LiveCommandError.self, "\(wrong)") {
        try LiveCommand(wrong, in: scenario(apps: Self.one))
      }
    }
  }

  private func place(_ action: Scenario.Action) -> Int? {
    if case .app(let place, _, _) = action { place.phone } else { nil }
  }
}
