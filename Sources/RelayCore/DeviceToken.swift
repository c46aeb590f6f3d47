import Primitives

/// An opaque string of bytes that names one app on one device.
///
/// Its length must not be assumed (Apple, "Registering your app with APNs"): 2 to 100 bytes are
/// accepted; this relay mints 32. Up to 32 are stored inline; longer ones cost one allocation.
package struct DeviceToken: Hashable, Sendable {
  package private(set) var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
  private var length: UInt8 = 0
  /// Bytes beyond 32; nil costs no reference count.
  private var rest: Rest?

  private final class Rest: Sendable {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) {
      self.bytes = bytes
    }
  }

  /// A placeholder: free slab places, and tokens that are hidden from devices.
  package static let vacant = DeviceToken()

  private init() {}

  package var count: Int { Int(length) }

  /// Nil outside `Limits.deviceTokenBytes`.
  package init?(bytes: Span<UInt8>) {
    guard Limits.deviceTokenBytes.contains(bytes.count) else { return nil }
    length = UInt8(bytes.count)
    if bytes.count == 32 {
      words = (
        bigEndianWord(bytes, at: 0), bigEndianWord(bytes, at: 8), bigEndianWord(bytes, at: 16),
        bigEndianWord(bytes, at: 24)
      )
      return
    }
    for index in 0..<min(bytes.count, 32) { append(bytes[index], at: index) }
    guard bytes.count > 32 else { return }
    rest = Rest((32..<bytes.count).map { bytes[$0] })
  }

  /// Hexadecimal digits in either case, as in `/3/device/<token>`.
  package init?(hexadecimal text: Span<UInt8>) {
    let byteCount = text.count / 2
    guard text.count == byteCount * 2, Limits.deviceTokenBytes.contains(byteCount) else {
      return nil
    }
    length = UInt8(byteCount)
    if byteCount == 32 {
      // As this relay mints them.
      var invalid: UInt64 = 0
      words = (
        hexadecimalWord(text, at: 0, &invalid), hexadecimalWord(text, at: 16, &invalid),
        hexadecimalWord(text, at: 32, &invalid), hexadecimalWord(text, at: 48, &invalid)
      )
      guard invalid == 0 else { return nil }
      return
    }
    // Four bytes at a time up to the end of the words.
    let inWords = min(byteCount, 32) & ~3
    for start in stride(from: 0, to: inWords, by: 4) {
      let digits = paddedWord(text, at: start &* 2)
      guard let four = hexadecimalValue(eightDigits: digits) else { return nil }
      append(four, at: start)
    }
    var rest: [UInt8] = []
    for index in inWords..<byteCount {
      guard let high = hexadecimalValue(text[index &* 2]),
        let low = hexadecimalValue(text[index &* 2 &+ 1])
      else { return nil }
      if index < 32 {
        append(high << 4 | low, at: index)
      } else {
        rest.append(high << 4 | low)
      }
    }
    if !rest.isEmpty { self.rest = Rest(rest) }
  }

  package init?(hexadecimal text: some StringProtocol) {
    let bytes = Array(text.utf8)
    self.init(hexadecimal: bytes.span)
  }

  /// A minted token: three random words, then the device's routing key.
  package init(random: (UInt64, UInt64, UInt64), routingKey: UInt64) {
    words = (random.0, random.1, random.2, routingKey)
    length = 32
  }

  /// A token of sixteen bytes, as in recordings.
  package init(name: UInt64, routingKey: UInt64) {
    words = (name, routingKey, 0, 0)
    length = 16
  }

  /// Selects the token's shard: the last eight bytes, zero-extended. A minted token ends with its
  /// device's routing key, so that app and token share a shard.
  package var routingKey: UInt64 {
    @inline(__always) get { length == 32 ? words.3 : lastEightBytes }
  }

  private var lastEightBytes: UInt64 {
    guard length != 16 else { return words.1 }
    var key: UInt64 = 0
    for index in max(0, count - 8)..<count { key = key << 8 | UInt64(byte(at: index)) }
    return key
  }

  package var bytes: [UInt8] {
    (0..<count).map { byte(at: $0) }
  }

  /// In lower case.
  package var hexadecimal: String {
    var text: [UInt8] = []
    text.reserveCapacity(count * 2)
    for index in 0..<count {
      let value = byte(at: index)
      text.append(hexadecimalDigit(value >> 4))
      text.append(hexadecimalDigit(value & 0xF))
    }
    return String(decoding: text, as: UTF8.self)
  }

  package static func == (left: DeviceToken, right: DeviceToken) -> Bool {
    left.words == right.words && left.length == right.length
      && left.rest?.bytes == right.rest?.bytes
  }

  /// A hash of `rest`; 0 for nil.
  @inline(__always)
  var restHash: UInt32 {
    guard let rest else { return 0 }
    return UInt32(truncatingIfNeeded: rest.bytes.hashValue)
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
    hasher.combine(words.2)
    hasher.combine(words.3)
    if let rest { hasher.combine(rest.bytes) }
  }

  @inline(__always)
  private mutating func append(_ byte: UInt8, at index: Int) {
    switch index >> 3 {
    case 0: words.0 = words.0 << 8 | UInt64(byte)
    case 1: words.1 = words.1 << 8 | UInt64(byte)
    case 2: words.2 = words.2 << 8 | UInt64(byte)
    default: words.3 = words.3 << 8 | UInt64(byte)
    }
  }

  @inline(__always)
  private mutating func append(_ four: UInt32, at index: Int) {
    switch index >> 3 {
    case 0: words.0 = words.0 << 32 | UInt64(four)
    case 1: words.1 = words.1 << 32 | UInt64(four)
    case 2: words.2 = words.2 << 32 | UInt64(four)
    default: words.3 = words.3 << 32 | UInt64(four)
    }
  }

  private func byte(at index: Int) -> UInt8 {
    let word: UInt64
    switch index >> 3 {
    case 0: word = words.0
    case 1: word = words.1
    case 2: word = words.2
    case 3: word = words.3
    default: return rest?.bytes[index - 32] ?? 0
    }
    let bytesInWord = min(8, count - index & ~7)
    return UInt8(truncatingIfNeeded: word >> UInt64((bytesInWord - 1 - index & 7) * 8))
  }
}
