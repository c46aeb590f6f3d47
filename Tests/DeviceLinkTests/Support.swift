import RelayCore

/// SplitMix64: the same seed gives the same run everywhere.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }
}

extension UniqueID {
  static let sample = UniqueID(high: 0x0123_4567_89ab_4def, low: 0x8123_4567_89ab_cdef)
  static let other = UniqueID(high: 1, low: 2)
}

/// The text's bytes.
func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
