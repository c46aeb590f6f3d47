import DeviceModel
import Primitives
import RelayCore

/// Reading what apps show and how it is restored, and what they do with documents.
extension RestorationScript {
  static func read(_ reader: Reader) throws(ScenarioError) -> RestorationScript {
    try reader.check(ScenarioKeys.restoration)
    var script = RestorationScript()
    script.oldest = try reader["oldest"].map { time throws(ScenarioError) in try time.lapse() }
    for name in try reader.list("answersNothing") { script.answersNothing.insert(try name.text()) }
    for path in try reader.list("gone") { script.gone.insert(StatePath(text: try path.text())) }
    for one in try reader.list("classes") {
      try one.check(ScenarioKeys.restorationClass)
      let made = RestorationClass(
        name: try one.required("name").text(), needs: try one["needs"]?.text(),
        answers: try one["answers"]?.text())
      script.classes = (script.classes ?? []) + [made]
    }
    for path in try reader.list("appDelegate") {
      script.appDelegate = (script.appDelegate ?? []).union([try path.path()])
    }
    for table in try reader.list("tables") {
      try table.check(ScenarioKeys.table)
      let one = StateTable(
        path: try table.required("path").path(), key: try table.required("key").text())
      script.tables = (script.tables ?? []) + [one]
    }
    script.crashes = try reader["crashes"]?.flag() ?? false
    if let others = reader["otherVersions"] {
      script.declinesOtherVersions = try others.choice([("declined", true), ("taken", false)])
    }
    for transform in try reader.list("transforms") {
      script.transforms = try (script.transforms ?? []) + [.read(transform)]
    }
    for application in try reader.list("applies") {
      try application.check(ScenarioKeys.application)
      let one = StateApplication(
        path: StatePath(text: try application.required("path").text()),
        key: try application.required("key").text(),
        through: try application.required("through").text(),
        theirs: try application.required("theirs").text())
      script.applies = (script.applies ?? []) + [one]
    }
    return script
  }
}

extension ArchiveTransform {
  fileprivate static func read(_ reader: Reader) throws(ScenarioError) -> ArchiveTransform {
    try reader.check(ScenarioKeys.transform)
    var changes: [ArchiveChange] = []
    for change in try reader.list("changes") { changes.append(try .read(change)) }
    return ArchiveTransform(
      from: try reader.required("from").text(), to: try reader.required("to").text(),
      changes: changes)
  }
}

extension ArchiveChange {
  fileprivate static func read(_ reader: Reader) throws(ScenarioError) -> ArchiveChange {
    try reader.check(ScenarioKeys.archiveChange)
    let verbs = ["rename", "set", "drop"].compactMap { reader[$0] }
    guard verbs.count == 1 else { throw reader.problem("one of rename, set, drop is wanted") }
    let path = try verbs[0].path()
    if reader["drop"] != nil {
      try reader.refuse(ScenarioKeys.archiveChange, but: ["drop"], of: "drop")
      return .drop(path)
    }
    if reader["set"] != nil {
      try reader.refuse(ScenarioKeys.archiveChange, but: ["set", "key", "value"], of: "set")
      return .set(
        path, key: try reader.required("key").text(), try .read(try reader.required("value")))
    }
    try reader.refuse(ScenarioKeys.archiveChange, but: ["rename", "key", "to"], of: "rename")
    let name = try reader.required("to").text()
    guard let key = reader["key"] else { return .rename(path, to: name) }
    return .renameKey(path, key: try key.text(), to: name)
  }
}

extension StateGraph {
  /// What is there from the start: the paths of `state`, and the list of `objects` where more is to
  /// be said of them.
  init(_ reader: Reader) throws(ScenarioError) {
    self.init()
    var memos: [(path: StatePath, values: Reader)] = []
    if let state = reader["state"] {
      memos = try StatePath.members(of: state)
      for (path, _) in memos { add(path) }
    }
    for object in try reader.list("objects") {
      try object.check(ScenarioKeys.object)
      let path = try object.required("path").path()
      let above = StatePath(path.components.dropLast())
      guard find(path) == nil, above.components.isEmpty || find(above) != nil else {
        throw object.problem("\(path) is there already, or what it is to lie below is not")
      }
      add(
        try object["class"]?.text() ?? "View", identifier: path.components.last,
        parent: find(above), restorationClass: try object["madeBy"]?.text(),
        isRegistered: try object["registered"]?.flag() ?? false)
      if let values = object["remembers"] { memos.append((path, values)) }
    }
    guard objects.count <= 100 else { throw reader.problem("the most is 100 objects") }
    // Whoever refers to another may stand before it.
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

extension StateValue {
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
  /// An object: keys with their values, or `{"reference": PATH}`. Answered in the order of the
  /// keys.
  static func readMemos(
    _ reader: Reader, at path: StatePath
  ) throws(ScenarioError) -> [StateChange] {
    var changes: [(key: String, change: StateChange)] = []
    for (key, value) in try reader.members() {
      if case .object = value.tree.value {
        try value.check(["reference"])
        let target = try value.required("reference").path()
        changes.append((key, .link(path, key: key, to: target)))
      } else {
        changes.append((key, .set(path, key: key, try .read(value))))
      }
    }
    return changes.sorted { $0.key < $1.key }.map(\.change)
  }
}

extension StatePath {
  /// The members of an object that has paths for keys.
  static func members(
    of reader: Reader
  ) throws(ScenarioError) -> [(path: StatePath, values: Reader)] {
    var all: [(path: StatePath, values: Reader)] = []
    for (text, place) in try reader.members() {
      let path = StatePath(text: text)
      guard !path.components.isEmpty else {
        throw place.problem("a path such as window/inbox is wanted")
      }
      all.append((path, place))
    }
    guard all.count <= 100 else { throw reader.problem("the most is 100 objects") }
    return all
  }
}

extension DocumentUse {
  /// The keys of `coordinate`.
  static func read(_ reader: Reader) throws(ScenarioError) -> DocumentUse {
    let documents = try reader.required("documents")
    var wants: [Want] = []
    for word in try documents.text().split(separator: ",") {
      let parts = word.split(separator: ":")
      guard parts.count == 2, parts[0] == "read" || parts[0] == "write",
        let number = UInt64(parts[1]), (1...10_000).contains(number)
      else { throw documents.problem("a text such as read:1,write:2 is wanted") }
      wants.append(Want(DocumentID(number), isWriting: parts[0] == "write"))
    }
    guard (1...16).contains(wants.count) else {
      throw documents.problem("one to 16 documents are wanted")
    }
    var use = DocumentUse(wants: wants, time: .seconds(1))
    if let time = reader["for"] { use.time = try time.lapse() }
    if let bytes = reader["bytes"] { use.edit = .size(try bytes.number(0...1_000_000_000_000)) }
    if let line = reader["line"] {
      use.edit = .line(Int(try line.number(1...10_000)), try reader["text"]?.text())
    }
    return use
  }
}

extension Reader {
  /// The path of an object.
  fileprivate func path() throws(ScenarioError) -> StatePath {
    let path = StatePath(text: try text())
    guard !path.components.isEmpty else { throw problem("a path such as window/inbox is wanted") }
    return path
  }
}
