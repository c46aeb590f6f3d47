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

  @Test(arguments: [
    ("open", "app(0, open)"), ("open chat", "app(0, open)"), ("  open   chat ", "app(0, open)"),
    ("open banner", "app(0, openBanner)"), ("swipe away chat", "app(0, swipeAway)"),
    ("use 10s", "app(0, use(10000))"), ("use", "app(0, use(60000))"),
    ("refresh off", "phone(refresh(false))"), ("refresh chat off", "app(0, refresh(false))"),
    ("lock", "phone(lock)"), ("network airplane", "phone(network(airplane))"),
    ("low power on", "phone(lowPower(true))"), ("charger off", "phone(charger(false))"),
    ("set fetch never", "app(0, setFetch(never))"), ("phone1: reboot", "phone(reboot)"),
    ("show window", "app(0, change(show(window)))"),
    ("forget chat window scroll", "app(0, change(unset(window, key: \"scroll\")))"),
    ("migrate", "phone(migrate)"), ("travel", "phone(travel)"),
    ("provider on", "app(0, switchProvider(true))"),
    ("rename document 1 b", "app(0, document(DocumentID(number: 1), rename(\"b\")))"),
  ])
  func understands(line: String, says: String) throws {
    let action = try LiveCommand(line, in: scenario(apps: Self.one)).action
    #expect(words(action) == says)
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

  @Test func documentsAreUsedUnderCoordination() throws {
    func use(_ line: String) throws -> DocumentUse? {
      let action = try LiveCommand(line, in: scenario(apps: Self.one)).action
      guard case .app(_, .coordinate(let use)) = action else { return nil }
      return use
    }
    func want(_ number: UInt64, _ isWriting: Bool) -> DocumentUse.Want {
      DocumentUse.Want(DocumentID(number), isWriting: isWriting)
    }
    #expect(
      try use("coordinate write:1,read:2 5s 900")
        == DocumentUse(
          wants: [want(1, true), want(2, false)], time: .seconds(5), edit: .size(900)))
    for (line, isWriting, edit) in [
      ("edit line 1 3 milk", true, DocumentEdit.line(3, "milk")),
      ("edit line 1 3", true, .line(3, nil)), ("undo edit 1", true, .undo),
      ("choose version 1 2", true, .choose(.revision(2))),
      ("choose version 1 all", true, .choose(.all)),
      ("export document 1 news", false, .copied(to: "news")),
      ("move document 1 news", true, .moved(to: "news")),
    ] {
      #expect(
        try use(line)
          == DocumentUse(wants: [want(1, isWriting)], time: .milliseconds(200), edit: edit),
        "\(line)")
    }
    for line in [
      "coordinate 1", "coordinate write:0", "coordinate look:1", "choose version 1 best",
    ] {
      #expect(throws: LiveCommandError.self, "\(line)") { try use(line) }
    }
  }

  @Test func ofSeveralOneIsNamed() throws {
    let phones = try scenario(2, apps: Self.one)
    #expect(throws: LiveCommandError.self) { try LiveCommand("lock", in: phones) }
    #expect(words(try LiveCommand("phone2: open", in: phones).action) == "app(1, open)")
    let apps = try scenario(apps: Self.two)
    #expect(throws: LiveCommandError.self) { try LiveCommand("open", in: apps) }
    #expect(throws: LiveCommandError.self) { try LiveCommand("open mail", in: apps) }
    #expect(words(try LiveCommand("open news", in: apps).action) == "app(0, open)")
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
    let action = try LiveCommand(line, in: scenario(apps: Self.one)).action
    guard case .app(_, .queue(let transfer)) = action else {
      Issue.record("\(action)")
      return
    }
    #expect(
      transfer
        == TransferRequest(name: "film", bytes: 5_000_000, url: "http://127.0.0.1:1/film"))
    for wrong in ["queue transfer film", "queue transfer film,x", "queue transfer ,5"] {
      #expect(throws: LiveCommandError.self, "\(wrong)") {
        try LiveCommand(wrong, in: scenario(apps: Self.one))
      }
    }
  }

  private func words(_ action: Scenario.Action) -> String {
    switch action {
    case .app(let place, let deed): "app(\(place.phone), \(plain(deed)))"
    case .phone(_, let deed): "phone(\(plain(deed)))"
    case .push, .relay: "something else"
    }
  }

  private func plain(_ deed: some Any) -> String {
    "\(deed)".replacing("DeviceModel.", with: "").replacing("DeviceSimulator.", with: "")
      .replacing("Primitives.", with: "")
      .replacing("FetchInterval.", with: "").replacing("Network.", with: "")
      .replacing("StateChange.", with: "").replacing("DocumentDeed.", with: "")
  }
}
