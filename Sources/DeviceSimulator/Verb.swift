import DeviceModel
import Primitives
import RelayCore

/// An action on an app, a phone or the relay, other than pushing. Scenarios and typed commands are
/// made from these rows; docs/SCENARIOS.md says what each does.
struct Verb: Sendable {
  enum Scope: Sendable {
    case app
    case phone
    case appOrPhone
    case relay
  }

  /// An argument of a verb.
  struct Word: Sendable {
    let name: String
    /// The placeholder in usage texts.
    var shown = ""
    var isOptional = false
    /// Numbers and booleans are not quoted.
    var isPlain = false
  }

  /// Arguments that are read as one value.
  struct Key<Value: Sendable>: Sendable {
    let words: [Word]
    let read: @Sendable (Reader) throws(ScenarioError) -> Value

    init(words: [Word], read: @escaping @Sendable (Reader) throws(ScenarioError) -> Value) {
      (self.words, self.read) = (words, read)
    }

    init(_ word: Word, read: @escaping @Sendable (Reader) throws(ScenarioError) -> Value) {
      self.init(words: [word], read: read)
    }
  }

  typealias Act = @Sendable (Reader, PlaceNames) throws(ScenarioError) -> Scenario.Action

  let name: String
  let scope: Scope
  /// Besides `phone` and `app`.
  let words: [Word]
  let action: Act

  private init(_ name: String, _ scope: Scope, _ words: [Word], action: @escaping Act) {
    (self.name, self.scope) = (name, scope)
    (self.words, self.action) = (words, action)
  }

  private static func app<Value: Sendable>(
    _ name: String, _ key: Key<Value>,
    does deed: @escaping @Sendable (inout Simulation, AppHandle, Value) -> Void
  ) -> Verb {
    Verb(name, .app, key.words) { reader, names throws(ScenarioError) in
      let place = try names.place(reader)
      let value = try key.read(reader)
      return .app(place, { deed(&$0, $1, value) })
    }
  }

  private static func app(
    _ name: String, does deed: @escaping @Sendable (inout Simulation, AppHandle) -> Void
  ) -> Verb {
    app(name, nothing) { simulation, app, _ in deed(&simulation, app) }
  }

  /// A verb that sends an event to the app's phone.
  private static func event<Value: Sendable>(
    _ name: String, _ key: Key<Value>, does event: @escaping @Sendable (AppID, Value) -> PhoneEvent
  ) -> Verb {
    app(name, key) { simulation, app, value in
      simulation.tell(app) { event($0, value) }
    }
  }

  private static func phone<Value: Sendable>(
    _ name: String, _ key: Key<Value>,
    does deed: @escaping @Sendable (inout Simulation, PhoneHandle, Value) -> Void
  ) -> Verb {
    Verb(name, .phone, key.words) { reader, names throws(ScenarioError) in
      let phone = try names.phone(try reader.required("phone"))
      let value = try key.read(reader)
      return .phone(phone, { deed(&$0, $1, value) })
    }
  }

  private static func phone(
    _ name: String, does deed: @escaping @Sendable (inout Simulation, PhoneHandle) -> Void
  ) -> Verb {
    phone(name, nothing) { simulation, phone, _ in deed(&simulation, phone) }
  }

  private static func relay<Value: Sendable>(
    _ name: String, _ key: Key<Value>,
    does deed: @escaping @Sendable (inout Simulation, Value) -> Void
  ) -> Verb {
    Verb(name, .relay, key.words) { reader, _ throws(ScenarioError) in
      let value = try key.read(reader)
      return .relay { deed(&$0, value) }
    }
  }

  private static func both<One, Two>(_ one: Key<One>, _ two: Key<Two>) -> Key<(One, Two)> {
    Key(words: one.words + two.words) { reader throws(ScenarioError) in
      (try one.read(reader), try two.read(reader))
    }
  }

  // MARK: Words

  private static let nothing = Key<Void>(words: []) { _ in }
  private static let on = Key<Bool>(Word(name: "to", shown: "on|off")) {
    reader throws(ScenarioError) in
    try reader.required("to").choice([("on", true), ("off", false)])
  }
  private static let key = Key<String>("key", "KEY")
  private static let documentName = Key<String>("name", "NAME")
  private static let container = Key<String>("to", "APP")
  private static let path = Key<StatePath>(Word(name: "path", shown: "PATH")) {
    reader throws(ScenarioError) in
    StatePath(text: try reader.required("path").text())
  }
  private static let bytes = Key<Int64>(Word(name: "bytes", shown: "BYTES", isPlain: true)) {
    reader throws(ScenarioError) in
    try reader.required("bytes").number(0...1_000_000_000_000)
  }
  private static let document = Key<DocumentID>("document", "DOCUMENT", isPlain: true)

