package import RelayCore

/// 64 bits that stand for the effects of a batch: what replay compares.
package struct EffectDigest: Sendable {
  private var writer: ByteWriter

  /// - Parameter redactor: that of the recording; none where the events are redacted already.
  package init(redactor: Redactor? = nil) {
    writer = ByteWriter(redactor: redactor, isDigesting: true)
  }

  package var value: UInt64 { writer.digest }

  /// What stands behind each event: enough to say at which one a batch begins to differ.
  package var check: UInt8 { UInt8(truncatingIfNeeded: value >> 56) }

  /// Begins again.
  package mutating func reset() { writer.removeAll() }

  /// Takes in what one event has set off.
  package mutating func add(_ effects: ArraySlice<Effect>) {
    for effect in effects { effect.write(to: &writer) }
    // So that it matters which event it was.
    writer.put(varint: UInt64(effects.count))
  }
}
