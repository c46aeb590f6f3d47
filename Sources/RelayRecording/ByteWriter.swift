/// A value as bytes and back. What is written depends on nothing but the value: no hash order, no
/// addresses.
///
/// Numbers are varints (LEB128, signed ones in zigzag), words and ids are little-endian, a case of
/// an enum is one byte. The numbers of cases are part of the format: never change one, append.
package protocol BinaryCodable {
  func write(to writer: inout ByteWriter)
  init(from reader: inout ByteReader) throws(CodecError)
}

/// Collects bytes.
package struct ByteWriter: Sendable {
  package private(set) var bytes: [UInt8] = []
  /// Makes pseudonyms of tokens and secrets and takes payloads away; nil writes all as it is.
  package var redactor: Redactor?
  /// Writes a notification as its unique id: what identifies it where the rest is known.
  package var abbreviates = false

  package init(redactor: Redactor? = nil, abbreviates: Bool = false) {
    self.redactor = redactor
    self.abbreviates = abbreviates
  }

  package var count: Int { bytes.count }

  package mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  /// Hands out what was written, and begins again.
  package mutating func take() -> [UInt8] {
    var taken: [UInt8] = []
    swap(&taken, &bytes)
    return taken
  }

  package mutating func put<each Value: BinaryCodable>(_ value: repeat each Value) {
    repeat (each value).write(to: &self)
  }

  /// A case of an enum and what it carries.
  package mutating func put<each Value: BinaryCodable>(
    tag: UInt8, _ value: repeat each Value
  ) {
    bytes.append(tag)
    repeat (each value).write(to: &self)
  }

  package mutating func put(varint value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  package mutating func put(word value: UInt64, byteCount: Int = 8) {
    for index in 0..<byteCount {
      bytes.append(UInt8(truncatingIfNeeded: value &>> UInt64(index &* 8)))
    }
  }

  /// How many, then the bytes.
  package mutating func put(bytes more: [UInt8]) {
    put(varint: UInt64(more.count))
    bytes.append(contentsOf: more)
  }

  /// Bytes as they are.
  package mutating func put(raw more: [UInt8]) { bytes.append(contentsOf: more) }
}