  private static func number(_ name: String, _ shown: String, _ most: Int64) -> Key<Int> {
    Key(Word(name: name, shown: shown, isPlain: true)) { reader throws(ScenarioError) in
      Int(try reader.required(name).number(name == "line" ? 1...most : 0...most))
    }
  }

  private static let version = Key<VersionChoice>(
    Word(name: "version", shown: "REVISION|all", isPlain: true)
  ) { reader throws(ScenarioError) in
    let reader = try reader.required("version")
    if case .text("all") = reader.tree.value { return .all }
    return .revision(Int(try reader.number(1...1_000_000_000)))
  }
  private static let use = Key<DocumentUse>(words: [
    Word(name: "documents", shown: "read:N,write:N"),
    Word(name: "for", shown: "TIME", isOptional: true),
    Word(name: "bytes", shown: "BYTES", isOptional: true, isPlain: true),
  ]) { reader throws(ScenarioError) in
    var use = DocumentUse()
    try use.fill(reader)
    return use
  }

  // MARK: The verbs

  private static let activity = Key<ActivityID>("activity", "ACTIVITY", isPlain: true)
  private static let content = Key<JSONObject>("state", "JSON")

  static let all = ofApps + ofActivities + ofDocuments + ofState + ofPhones + ofRelay

  private static let ofActivities: [Verb] = [
    .event(
      "start activity",
      both(
        both(Key<String>("type", "TYPE"), content),
        both(
          Key<JSONObject?>(perhaps: "attributes", "JSON"),
          Key<ChannelID?>(perhaps: "channel", "CHANNEL")))
    ) {
      .activity(
        .started(
          $0, type: $1.0.0, attributes: $1.1.0?.bytes ?? Array("{}".utf8), content: $1.0.1.bytes,
          channel: $1.1.1?.description))
    },
    .event("update activity", both(activity, content)) {
      .activity(.updated($0, $1.0, content: $1.1.bytes))
    },
    .event("end activity", both(activity, Key<JSONObject?>(perhaps: "state", "JSON"))) {
      .activity(.ended($0, $1.0, content: $1.1?.bytes))
    },
    .event("dismiss activity", activity) { .activity(.swipedAway($0, $1)) },
    .event("renew activity token", activity) { .activity(.renewed($0, $1)) },
    .event("frequent updates", on) { .activity(.frequentAllowed($0, isOn: $1)) },
    Verb("allow activities", .appOrPhone, on.words) { reader, names throws(ScenarioError) in
      let isOn = try on.read(reader)
      guard reader["app"] != nil else {
        let phone = try names.phone(try reader.required("phone"))
        return .phone(
          phone,
          {
            $0.record(.changed("Live Activities \(isOn ? "on" : "off") for all"), phone: $1.number)
            $0.tell($1.number, .activity(.allowed(nil, isOn: isOn)))
          })
      }
      return .app(try names.place(reader), { $0.tell($1) { .activity(.allowed($0, isOn: isOn)) } })
    },
  ]

  private static let ofApps: [Verb] = [
    .app("open") { $0.open($1) },
    .app("open banner") { $0.openBanner(of: $1) },
    .app("swipe away") { $0.swipeAway($1) },
    Verb(
      "use", .app, [Word(name: "for", shown: "TIME", isOptional: true)]
    ) { reader, names throws(ScenarioError) in
      let place = try names.place(reader)
      return .app(place, { $0.open($1) }, lasts: try reader["for"]?.duration() ?? 60_000)
    },
    .app("uninstall") { $0.uninstall($1) },
    .app("install again") { $0.installAgain($1) },
    .app("enter region") { $0.enterRegion(of: $1) },
    .app("fetch") { $0.fetch($1) },
    .app("play", on) { $0.setPlaying($2, $1) },
    .event("ask", nothing) { app, _ in .backgroundAsked(app) },
    .app("crash") { $0.crash($1) },
    .app("update", Key<String>("version", "VERSION")) { $0.update($1, to: $2) },
    .app("set fetch", Key<FetchInterval>("to", "never|minimum|TIME")) { $0.setFetch($2, of: $1) },
    .app(
      "queue transfer", Key<TransferRequest>("transfer", "NAME,BYTES[,URL]")
    ) { $0.queue($2, by: $1) },
  ]

