package import RelayCore

/// What of the payloads a recording holds.
package enum RecordedPayloads: String, CaseIterable, Sendable {
  case none
  /// The member `aps`.
  case aps
  case all
}

/// Makes what is not for a recording into what may be in it: tokens and secrets into pseudonyms
/// under a key that stays with the relay, payloads into what was asked for.
///
/// A token's pseudonym keeps its last eight bytes, which say which partition it belongs to. Equal
/// ones stay equal and different ones different, which is all that a shard asks: with the
/// pseudonyms it decides the same. (A token of eight bytes or less is all routing key, and so stays
/// readable; this relay mints 32.)
package struct Redactor: Sendable {
  package let payloads: RecordedPayloads
  private let key: (UInt64, UInt64)

  package init(key: (UInt64, UInt64), payloads: RecordedPayloads) {
    self.key = key
    self.payloads = payloads
  }

  package func pseudonym(of token: DeviceToken) -> DeviceToken {
    var hash = SipHash(key: key)
    if token.count == 32 {
      let words = token.words
      for word in [words.0, words.1, words.2, words.3] { hash.add(word) }
    } else {
      for byte in token.bytes { hash.add(UInt64(byte)) }
    }
    hash.add(UInt64(token.count))
    return DeviceToken(
      random: (hash.next(), hash.next(), hash.next()), routingKey: token.routingKey)
  }

  package func pseudonym(of secret: SecretHash) -> SecretHash {
    var hash = SipHash(key: key)
    let words = secret.words
    for word in [words.0, words.1, words.2, words.3, 1 << 63] { hash.add(word) }
    return SecretHash(words: (hash.next(), hash.next(), hash.next(), hash.next()))
  }

  /// Providers put names into it; no shard looks at it.
  func collapseID(_ bytes: [UInt8]) -> [UInt8] {
    switch payloads {
    case .none: []
    case .aps, .all: bytes
    }
  }

  func payload(_ bytes: [UInt8]) -> [UInt8] {
    switch payloads {
    case .none: []
    case .aps: Self.aps(of: bytes)
    case .all: bytes
    }
  }

  /// An object with the member `aps` alone, the last one if there are several; empty when it is not
  /// there as such.
  private static func aps(of payload: [UInt8]) -> [UInt8] {
    let bytes = payload.span
    var found: Range<Int>?
    do throws(PayloadError) {
      var cursor = try ObjectCursor(bytes)
      while let member = try cursor.next(bytes) {
        let key = member.key
        if key.count == 3, payload[key].elementsEqual("aps".utf8) { found = member.value }
      }
    } catch {
      return []
    }
    return found.map { Array(#"{"aps":"#.utf8) + payload[$0] + [UInt8(ascii: "}")] } ?? []
  }
}

/// SipHash-2-4 over words (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012), with as
/// many words of output as are asked for, each two rounds after the one before. Whoever has no key
/// learns nothing from it.
struct SipHash: Sendable {
  private var state: SIMD4<UInt64>
  private var isFinished = false

  init(key: (UInt64, UInt64)) {
    state = [
      key.0 ^ 0x736F_6D65_7073_6575, key.1 ^ 0x646F_7261_6E64_6F6D, key.0 ^ 0x6C79_6765_6E65_7261,
      key.1 ^ 0x7465_6462_7974_6573,
    ]
  }

  mutating func add(_ word: UInt64) {
    state[3] ^= word
    round()
    round()
    state[0] ^= word
  }

  mutating func next() -> UInt64 {
    if !isFinished {
      state[2] ^= 0xFF
      round()
      round()
    }
    isFinished = true
    round()
    round()
    return state[0] ^ state[1] ^ state[2] ^ state[3]
  }

  private mutating func round() {
    var (a, b, c, d) = (state[0], state[1], state[2], state[3])
    func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
      value &<< count | value &>> (64 &- count)
    }
    a = a &+ b
    b = rotate(b, 13) ^ a
    a = rotate(a, 32)
    c = c &+ d
    d = rotate(d, 16) ^ c
    a = a &+ d
    d = rotate(d, 21) ^ a
    c = c &+ b
    b = rotate(b, 17) ^ c
    c = rotate(c, 32)
    state = [a, b, c, d]
  }
}
