import DeviceModel
import Primitives
import RelayCore

extension RestorationScript: ReadableObject {
  static let fields: [Field<RestorationScript>] = [
    Field("oldest", \.oldest), Field("answersNothing", \.answersNothing),
    Field("gone") { script, reader throws(ScenarioError) in
      script.gone = Set(try [String].read(reader).map { StatePath(text: $0) })
    },
    Field("classes", \.classes), Field("appDelegate", \.appDelegate), Field("tables", \.tables),
    Field("crashes", \.crashes), Field("transforms", \.transforms),
    Field("otherVersions") { script, reader throws(ScenarioError) in
      script.declinesOtherVersions = try reader.choice([("declined", true), ("taken", false)])
    }, Field("applies", \.applies),
  ]
}

extension RestorationClass: ReadableObject {
  init() { self.init(name: "") }

  static let fields: [Field<RestorationClass>] = [
    Field("name", \.name, isRequired: true), Field("needs", \.needs), Field("answers", \.answers),
  ]
}

extension StateTable: ReadableObject {
  init() { self.init(path: [], key: "") }

  static let fields: [Field<StateTable>] = [
    Field("path", \.path, isRequired: true), Field("key", \.key, isRequired: true),
  ]
}

extension StateApplication: ReadableObject {
  init() { self.init(path: [], key: "", through: "", theirs: "") }

  static let fields: [Field<StateApplication>] = [
    Field("path", isRequired: true) { application, reader throws(ScenarioError) in
      application.path = StatePath(text: try reader.text())
    }, Field("key", \.key, isRequired: true), Field("through", \.through, isRequired: true),
    Field("theirs", \.theirs, isRequired: true),
  ]
}

extension ArchiveTransform: ReadableObject {
  init() { self.init(from: "", to: "", changes: []) }

  static let fields: [Field<ArchiveTransform>] = [
    Field("from", \.from, isRequired: true), Field("to", \.to, isRequired: true),
    Field("changes", \.changes),
  ]
}

extension ArchiveChange: Readable {
  static let keys = ["rename", "set", "drop", "key", "value", "to"]

  static func read(_ reader: Reader) throws(ScenarioError) -> ArchiveChange {
    try reader.check(keys)
    let verbs = keys.prefix(3).filter { reader[$0] != nil }
    guard verbs.count == 1, let verb = verbs.first else {
      throw reader.problem("one of rename, set, drop is wanted")
    }
    let path = try StatePath.read(try reader.required(verb))
    let others = ["rename": ["key", "to"], "set": ["key", "value"]][verb] ?? []
    try reader.refuse(keys, but: [verb] + others, of: verb)
    switch verb {
    case "drop": return .drop(path)
    case "set":
      let key = try reader.required("key").text()
      return .set(path, key: key, try .read(try reader.required("value")))
    default:
      let name = try reader.required("to").text()
      guard let key = reader["key"] else { return .rename(path, to: name) }
      return .renameKey(path, key: try key.text(), to: name)
    }
  }
}

/// An object with more than a path.
struct ObjectPlan: ReadableObject {
  var path: StatePath = []
  var className = "View"
  var madeBy: String?
  var isRegistered = false
  var memos: Reader?

  static let fields: [Field<ObjectPlan>] = [
    Field("path", \.path, isRequired: true), Field("class", \.className),
    Field("madeBy", \.madeBy), Field("registered", \.isRegistered),
    Field("remembers") { object, reader in object.memos = reader },
  ]
}

