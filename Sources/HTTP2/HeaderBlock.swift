import CNghttp2

/// A header block to send, built flat: one array of bytes and one of entries, both kept between
/// uses. Make one, `removeAll`, append, pass it to `respond` or `request`; libnghttp2 copies what
/// it needs during the call.
///
/// Pseudo-header fields come first. Names must be lower case (RFC 9113 section 8.2.1).
package struct HeaderBlock: Sendable {
  /// What HPACK may remember of a field (RFC 7541 section 6.2).
  package enum Indexing: UInt8, Sendable {
    /// Name and value go into the table: for values that come again. In answers only where both
    /// are static.
    case incremental
    /// Nothing new goes into the table: for secrets and for values that never come again.
    case withoutIndexing
    /// The first field of that name on a connection goes into the table, later ones refer to its
    /// name and spell out the value: for values that differ every time (`apns-id`). Needs a static
    /// name; as `withoutIndexing` otherwise.
    case nameOnly
  }

  struct Entry {
    /// An offset into `bytes`, or an address when the flag for not copying is set.
    var name: UInt
    var value: UInt
    var nameCount: Int32
    var valueCount: Int32
    /// `NGHTTP2_NV_FLAG_NO_COPY_NAME` and `…_VALUE` where the address is that of a literal.
    var flags: UInt8
    var indexing: Indexing
  }

  private(set) var bytes: [UInt8] = []
  private(set) var entries: [Entry] = []

  package init() {}

  /// Fields so far.
  package var count: Int { entries.count }

  /// Empties the block; keeps the memory unless told otherwise.
  package mutating func removeAll(keepingCapacity: Bool = true) {
    bytes.removeAll(keepingCapacity: keepingCapacity)
    entries.removeAll(keepingCapacity: keepingCapacity)
  }

  /// A field known at compile time, `":status"` `"200"`: nothing is copied, here or later.
  package mutating func append(
    _ name: StaticString, literal value: StaticString, indexing: Indexing = .incremental
  ) {
    var entry = Entry(staticName: name, indexing: indexing)
    entry.value = UInt(bitPattern: value.utf8Start)
    entry.valueCount = Int32(truncatingIfNeeded: value.utf8CodeUnitCount)
    entry.flags |= UInt8(NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue)
    entries.append(entry)
  }

  /// A field with a value of bytes.
  package mutating func append(
    _ name: StaticString, bytes value: Span<UInt8>, indexing: Indexing = .incremental
  ) {
    var entry = Entry(staticName: name, indexing: indexing)
    entry.setValue(add(value))
    entries.append(entry)
  }

  /// A field with a value of text.
  package mutating func append(
    _ name: StaticString, _ value: String, indexing: Indexing = .incremental
  ) {
    var entry = Entry(staticName: name, indexing: indexing)
    entry.setValue(add(value))
    entries.append(entry)
  }

  /// A field with a decimal number for a value.
  package mutating func append(
    _ name: StaticString, _ value: Int, indexing: Indexing = .incremental
  ) {
    append(name, String(value), indexing: indexing)
  }

  /// A field whose name, too, is known only at run time.
  package mutating func append(
    name: String, value: String, indexing: Indexing = .incremental
  ) {
    let nameRange = add(name)
    var entry = Entry(
      name: UInt(bitPattern: nameRange.lowerBound), value: 0,
      nameCount: Int32(truncatingIfNeeded: nameRange.count), valueCount: 0, flags: 0,
      indexing: indexing == .nameOnly ? .withoutIndexing : indexing)
    entry.setValue(add(value))
    entries.append(entry)
  }

  private mutating func add(_ value: Span<UInt8>) -> Range<Int> {
    let start = bytes.count
    value.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
    return start..<bytes.count
  }

  private mutating func add(_ value: String) -> Range<Int> {
    let start = bytes.count
    bytes.append(contentsOf: value.utf8)
    return start..<bytes.count
  }
}

