import DeviceModel
import Primitives

/// A value in a scenario file.
protocol Readable: Sendable {
  static func read(_ reader: Reader) throws(ScenarioError) -> Self
}

/// An object in a scenario file, described by its fields.
protocol ReadableObject: Readable {
  init()
  /// In the order of reading; also listed in error messages.
  static var fields: [Field<Self>] { get }
}

extension ReadableObject {
  static func read(_ reader: Reader) throws(ScenarioError) -> Self { try object(reader) }

  /// Rejects other keys.
  static func object(_ reader: Reader) throws(ScenarioError) -> Self {
    try reader.check(fields.map(\.name))
    var object = Self()
    try object.fill(reader)
    return object
  }

  /// Ignores other keys.
  mutating func fill(_ reader: Reader) throws(ScenarioError) {
    for field in Self.fields {
      if let value = reader[field.name] {
        if let other = field.insteadOf, reader[other] != nil {
          throw value.problem("it stands instead of \(other), and not beside it")
        }
        try field.read(&self, value)
      } else if field.isRequired {
        throw reader.problem("\(field.name) is missing")
      }
    }
  }
}

/// A key of an object, and how to store its value.
struct Field<Object: Sendable>: Sendable {
  typealias Path<Value> = any WritableKeyPath<Object, Value> & Sendable

  let name: String
  var isRequired = false
  /// The key that may not stand beside it.
  var insteadOf: String?
  let read: @Sendable (inout Object, Reader) throws(ScenarioError) -> Void

  init(
    _ name: String, isRequired: Bool = false, insteadOf: String? = nil,
    _ read: @escaping @Sendable (inout Object, Reader) throws(ScenarioError) -> Void
  ) {
    (self.name, self.isRequired, self.insteadOf, self.read) = (name, isRequired, insteadOf, read)
  }

  init<Value: Readable>(_ name: String, _ path: Path<Value>, isRequired: Bool = false) {
    self.init(name, isRequired: isRequired) { object, reader throws(ScenarioError) in
      object[keyPath: path] = try .read(reader)
    }
  }

  init<Value: FixedWidthInteger & Sendable>(
    _ name: String, _ path: Path<Value>, in range: ClosedRange<Int64>, isRequired: Bool = false
  ) {
    self.init(name, isRequired: isRequired) { object, reader throws(ScenarioError) in
      object[keyPath: path] = Value(try reader.number(range))
    }
  }

  init<Value: FixedWidthInteger & Sendable>(
    _ name: String, _ path: Path<Value?>, in range: ClosedRange<Int64>
  ) {
    self.init(name) { object, reader throws(ScenarioError) in
      object[keyPath: path] = Value(try reader.number(range))
    }
  }

  init(_ name: String, milliseconds path: Path<Int64>, isRequired: Bool = false) {
    self.init(name, isRequired: isRequired) { object, reader throws(ScenarioError) in
      object[keyPath: path] = try reader.duration()
    }
  }
}

extension String: Readable {
  static func read(_ reader: Reader) throws(ScenarioError) -> String { try reader.text() }
}

extension Bool: Readable {
  static func read(_ reader: Reader) throws(ScenarioError) -> Bool { try reader.flag() }
}

extension Interval: Readable {
  static func read(_ reader: Reader) throws(ScenarioError) -> Interval {
    .milliseconds(try reader.duration())
  }
}

extension Duration: Readable {
  static func read(_ reader: Reader) throws(ScenarioError) -> Duration {
    .milliseconds(try reader.duration())
  }
}

extension Optional: Readable where Wrapped: Readable {
  static func read(_ reader: Reader) throws(ScenarioError) -> Wrapped? { try Wrapped.read(reader) }
}

extension Array: Readable where Element: Readable {
  static func read(_ reader: Reader) throws(ScenarioError) -> [Element] {
    var elements: [Element] = []
    for item in try reader.list() { elements.append(try .read(item)) }
    return elements
  }
}

extension Set: Readable where Element: Readable {
  static func read(_ reader: Reader) throws(ScenarioError) -> Set {
    Set(try [Element].read(reader))
  }
}

extension Readable where Self: RawRepresentable, Self: CaseIterable, RawValue == String {
  static func read(_ reader: Reader) throws(ScenarioError) -> Self { try reader.choice(Self.self) }
}

extension Network: Readable {}
extension DataProtection: Readable {}
extension CallbackOutcome: Readable {}
extension DocumentContainer: Readable {}
