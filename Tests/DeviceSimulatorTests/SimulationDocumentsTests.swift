import DeviceModel
import Primitives
import Testing

@testable import DeviceSimulator

/// Documents and content by the library, as a test of somebody's own would use it.
struct SimulationDocumentsTests {
  private let first = DocumentID(1)

  private func line(_ number: Int, _ text: String?) -> DocumentUse {
    DocumentUse(wants: [.init(first, isWriting: true)], edit: .line(number, text))
  }

  @Test func aDocumentIsAValueThatOneCanAskFor() throws {
    var simulation = Simulation(seed: 1)
    let phone = simulation.addPhone("anna")
    let notes = simulation.install(AppDefinition(name: "notes"), on: phone)
    #expect(simulation.documents(of: notes).isEmpty)
    simulation.open(notes)
    simulation.createDocument("plan", bytes: 0, by: notes)
    simulation.use(line(1, "milk"), by: notes)
    simulation.advance(by: .seconds(1))
    let plan = try #require(simulation.documents(of: notes).first)
    #expect(plan.text == DocumentText(lines: ["milk"]) && plan.bytes == 5 && plan.revision == 2)
    #expect(plan.isLocal && plan.thumbnail.count == 8 && plan.otherRevisions.isEmpty)
    let undo = DocumentUse(wants: [.init(first, isWriting: true)], edit: .undo)
    simulation.use(undo, by: notes)
    simulation.advance(by: .seconds(1))
    #expect(simulation.documents(of: notes).first?.bytes == 0)
  }

  /// Without a network nobody hears of an edit; then the service does, unless something newer is
  /// there: of that conflict both versions are kept.
  @Test(arguments: [false, true]) func theServiceHearsOfItWhenThereIsANetwork(isStale: Bool) throws
  {
    var simulation = Simulation(seed: 1)
    let phone = simulation.addPhone("anna")
    let notes = simulation.install(AppDefinition(name: "notes"), on: phone)
    simulation.open(notes)
    simulation.createDocument("plan", bytes: 7, by: notes)
    simulation.setNetwork(.none, of: phone)
    simulation.use(line(1, "milk"), by: notes)
    simulation.advance(by: .minutes(1))
    func model() -> Document? { simulation.phones[0].model.documents.documents[first] }
    #expect(model()?.isUnsent == true)
    if isStale { simulation.changeDocumentElsewhere(first, bytes: 70, on: phone) }
    #expect(model()?.isStale == false)
    simulation.setNetwork(.wifi, of: phone)
    #expect(model()?.isUnsent == isStale)
    simulation.advance(by: .minutes(1))
    let plan = try #require(simulation.documents(of: notes).first)
    #expect(plan.bytes == (isStale ? 70 : 5) && plan.otherRevisions == (isStale ? [2] : []))
    #expect(model()?.isUnsent == false)
  }

  /// What was not sent when the phone was switched off is sent when it is on again.
  @Test func aPhoneThatIsOffSendsNothing() {
    var simulation = Simulation(seed: 1)
    let phone = simulation.addPhone("anna")
    let notes = simulation.install(AppDefinition(name: "notes"), on: phone)
    simulation.open(notes)
    simulation.setNetwork(.none, of: phone)
    simulation.createDocument("plan", bytes: 7, by: notes)
    simulation.setPower(false, of: phone)
    simulation.setNetwork(.wifi, of: phone)
    #expect(simulation.phones[0].model.documents.documents[first]?.isUnsent == true)
    simulation.setPower(true, of: phone)
    #expect(simulation.phones[0].model.documents.documents[first]?.isUnsent == false)
    #expect(!simulation.trace().contains { $0.kind == .ignored })
  }

  @Test func aProviderIsAnAppOfItsOwn() throws {
    var simulation = Simulation(seed: 1)
    let phone = simulation.addPhone("anna")
    var provider = AppDefinition(name: "drive")
    provider.container = .provider
    let drive = simulation.install(provider, on: phone)
    simulation.tell(drive) { .document(.providerSwitched($0, isOn: true)) }
    simulation.announceDocument("film", bytes: 3_000_000, to: drive)
    let film = try #require(simulation.documents(of: drive).first)
    #expect(!film.isLocal && film.bytes == 3_000_000)
    let editor = simulation.install(AppDefinition(name: "editor"), on: phone)
    simulation.open(editor)
    simulation.use(
      DocumentUse(wants: [.init(first, isWriting: false)], edit: .imported), by: editor)
    simulation.advance(by: .minutes(1))
    #expect(simulation.runs(of: drive).map(\.cause) == [.document, .transfers])
    let copy = DocumentUse(
      wants: [.init(DocumentID(2), isWriting: false)], edit: .copied(to: "editor"))
    simulation.use(copy, by: editor)
    simulation.advance(by: .minutes(1))
    #expect(simulation.documents(of: editor).map(\.bytes) == [3_000_000])
  }

  @Test func whatIsBroughtWhileLockedIsMergedLater() {
    var simulation = Simulation(seed: 1)
    let phone = simulation.addPhone("anna")
    var app = AppDefinition(name: "mail", modes: .remoteNotification)
    app.script.onPush.brings = ["Lunch?"]
    let mail = simulation.install(app, on: phone)
    simulation.advance(by: .minutes(1))
    simulation.push(.silent, to: mail)
    simulation.advance(by: .minutes(1))
    #expect(simulation.items(of: mail).isEmpty)
    simulation.open(mail)
    #expect(simulation.items(of: mail) == ["Lunch?"])
  }

  @Test func anotherVersionKeepsTheState() {
    var simulation = Simulation(seed: 1)
    let phone = simulation.addPhone("anna")
    var app = AppDefinition(name: "mail")
    app.script.interface.add(["window"])
    let mail = simulation.install(app, on: phone)
    simulation.open(mail)
    simulation.change(.set(["window"], key: "row", .number(7)), in: mail)
    simulation.lock(phone)
    app.version = "2.0"
    app.script.restoration.transforms = [
      ArchiveTransform(
        from: "1.0", to: "2.0", changes: [.renameKey(["window"], key: "row", to: "line")])
    ]
    simulation.update(mail, to: app)
    simulation.open(mail)
    #expect(simulation.memo(under: "line", at: ["window"], in: mail) == .number(7))
    #expect(simulation.memo(under: "row", at: ["window"], in: mail) == nil)
  }
}
