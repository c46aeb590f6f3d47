import RelayCore

/// A value as bytes and back. The bytes depend only on the value, not on hash order or addresses.
///
/// Numbers are varints (LEB128, signed ones in zigzag), words and ids little-endian, an enum's case
/// one byte. Case numbers are part of the format: never change one, append.
package protocol BinaryCodable: SendableMetatype {
  func write(to writer: inout ByteWriter)
  init(from reader: inout ByteReader) throws(CodecError)
}

/// Collects bytes, or only their digest.
package struct ByteWriter: Sendable {
  package private(set) var bytes: [UInt8] = []
  /// Replaces tokens and secrets by pseudonyms and removes payloads; nil changes nothing.
  let redactor: Redactor?
  /// Mixes into `digest` instead of keeping bytes. A notification counts by its unique id only.
  let isDigesting: Bool
  package private(set) var digest: UInt64 = Self.emptyDigest
  /// The last payload as given, and the range of its recorded part.
  private var lastPayload: [UInt8] = []
  private var lastPart = 0..<0
  var last = LastNotification()
  /// Fields that came later are left out (`Fields.and(since:)`).
  package let form: UInt8

  private static let emptyDigest: UInt64 = 0x9E37_79B9_7F4A_7C15

  package init(
    form: UInt8 = .max, redactor: Redactor? = nil, isDigesting: Bool = false, capacity: Int = 0
  ) {
    self.form = form
    self.redactor = redactor
    self.isDigesting = isDigesting
    bytes.reserveCapacity(capacity)
  }

  package var count: Int { bytes.count }

  /// Returns the bytes and starts again, with room for a quarter more.
  mutating func takeBytes() -> [UInt8] {
    var taken: [UInt8] = []
    taken.reserveCapacity(bytes.count + bytes.count / 4)
    swap(&taken, &bytes)
    removeAll()
    return taken
  }

  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    digest = Self.emptyDigest
    lastPayload = []
    lastPart = 0..<0
    last = LastNotification()
  }

  @inline(__always)
  package mutating func put(byte: UInt8) {
    if isDigesting { return mix(UInt64(byte)) }
    bytes.append(byte)
  }

  @inline(__always)
  package mutating func put(varint value: UInt64) {
    if isDigesting { return mix(value) }
    if value < 0x80 { return bytes.append(UInt8(truncatingIfNeeded: value)) }
    putBytes(ofVarint: value)
  }

  private mutating func putBytes(ofVarint value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  @inline(__always)
  package mutating func put(word value: UInt64, byteCount: Int = 8) {
    if isDigesting { return mix(value) }
    bytes.append(addingCapacity: byteCount) { output in
      for index in 0..<byteCount {
        output.append(UInt8(truncatingIfNeeded: value &>> UInt64(index &* 8)))
      }
    }
  }

  /// The count, then the bytes.
  package mutating func put(bytes more: [UInt8]) {
    put(varint: UInt64(more.count))
    put(raw: more)
  }

  package mutating func put(raw more: [UInt8]) {
    guard isDigesting else { return bytes.append(contentsOf: more) }
    var word: UInt64 = 0
    for (index, byte) in more.enumerated() {
      word = word &<< 8 | UInt64(byte)
      if index & 7 == 7 { mix(word) }
    }
    mix(word)
  }

  /// Both halves of a full product (as in wyhash), so that each bit reaches all of the digest.
  /// Finds changed decisions; no protection against an adversary.
  @inline(__always)
  private mutating func mix(_ word: UInt64) {
    let product = (digest ^ word ^ 0xA076_1D64_78BD_642F)
      .multipliedFullWidth(by: digest ^ 0xE703_7ED1_A0B4_28DB)
    digest = product.high ^ product.low ^ word
  }
}

/// A run of small fields, with one capacity check.
extension ByteWriter {
  /// Fills in at most `count` bytes. Not while digesting.
  @inline(__always)
  mutating func append(upTo count: Int, _ fill: (inout OutputSpan<UInt8>) -> Void) {
    bytes.append(addingCapacity: count, initializingWith: fill)
  }

