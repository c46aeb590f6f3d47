import DeviceModel
import RelayCore

/// Reading what apps are and do, in the words of the model.
extension AppDefinition {
  /// One app, or its copies, whose names have numbers in the place of `#`.
  static func readAll(_ reader: Reader) throws(ScenarioError) -> [AppDefinition] {
    try reader.check(ScenarioKeys.app)
    let name = try reader.required("name").text()
    var app = AppDefinition(name: name, modes: .remoteNotification)
    if let version = reader["version"] { app.version = try version.text() }
    if let modes = reader["modes"] {
      app.modes = []
      for mode in try modes.list() {
        app.modes.formUnion(try mode.choice(BackgroundModes.names))
      }
    }
    if let fetch = reader["fetch"] { app.fetchInterval = try .read(fetch) }
    app.script = try AppScript(reader)
    app.container = try reader["container"]?.choice(DocumentContainer.self)
    if let work = reader["onDocument"], app.container != .provider {
      throw work.problem("only an app with the container \"provider\" is called for documents")
    }
    for type in try reader.list("documentTypes") {
      app.documentTypes = try (app.documentTypes ?? []) + [type.text()]
    }
    guard let copies = reader["copies"] else { return [app] }
    let count = try copies.number(1...256)
    guard name.contains("#") else {
      throw copies.problem("the name needs a # where the copies' numbers go")
    }
    return (1...count).map { number in
      var copy = app
      copy.name = name.split(separator: "#", omittingEmptySubsequences: false)
        .joined(separator: String(number))
      return copy
    }
  }
}

extension AppScript {
  /// What an app does, from the app's own keys.
  fileprivate init(_ reader: Reader) throws(ScenarioError) {
    self.init()
    if let work = reader["onPush"] { onPush = try .read(work) }
    if let work = reader["onFetch"] { onFetch = try .read(work) }
    if let work = reader["onTransfers"] { onTransfers = try .read(work) }
    if let work = reader["onRegion"] { onRegion = try .read(work) }
    if let work = reader["onDocument"] { onDocument = try .read(work) }
    if let answer = reader["onAuthentication"] { onAuthentication = try .read(answer) }
    if let leave = reader["onLeave"] {
      try leave.check(ScenarioKeys.leave)
      onLeave.transfers = try TransferRequest.readList(leave, "transfers")
      if let task = leave["task"] { onLeave.task = try .read(task) }
    }
    if let time = reader["contentTime"] { contentTime = try time.lapse() }
    interface = try StateGraph(reader)
    if let restoration = reader["restoration"] { self.restoration = try .read(restoration) }
    hidesContent = try reader["hidesContent"]?.flag() ?? false
    if try reader["keepsOneHandler"]?.flag() ?? false { handlers = .oneProperty }
  }
}

extension AuthenticationScript {
  fileprivate static func read(_ reader: Reader) throws(ScenarioError) -> AuthenticationScript {
    try reader.check(ScenarioKeys.authentication)
    let given = ScenarioKeys.authentication.compactMap { reader[$0] }
    guard given.count <= 1 else {
      throw given[0].problem("of provides, cancels and wrong there is one")
    }
    if let wrong = reader["wrong"] { return .wrong(after: try wrong.lapse()) }
    if let cancels = reader["cancels"] { return .cancels(after: try cancels.lapse()) }
    return .provides(after: try reader.required("provides").lapse())
  }
}

extension FetchInterval {
  static func read(_ reader: Reader) throws(ScenarioError) -> FetchInterval {
    switch try reader.text() {
    case "never": return .never
    case "minimum": return .minimum
    case let text:
      guard let time = TimeText.duration(text) else {
        throw reader.problem(
          "\"\(text)\" is none of never, minimum, or a length of time such as 15m")
      }
      return .seconds(time / 1000)
    }
  }
}