  private static let ofDocuments: [Verb] = [
    .app(
      "create document", both(documentName, bytes)
    ) { $0.createDocument($2.0, bytes: $2.1, by: $1) },
    .event(
      "rename document", both(document, documentName)
    ) { .document(.renamed($1.0, by: $0, to: $1.1)) },
    .event("delete document", document) { .document(.deleted($1, by: $0)) },
    .event("want document", document) { .document(.contentRequested($1, by: $0)) },
    .event("pick document", document) { .document(.picked($1, by: $0)) },
    .event(
      "file document", both(document, Key<String>("folder", "FOLDER"))
    ) { .document(.filed($1.0, by: $0, folder: $1.1)) },
    .event("provider", on) { .document(.providerSwitched($0, isOn: $1)) },
    .app(
      "announce document", both(documentName, bytes)
    ) { $0.announceDocument($2.0, bytes: $2.1, to: $1) },
    .event("list documents", nothing) { app, _ in .document(.listed(by: app)) },
    .app("coordinate", use) { $0.use($2, by: $1) },
    .app("write uncoordinated", both(both(document, bytes), Key<Interval>("for", "TIME"))) {
      var use = DocumentUse(of: $2.0.0, .size($2.0.1))
      use.time = $2.1
      use.skipsCoordination = true
      $0.use(use, by: $1)
    },
    .app(
      "edit line",
      both(both(document, number("line", "LINE", 10_000)), Key<String?>(perhaps: "text", "TEXT"))
    ) { $0.use(DocumentUse(of: $2.0.0, .line($2.0.1, $2.1)), by: $1) },
    .app("undo edit", document) { $0.use(DocumentUse(of: $2, .undo), by: $1) },
    .app(
      "choose version", both(document, version)
    ) { $0.use(DocumentUse(of: $2.0, .choose($2.1)), by: $1) },
    .app("import document", document) {
      let want = DocumentUse.Want($2, isWriting: false)
      $0.use(DocumentUse(wants: [want], edit: .imported), by: $1)
    },
    .app(
      "export document", both(document, container)
    ) { $0.use(DocumentUse(of: $2.0, isWriting: false, .copied(to: $2.1)), by: $1) },
    .app(
      "move document", both(document, container)
    ) { $0.use(DocumentUse(of: $2.0, .moved(to: $2.1)), by: $1) },
    .event(
      "keep bookmark", both(both(path, key), document)
    ) { .document(.bookmarkKept($1.1, by: $0, at: $1.0.0, key: $1.0.1)) },
  ]

  private static let ofState: [Verb] = [
    .app(
      "remember", both(both(path, key), Key<StateValue>("value", "VALUE", isPlain: true))
    ) { $0.change(.set($2.0.0, key: $2.0.1, $2.1), in: $1) },
    .app(
      "refer", both(both(path, key), Key<String>("target", "PATH"))
    ) { $0.change(.link($2.0.0, key: $2.0.1, to: StatePath(text: $2.1)), in: $1) },
    .app("forget", both(path, key)) { $0.change(.unset($2.0, key: $2.1), in: $1) },
    .app("show", path) { $0.change(.show($2), in: $1) },
    .app(
      "add object",
      both(
        both(Key<StatePath>("path", "PATH"), Key<String?>(perhaps: "class", "CLASS")),
        Key<String?>(perhaps: "madeBy", "CLASS"))
    ) {
      let ((path, name), maker) = $2
      let change = StateChange.add(
        className: name ?? "View", identifier: path.components.last ?? "",
        parent: StatePath(path.components.dropLast()), restorationClass: maker,
        isRegistered: false)
      $0.change(change, in: $1)
    },
    .app("remove object", path) { $0.change(.remove($2), in: $1) },
    .event("ignore snapshot", nothing) { app, _ in .snapshotIgnoredOnce(app) },
  ]

