/// The meaning of a field's name to HTTP/2 (RFC 9113 sections 8.2 and 8.3).
enum FieldKind: UInt8 {
  case regular
  case method, scheme, authority, path
  case otherPseudo
  case host, contentLength
  /// May be `trailers` only.
  case te
  /// Of an HTTP/1.1 connection: makes a request malformed.
  case connectionSpecific
  /// Not a field name: empty, or with upper case, blanks or control characters.
  case unusable

  init(name: UnsafeRawBufferPointer) {
    guard let first = name.first else {
      self = .unusable
      return
    }
    if first == UInt8(ascii: ":") {
      self = Self.names.first { $0.kind.isPseudo && matches(name, $0.name) }?.kind ?? .otherPseudo
    } else if !name.allSatisfy(Self.mayBeInName) {
      self = .unusable
    } else {
      self = Self.names.first { matches(name, $0.name) }?.kind ?? .regular
    }
  }

  private static let names: [(name: StaticString, kind: FieldKind)] = [
    (":method", .method), (":scheme", .scheme), (":authority", .authority), (":path", .path),
    ("host", .host), ("content-length", .contentLength), ("te", .te),
    ("connection", .connectionSpecific), ("keep-alive", .connectionSpecific),
    ("proxy-connection", .connectionSpecific), ("transfer-encoding", .connectionSpecific),
    ("upgrade", .connectionSpecific),
  ]

  private var isPseudo: Bool {
    self == .method || self == .scheme || self == .authority || self == .path
  }

  /// Characters of a token, without upper-case letters (RFC 9110 section 5.6.2).
  private static func mayBeInName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
    case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "!"): true
    case UInt8(ascii: "#")...UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"): true
    case UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"): true
    default: false
    }
  }
}

/// A field's contribution to a request; the union over all fields says whether the request is
/// well-formed. Computed once for a field in a table.
struct FieldTraits: OptionSet {
  let rawValue: UInt16
  static let regular = FieldTraits(rawValue: 1 << 0)
  static let method = FieldTraits(rawValue: 1 << 1)
  static let scheme = FieldTraits(rawValue: 1 << 2)
  static let authority = FieldTraits(rawValue: 1 << 3)
  static let path = FieldTraits(rawValue: 1 << 4)
  static let host = FieldTraits(rawValue: 1 << 5)
  static let contentLength = FieldTraits(rawValue: 1 << 6)
  /// The name or the value is invalid by itself.
  static let malformed = FieldTraits(rawValue: 1 << 7)
  /// `:method` is CONNECT, or OPTIONS.
  static let connect = FieldTraits(rawValue: 1 << 8)
  static let options = FieldTraits(rawValue: 1 << 9)
  /// `:scheme` is `http` or `https`, whose paths begin with a slash.
  static let web = FieldTraits(rawValue: 1 << 10)
  /// `:path` is `*`, or neither that nor begins with a slash.
  static let asterisk = FieldTraits(rawValue: 1 << 11)
  static let oddPath = FieldTraits(rawValue: 1 << 12)
  /// `:method` is HEAD.
  static let head = FieldTraits(rawValue: 1 << 13)

  static let pseudo: FieldTraits = [.method, .scheme, .authority, .path]
  /// At most once in a request.
  static let single: FieldTraits = [.method, .scheme, .authority, .path, .host, .contentLength]

  /// Blanks around a value are accepted: some clients send them.
  init(_ kind: FieldKind, value: UnsafeRawBufferPointer) {
    switch kind {
    case .regular: self = isPrintable(value) ? .regular : .malformed
    case .method:
      self = isVisible(value) ? .method : .malformed
      if matches(value, "CONNECT") { formUnion(.connect) }
      if matches(value, "OPTIONS") { formUnion(.options) }
      if matches(value, "HEAD") { formUnion(.head) }
    case .scheme:
      self = isVisible(value) ? .scheme : .malformed
      if matches(value, "https") || matches(value, "http") { formUnion(.web) }
    case .authority: self = isVisible(value) ? .authority : .malformed
    case .path:
      self = isVisible(value) ? .path : .malformed
      if value.first != UInt8(ascii: "/") {
        formUnion(matches(value, "*") ? .asterisk : .oddPath)
      }
    case .host: self = isVisible(value) ? [.host, .regular] : .malformed
    case .contentLength:
      self = FieldTraits.number(value) == nil ? .malformed : [.contentLength, .regular]
    case .te:
      // In any case of letters (RFC 9110 section 10.1.4); only bit 5 differs.
      let isTrailers = value.map { $0 | 0x20 }.elementsEqual("trailers".utf8)
      self = isTrailers ? .regular : .malformed
    case .otherPseudo, .connectionSpecific, .unusable: self = .malformed
    }
  }

  init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Adds a block's next field: pseudo-header fields come before all others (RFC 9113 section 8.3).
  @inline(__always)
  mutating func add(_ field: FieldTraits) {
    let isDouble = !isDisjoint(with: field.intersection(.single))
    let isLate = contains(.regular) && !field.isDisjoint(with: .pseudo)
    formUnion(field)
    if isDouble || isLate { formUnion(.malformed) }
  }

  /// RFC 9113 sections 8.3.1 and 8.5.
  var isRequest: Bool {
    guard !contains(.malformed) else { return false }
    if contains(.connect) { return contains(.authority) && isDisjoint(with: [.scheme, .path]) }
    guard isSuperset(of: [.method, .scheme, .path]), !isDisjoint(with: [.authority, .host]) else {
      return false
    }
    return !contains(.web) || isDisjoint(with: [.asterisk, .oddPath])
      || isSuperset(of: [.asterisk, .options])
  }

  /// RFC 9113 section 8.1.
  var areTrailers: Bool { isDisjoint(with: [.malformed, .pseudo]) }

  /// The number of a `content-length`; nil if invalid or larger than any body.
  static func number(_ value: UnsafeRawBufferPointer) -> Int? {
    guard (1...18).contains(value.count) else { return nil }
    var number = 0
    for byte in value {
      guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
      number = number * 10 + Int(byte - UInt8(ascii: "0"))
    }
    return number
  }
}

private func matches(_ bytes: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
  bytes.count == text.utf8CodeUnitCount
    && bytes.elementsEqual(
      UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
}

/// No control characters but tabs (RFC 9110 section 5.5).
private func isPrintable(_ value: UnsafeRawBufferPointer) -> Bool {
  !contains(value, below: 0x20)
    || value.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == UInt8(ascii: "\t") }
}

private func isVisible(_ value: UnsafeRawBufferPointer) -> Bool {
  !value.isEmpty && !contains(value, below: 0x21)
}

/// Looks for a byte below the limit (of at most 0x80), or 0x7F, eight at a time.
private func contains(_ value: UnsafeRawBufferPointer, below limit: UInt8) -> Bool {
  let ones: UInt64 = 0x0101_0101_0101_0101
  let (highs, limits, deletes) = (ones << 7, ones &* UInt64(limit), ones &* 0x7F)
  func isFound(_ word: UInt64) -> Bool {
    let other = word ^ deletes
    return ((word &- limits) & ~word | (other &- ones) & ~other) & highs != 0
  }
  guard value.count >= 8 else { return value.contains { $0 < limit || $0 == 0x7F } }
  var offset = 0
  while offset &+ 8 <= value.count {
    if isFound(value.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) { return true }
    offset &+= 8
  }
  return isFound(value.loadUnaligned(fromByteOffset: value.count &- 8, as: UInt64.self))
}