extension CallbackScript {
  fileprivate static func read(_ reader: Reader) throws(ScenarioError) -> CallbackScript {
    try reader.check(ScenarioKeys.work)
    var script = CallbackScript()
    if let time = reader["takes"] { script.work = try time.lapse() }
    if let time = reader["jitter"] { script.workJitter = try time.lapse() }
    if let memos = reader["remembers"] {
      for (path, values) in try StatePath.members(of: memos) {
        script.changes += try StateChange.readMemos(values, at: path)
      }
    }
    if let bytes = reader["bytes"] { script.bytes = try bytes.number(0...1_000_000_000_000) }
    if let energy = reader["energy"] { script.energy = try energy.number(0...1_000_000_000) }
    if let outcome = reader["outcome"] {
      script.outcome = .always(try outcome.choice(CallbackOutcome.self))
    }
    if let percent = reader["newDataPercent"] {
      script.outcome = .newDataPercent(try percent.number(0...100))
    }
    if let handler = reader["handler"] {
      script.handler = try handler.choice([("called", .afterWork), ("never called", .never)])
    }
    if let late = reader["handlerLate"] { script.handler = .late(try late.lapse()) }
    if let reads = reader["reads"] { script.reads = try reads.choice(DataProtection.self) }
    script.hasLimitedCredential = try reader["limitedCredential"]?.flag()
    if let writes = reader["writes"] { script.writes = try writes.choice(DataProtection.self) }
    script.transfers = try TransferRequest.readList(reader, "transfers")
    if let notification = reader["notification"] {
      try notification.check(ScenarioKeys.notification)
      script.notification = LocalNotification(
        text: try notification.required("text").text(),
        badge: try notification["badge"].map { badge throws(ScenarioError) in
          Int(try badge.number(0...1_000_000))
        }, hasSound: try notification["sound"]?.flag() ?? false)
    }
    if let task = reader["task"] { script.task = try .read(task) }
    script.brings = try reader["brings"].map { brings throws(ScenarioError) in
      var items: [String] = []
      for item in try brings.list() { items.append(try item.text()) }
      return items
    }
    script.uses = try reader["uses"].map { uses throws(ScenarioError) in
      var all: [DocumentUse] = []
      for use in try uses.list() {
        try use.check(ScenarioKeys.use)
        all.append(try .read(use))
      }
      return all
    }
    if let fetch = reader["fetch"] { script.setsFetchInterval = try .read(fetch) }
    script.ignoresNextSnapshot = try reader["ignoresSnapshot"]?.flag() ?? false
    return script
  }
}

extension TaskScript {
  fileprivate static func read(_ reader: Reader) throws(ScenarioError) -> TaskScript {
    try reader.check(ScenarioKeys.task)
    var task = TaskScript(
      work: try reader.required("takes").lapse(),
      endsInTime: try reader["endsInTime"]?.flag() ?? true)
    if let energy = reader["energy"] { task.energy = try energy.number(0...1_000_000_000) }
    return task
  }
}

extension TransferRequest {
  fileprivate static func readList(
    _ reader: Reader, _ name: String
  ) throws(ScenarioError) -> [TransferRequest] {
    var transfers: [TransferRequest] = []
    for transfer in try reader.list(name) { transfers.append(try read(transfer)) }
    return transfers
  }

  /// `film,5000000`, perhaps with an address behind.
  private static func read(
    line: String, _ reader: Reader
  ) throws(ScenarioError) -> TransferRequest {
    let parts = line.split(separator: ",", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count >= 2, !parts[0].isEmpty, let bytes = Int64(parts[1]),
      (0...1_000_000_000_000).contains(bytes)
    else { throw reader.problem("an object is wanted, or a text such as film,5000000") }
    var transfer = TransferRequest(name: String(parts[0]), bytes: bytes)
    if parts.count == 3 {
      do {
        transfer.url = try WebAddress(String(parts[2])).text
      } catch {
        throw reader.problem("\(error)")
      }
    }
    return transfer
  }

  static func read(_ reader: Reader) throws(ScenarioError) -> TransferRequest {
    if case .text(let line) = reader.tree.value { return try read(line: line, reader) }
    try reader.check(ScenarioKeys.transfer)
    var transfer = TransferRequest(
      name: try reader.required("name").text(),
      bytes: try reader.required("bytes").number(0...1_000_000_000_000))
    transfer.session = try reader["session"]?.text() ?? transfer.session
    if try reader["upload"]?.flag() ?? false { transfer.direction = .upload }
    transfer.isDiscretionary = try reader["discretionary"]?.flag() ?? false
    transfer.demandsCredentials = try reader["credentials"]?.flag() ?? false
    transfer.resumes = try reader["resumes"]?.flag() ?? true
    if let document = reader["document"] {
      transfer.document = DocumentID(UInt64(try document.number(1...10_000)))
    }
    transfer.actualBytes = try reader["actualBytes"]?.number(0...1_000_000_000_000)
    transfer.breaksAt = try reader["breaksAt"]?.number(0...1_000_000_000_000)
    transfer.url = try reader["url"]?.webAddress()
    if let authorization = reader["authorization"] {
      guard transfer.url != nil else {
        throw authorization.problem("only a transfer with a url has a server that asks for it")
      }
      transfer.authorization = try authorization.fieldValue()
    }
    return transfer
  }
}
