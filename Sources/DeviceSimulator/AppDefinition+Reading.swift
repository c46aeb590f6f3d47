import DeviceModel
import Primitives
import RelayCore

extension AppDefinition: ReadableObject {
  init() { self.init(name: "", modes: .remoteNotification) }

  /// `readAll` reads `copies`, `state` and `objects`, which need the whole app.
  static let fields: [Field<AppDefinition>] = [
    Field("name", \.name, isRequired: true), Field("version", \.version),
    Field("copies") { _, _ in }, Field("modes", \.modes), Field("fetch", \.fetchInterval),
    Field("onPush", \.script.onPush), Field("onFetch", \.script.onFetch),
    Field("onTransfers", \.script.onTransfers), Field("onRegion", \.script.onRegion),
    Field("onDocument", \.script.onDocument),
    Field("onAuthentication", \.script.onAuthentication), Field("onLeave", \.script.onLeave),
    Field("contentTime", \.script.contentTime), Field("state") { _, _ in },
    Field("objects") { _, _ in }, Field("restoration", \.script.restoration),
    Field("hidesContent", \.script.hidesContent),
    Field("keepsOneHandler") { app, reader throws(ScenarioError) in
      if try reader.flag() { app.script.handlers = .oneProperty }
    },
    Field("activities") { app, reader throws(ScenarioError) in
      var types: [String] = []
      for item in try reader.list() {
        let type = try item.text()
        guard ActivityPlan.isType(type), !types.contains(type) else {
          throw item.problem("the name of a Swift type is wanted, each once")
        }
        types.append(type)
      }
      guard types.count <= 16 else { throw reader.problem("the most is 16") }
      app.activities = ActivityPlan(types: types)
    },
    // After `activities`, which it belongs to.
    Field("frequentUpdates") { app, reader throws(ScenarioError) in
      guard app.activities != nil else { throw reader.problem("only with activities") }
      app.activities?.isFrequent = try reader.flag()
    },
    Field("onActivity", \.script.onActivity),
    Field("environment") { app, reader throws(ScenarioError) in
      app.environment = try reader.choice(
        ProviderEnvironment.allCases.map { ($0.rawValue, $0.rawValue) })
    },
    Field("container", \.container), Field("documentTypes", \.documentTypes),
  ]

  /// One app, or its copies, with numbers in place of `#` in their names.
  static func readAll(_ reader: Reader) throws(ScenarioError) -> [AppDefinition] {
    var app = try object(reader)
    app.script.interface = try StateGraph(reader)
    if let work = reader["onDocument"], app.container != .provider {
      throw work.problem("only an app with the container \"provider\" is called for documents")
    }
    guard let copies = reader["copies"] else { return [app] }
    let count = try copies.number(1...256)
    guard app.name.contains("#") else {
      throw copies.problem("the name needs a # where the copies' numbers go")
    }
    return (1...count).map { number in
      var copy = app
      copy.name = app.name.split(separator: "#", omittingEmptySubsequences: false)
        .joined(separator: String(number))
      return copy
    }
  }
}

extension BackgroundModes: Readable {
  static func read(_ reader: Reader) throws(ScenarioError) -> BackgroundModes {
    var modes: BackgroundModes = []
    for mode in try reader.list() { modes.formUnion(try mode.choice(names)) }
    return modes
  }
}

extension LeaveScript: ReadableObject {
  static let fields: [Field<LeaveScript>] = [
    Field("transfers", \.transfers), Field("task", \.task),
  ]
}

extension AuthenticationScript: Readable {
  static let keys = ["provides", "cancels", "wrong"]

  static func read(_ reader: Reader) throws(ScenarioError) -> AuthenticationScript {
    try reader.check(keys)
    let given = keys.compactMap { reader[$0] }
    guard given.count <= 1 else {
      throw given[0].problem("of provides, cancels and wrong there is one")
    }
    if let wrong = reader["wrong"] { return .wrong(after: try .read(wrong)) }
    if let cancels = reader["cancels"] { return .cancels(after: try .read(cancels)) }
    return .provides(after: try .read(try reader.required("provides")))
  }
}

