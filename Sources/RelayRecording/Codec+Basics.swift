package import Primitives

extension BinaryCodable where Self: FixedWidthInteger & UnsignedInteger {
  package func write(to writer: inout ByteWriter) { writer.put(varint: UInt64(self)) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    guard let value = Self(exactly: try reader.varint()) else { throw reader.invalid(Self.self) }
    self = value
  }
}

extension UInt16: BinaryCodable {}
extension UInt32: BinaryCodable {}
extension UInt64: BinaryCodable {}

extension BinaryCodable where Self: FixedWidthInteger & SignedInteger {
  package func write(to writer: inout ByteWriter) {
    let value = Int64(self)
    writer.put(varint: UInt64(bitPattern: value << 1 ^ value >> 63))
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    let folded = try reader.varint()
    let value = Int64(bitPattern: folded >> 1) ^ -Int64(bitPattern: folded & 1)
    guard let exact = Self(exactly: value) else { throw reader.invalid(Self.self) }
    self = exact
  }
}

extension Int: BinaryCodable {}
extension Int32: BinaryCodable {}
extension Int64: BinaryCodable {}

extension UInt8: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(tag: self) }

  package init(from reader: inout ByteReader) throws(CodecError) { self = try reader.byte() }
}

extension Bool: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(tag: self ? 1 : 0) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 0: self = false
    case 1: self = true
    default: throw reader.invalid(Self.self)
    }
  }
}

extension String: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(bytes: Array(utf8)) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    guard let text = String(validating: try reader.byteString(), as: UTF8.self) else {
      throw reader.invalid(Self.self)
    }
    self = text
  }
}

extension Optional: BinaryCodable where Wrapped: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .none: writer.put(tag: 0)
    case .some(let value): writer.put(tag: 1, value)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self = try reader.read(Bool.self) ? .some(try reader.read()) : .none
  }
}

extension Array: BinaryCodable where Element: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(varint: UInt64(count))
    for element in self { writer.put(element) }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self = []
    // Each element has at least one byte, so the bytes end before memory does.
    for _ in 0..<(try reader.varint()) { append(try reader.read()) }
  }
}

/// Enums with numbers of their own.
extension BinaryCodable where Self: RawRepresentable, RawValue == UInt8 {
  package func write(to writer: inout ByteWriter) { writer.put(tag: rawValue) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    guard let value = Self(rawValue: try reader.byte()) else { throw reader.invalid(Self.self) }
    self = value
  }
}

/// Enums with names, by position among all cases.
extension BinaryCodable where Self: CaseIterable & RawRepresentable, RawValue == String {
  package func write(to writer: inout ByteWriter) {
    for (place, value) in Self.allCases.enumerated() where value.rawValue == rawValue {
      writer.put(tag: UInt8(place))
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    let place = try reader.byte()
    for (number, value) in Self.allCases.enumerated() where number == Int(place) {
      self = value
      return
    }
    throw reader.invalid(Self.self)
  }
}

extension Power: BinaryCodable {}
extension Network: BinaryCodable {}
extension Screen: BinaryCodable {}

extension Instant: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(milliseconds) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(milliseconds: try reader.read())
  }
}

extension Interval: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(milliseconds) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(milliseconds: try reader.read())
  }
}

extension RateLimit: BinaryCodable {
  /// Far beyond any configuration, and safe for the arithmetic.
  private static let bursts = Int64(1)...1 << 32

  package func write(to writer: inout ByteWriter) { writer.put(interval, burst) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    let (interval, burst) = (try reader.read(Interval.self), try reader.read(Int64.self))
    guard interval > .zero, Self.bursts.contains(burst) else { throw reader.invalid(Self.self) }
    self.init(interval: interval, burst: burst)
  }
}

extension RateLimit.State: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(full) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(full: try reader.read())
    // Twice a clock's highest reading: no sum with it overflows.
    guard (0...3 << 61).contains(full.milliseconds) else { throw reader.invalid(Self.self) }
  }
}

extension DeviceCondition: Composite {
  package static let fields = Fields(Self.init, \.power, \.network, \.screen)
}

extension ConditionReport: Composite {
  package static let fields = Fields(Self.init, \.power, \.network, \.screen)
}
