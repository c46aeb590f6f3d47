import DeviceModel
import Primitives
import RelayCore

/// What can be done beside pushing, to an app, a phone or the relay: a row a verb. Scenarios, the
/// commands that people type, and the table in docs/SCENARIOS.md are all made of these rows; what
/// comes of a verb stands in Simulation+User.swift.
struct Verb: Sendable {
  enum Scope: Sendable {
    case app
    case phone
    /// Of one app, or of all of a phone.
    case appOrPhone
    case relay
  }

  /// A word that goes with a verb.
  struct Key: Sendable {
    let name: String
    /// How its value is written in a command; nil for what is more than a word.
    var words: String?
    var isOptional = false
    /// Whether numbers and truth are what they are, and no texts.
    var isPlain = false

    static let to = Key(name: "to", words: "on|off")
    static let path = Key(name: "path", words: "PATH")
    static let key = Key(name: "key", words: "KEY")
    static let name = Key(name: "name", words: "NAME")
    static let bytes = Key(name: "bytes", words: "BYTES", isPlain: true)
    static let document = Key(name: "document", words: "DOCUMENT", isPlain: true)
    static let container = Key(name: "to", words: "APP")
  }

  /// What a row makes of its keys' values.
  enum Deed: Sendable {
    case app(@Sendable (Reader) throws(ScenarioError) -> AppDeed)
    case phone(@Sendable (Reader) throws(ScenarioError) -> PhoneDeed)
    /// The same keys, of an app or of all.
    case either(
      @Sendable (Reader) throws(ScenarioError) -> AppDeed,
      @Sendable (Reader) throws(ScenarioError) -> PhoneDeed)
    case relay(@Sendable (Reader) throws(ScenarioError) -> RelayDeed)
  }

  let name: String
  /// Beside `phone` and `app`.
  let keys: [Key]
  let explanation: String
  let deed: Deed

  private init(_ name: String, keys: [Key] = [], _ explanation: String, _ deed: Deed) {
    self.name = name
    self.keys = keys
    self.explanation = explanation
    self.deed = deed
  }