  private static let ofPhones: [Verb] = [
    .phone("unlock") { $0.unlock($1) },
    .phone("lock") { $0.lock($1) },
    .phone("leave") { $0.leave($1) },
    .phone("reboot") { $0.reboot($1) },
    .phone("power", on) { $0.setPower($2, of: $1) },
    .phone("travel") { $0.travel($1) },
    .phone("exhaust memory") { $0.exhaustMemory(of: $1) },
    .phone(
      "network", Key<Network>("to", Network.allCases.map(\.rawValue).joined(separator: "|"))
    ) { $0.setNetwork($2, of: $1) },
    .phone("charger", on) { $0.setCharging($2, of: $1) },
    .phone("low power", on) { $0.setLowPower($2, of: $1) },
    .phone("developer mode", on) { $0.tell($1.number, .developerModeSwitched(isOn: $2)) },
    .phone(
      "change document", both(document, bytes)
    ) { $0.changeDocumentElsewhere($2.0, bytes: $2.1, on: $1) },
    .phone("rewrite document", both(document, Key<String>("text", "TEXT"))) {
      let lines = $2.1.split(separator: "|", omittingEmptySubsequences: false)
      $0.changeDocumentElsewhere(
        $2.0, DocumentBody(text: DocumentText(lines: lines.map(String.init))), on: $1)
    },
    .phone("lose document", document) { $0.tell($1.number, .document(.elsewhere(.deleted($2)))) },
    .phone("migrate") { $0.migrate($1) },
    .phone(
      "link",
      both(
        both(number("loss", "PERCENT", 100), Key<Duration?>(perhaps: "latency", "TIME")),
        Key<Duration?>(perhaps: "jitter", "TIME"))
    ) {
      var link = $0.phones[Int($1.number)].path
      link.lossPercent = Double($2.0.0)
      link.latency = $2.0.1 ?? link.latency
      link.jitter = $2.1 ?? link.jitter
      $0.setLink(link, of: $1)
    },
    .phone("connect again") { $0.connectAgain($1) },
    Verb("refresh", .appOrPhone, on.words) { reader, names throws(ScenarioError) in
      let isOn = try on.read(reader)
      guard reader["app"] != nil else {
        let phone = try names.phone(try reader.required("phone"))
        return .phone(phone, { $0.setRefresh(isOn, of: $1) })
      }
      return .app(try names.place(reader), { $0.setRefresh(isOn, of: $1) })
    },
  ]

  private static let ofRelay: [Verb] = [
    .relay(
      "policy",
      Key<RelayPolicy>(Word(name: "to")) { reader throws(ScenarioError) in
        try .read(try reader.required("to"))
      }
    ) { $0.setPolicy($1) },
    .relay("slow journal", Key<Duration>("to", "TIME")) { $0.setJournalDelay($1) },
    .relay("fail journal", on) { $0.setJournalFailing($1) },
    .relay(
      "crash relay", Key<Duration?>(perhaps: "for", "TIME")
    ) { $0.crashRelay(for: $1 ?? .seconds(5)) },
  ]

  // MARK: For people

  /// Keys allowed besides `do` and the times.
  var allKeys: [String] {
    let places: [String] =
      switch scope {
      case .app, .appOrPhone: ["phone", "app"]
      case .phone: ["phone"]
      case .relay: []
      }
    return places + words.map(\.name)
  }

  var isCommand: Bool { scope != .relay }

  /// For commands; words in brackets are optional.
  var usage: String {
    let place = scope == .app || scope == .appOrPhone ? " [APP]" : ""
    let rest = words.map { word in
      word.isOptional ? " [\(word.shown)]" : " \(word.shown)"
    }
    return name + place + rest.joined()
  }
}

extension Verb.Key where Value: Readable {
  fileprivate init(_ name: String, _ shown: String, isPlain: Bool = false) {
    self.init(.init(name: name, shown: shown, isPlain: isPlain)) { reader throws(ScenarioError) in
      try .read(try reader.required(name))
    }
  }

  fileprivate init<Wrapped: Readable>(
    perhaps name: String, _ shown: String
  ) where Value == Wrapped? {
    self.init(.init(name: name, shown: shown, isOptional: true)) { reader throws(ScenarioError) in
      if let value = reader[name] { try Wrapped.read(value) } else { nil }
    }
  }
}

extension DocumentUse {
  fileprivate init(of document: DocumentID, isWriting: Bool = true, _ edit: DocumentEdit) {
    self.init(wants: [Want(document, isWriting: isWriting)], time: .milliseconds(200), edit: edit)
  }
}
