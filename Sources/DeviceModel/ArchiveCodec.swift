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
private func fnv1a(_ bytes: ArraySlice<UInt8>) -> UInt64 {
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