  static let all: [Verb] = [
    Verb("open", "the user unlocks the phone and opens an app", .app { _ in .open }),
    Verb(
      "open banner", "the user slides the newest banner of an app", .app { _ in .openBanner }),
    Verb("swipe away", "out of the app switcher", .app { _ in .swipeAway }),
    Verb(
      "use", keys: [Key(name: "for", words: "TIME", isOptional: true)],
      "as `open`, and after that time (default `1m`) the user leaves the app and locks",
      .app { r throws(ScenarioError) in .use(try r["for"]?.duration() ?? 60_000) }),
    Verb(
      "uninstall", "with all that it has; its provider is refused after the next push",
      .app { _ in .uninstall }),
    Verb(
      "install again", "what was uninstalled is there again, new, and has a new token",
      .app { _ in .installAgain }),
    Verb(
      "enter region", "its user comes to a place that the app watches", .app { _ in .enterRegion }),
    Verb(
      "fetch", "a developer has an app fetched now, whatever is planned; from the front it leaves",
      .app { _ in .fetch }),
    Verb(
      "play", keys: [.to], "a running app begins to play sound, or ends it",
      .app { r throws(ScenarioError) in .play(try r.isOn()) }),
    Verb(
      "ask", "a running app asks whether it will be run in the background", .app { _ in .ask }),
    Verb("crash", "a running app crashes", .app { _ in .crash }),
    Verb(
      "update", keys: [Key(name: "version", words: "VERSION")],
      "another version of it is installed; its state stays",
      .app { r throws(ScenarioError) in .update(try r.required("version").text()) }),
    Verb(
      "set fetch", keys: [Key(name: "to", words: "never|minimum|TIME")],
      "a running app asks for another fetch interval",
      .app { r throws(ScenarioError) in .setFetch(try .read(try r.required("to"))) }),
    Verb(
      "queue transfer", keys: [Key(name: "transfer", words: "NAME,BYTES[,URL]")],
      "a running app queues a transfer; as a text `film,5000000`, perhaps with an address behind",
      .app { r throws(ScenarioError) in .queue(try .read(try r.required("transfer"))) }),
    Verb(
      "create document", keys: [.name, .bytes],
      "a running app makes a document, which is with the sync service too",
      .app { r throws(ScenarioError) in
        .createDocument(try r.required("name").text(), bytes: try r.bytes())
      }),
    Verb(
      "rename document", keys: [.document, .name],
      "a running app renames the n-th document of the phone",
      .app { r throws(ScenarioError) in
        .document(try r.document(), .rename(try r.required("name").text()))
      }),
    Verb(
      "delete document", keys: [.document], "a running app deletes it",
      .app { r throws(ScenarioError) in .document(try r.document(), .delete) }),
    Verb(
      "want document", keys: [.document],
      "of what is only a placeholder a running app wants the content",
      .app { r throws(ScenarioError) in .document(try r.document(), .want) }),
    Verb(
      "pick document", keys: [.document],
      "the user chooses it for an app that does not contain it, which opens it where it is",
      .app { r throws(ScenarioError) in .document(try r.document(), .pick) }),
    Verb(
      "file document", keys: [.document, Key(name: "folder", words: "FOLDER")],
      "a reference to what lies elsewhere goes into that folder of the running app's container",
      .app { r throws(ScenarioError) in
        .document(try r.document(), .file(try r.required("folder").text()))
      }),
    Verb(
      "provider", keys: [.to], "the user switches an app that provides documents on in the picker",
      .app { r throws(ScenarioError) in .switchProvider(try r.isOn()) }),
    Verb(
      "announce document", keys: [.name, .bytes],
      "another device has made one, of which the app has a placeholder",
      .app { r throws(ScenarioError) in
        .announceDocument(try r.required("name").text(), bytes: try r.bytes())
      }),
    Verb(
      "list documents", "a running app lists what it has and what it may use",
      .app { _ in .listDocuments }),
    Verb(
      "coordinate",
      keys: [
        Key(name: "documents", words: "read:N,write:N"),
        Key(name: "for", words: "TIME", isOptional: true),
        Key(name: "bytes", words: "BYTES", isOptional: true, isPlain: true),
      ],
      "a running app asks for documents together, works on them so long (default `1s`), and lets "
        + "go of them; `bytes` is how large those are then that it writes",
      .app { r throws(ScenarioError) in .coordinate(try .read(r)) }),
    Verb(
      "write uncoordinated", keys: [.document, .bytes, Key(name: "for", words: "TIME")],
      "the mistake: it writes that long and asks nobody; whoever writes too makes it corrupt",
      .app { r throws(ScenarioError) in
        var use = try r.edit(.size(try r.bytes()))
        use.time = try r.required("for").lapse()
        use.skipsCoordination = true
        return .coordinate(use)
      }),
    Verb(
      "edit line",
      keys: [
        .document, Key(name: "line", words: "LINE", isPlain: true),
        Key(name: "text", words: "TEXT", isOptional: true),
      ], "a running app writes a line of a document's text, or removes it",
      .app { r throws(ScenarioError) in
        let line = Int(try r.required("line").number(1...10_000))
        return .coordinate(try r.edit(.line(line, try r["text"]?.text())))
      }),
    Verb(
      "undo edit", keys: [.document], "it takes back its last edit",
      .app { r throws(ScenarioError) in .coordinate(try r.edit(.undo)) }),
    Verb(
      "choose version",
      keys: [.document, Key(name: "version", words: "REVISION|all", isPlain: true)],
      "of a document that was changed in two places a version is chosen; `all`: each other becomes "
        + "a document of its own",
      .app { r throws(ScenarioError) in .coordinate(try r.edit(.choose(try r.version()))) }),
    Verb(
      "import document", keys: [.document],
      "the user has an app make a copy of it, which goes when the app ends",
      .app { r throws(ScenarioError) in .importDocument(try r.document()) }),
    Verb(
      "export document", keys: [.document, .container],
      "a running app puts a copy of it into another app's container, or to keep it into its own",
      .app { r throws(ScenarioError) in
        .coordinate(try r.edit(.copied(to: try r.required("to").text()), isWriting: false))
      }),
    Verb(
      "move document", keys: [.document, .container],
      "it lies in another app's container from now on, and the running app keeps a reference",
      .app { r throws(ScenarioError) in
        .coordinate(try r.edit(.moved(to: try r.required("to").text())))
      }),
    Verb(
      "keep bookmark", keys: [.path, .key, .document],
      "an object in a running app's interface remembers a bookmark of a document",
      .app { r throws(ScenarioError) in
        .keepBookmark(
          try r.document(), at: try r.path(), key: try r.required("key").text())
      }),
    Verb(
      "remember", keys: [.path, .key, Key(name: "value", words: "VALUE", isPlain: true)],
      "an object in a running app's interface remembers something",
      .app { r throws(ScenarioError) in
        .change(
          .set(
            try r.path(), key: try r.required("key").text(), try .read(try r.required("value"))))
      }),
    Verb(
      "refer", keys: [.path, .key, Key(name: "target", words: "PATH")],
      "it refers to another object",
      .app { r throws(ScenarioError) in
        .change(
          .link(
            try r.path(), key: try r.required("key").text(),
            to: StatePath(text: try r.required("target").text())))
      }),
    Verb(
      "forget", keys: [.path, .key], "it forgets it",
      .app { r throws(ScenarioError) in
        .change(.unset(try r.path(), key: try r.required("key").text()))
      }),
    Verb(
      "show", keys: [.path], "it comes to the top",
      .app { r throws(ScenarioError) in .change(.show(try r.path())) }),
    Verb(
      "add object",
      keys: [
        .path, Key(name: "class", words: "CLASS", isOptional: true),
        Key(name: "madeBy", words: "CLASS", isOptional: true),
      ],
      "a running app makes another one, below one that there is: of which class (default `View`) "
        + "and which restoration class makes it again (without one nobody does; `storyboard`: it "
        + "is in one)",
      .app { r throws(ScenarioError) in .change(try .add(try r.path(), r)) }),
    Verb(
      "remove object", keys: [.path], "it does away with one that it has made",
      .app { r throws(ScenarioError) in .change(.remove(try r.path())) }),
    Verb(
      "ignore snapshot", "a running app asks for the plain image at its next launch",
      .app { _ in .ignoreSnapshot }),
    Verb("unlock", "the user does", .phone { _ in .unlock }),
    Verb("lock", "the user does", .phone { _ in .lock }),
    Verb("leave", "the user does, to the home screen", .phone { _ in .leave }),
    Verb(
      "reboot", "the phone starts anew, locked until somebody unlocks it", .phone { _ in .reboot }),
    Verb(
      "power", keys: [.to], "the user switches the phone off, or `on` again: then it starts anew",
      .phone { r throws(ScenarioError) in .power(try r.isOn()) }),
    Verb(
      "travel",
      "its user goes far: apps that watch where the phone is are started (mode `location`)",
      .phone { _ in .travel }),
    Verb("exhaust memory", "suspended apps have to go", .phone { _ in .exhaustMemory }),
    Verb(
      "network",
      keys: [Key(name: "to", words: Network.allCases.map(\.rawValue).joined(separator: "|"))],
      "as for a phone; `airplane` says good-bye to the relay, `none` does not",
      .phone { r throws(ScenarioError) in
        .network(try r.required("to").choice(Network.self))
      }),
    Verb(
      "charger", keys: [.to], "`on` or `off`",
      .phone { r throws(ScenarioError) in .charger(try r.isOn()) }),
    Verb(
      "low power", keys: [.to], "`on` or `off`",
      .phone { r throws(ScenarioError) in .lowPower(try r.isOn()) }),
    Verb(
      "developer mode", keys: [.to], "`on` or `off`",
      .phone { r throws(ScenarioError) in .developerMode(try r.isOn()) }),
    Verb(
      "change document", keys: [.document, .bytes],
      "the n-th document of the phone was edited elsewhere",
      .phone { r throws(ScenarioError) in
        .changeDocument(try r.document(), DocumentBody(bytes: try r.bytes()))
      }),
    Verb(
      "rewrite document", keys: [.document, Key(name: "text", words: "TEXT")],
      "it was edited elsewhere, and this is its text; a vertical bar ends a line",
      .phone { r throws(ScenarioError) in
        let lines = try r.required("text").text().split(
          separator: "|", omittingEmptySubsequences: false)
        let text = DocumentText(lines: lines.map(String.init))
        return .changeDocument(try r.document(), DocumentBody(text: text))
      }),
    Verb(
      "lose document", keys: [.document], "it was deleted elsewhere",
      .phone { r throws(ScenarioError) in .loseDocument(try r.document()) }),
    Verb(
      "migrate", "the user moves to iCloud Drive, with all phones of the account",
      .phone { _ in .migrate }),
    Verb(
      "link",
      keys: [
        Key(name: "loss", words: "PERCENT", isPlain: true),
        Key(name: "latency", words: "TIME", isOptional: true),
        Key(name: "jitter", words: "TIME", isOptional: true),
      ],
      "the phone's link is like that from now on, what is left out as before; in real time the "
        + "phone connects again over it",
      .phone { r throws(ScenarioError) in
        .link(
          LinkChange(
            lossPercent: Int(try r.required("loss").number(0...100)),
            latency: try r["latency"]?.span(), jitter: try r["jitter"]?.span()))
      }),
    Verb(
      "connect again",
      "the phone opens another connection beside the one it has, which the relay then ends",
      .phone { _ in .connectAgain }),
    Verb(
      "refresh", keys: [.to], "Background App Refresh for an app or for all, `on` or `off`",
      .either(
        { r throws(ScenarioError) in .refresh(try r.isOn()) },
        { r throws(ScenarioError) in .refresh(try r.isOn()) })),
    Verb(
      "policy", keys: [Key(name: "to")],
      "the relay is given another named policy; what was used stays used; no `phone`",
      .relay { r throws(ScenarioError) in
        let to = try r.required("to")
        let name = try to.text()
        if let policy = RelayPolicy.named(name) { return .policy(policy) }
        throw to.problem("\"\(name)\" is none of documented, strict, unlimited")
      }),
    Verb(
      "slow journal", keys: [Key(name: "to")],
      "a write of the relay's journal takes so long from now on; `0s`: it answers at once",
      .relay { r throws(ScenarioError) in .journalTakes(try r.required("to").duration()) }),
    Verb(
      "fail journal", keys: [.to], "`on` or `off`: whether the relay's journal cannot write",
      .relay { r throws(ScenarioError) in .journalFails(try r.isOn()) }),
    Verb(
      "crash relay", keys: [Key(name: "for", words: "TIME", isOptional: true)],
      "the relay's process dies, and after that time (default `5s`) another one starts with what "
        + "the journal remembers",
      .relay { r throws(ScenarioError) in .crash(try r["for"]?.duration() ?? 5000) }),
  ]

