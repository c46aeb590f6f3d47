import CNghttp2
import Glibc

/// The fields of one header block as libnghttp2 holds them: counted buffers, which for everything
/// that stands in HPACK's tables are the very same ones from block to block.
///
/// A provider sends the same head again and again but for its path. Two addresses say so, where
/// otherwise every value would be copied, told by its name and parsed anew (and where they do not,
/// the bytes may). While a buffer is held
/// here its address cannot become another's.
///
/// Invariant: while a block is being received, the first `count` fields are the block's own so
/// far; what lies behind them is left from the block before.
struct HeaderMemory {
  struct Field {
    var name: OpaquePointer
    var value: OpaquePointer
    /// As SETTINGS_MAX_HEADER_LIST_SIZE counts it (RFC 9113 section 6.5.2).
    var listBytes: Int
  }

  private var fields: [Field] = []
  /// Fields of the block being received, or of the last one.
  private(set) var count = 0
  /// Whether all names so far are those of the block before, which was reported whole.
  private(set) var keepsShape = false
  private var isWhole = false

  /// A new block begins.
  mutating func begin() {
    keepsShape = isWhole && count == fields.count
    isWhole = false
    count = 0
  }

  /// The block ended and was reported: the next one may refer to it.
  mutating func end() {
    isWhole = true
    drop(from: count)
  }

  /// Whether this is the field that stood here in the block before.
  ///
  /// A value that is never to be indexed comes in a buffer of its own each time, the provider's
  /// token above all (RFC 7541 section 7.1.3); its bytes say whether it is the same.
  @inline(__always)
  func repeats(_ name: OpaquePointer, _ value: OpaquePointer) -> Bool {
    guard keepsShape, count < fields.count else { return false }
    let known = fields[count]
    guard known.name == name else { return false }
    return known.value == value || Self.areEqual(known.value, value)
  }

  private static func areEqual(_ left: OpaquePointer, _ right: OpaquePointer) -> Bool {
    let (left, right) = (nghttp2_rcbuf_get_buf(left), nghttp2_rcbuf_get_buf(right))
    return left.len == right.len && memcmp(left.base, right.base, left.len) == 0
  }

  /// Takes a field that `repeats`; returns its list bytes.
  @inline(__always)
  mutating func takeRepeated() -> Int {
    count &+= 1
    return fields[count &- 1].listBytes
  }

  /// Takes any other field. False when this is the one that breaks the shape.
  mutating func take(_ name: OpaquePointer, _ value: OpaquePointer, listBytes: Int) -> Bool {
    nghttp2_rcbuf_incref(name)
    nghttp2_rcbuf_incref(value)
    let field = Field(name: name, value: value, listBytes: listBytes)
    let hadShape = keepsShape
    if count < fields.count {
      let old = fields[count]
      keepsShape = keepsShape && old.name == name
      fields[count] = field
      nghttp2_rcbuf_decref(old.name)
      nghttp2_rcbuf_decref(old.value)
    } else {
      keepsShape = false
      fields.append(field)
    }
    count += 1
    return !hadShape || keepsShape
  }

  /// The block is over: false when it had fewer fields than the one before and so breaks the shape.
  mutating func closesShape() -> Bool {
    guard keepsShape, count < fields.count else { return true }
    keepsShape = false
    return false
  }

  /// One field of the block being received.
  subscript(index: Int) -> Field { fields[index] }

  /// Lets go of all buffers; before the session is deleted, whose memory they are.
  mutating func destroy() {
    drop(from: 0)
    isWhole = false
  }

  private mutating func drop(from start: Int) {
    while fields.count > start {
      let field = fields.removeLast()
      nghttp2_rcbuf_decref(field.name)
      nghttp2_rcbuf_decref(field.value)
    }
  }
}