extension StateGraph {
  /// Base objects, from `state` and `objects`.
  init(_ reader: Reader) throws(ScenarioError) {
    self.init()
    var memos: [(path: StatePath, values: Reader)] = []
    if let state = reader["state"] {
      memos = try StatePath.members(of: state)
      for (path, _) in memos { add(path) }
    }
    for item in try reader["objects"]?.list() ?? [] {
      let object = try ObjectPlan.read(item)
      let above = StatePath(object.path.components.dropLast())
      guard find(object.path) == nil, above.components.isEmpty || find(above) != nil else {
        throw item.problem("\(object.path) is there already, or what it is to lie below is not")
      }
      add(
        object.className, identifier: object.path.components.last, parent: find(above),
        restorationClass: object.madeBy, isRegistered: object.isRegistered)
      if let values = object.memos { memos.append((object.path, values)) }
    }
    guard objects.count <= 100 else { throw reader.problem("the most is 100 objects") }
    // An object may refer to a later one.
    for (path, values) in memos {
      for change in try StateChange.readMemos(values, at: path) {
        if case .link(_, _, let target) = change, find(target) == nil {
          throw values.problem("there is no object \(target)")
        }
        apply(change)
      }
    }
  }
}

extension StateValue: Readable {
  static func read(_ reader: Reader) throws(ScenarioError) -> StateValue {
    switch reader.tree.value {
    case .text(let text): return .text(text)
    case .flag(let flag): return .flag(flag)
    case .number: return .number(try reader.number(-(1 << 53)...(1 << 53)))
    case .object, .list, .null:
      throw reader.problem("a text, a whole number, true or false is wanted")
    }
  }
}

extension StateChange {
  /// Values, or `{"reference": PATH}`, sorted by key.
  static func readMemos(
    _ reader: Reader, at path: StatePath
  ) throws(ScenarioError) -> [StateChange] {
    var changes: [StateChange] = []
    for (key, value) in try reader.members().sorted(by: { $0.key < $1.key }) {
      if case .object = value.tree.value {
        try value.check(["reference"])
        changes.append(.link(path, key: key, to: try .read(try value.required("reference"))))
      } else {
        changes.append(.set(path, key: key, try .read(value)))
      }
    }
    return changes
  }
}

extension StatePath: Readable {
  static func read(_ reader: Reader) throws(ScenarioError) -> StatePath {
    try checked(try reader.text(), reader)
  }

  private static func checked(_ text: String, _ reader: Reader) throws(ScenarioError) -> StatePath {
    let path = StatePath(text: text)
    guard !path.components.isEmpty else {
      throw reader.problem("a path such as window/inbox is wanted")
    }
    return path
  }

  /// The members of an object with paths as keys.
  static func members(
    of reader: Reader
  ) throws(ScenarioError) -> [(path: StatePath, values: Reader)] {
    var all: [(path: StatePath, values: Reader)] = []
    for (text, place) in try reader.members() { all.append((try checked(text, place), place)) }
    guard all.count <= 100 else { throw reader.problem("the most is 100 objects") }
    return all
  }
}

extension DocumentUse: ReadableObject {
  init() { self.init(wants: [], time: .seconds(1)) }

  static let fields: [Field<DocumentUse>] = [
    Field("documents", isRequired: true) { use, reader throws(ScenarioError) in
      for word in try reader.text().split(separator: ",") {
        let parts = word.split(separator: ":")
        guard parts.count == 2, parts[0] == "read" || parts[0] == "write",
          let number = UInt64(parts[1]), (1...10_000).contains(number)
        else { throw reader.problem("a text such as read:1,write:2 is wanted") }
        use.wants.append(Want(DocumentID(number), isWriting: parts[0] == "write"))
      }
      guard (1...16).contains(use.wants.count) else {
        throw reader.problem("one to 16 documents are wanted")
      }
    }, Field("for", \.time),
    Field("bytes") { use, reader throws(ScenarioError) in
      use.edit = .size(try reader.number(0...1_000_000_000_000))
    },
    Field("line") { use, reader throws(ScenarioError) in
      use.edit = .line(Int(try reader.number(1...10_000)), nil)
    },
    Field("text") { use, reader throws(ScenarioError) in
      if case .line(let number, _) = use.edit { use.edit = .line(number, try reader.text()) }
    },
  ]
}