extension FetchInterval: Readable {
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

extension CallbackScript: ReadableObject {
  static let fields: [Field<CallbackScript>] = [
    Field("takes", \.work), Field("jitter", \.workJitter),
    Field("bytes", \.bytes, in: 0...1_000_000_000_000),
    Field("energy", \.energy, in: 0...1_000_000_000),
    Field("outcome") { script, reader throws(ScenarioError) in
      script.outcome = .always(try .read(reader))
    },
    Field("newDataPercent", insteadOf: "outcome") { script, reader throws(ScenarioError) in
      script.outcome = .newDataPercent(try reader.number(0...100))
    },
    Field("handler") { script, reader throws(ScenarioError) in
      script.handler = try reader.choice([("called", .afterWork), ("never called", .never)])
    },
    Field("handlerLate", insteadOf: "handler") { script, reader throws(ScenarioError) in
      script.handler = .late(try .read(reader))
    },
    Field("reads", \.reads), Field("writes", \.writes),
    Field("limitedCredential", \.hasLimitedCredential), Field("transfers", \.transfers),
    Field("notification", \.notification), Field("task", \.task),
    Field("fetch", \.setsFetchInterval),
    Field("remembers") { script, reader throws(ScenarioError) in
      for (path, values) in try StatePath.members(of: reader) {
        script.changes += try StateChange.readMemos(values, at: path)
      }
    }, Field("brings", \.brings), Field("uses", \.uses),
    Field("ignoresSnapshot", \.ignoresNextSnapshot),
  ]
}

extension LocalNotification: ReadableObject {
  init() { self.init(text: "") }

  static let fields: [Field<LocalNotification>] = [
    Field("text", \.text, isRequired: true), Field("badge", \.badge, in: 0...1_000_000),
    Field("sound", \.hasSound),
  ]
}

extension TaskScript: ReadableObject {
  init() { self.init(work: .zero) }

  static let fields: [Field<TaskScript>] = [
    Field("takes", \.work, isRequired: true), Field("endsInTime", \.endsInTime),
    Field("energy", \.energy, in: 0...1_000_000_000),
  ]
}

extension TransferRequest: ReadableObject {
  init() { self.init(name: "", bytes: 0) }

  static let fields: [Field<TransferRequest>] = [
    Field("name", \.name, isRequired: true),
    Field("bytes", \.bytes, in: 0...1_000_000_000_000, isRequired: true),
    Field("session", \.session),
    Field("upload") { transfer, reader throws(ScenarioError) in
      if try reader.flag() { transfer.direction = .upload }
    }, Field("discretionary", \.isDiscretionary), Field("credentials", \.demandsCredentials),
    Field("resumes", \.resumes), Field("document", \.document),
    Field("url") { transfer, reader throws(ScenarioError) in
      transfer.url = try address(try reader.text(), reader)
    },
    Field("authorization") { transfer, reader throws(ScenarioError) in
      guard transfer.url != nil else {
        throw reader.problem("only a transfer with a url has a server that asks for it")
      }
      let text = try reader.text()
      // The value of a header field.
      let isFine = text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
      guard isFine, !text.isEmpty, !text.hasPrefix(" "), !text.hasSuffix(" ") else {
        throw reader.problem("plain characters are wanted, with no space at either end")
      }
      transfer.authorization = text
    },
    Field("actualBytes") { transfer, reader throws(ScenarioError) in
      transfer.actualBytes = try reader.number(transfer.bytes...1_000_000_000_000)
    },
    Field("breaksAt") { transfer, reader throws(ScenarioError) in
      transfer.breaksAt = try reader.number(0...max(0, transfer.bytes - 1))
    },
  ]

  static func address(_ text: String, _ reader: Reader) throws(ScenarioError) -> String {
    do {
      return try WebAddress(text).text
    } catch {
      throw reader.problem("\(error)")
    }
  }

  /// An object, or a text: `film,5000000`, optionally followed by a URL.
  static func read(_ reader: Reader) throws(ScenarioError) -> TransferRequest {
    guard case .text(let line) = reader.tree.value else { return try object(reader) }
    let parts = line.split(separator: ",", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count >= 2, !parts[0].isEmpty, let bytes = Int64(parts[1]),
      (0...1_000_000_000_000).contains(bytes)
    else { throw reader.problem("an object is wanted, or a text such as film,5000000") }
    var transfer = TransferRequest(name: String(parts[0]), bytes: bytes)
    if parts.count == 3 { transfer.url = try address(String(parts[2]), reader) }
    return transfer
  }
}

extension DocumentID: Readable {
  /// The n-th document created on the phone.
  static func read(_ reader: Reader) throws(ScenarioError) -> DocumentID {
    DocumentID(UInt64(try reader.number(1...10_000)))
  }
}