  private static let apsHead = Array(#"{"aps":"#.utf8)

  /// Whether the payload equals the last one, as when one alert goes to many devices.
  func isLast(payload: borrowing [UInt8]) -> Bool {
    areEqualInRuns(payload.span, lastPayload.span)
  }

  /// The recorded part of a payload after its count plus one; 0 if it equals the one before.
  mutating func put(payload: [UInt8]) {
    guard !isLast(payload: payload) else { return bytes.append(0) }
    lastPayload = payload
    let start = bytes.count
    let (range, isAps) = redactor?.part(of: payload) ?? (payload.indices, false)
    put(varint: UInt64(range.count + (isAps ? Self.apsHead.count + 1 : 0)) + 1)
    let first = bytes.count
    if isAps { bytes.append(contentsOf: Self.apsHead) }
    bytes.append(contentsOf: payload[range])
    if isAps { bytes.append(UInt8(ascii: "}")) }
    let part = first..<bytes.count
    let isSame = areEqual(bytes.span.extracting(part), bytes.span.extracting(lastPart))
    guard !isSame else {
      bytes.removeSubrange(start...)
      return bytes.append(0)
    }
    lastPart = part
  }
}

/// `areEqual`, 32 bytes at a time, which the optimizer vectorizes; the last ones perhaps twice.
private func areEqualInRuns(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
  let count = left.count
  guard count == right.count else { return false }
  guard count >= 32 else { return areEqual(left, right) }
  let (whole, last) = (0..<(count & ~31), (count &- 32)..<count)
  return difference(left.extracting(whole), right.extracting(whole))
    | difference(left.extracting(last), right.extracting(last)) == 0
}

/// 0 if both, of equal length, hold the same bytes.
@inline(__always)
private func difference(_ left: Span<UInt8>, _ right: Span<UInt8>) -> UInt8 {
  var difference: UInt8 = 0
  for index in 0..<min(left.count, right.count) { difference |= left[index] ^ right[index] }
  return difference
}

extension OutputSpan<UInt8> {
  @inline(__always)
  mutating func append(word value: UInt64) {
    for index in 0..<8 { append(UInt8(truncatingIfNeeded: value &>> UInt64(index &* 8))) }
  }

  @inline(__always)
  mutating func append(varint value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(truncatingIfNeeded: rest))
  }

  @inline(__always)
  mutating func append(folded value: Int64) {
    append(varint: UInt64(bitPattern: value << 1 ^ value >> 63))
  }

  @inline(__always)
  mutating func append(raw bytes: borrowing [UInt8]) {
    let span = bytes.span
    for index in span.indices { append(span[index]) }
  }

  /// After its count.
  @inline(__always)
  mutating func append(_ token: borrowing DeviceToken) {
    let count = token.count
    append(UInt8(truncatingIfNeeded: count))
    switch count {
    case 16:
      // A pseudonym.
      append(word: token.words.0.byteSwapped)
      append(word: token.words.1.byteSwapped)
    case 32:
      // As this relay mints them.
      append(word: token.words.0.byteSwapped)
      append(word: token.words.1.byteSwapped)
      append(word: token.words.2.byteSwapped)
      append(word: token.words.3.byteSwapped)
    default: append(raw: token.bytes)
    }
  }
}

/// Several values in order. Spelled out up to four: a parameter pack looks types up at run time.
extension ByteWriter {
  @inline(__always)
  package mutating func put<A: BinaryCodable>(_ a: A) { a.write(to: &self) }

  @inline(__always)
  package mutating func put<A: BinaryCodable, B: BinaryCodable>(_ a: A, _ b: B) {
    put(a)
    put(b)
  }

  @inline(__always)
  package mutating func put<A: BinaryCodable, B: BinaryCodable, C: BinaryCodable>(
    _ a: A, _ b: B, _ c: C
  ) {
    put(a, b)
    put(c)
  }

  @inline(__always)
  package mutating func put<
    A: BinaryCodable, B: BinaryCodable, C: BinaryCodable, D: BinaryCodable
  >(_ a: A, _ b: B, _ c: C, _ d: D) {
    put(a, b)
    put(c, d)
  }

  package mutating func put<each Value: BinaryCodable>(_ value: repeat each Value) {
    repeat (each value).write(to: &self)
  }

  /// An enum's case without values.
  @inline(__always)
  package mutating func put(tag: UInt8) { put(byte: tag) }

  /// An enum's case and its values.
  @inline(__always)
  package mutating func put<A: BinaryCodable>(tag: UInt8, _ a: A) {
    put(byte: tag)
    put(a)
  }

  @inline(__always)
  package mutating func put<A: BinaryCodable, B: BinaryCodable>(tag: UInt8, _ a: A, _ b: B) {
    put(byte: tag)
    put(a, b)
  }

  @inline(__always)
  package mutating func put<A: BinaryCodable, B: BinaryCodable, C: BinaryCodable>(
    tag: UInt8, _ a: A, _ b: B, _ c: C
  ) {
    put(byte: tag)
    put(a, b, c)
  }

  package mutating func put<each Value: BinaryCodable>(tag: UInt8, _ value: repeat each Value) {
    put(byte: tag)
    repeat (each value).write(to: &self)
  }
}
