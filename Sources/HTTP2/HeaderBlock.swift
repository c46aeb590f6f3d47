import CNghttp2

/// A header block to send, flat in one array that is kept between uses; `respond` and `request`
/// copy it. Pseudo-header fields come first; names must be lower case (RFC 9113 section 8.2.1).
package struct HeaderBlock: Sendable {
  /// How the peer's HPACK table remembers a request's field (RFC 7541 section 6.2); it remembers
  /// nothing of answers.
  package enum Indexing: UInt8, Sendable {
    /// Name and value go into the table: for repeated values.
    case incremental
    /// Nothing goes into the table: for secrets and for values used once.
    case withoutIndexing
    /// Only the name's first field goes into the table, later ones refer to it: for values that
    /// always differ (`apns-id`). Needs a static name; otherwise like `withoutIndexing`.
    case nameOnly
  }

  /// Precedes each field; the name and the value follow unless they are static.
  struct Mark {
    /// The address of a static name or value, 0 for one that follows.
    var name: UInt = 0
    var value: UInt = 0
    var nameCount: UInt32
    var valueCount: UInt32
    var indexing: Indexing
  }

  static let markBytes = MemoryLayout<Mark>.size

  /// The fields, each after its mark.
  private(set) var record: [UInt8] = []
  package private(set) var count = 0
  /// The length of the block in HPACK at most: of a field a byte, and of a string its length.
  private(set) var encodedBytes = 0

  package init() {}

  package mutating func removeAll(keepingCapacity: Bool = true) {
    record.removeAll(keepingCapacity: keepingCapacity)
    (count, encodedBytes) = (0, 0)
  }

  /// Appends a constant field, `":status"` `"200"`, by its address.
  package mutating func append(
    _ name: StaticString, literal value: StaticString, indexing: Indexing = .incremental
  ) {
    var mark = Mark(name, value.utf8CodeUnitCount, indexing)
    mark.value = UInt(bitPattern: value.utf8Start)
    append(mark)
  }

  /// Returns the value's place, for `replace`.
  @discardableResult
  package mutating func append(
    _ name: StaticString, bytes value: Span<UInt8>, indexing: Indexing = .incremental
  ) -> Int {
    append(Mark(name, value.count, indexing))
    value.withUnsafeBufferPointer { record.append(contentsOf: $0) }
    return record.count - value.count
  }

  /// Overwrites a value by one of the same length.
  package mutating func replace(_ place: Int, by value: Span<UInt8>) {
    precondition(place >= 0 && place + value.count <= record.count, "no value is there")
    value.withUnsafeBytes { value in
      record.withUnsafeMutableBytes { $0[place..<(place + value.count)].copyBytes(from: value) }
    }
  }

  package mutating func append(
    _ name: StaticString, _ value: String, indexing: Indexing = .incremental
  ) {
    append(Mark(name, value.utf8.count, indexing))
    record.append(contentsOf: value.utf8)
  }

  package mutating func append(
    _ name: StaticString, _ value: Int, indexing: Indexing = .incremental
  ) {
    append(name, String(value), indexing: indexing)
  }

  /// Appends a field whose name is known only at run time.
  package mutating func append(name: String, value: String, indexing: Indexing = .incremental) {
    append(
      Mark(
        nameCount: UInt32(name.utf8.count), valueCount: UInt32(value.utf8.count),
        indexing: indexing == .nameOnly ? .withoutIndexing : indexing))
    record.append(contentsOf: name.utf8)
    record.append(contentsOf: value.utf8)
  }

  private mutating func append(_ mark: Mark) {
    withUnsafeBytes(of: mark) { record.append(contentsOf: $0) }
    count += 1
    encodedBytes += 1 + 2 * 6 + Int(mark.nameCount) + Int(mark.valueCount)
  }
}

extension HeaderBlock.Mark {
  /// Literals live as long as the process, so an address identifies one.
  init(_ name: StaticString, _ valueCount: Int, _ indexing: HeaderBlock.Indexing) {
    self.init(
      name: UInt(bitPattern: name.utf8Start), nameCount: UInt32(name.utf8CodeUnitCount),
      valueCount: UInt32(valueCount), indexing: indexing)
  }
}

struct BlockField {
  let name: UnsafeRawBufferPointer
  let value: UnsafeRawBufferPointer
  let indexing: HeaderBlock.Indexing
  let hasStaticName: Bool
  let hasStaticValue: Bool

  /// Reads and removes a record's first field; nil when there is none.
  @inline(__always)
  init?(takenFrom record: inout UnsafeRawBufferPointer) {
    guard let start = record.baseAddress, record.count >= HeaderBlock.markBytes else { return nil }
    let mark = record.loadUnaligned(as: HeaderBlock.Mark.self)
    hasStaticName = mark.name != 0
    hasStaticValue = mark.value != 0
    indexing = mark.indexing
    var next = start + HeaderBlock.markBytes
    let (nameCount, valueCount) = (Int(mark.nameCount), Int(mark.valueCount))
    if let address = UnsafeRawPointer(bitPattern: mark.name) {
      name = UnsafeRawBufferPointer(start: address, count: nameCount)
    } else {
      name = UnsafeRawBufferPointer(start: next, count: nameCount)
      next += nameCount
    }
    if let address = UnsafeRawPointer(bitPattern: mark.value) {
      value = UnsafeRawBufferPointer(start: address, count: valueCount)
    } else {
      value = UnsafeRawBufferPointer(start: next, count: valueCount)
      next += valueCount
    }
    record = UnsafeRawBufferPointer(rebasing: record[(next - start)...])
  }
}

/// Names that a client has put into the table by `nameOnly`, by their literals' addresses; few, so
/// a plain array is fastest.
struct IndexedNames {
  private var addresses: [UnsafeRawPointer] = []

  /// Adds a name; whether it is new. Above 16 names nothing more is indexed.
  mutating func insert(_ address: UnsafeRawPointer?) -> Bool {
    guard let address, !addresses.contains(address), addresses.count < 16 else { return false }
    addresses.append(address)
    return true
  }
}

extension HeaderBlock {
  /// Calls `body` with the block in libnghttp2's form, on the stack for ordinary sizes.
  func withNameValues<Result>(
    _ names: inout IndexedNames, _ body: (UnsafeMutablePointer<nghttp2_nv>, Int) -> Result
  ) -> Result {
    record.withUnsafeBytes { record in
      withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: max(1, count)) { fields in
        var rest = record
        var index = 0
        while let field = BlockField(takenFrom: &rest) {
          fields.initializeElement(at: index, to: field.nameValue(&names))
          index += 1
        }
        return body(fields.baseAddress.unsafelyUnwrapped, index)
      }
    }
  }
}

extension BlockField {
  fileprivate func nameValue(_ names: inout IndexedNames) -> nghttp2_nv {
    var flags: UInt8 = 0
    if hasStaticName { flags |= UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue) }
    if hasStaticValue { flags |= UInt8(NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue) }
    let index =
      switch indexing {
      case .incremental: true
      case .withoutIndexing: false
      case .nameOnly: names.insert(name.baseAddress)
      }
    if !index { flags |= UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) }
    return nghttp2_nv(
      name: Self.pointer(name), value: Self.pointer(value), namelen: name.count,
      valuelen: value.count, flags: flags)
  }

  /// libnghttp2 takes `uint8_t *` but never writes through it.
  private static func pointer(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutablePointer<UInt8>? {
    UnsafeMutableRawPointer(mutating: bytes.baseAddress)?.assumingMemoryBound(to: UInt8.self)
  }
}
