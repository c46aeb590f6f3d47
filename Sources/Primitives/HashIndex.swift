/// A hash table from a key's hash to a number, the place of a value that holds the key itself.
///
/// A dictionary from token to number costs 120 bytes an app, this 16. Open addressing with linear
/// probing; removal shifts later entries back, so there are no tombstones.
///
/// Hashes must be seeded per process, because peers choose some keys (stream identifiers, device
/// tokens). Nothing iterates over the places, so the seed has no visible effect.
@frozen
public struct HashIndex: Sendable {
  @frozen
  @usableFromInline
  struct Place: Sendable {
    /// -1 when free.
    @usableFromInline var number: Int32
    /// Kept to compare before looking at the key, and to grow and remove without keys.
    @usableFromInline var hash: UInt32

    @inlinable
    init(number: Int32, hash: UInt32) {
      self.number = number
      self.hash = hash
    }

    @inlinable
    static var free: Place { Place(number: -1, hash: 0) }
  }

  /// Empty, or a power of two with at least a quarter free.
  @usableFromInline var places: [Place] = []
  @usableFromInline var used = 0

  @inlinable
  public init() {}

  @usableFromInline
  var mask: Int {
    @inlinable get { places.count &- 1 }
  }

  @inlinable
  public var count: Int { used }

  /// Allocated places.
  public var capacity: Int { places.count }

  /// The number under this hash for which `isIt` is true.
  @inlinable
  @inline(__always)
  public func find(_ hash: UInt32, _ isIt: (Int32) -> Bool) -> Int32? {
    guard !places.isEmpty else { return nil }
    var position = Int(hash) & mask
    while places[position].number >= 0 {
      if places[position].hash == hash, isIt(places[position].number) {
        return places[position].number
      }
      position = (position &+ 1) & mask
    }
    return nil
  }

  /// Adds a number whose key the caller knows to be absent.
  @inlinable
  public mutating func insert(_ number: Int32, _ hash: UInt32) {
    if (used + 1) * 4 > places.count * 3 { grow() }
    put(Place(number: number, hash: hash))
    used += 1
  }

  /// Removes a number if it is there.
  @inlinable
  public mutating func remove(_ number: Int32, _ hash: UInt32) {
    guard used > 0 else { return }
    var hole = Int(hash) & mask
    while places[hole].number != number {
      guard places[hole].number >= 0 else { return }
      hole = (hole + 1) & mask
    }
    used -= 1
    // Later entries move back, but not before their own start.
    var position = hole
    while true {
      position = (position + 1) & mask
      guard places[position].number >= 0 else { break }
      let start = Int(places[position].hash) & mask
      guard (position - start) & mask >= (position - hole) & mask else { continue }
      places[hole] = places[position]
      hole = position
    }
    places[hole] = .free
  }

  /// The longest distance of a number from its first choice.
  public var longestProbe: Int {
    places.indices.reduce(0) { longest, position in
      guard places[position].number >= 0 else { return longest }
      return max(longest, (position - Int(places[position].hash)) & mask)
    }
  }

  @usableFromInline
  mutating func grow() {
    let old = places
    places = [Place](repeating: .free, count: max(16, old.count * 2))
    for place in old where place.number >= 0 { put(place) }
  }

  @inlinable
  mutating func put(_ place: Place) {
    var position = Int(place.hash) & mask
    while places[position].number >= 0 { position = (position + 1) & mask }
    places[position] = place
  }
}

/// Multilinear hashes with keys that only this process knows, for hot paths: two different keys
/// collide with a chance of one in 2^32, even on purpose (Lemire and Kaser, "Strongly universal
/// string hashing is fast", 2014).
@frozen
public struct KeyedHash: Sendable {
  public let start: UInt64
  public let rest: UInt64
  public let first: (UInt64, UInt64)
  public let second: (UInt64, UInt64)
  public let third: (UInt64, UInt64)
  public let fourth: (UInt64, UInt64)

  public init(_ key: (UInt8) -> UInt64) {
    start = key(0)
    rest = key(1)
    first = (key(2), key(3))
    second = (key(4), key(5))
    third = (key(6), key(7))
    fourth = (key(8), key(9))
  }

  /// With the process's own keys.
  public static let ofProcess = KeyedHash { UInt64(bitPattern: Int64($0.hashValue)) }

  /// The hash of anything, for cold paths.
  public static func hash(_ key: some Hashable) -> UInt32 {
    UInt32(truncatingIfNeeded: key.hashValue)
  }

  /// The hash of a number that a peer counts up, as HTTP/2 stream identifiers (RFC 9113 section
  /// 5.1.1). The second multiplication breaks up runs of neighbours.
  @inlinable
  @inline(__always)
  public func hash(counting number: Int32) -> UInt32 {
    var product = UInt64(UInt32(bitPattern: number)) &* (first.0 | 1) &+ start
    product = (product ^ product >> 32) &* 0x9e37_79b9_7f4a_7c15
    return UInt32(truncatingIfNeeded: product >> 32)
  }
}
