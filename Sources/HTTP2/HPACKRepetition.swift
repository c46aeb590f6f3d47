import Glibc

/// The fields of the header block that was reported last on a connection.
///
/// A provider sends the same head again and again but for its path. The identities of fields in
/// HPACK's tables say so, or, of those the peer will not have in a table (its token above all, RFC
/// 7541 section 7.1.3), their bytes as they came. What is repeated is neither decoded, nor copied,
/// nor told by its name and parsed anew.
///
/// Invariant: while a block is being received, the first `count` fields are the block's own so
/// far; what lies behind them is left from the block before.
struct HPACKRepetition {
  struct Known {
    /// 0 for a field that stands in no table.
    var identity = 0
    /// 0 for a name that was spelled out, of which nothing is known: it is not the same as any.
    var nameIdentity = 0
    var traits: FieldTraits = []
    /// As SETTINGS_MAX_HEADER_LIST_SIZE counts it (RFC 9113 section 6.5.2).
    var listBytes = 0
    /// Of a `content-length`.
    var contentLength = -1
  }

  private struct Text {
    /// Name and value in plain; the value's first byte is at `nameCount`.
    var plain: [UInt8] = []
    var nameCount = 0
    /// The value as it came, for a field in no table.
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

    /// A place must not keep what its longest field ever took: a peer could have each place in turn
    /// grow to the size of a whole block.
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
  /// Whether all names so far are those of the block before, which was reported whole.
  private(set) var keepsShape = false
  private var isWhole = false

  /// Memory that is held.
  var heldBytes: Int {
    let places = known.capacity * MemoryLayout<Known>.stride
    return places + texts.reduce(texts.capacity * MemoryLayout<Text>.stride) { $0 + $1.heldBytes }
  }

  /// A new block begins.
  mutating func begin() {
    keepsShape = isWhole && count == known.count
    isWhole = false
    count = 0
  }

  /// The block ended and was reported: the next one may refer to it.
  mutating func end() {
    isWhole = true
    guard count < known.count else { return }
    known.removeSubrange(count...)
    texts.removeSubrange(count...)
  }

  /// Whether the field with this identity stood here in the block before.
  @inline(__always)
  func repeats(_ identity: Int) -> Bool {
    keepsShape && count < known.count && known[count].identity == identity
  }

  /// Whether a field in no table stood here in the block before.
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

  /// Takes a field that `repeats`.
  @inline(__always)
  mutating func takeRepeated() -> Known {
    count &+= 1
    return known[count &- 1]
  }

  /// Takes any other field. False when this is the one that breaks the shape.
  ///
  /// - Parameter coded: the value as it came, where that is worth remembering.
  mutating func take(
    _ field: Known, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer,
    coded: CodedString?
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
      // What an older block left here must not pass for this one's.
      texts[count].forget()
    }
    count += 1
    return !hadShape || keepsShape
  }

  /// The block is over: false when it had fewer fields than the one before and so breaks the shape.
  mutating func closesShape() -> Bool {
    guard keepsShape, count < known.count else { return true }
    keepsShape = false
    return false
  }

  /// Name and value, one behind the other, of a field that was taken as repeated.
  func text(_ index: Int) -> (bytes: [UInt8], nameCount: Int) {
    (texts[index].plain, texts[index].nameCount)
  }
}
