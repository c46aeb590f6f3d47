import Glibc

/// The fields of the last header block reported on a connection. A provider repeats the same head
/// but for its path. Fields repeat if their identities in HPACK's tables do, or, for those kept out
/// of a table (its token above all, RFC 7541 section 7.1.3), their coded bytes. Repeated fields are
/// not decoded, copied or parsed again.
///
/// Invariant: while a block is being received, the first `count` fields are its own, those behind
/// them are left from the block before.
struct HPACKRepetition {
  struct Known {
    /// 0 for a field in no table.
    var identity = 0
    /// 0 for a literal name, which equals no other.
    var nameIdentity = 0
    var traits: FieldTraits = []
    /// As SETTINGS_MAX_HEADER_LIST_SIZE counts it (RFC 9113 section 6.5.2).
    var listBytes = 0
    var contentLength = -1
  }

  private struct Text {
    /// Decoded name and value; the value starts at `nameCount`.
    var plain: [UInt8] = []
    var nameCount = 0
    /// The value as received, for a field in no table.
    var coded: [UInt8] = []

    mutating func forget() {
      if plain.capacity > 0 { plain = [] }
      if coded.capacity > 0 { coded = [] }
    }

    mutating func set(
      _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ newCoded: CodedString?
    ) {
      Self.clear(&plain, for: name.count + value.count)
      plain.append(contentsOf: name)
      plain.append(contentsOf: value)
      nameCount = name.count
      Self.clear(&coded, for: newCoded.map { $0.bytes.count + 1 } ?? 0)
      guard let newCoded else { return }
      coded.append(newCoded.isHuffman ? 1 : 0)
      coded.append(contentsOf: newCoded.bytes)
    }

    /// Limits what a place keeps after a long field: a peer could grow each in turn to a whole
    /// block.
    private static func clear(_ bytes: inout [UInt8], for count: Int) {
      if bytes.capacity > 2 * count + 64 {
        bytes = []
      } else {
        bytes.removeAll(keepingCapacity: true)
      }
    }

    var heldBytes: Int { plain.capacity + coded.capacity }
  }

  private var known: [Known] = []
  private var texts: [Text] = []
  /// Fields of the block being received, or of the last one.
  private(set) var count = 0
  /// True while all names equal those of the block before, which was reported whole.
  private(set) var keepsShape = false
  private var isWhole = false

  var heldBytes: Int {
    let places = known.capacity * MemoryLayout<Known>.stride
    return places + texts.reduce(texts.capacity * MemoryLayout<Text>.stride) { $0 + $1.heldBytes }
  }

  mutating func begin() {
    keepsShape = isWhole && count == known.count
    isWhole = false
    count = 0
  }

  /// The block was reported: the next one may refer to it.
  mutating func end() {
    isWhole = true
    guard count < known.count else { return }
    known.removeSubrange(count...)
    texts.removeSubrange(count...)
  }

  /// True if the previous block had the field with this identity here.
  @inline(__always)
  func repeats(_ identity: Int) -> Bool {
    keepsShape && count < known.count && known[count].identity == identity
  }

  func repeats(nameIdentity: Int, coded: CodedString) -> Bool {
    guard keepsShape, count < known.count, known[count].nameIdentity == nameIdentity,
      known[count].identity == 0
    else { return false }
    let before = texts[count].coded
    guard before.count == coded.bytes.count + 1, before[0] == (coded.isHuffman ? 1 : 0),
      let bytes = coded.bytes.baseAddress
    else { return false }
    return before.withUnsafeBytes { before in
      before.baseAddress.map { memcmp($0 + 1, bytes, coded.bytes.count) == 0 } ?? false
    }
  }

  /// Records a field that `repeats`.
  @inline(__always)
  mutating func recordRepeated() -> Known {
    count &+= 1
    return known[count &- 1]
  }

  /// Records any other field, with its coded value if worth remembering. False when it is the first
  /// to break the shape.
  mutating func record(
    _ field: Known, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, coded: CodedString?
  ) -> Bool {
    let hadShape = keepsShape
    if count < known.count {
      keepsShape =
        keepsShape && field.nameIdentity != 0
        && known[count].nameIdentity == field.nameIdentity
      known[count] = field
    } else {
      keepsShape = false
      known.append(field)
      texts.append(Text())
    }
    if field.identity != 0 || coded != nil {
      texts[count].set(name, value, coded)
    } else {
      // An older block's text must not pass for this one's.
      texts[count].forget()
    }
    count += 1
    return !hadShape || keepsShape
  }

  /// Ends the block: false when it is shorter than the one before, which breaks the shape.
  mutating func closesShape() -> Bool {
    guard keepsShape, count < known.count else { return true }
    keepsShape = false
    return false
  }

  func text(_ index: Int) -> (bytes: [UInt8], nameCount: Int) {
    (texts[index].plain, texts[index].nameCount)
  }
}
