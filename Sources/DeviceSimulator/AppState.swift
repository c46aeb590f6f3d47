import DeviceModel

/// What an app remembers under one key of an object of its interface.
public enum StateMemo: Hashable, Sendable {
  case number(Int64)
  case text(String)
  case flag(Bool)

  var value: StateValue {
    switch self {
    case .number(let number): .number(number)
    case .text(let text): .text(text)
    case .flag(let flag): .flag(flag)
    }
  }
}

/// An object of an app's interface that takes part in state restoration: where it stands, its parts
/// separated by slashes, and what it remembers. A part that is not named by itself is made too.
public struct StateDescription: Hashable, Sendable {
  public var path: String
  public var remembers: [String: StateMemo]

  public init(_ path: String, remembers: [String: StateMemo] = [:]) {
    self.path = path
    self.remembers = remembers
  }

  static func path(_ text: String) -> StatePath {
    StatePath(text.split(separator: "/").map(String.init))
  }

  /// As an app's script says it, in the order of the keys.
  var changes: [StateChange] {
    remembers.sorted { $0.key < $1.key }.map { key, memo in
      .set(Self.path(path), key: key, memo.value)
    }
  }
}

extension StateGraph {
  /// The objects that an app has from its start.
  init(_ descriptions: [StateDescription]) {
    self.init()
    for description in descriptions {
      var above: StateObjectID?
      var components: [String] = []
      for component in StateDescription.path(description.path).components {
        components.append(component)
        let known = find(StatePath(components))
        above = known ?? add("View", identifier: component, parent: above)
      }
      for change in description.changes { apply(change) }
    }
  }
}

extension StateMemo {
  static func read(_ reader: Reader) throws(ScenarioProblem) -> StateMemo {
    switch reader.tree.value {
    case .text(let text): return .text(text)
    case .flag(let flag): return .flag(flag)
    case .number: return .number(try reader.number(-(1 << 53)...(1 << 53)))
    default: throw reader.problem("a text, a whole number, true or false is wanted")
    }
  }
}

extension StateDescription {
  /// An object: by paths, what is remembered there by keys.
  static func readAll(_ reader: Reader?) throws(ScenarioProblem) -> [StateDescription] {
    guard let reader else { return [] }
    var all: [StateDescription] = []
    for (path, place) in try reader.members() {
      guard !path.split(separator: "/").isEmpty else {
        throw place.problem("a path such as window/inbox is wanted")
      }
      var description = StateDescription(path)
      for (key, memo) in try place.members() {
        description.remembers[key] = try StateMemo.read(memo)
      }
      all.append(description)
    }
    guard all.count <= 100 else { throw reader.problem("the most is 100 objects") }
    return all
  }
}
