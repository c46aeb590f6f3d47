import Primitives

/// Archives as bytes: the seam to whoever seals and stores them.
///
/// ```
/// "PRSA" format(1)                        five bytes
/// app version, system version             texts
/// saved at                                signed number
/// count of objects, objects               parents before children
/// top                                     place + 1, or 0
/// checksum                                FNV-1a 64 of everything before, 8 bytes little-endian
/// ```
/// Numbers are LEB128, signed ones zigzag; a text is its length in bytes and its UTF-8. The
/// checksum finds damage; against forgery the bytes are sealed outside.
extension StateArchive {
  static let magic: [UInt8] = [0x50, 0x52, 0x53, 0x41, 1]
  static let checksumBytes = 8

  /// The archive's bytes.
  package func encoded() -> [UInt8] {
    var writer = ArchiveWriter()
    writer.bytes = Self.magic
    writer.write(appVersion)
    writer.write(systemVersion)
    writer.write(signed: savedAt.milliseconds)
    writer.write(unsigned: UInt64(objects.count))
    for object in objects { writer.write(object) }
    writer.write(place: top)
    let checksum = fnv1a(writer.bytes[...])
    for shift in 0..<UInt64(Self.checksumBytes) {
      writer.bytes.append(UInt8(truncatingIfNeeded: checksum >> (8 * shift)))
    }
    return writer.bytes
  }

  /// Reads an archive's bytes, whoever wrote them.
  package init(decoding bytes: [UInt8]) throws(ArchiveError) {
    guard bytes.count <= PhoneLimits.archiveBytes else {
      throw .malformed(offset: bytes.count, expected: "at most \(PhoneLimits.archiveBytes) bytes")
    }
    let end = bytes.count - Self.checksumBytes
    guard end >= Self.magic.count, bytes.starts(with: Self.magic) else {
      throw .malformed(offset: 0, expected: "an archive of format 1")
    }
    var checksum: UInt64 = 0
    for index in 0..<Self.checksumBytes { checksum |= UInt64(bytes[end + index]) << (8 * index) }
    guard checksum == fnv1a(bytes[..<end]) else {
      throw .malformed(offset: end, expected: "the right checksum")
    }
    var reader = ArchiveReader(bytes: bytes[Self.magic.count..<end])
    let appVersion = try reader.text()
    let systemVersion = try reader.text()
    let savedAt = Instant(milliseconds: try reader.signed())
    let count = try reader.count(limit: PhoneLimits.archiveObjects)
    var objects: [Object] = []
    objects.reserveCapacity(count)
    for place in 0..<count { objects.append(try reader.object(place: place, count: count)) }
    let top = try reader.place(below: count)
    try reader.finish()
    self.init(
      appVersion: appVersion, systemVersion: systemVersion, savedAt: savedAt, objects: objects,
      top: top)
  }
}

/// FNV-1a, 64 bits (RFC 9923 has the constants).
func fnv1a(_ bytes: ArraySlice<UInt8>) -> UInt64 {
  var hash: UInt64 = 0xCBF2_9CE4_8422_2325
  for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
  return hash
}

/// The kinds of value, as they stand in the bytes.
enum ArchiveTag: UInt8 {
  case number = 1
  case text
  case no
  case yes
  case data
  case reference
  case list
  case bookmark
}

private struct ArchiveWriter {
  var bytes: [UInt8] = []

  mutating func write(unsigned number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func write(signed number: Int64) {
    write(unsigned: UInt64(bitPattern: (number << 1) ^ (number >> 63)))
  }

  mutating func write(_ text: String) {
    write(unsigned: UInt64(text.utf8.count))
    bytes.append(contentsOf: text.utf8)
  }

  mutating func write(place: StateObjectID?) {
    write(unsigned: place.map { UInt64($0.number) + 1 } ?? 0)
  }

  mutating func write(_ object: StateArchive.Object) {
    write(unsigned: UInt64(object.path.components.count))
    for component in object.path.components { write(component) }
    write(object.className)
    bytes.append((object.isRegistered ? 1 : 0) | (object.restorationClass == nil ? 0 : 2))
    if let restorationClass = object.restorationClass { write(restorationClass) }
    write(place: object.parent)
    write(unsigned: UInt64(object.entries.count))
    for entry in object.entries {
      write(entry.key)
      write(entry.value)
    }
  }

  mutating func write(_ value: StateValue) {
    switch value {
    case .number(let number):
      bytes.append(ArchiveTag.number.rawValue)
      write(signed: number)
    case .text(let text):
      bytes.append(ArchiveTag.text.rawValue)
      write(text)
    case .flag(let flag):
      bytes.append((flag ? ArchiveTag.yes : .no).rawValue)
    case .data(let data):
      bytes.append(ArchiveTag.data.rawValue)
      write(unsigned: UInt64(data.count))
      bytes.append(contentsOf: data)
    case .bookmark(let data):
      bytes.append(ArchiveTag.bookmark.rawValue)
      write(unsigned: UInt64(data.count))
      bytes.append(contentsOf: data)
    case .reference(let place):
      bytes.append(ArchiveTag.reference.rawValue)
      write(unsigned: UInt64(place.number))
    case .list(let values):
      bytes.append(ArchiveTag.list.rawValue)
      write(unsigned: UInt64(values.count))
      for value in values { write(value) }
    }
  }
}

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
    case .bookmark: return .bookmark(Array(try data()))
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

/// An archive as text, for `pushrelay archive print`: the restoration classes, the three keys on
/// top, then each object with its class and its keys (WWDC 2013 session 222).
extension StateArchive: CustomStringConvertible {
  package var description: String {
    var lines = ["restoration classes:"]
    var seen: Set<String> = []
    for case let name? in objects.map(\.restorationClass) where seen.insert(name).inserted {
      lines.append("  \(name)")
    }
    lines.append("app version: \(appVersion)")
    lines.append("system version: \(systemVersion)")
    lines.append("timestamp: \(savedAt.iso8601)")
    for (index, object) in objects.enumerated() {
      let marks = [
        object.isRegistered ? "registered" : nil,
        top?.number == Int32(index) ? "on top" : nil,
      ].compactMap { $0 }
      let suffix = marks.isEmpty ? "" : " (\(marks.joined(separator: ", ")))"
      lines.append("\(object.path): \(object.className)\(suffix)")
      for entry in object.entries { lines.append("  \(entry.key) = \(text(entry.value))") }
    }
    return lines.joined(separator: "\n")
  }

  private func text(_ value: StateValue) -> String {
    switch value {
    case .number(let number): "\(number)"
    case .text(let text): "\"\(text)\""
    case .flag(let flag): flag ? "yes" : "no"
    case .data(let data): "\(data.count) bytes"
    case .bookmark: "a bookmark"
    case .reference(let place): "-> \(objects[Int(place.number)].path)"
    case .list(let values): "[\(values.map(text).joined(separator: ", "))]"
    }
  }
}

extension RestorationStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .found(let path): "\(path): found"
    case .recreated(let path, let name): "\(path): recreated by \(name)"
    case .skipped(let path, .answeredNothing(let name)): "\(path): skipped, \(name) has it no more"
    case .skipped(let path, .noRestorationClass): "\(path): skipped, nobody can make it"
    case .skipped(let path, .parentSkipped): "\(path): skipped with its parent"
    case .wired(let path, let key): "\(path): \(key) refers again"
    case .unwired(let path, let key): "\(path): \(key) refers to nothing now"
    case .decoded(let path): "\(path): decoded"
    case .finished(let path): "\(path): finished"
    case .applied(let path, let key): "\(path): \(key) applied, of what another decoded"
    }
  }
}
