/// A value encoded field by field; one list serves both directions.
package protocol Composite: BinaryCodable, Sendable {
  static var fields: Fields<Self> { get }
  /// False when one of its fields, as read, makes no sense.
  var isPossible: Bool { get }
}

/// A value that stands in free places, and that is read into.
package protocol Vacating {
  static var vacant: Self { get }
}

/// A value's fields in the order of their bytes, which is part of the format.
package struct Fields<Whole: Sendable>: Sendable {
  fileprivate let write: @Sendable (Whole, inout ByteWriter) -> Void
  fileprivate let read: @Sendable (inout ByteReader) throws(CodecError) -> Whole

  /// Parameters and parts have the same types: an optional parameter would get a byte of its own.
  package init<each Field: BinaryCodable>(
    _ make: @escaping @Sendable (repeat each Field) -> Whole,
    _ parts: @escaping @Sendable (Whole) -> (repeat each Field)
  ) {
    write = { whole, writer in
      let parts = parts(whole)
      repeat (each parts).write(to: &writer)
    }
    read = { reader throws(CodecError) in make(repeat try reader.read((each Field).self)) }
  }

  /// The same for parts that are properties.
  package init<each Field: BinaryCodable>(
    _ make: @escaping @Sendable (repeat each Field) -> Whole,
    _ path: repeat any KeyPath<Whole, each Field> & Sendable
  ) {
    let paths = (repeat each path)
    write = { whole, writer in repeat writer.put(whole[keyPath: each paths]) }
    read = { reader throws(CodecError) in make(repeat try reader.read((each Field).self)) }
  }

  /// For values with many fields, or with some that no initializer takes.
  package init<each Field: BinaryCodable>(
    of vacant: Whole, _ path: repeat any WritableKeyPath<Whole, each Field> & Sendable
  ) {
    let paths = (repeat each path)
    write = { whole, writer in repeat writer.put(whole[keyPath: each paths]) }
    read = { reader throws(CodecError) in
      var whole = vacant
      repeat whole[keyPath: each paths] = try reader.read()
      return whole
    }
  }

  private init(
    write: @escaping @Sendable (Whole, inout ByteWriter) -> Void,
    read: @escaping @Sendable (inout ByteReader) throws(CodecError) -> Whole
  ) {
    (self.write, self.read) = (write, read)
  }

  /// One more field. Older forms are without it, and leave it as it is when a value is made.
  package func and<Field: BinaryCodable>(
    since form: UInt8, _ path: any WritableKeyPath<Whole, Field> & Sendable
  ) -> Fields {
    Fields(
      write: { whole, writer in
        write(whole, &writer)
        if writer.form >= form { writer.put(whole[keyPath: path]) }
      },
      read: { reader throws(CodecError) in
        var whole = try read(&reader)
        if reader.form >= form { whole[keyPath: path] = try reader.read() }
        return whole
      })
  }
}

extension Composite {
  package func write(to writer: inout ByteWriter) { Self.fields.write(self, &writer) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self = try Self.fields.read(&reader)
    guard isPossible else { throw reader.invalid(Self.self) }
  }

  package var isPossible: Bool { true }
}

/// An enum encoded as its case's number, then the case's values.
package protocol Tagged: BinaryCodable, Sendable {
  static var cases: Cases<Self> { get }
}

/// How each case of an enum is read, by the number that `write` gives it.
package struct Cases<Whole: Sendable>: ExpressibleByDictionaryLiteral, Sendable {
  package struct Row: Sendable {
    fileprivate let read: @Sendable (inout ByteReader) throws(CodecError) -> Whole

    /// A case without values.
    package static func just(_ whole: Whole) -> Self { Self { _ in whole } }

    /// A case with values, in the order of their bytes.
    package static func of<each Value: BinaryCodable>(
      _ make: @escaping @Sendable (repeat each Value) -> Whole
    ) -> Self {
      Self { reader throws(CodecError) in make(repeat try reader.read((each Value).self)) }
    }
  }

  /// By number; nil for one that no case has.
  private let rows: [Row?]

  package init(dictionaryLiteral rows: (UInt8, Row)...) {
    let byNumber = Dictionary(uniqueKeysWithValues: rows)
    self.rows = (0...(byNumber.keys.max() ?? 0)).map { byNumber[$0] }
  }

  /// Reads the values of the case with this number.
  package func read(_ tag: UInt8, _ reader: inout ByteReader) throws(CodecError) -> Whole {
    guard tag < rows.count, let row = rows[Int(tag)] else { throw reader.invalid(Whole.self) }
    return try row.read(&reader)
  }
}

extension Tagged {
  package init(from reader: inout ByteReader) throws(CodecError) {
    self = try Self.cases.read(try reader.byte(), &reader)
  }
}
