package import RelayCore

/// 64 bits that stand for a row of effects: what replay compares.
///
/// Not against an adversary: words are mixed in with one multiplication each, so that a changed
/// decision is noticed at once, whatever it is. A notification counts with its id; the rest of it
/// never changes, and what came in is in the recording.
package struct EffectDigest: Sendable {
  package private(set) var value: UInt64 = EffectDigest.start
  private var scratch: ByteWriter

  private static let start: UInt64 = 0x9E37_79B9_7F4A_7C15

  /// - Parameter redactor: that of the recording; none where the events are redacted already.
  package init(redactor: Redactor? = nil) {
    scratch = ByteWriter(redactor: redactor, abbreviates: true)
  }

  /// Begins again.
  package mutating func reset() { value = Self.start }

  /// Takes in what one event has set off.
  package mutating func add(_ effects: ArraySlice<Effect>) {
    scratch.removeAll()
    for effect in effects { scratch.put(effect) }
    value = Self.mixed(value, scratch.bytes.span)
  }

  /// What stands behind each event: enough to say at which one a batch begins to differ.
  package var check: UInt8 { UInt8(truncatingIfNeeded: value >> 56) }

  private static func mixed(_ value: UInt64, _ bytes: Span<UInt8>) -> UInt64 {
    var sum = value
    var index = 0
    while index &+ 8 <= bytes.count {
      var word: UInt64 = 0
      for offset in 0..<8 { word |= UInt64(bytes[index &+ offset]) &<< UInt64(offset &* 8) }
      sum = mix(sum, word)
      index &+= 8
    }
    var rest = UInt64(bytes.count)
    while index < bytes.count {
      rest = rest &<< 8 | UInt64(bytes[index])
      index &+= 1
    }
    return mix(sum, rest)
  }

  /// Both halves of a full product (as in wyhash): each bit of the word reaches all of the sum.
  @inline(__always)
  private static func mix(_ sum: UInt64, _ word: UInt64) -> UInt64 {
    let product = (sum ^ word ^ 0xA076_1D64_78BD_642F)
      .multipliedFullWidth(by: sum ^ 0xE703_7ED1_A0B4_28DB)
    return product.high ^ product.low ^ word
  }
}