extension HeaderBlock.Entry {
  /// Literals live as long as the process, so that libnghttp2 need not copy them.
  init(staticName name: StaticString, indexing: HeaderBlock.Indexing) {
    self.name = UInt(bitPattern: name.utf8Start)
    self.value = 0
    self.nameCount = Int32(truncatingIfNeeded: name.utf8CodeUnitCount)
    self.valueCount = 0
    self.flags = UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue)
    self.indexing = indexing
  }

  mutating func setValue(_ range: Range<Int>) {
    value = UInt(bitPattern: range.lowerBound)
    valueCount = Int32(truncatingIfNeeded: range.count)
  }
}

/// The names a session has put into the table by `nameOnly`, by the address of their literals.
/// A handful at most, so a plain array is the quickest set.
struct IndexedNames {
  private var addresses: [UInt] = []

  /// Whether the name is new; remembers it. Past 16 names nothing more is indexed.
  mutating func insert(_ address: UInt) -> Bool {
    if addresses.contains(address) || addresses.count == 16 { return false }
    addresses.append(address)
    return true
  }
}

extension HeaderBlock {
  /// A field of the block, where it stands.
  struct Field {
    let name: UnsafeRawBufferPointer
    let value: UnsafeRawBufferPointer
    let indexing: Indexing
    /// Whether it is a literal, whose address says which.
    let hasStaticName: Bool
    let hasStaticValue: Bool
  }

  /// Calls `body` with each field.
  func withFields(_ body: (Field) -> Void) {
    bytes.withUnsafeBufferPointer { storage in
      for entry in entries {
        let hasStaticName = entry.flags & UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue) != 0
        let hasStaticValue = entry.flags & UInt8(NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue) != 0
        body(
          Field(
            name: UnsafeRawBufferPointer(
              start: Entry.pointer(entry.name, literal: hasStaticName, storage),
              count: Int(entry.nameCount)),
            value: UnsafeRawBufferPointer(
              start: Entry.pointer(entry.value, literal: hasStaticValue, storage),
              count: Int(entry.valueCount)),
            indexing: entry.indexing, hasStaticName: hasStaticName,
            hasStaticValue: hasStaticValue))
      }
    }
  }

  /// Calls `body` with the block in libnghttp2's form, on the stack for ordinary sizes.
  func withNameValues<Result>(
    _ names: inout IndexedNames,
    _ body: (UnsafeMutablePointer<nghttp2_nv>, Int) -> Result
  ) -> Result {
    bytes.withUnsafeBufferPointer { storage in
      withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: max(1, entries.count)) {
        fields in
        for (index, entry) in entries.enumerated() {
          fields.initializeElement(at: index, to: entry.nameValue(storage, &names))
        }
        return body(fields.baseAddress.unsafelyUnwrapped, entries.count)
      }
    }
  }
}

extension HeaderBlock.Entry {
  fileprivate func nameValue(
    _ storage: UnsafeBufferPointer<UInt8>, _ names: inout IndexedNames
  ) -> nghttp2_nv {
    let noCopyName = flags & UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue) != 0
    let noCopyValue = flags & UInt8(NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue) != 0
    var flags = flags
    let index =
      switch indexing {
      case .incremental: true
      case .withoutIndexing: false
      case .nameOnly: noCopyName && names.insert(name)
      }
    if !index { flags |= UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) }
    return nghttp2_nv(
      name: Self.pointer(name, literal: noCopyName, storage),
      value: Self.pointer(value, literal: noCopyValue, storage),
      namelen: Int(nameCount), valuelen: Int(valueCount), flags: flags)
  }

  /// libnghttp2 takes `uint8_t *` but never writes through it.
  fileprivate static func pointer(
    _ place: UInt, literal: Bool, _ storage: UnsafeBufferPointer<UInt8>
  ) -> UnsafeMutablePointer<UInt8>? {
    if literal { return UnsafeMutablePointer(bitPattern: place) }
    guard let base = storage.baseAddress else { return nil }
    return UnsafeMutablePointer(mutating: base + Int(bitPattern: place))
  }
}
