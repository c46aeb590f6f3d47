import Primitives

/// A short name in three words, which compare in a few instructions.
struct PackedName: Equatable, Sendable {
  /// Longer names keep this many bytes and a larger count: they equal no name of a table.
  static let capacityBytes = 24

  private(set) var first: UInt64 = 0
  private(set) var second: UInt64 = 0
  private(set) var third: UInt64 = 0
  /// Saturated at one above the capacity.
  private(set) var count = 0

  init() {}

  /// From the `count` (0 to 7) lowest bytes of a little-endian word.
  @inline(__always)
  init(_ word: UInt64, count: Int) {
    first = word & ~(UInt64.max &<< UInt64(truncatingIfNeeded: count &* 8))
    self.count = count
  }

  init(_ name: String) {
    for byte in name.utf8 { append(byte) }
  }

  /// From `bytes[range]`, unchanged.
  @inline(__always)
  init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    let start = range.lowerBound
    let length = range.upperBound &- start
    guard length <= Self.capacityBytes else {
      count = Self.capacityBytes &+ 1
      return
    }
    append(paddedWord(bytes, at: start), count: min(length, 8))
    guard length > 8 else { return }
    append(paddedWord(bytes, at: start &+ 8), count: min(length &- 8, 8))
    guard length > 16 else { return }
    append(paddedWord(bytes, at: start &+ 16), count: length &- 16)
  }

  /// Appends the `count` (0 to 8) lowest bytes of a little-endian word to a name of whole words.
  @inline(__always)
  mutating func append(_ word: UInt64, count added: Int) {
    let unused = UInt64(truncatingIfNeeded: (8 &- added) &* 8)
    let used = added == 0 ? 0 : (word &<< unused) &>> unused
    switch count {
    case 0: first = used
    case 8: second = used
    case 16: third = used
    default:
      count = Self.capacityBytes &+ 1
      return
    }
    count &+= added
  }

  /// Appends a byte; above the capacity only the count is kept.
  mutating func append(_ byte: UInt8) {
    guard count < Self.capacityBytes else {
      count = Self.capacityBytes + 1
      return
    }
    let shifted = UInt64(byte) << UInt64(truncatingIfNeeded: count % 8 * 8)
    switch count / 8 {
    case 0: first |= shifted
    case 1: second |= shifted
    default: third |= shifted
    }
    count += 1
  }
}

/// The eight bytes at `position` as a little-endian word, zero-padded at the end.
@inline(__always)
func paddedWord(_ bytes: Span<UInt8>, at position: Int) -> UInt64 {
  if position >= 0, position <= bytes.count &- 8 { return littleEndianWord(bytes, at: position) }
  return paddedWordAtEnd(bytes, at: position)
}

private func paddedWordAtEnd(_ bytes: Span<UInt8>, at position: Int) -> UInt64 {
  let last = bytes.count - 8
  if last >= 0, position >= last {
    // Read the last eight and drop those before `position`.
    return littleEndianWord(bytes, at: last) >> UInt64(truncatingIfNeeded: (position &- last) &* 8)
  }
  // Fewer than eight bytes in all: two halves or three bytes, which may overlap.
  let rest = bytes.count &- position
  guard position >= 0, rest > 0 else { return 0 }
  if rest >= 4 {
    let first = littleEndianHalf(bytes, at: position)
    return first | littleEndianHalf(bytes, at: bytes.count &- 4) << UInt64((rest &- 4) &* 8)
  }
  let middle = rest &>> 1
  return UInt64(bytes[position]) | UInt64(bytes[position &+ middle]) << UInt64(middle &* 8)
    | UInt64(bytes[bytes.count &- 1]) << UInt64((rest &- 1) &* 8)
}

/// The four bytes at `position` must exist.
@inline(__always)
private func littleEndianHalf(_ bytes: Span<UInt8>, at position: Int) -> UInt64 {
  let window = bytes.extracting(position..<(position &+ 4))
  return UInt64(window[0]) | UInt64(window[1]) << 8
    | UInt64(window[2]) << 16 | UInt64(window[3]) << 24
}

/// Compares eight bytes at a time, the last eight perhaps twice.
@inline(__always)
package func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
  guard left.count == right.count else { return false }
  let last = left.count &- 8
  var position = 0
  while position < last {
    guard littleEndianWord(left, at: position) == littleEndianWord(right, at: position)
    else { return false }
    position &+= 8
  }
  position = max(last, 0)
  return paddedWord(left, at: position) == paddedWord(right, at: position)
}

/// Finds an enum's case by name, comparing only names of the same length.
struct NameTable<Case: CaseIterable & Sendable>: Sendable {
  private struct Entry: Sendable {
    var name: PackedName
    var value: Case
  }

  private let entries: [Entry]
  /// Names of `n` bytes are `entries[starts[n]..<starts[n + 1]]`.
  private let starts: [UInt8]

  /// Cases with an empty name are never found.
  init(name: (Case) -> String) {
    let ordered = Case.allCases
      .map { Entry(name: PackedName(name($0)), value: $0) }
      .filter { $0.name.count > 0 }
      .sorted { $0.name.count < $1.name.count }
    entries = ordered
    starts = (0...PackedName.capacityBytes + 2).map { count in
      UInt8(truncatingIfNeeded: ordered.count { $0.name.count < count })
    }
  }

  func find(_ name: PackedName) -> Case? {
    var index = Int(starts[name.count])
    let end = Int(starts[name.count + 1])
    while index < end {
      if entries[index].name == name { return entries[index].value }
      index += 1
    }
    return nil
  }
}