  var scope: Scope {
    switch deed {
    case .app: .app
    case .phone: .phone
    case .either: .appOrPhone
    case .relay: .relay
    }
  }

  /// All that may stand beside `do` and the times.
  var allKeys: [String] {
    let places: [String] =
      switch scope {
      case .app, .appOrPhone: ["phone", "app"]
      case .phone: ["phone"]
      case .relay: []
      }
    return places + keys.map(\.name)
  }

  /// Whether a line can say it: each of its keys is a word.
  var isCommand: Bool { scope != .relay && keys.allSatisfy { $0.words != nil } }

  /// How it is said in a line; what is in brackets may be left out.
  var usage: String {
    let place = scope == .app || scope == .appOrPhone ? " [APP]" : ""
    let rest = keys.map { key in
      key.isOptional ? " [\(key.words ?? "")]" : " \(key.words ?? "")"
    }
    return name + place + rest.joined()
  }
}

extension StateChange {
  /// Another object of a running app, with that path.
  fileprivate static func add(
    _ path: StatePath, _ reader: Reader
  ) throws(ScenarioError) -> StateChange {
    guard let identifier = path.components.last else {
      throw try reader.required("path").problem("a path such as window/inbox is wanted")
    }
    return .add(
      className: try reader["class"]?.text() ?? "View", identifier: identifier,
      parent: StatePath(path.components.dropLast()),
      restorationClass: try reader["madeBy"]?.text(), isRegistered: false)
  }
}

extension Reader {
  fileprivate func isOn() throws(ScenarioError) -> Bool {
    try required("to").choice([("on", true), ("off", false)])
  }

  fileprivate func bytes() throws(ScenarioError) -> Int64 {
    try required("bytes").number(0...1_000_000_000_000)
  }

  /// The n-th that came to be on the phone.
  fileprivate func document() throws(ScenarioError) -> DocumentID {
    DocumentID(UInt64(try required("document").number(1...10_000)))
  }

  /// An edit of one document, under coordination.
  fileprivate func edit(
    _ edit: DocumentEdit, isWriting: Bool = true
  ) throws(ScenarioError) -> DocumentUse {
    DocumentUse(
      wants: [DocumentUse.Want(try document(), isWriting: isWriting)], time: .milliseconds(200),
      edit: edit)
  }

  fileprivate func version() throws(ScenarioError) -> VersionChoice {
    let reader = try required("version")
    if case .text("all") = reader.tree.value { return .all }
    return .revision(Int(try reader.number(1...1_000_000_000)))
  }

  fileprivate func path() throws(ScenarioError) -> StatePath {
    StatePath(text: try required("path").text())
  }
}
