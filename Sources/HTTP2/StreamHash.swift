/// Spreads stream identifiers over the places of a hash table.
///
/// A peer chooses its identifiers (RFC 9113 section 5.1.1), so the keys are the process's own
/// (`Hasher`): whoever does not know them cannot make identifiers meet in one place. Identifiers
/// come in order, and neighbours would form one long run; so the high half is folded into the low
/// one and multiplied again, which breaks up what is left of the order.
package struct StreamHash: Sendable {
  private let start: UInt64
  private let factor: UInt64

  /// The process's keys.
  package init() { self = Self.ofProcess }

  private static let ofProcess = StreamHash(
    start: key(0), factor: key(1) | 1)

  init(start: UInt64, factor: UInt64) {
    self.start = start
    self.factor = factor
  }

  private static func key(_ number: UInt8) -> UInt64 {
    UInt64(bitPattern: Int64(number.hashValue))
  }

  /// Where an identifier would like to be, before masking.
  @inline(__always)
  package func home(_ id: StreamID) -> Int {
    var product = UInt64(UInt32(bitPattern: id)) &* factor &+ start
    product = (product ^ product >> 32) &* 0x9e37_79b9_7f4a_7c15
    return Int(truncatingIfNeeded: product >> 32)
  }
}
