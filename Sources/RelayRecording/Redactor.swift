package import RelayCore

/// The recorded part of payloads.
package enum RecordedPayloads: String, CaseIterable, Sendable {
  case none
  case aps
  case all
}

/// Redacts what must not be recorded: tokens and secrets become pseudonyms under a key that stays
/// with the relay, payloads lose what was not asked for. Where a shard compares the omitted parts
/// (`Shard+Repetitions.swift`), a fingerprint under the same key takes their place.
///
/// A token's pseudonym is eight bytes and the token's last eight, its routing key. Equal tokens
/// stay equal and different ones different, so a shard decides the same with pseudonyms. (Of a
/// million tokens with equal ends, two collide in 3 of 100 million relays.) (A token of eight bytes
/// or less is all routing key and stays readable; this relay mints 32.)
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
      hash.add(words.0)
      hash.add(words.1)
      hash.add(words.2)
    } else {
      for byte in token.bytes { hash.add(UInt64(byte)) }
    }
    hash.add(UInt64(token.count))
    return DeviceToken(name: hash.next(), routingKey: token.routingKey)
  }

  package func pseudonym(of secret: SecretHash) -> SecretHash {
    var hash = SipHash(key: key)
    let words = secret.words
    for word in [words.0, words.1, words.2, words.3, 1 << 63] { hash.add(word) }
    return SecretHash(words: (hash.next(), hash.next(), hash.next(), hash.next()))
  }

  /// Stands for payload and collapse id where they are not fully recorded; else 0. Includes the
  /// provider's id, as only pushes with the same id are compared; other equalities stay hidden.
  func fingerprint(of push: Notification) -> UInt64 {
    guard payloads != .all, push.apnsID != push.uniqueID, push.fingerprint == 0 else {
      return push.fingerprint
    }
    var hash = SipHash(key: key)
    for word in [3 << 62, push.apnsID.high, push.apnsID.low] { hash.add(word) }
    for bytes in [push.collapseID, push.payload] {
      hash.add(UInt64(bytes.count))
      var word: UInt64 = 0
      for (index, byte) in bytes.enumerated() {
        word = word << 8 | UInt64(byte)
        if index & 7 == 7 { hash.add(word) }
      }
      hash.add(word)
    }
    return max(1, hash.next())
  }

  /// Collapse ids may contain names; a shard only compares them.
  var keepsCollapseIDs: Bool { payloads != .none }

  /// The recorded range of a payload. If `isAps`, it is the value of the member `aps`, recorded in
  /// an object of its own.
  func part(of payload: [UInt8]) -> (range: Range<Int>, isAps: Bool) {
    switch payloads {
    case .none: (0..<0, false)
    case .aps: Self.aps(of: payload).map { ($0, true) } ?? (0..<0, false)
    case .all: (payload.indices, false)
    }
  }

  /// The last member `aps` if there are several.
  private static func aps(of payload: [UInt8]) -> Range<Int>? {
    let bytes = payload.span
    var found: Range<Int>?
    do throws(PayloadError) {
      var cursor = try ObjectCursor(bytes)
      while let member = try cursor.next(bytes) {
        let key = member.key
        let start = key.lowerBound
        if key.count == 3, bytes[start] == UInt8(ascii: "a"), bytes[start + 1] == UInt8(ascii: "p"),
          bytes[start + 2] == UInt8(ascii: "s")
        {
          found = member.value
        }
      }
    } catch {
      return nil
    }
    return found
  }
}

/// SipHash-1-3 over words (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012).
struct SipHash: Sendable {
  // Not a vector of four: each round works on the words in turn.
  private var a: UInt64
  private var b: UInt64
  private var c: UInt64
  private var d: UInt64
  private var isFinished = false

  init(key: (UInt64, UInt64)) {
    a = key.0 ^ 0x736F_6D65_7073_6575
    b = key.1 ^ 0x646F_7261_6E64_6F6D
    c = key.0 ^ 0x6C79_6765_6E65_7261
    d = key.1 ^ 0x7465_6462_7974_6573
  }

  @inline(__always)
  mutating func add(_ word: UInt64) {
    d ^= word
    round()
    a ^= word
  }

  @inline(__always)
  mutating func next() -> UInt64 {
    if !isFinished {
      c ^= 0xFF
      round()
      round()
    }
    isFinished = true
    round()
    return a ^ b ^ c ^ d
  }

  @inline(__always)
  private mutating func round() {
    a = a &+ b
    b = Self.rotate(b, 13) ^ a
    a = Self.rotate(a, 32)
    c = c &+ d
    d = Self.rotate(d, 16) ^ c
    a = a &+ d
    d = Self.rotate(d, 21) ^ a
    c = c &+ b
    b = Self.rotate(b, 17) ^ c
    c = Self.rotate(c, 32)
  }

  @inline(__always)
  private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
    value &<< count | value &>> (64 &- count)
  }
}
