/// Reads what `StateArchive.encoded` wrote. Every length is checked against what is left before
/// anything is allocated, so bytes of any origin are safe to read.
struct ArchiveReader {
  private let bytes: ArraySlice<UInt8>
  private var offset: Int

  init(bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    offset = bytes.startIndex
  }

  private var left: Int { bytes.endIndex - offset }

  private func expected(_ what: String) -> ArchiveError {
    .malformed(offset: offset, expected: what)
  }

  private mutating func byte() throws(ArchiveError) -> UInt8 {
    guard left > 0 else { throw expected("more bytes") }
    defer { offset += 1 }
    return bytes[offset]
  }

  mutating func unsigned() throws(ArchiveError) -> UInt64 {
    var number: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 64, by: 7) {
      let next = try byte()
      let bits = UInt64(next & 0x7F)
      guard shift < 63 || bits <= 1 else { break }
      number |= bits << shift
      if next < 0x80 { return number }
    }
    throw expected("a number of 64 bits")
  }

  mutating func signed() throws(ArchiveError) -> Int64 {
    let number = try unsigned()
    return Int64(bitPattern: (number >> 1) ^ (0 &- (number & 1)))
  }

  /// A count of things of at least one byte each.
  mutating func count(limit: Int = .max) throws(ArchiveError) -> Int {
    let count = try unsigned()
    guard count <= UInt64(min(left, limit)) else { throw expected("a smaller count") }
    return Int(count)
  }

  mutating func data() throws(ArchiveError) -> ArraySlice<UInt8> {
    let count = try count()
    defer { offset += count }
    return bytes[offset..<offset + count]
  }

  mutating func text() throws(ArchiveError) -> String {
    let start = offset
    guard let text = String(validating: try data(), as: UTF8.self) else {
      throw .malformed(offset: start, expected: "UTF-8")
    }
    return text
  }

  /// Another object's place, as place + 1; 0 for none.
  mutating func place(below count: Int) throws(ArchiveError) -> StateObjectID? {
    let number = try unsigned()
    guard number <= UInt64(count) else { throw expected("the place of an object") }
    return number == 0 ? nil : StateObjectID(number: Int32(number - 1))
  }

  mutating func object(place: Int, count: Int) throws(ArchiveError) -> StateArchive.Object {
    var components: [String] = []
    for _ in 0..<(try self.count()) { components.append(try text()) }
    guard !components.isEmpty else { throw expected("a path") }
    let className = try text()
    let flags = try byte()
    guard flags < 4 else { throw expected("flags") }
    let restorationClass = flags & 2 == 0 ? nil : try text()
    let parent = try self.place(below: place)
    var entries: [StateObject.Entry] = []
    for _ in 0..<(try self.count()) {
      let key = try text()
      entries.append(.init(key: key, value: try value(count: count, depth: 0)))
    }
    return StateArchive.Object(
      path: StatePath(components), className: className, restorationClass: restorationClass,
      isRegistered: flags & 1 != 0, parent: parent, entries: entries)
  }

  private mutating func value(count: Int, depth: Int) throws(ArchiveError) -> StateValue {
    guard depth <= PhoneLimits.archiveDepth else { throw expected("fewer lists in lists") }
    guard let tag = ArchiveTag(rawValue: try byte()) else { throw expected("a kind of value") }
    switch tag {
    case .number: return .number(try signed())
    case .text: return .text(try text())
    case .no: return .flag(false)
    case .yes: return .flag(true)
    case .data: return .data(Array(try data()))
    case .reference:
      let place = try unsigned()
      guard place < UInt64(count) else { throw expected("the place of an object") }
      return .reference(StateObjectID(number: Int32(place)))
    case .list:
      var values: [StateValue] = []
      for _ in 0..<(try self.count()) { values.append(try value(count: count, depth: depth + 1)) }
      return .list(values)
    }
  }

  func finish() throws(ArchiveError) {
    guard left == 0 else { throw expected("the end") }
  }
}
