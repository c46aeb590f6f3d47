import RelayCore

extension UniqueID {
  static let sample = UniqueID(high: 0x0123_4567_89ab_4def, low: 0x8123_4567_89ab_cdef)
  static let other = UniqueID(high: 1, low: 2)
}

/// The text's bytes.
func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
