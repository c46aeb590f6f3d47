/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). The
/// model's only randomness and part of the phone's value: same seed and events, same run.
package struct SeededRandom: RandomNumberGenerator, Codable, Equatable, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// A number in `0..<bound`; 0 for an empty range. The bias is below 2^-32 for bounds below 2^32.
  package mutating func below(_ bound: Int64) -> Int64 {
    guard bound > 0 else { return 0 }
    return Int64(next().multipliedFullWidth(by: UInt64(bound)).high)
  }
}
