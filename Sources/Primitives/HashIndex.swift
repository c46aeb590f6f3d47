/// Finds the place of a value by a key that the value in that place holds anyway: a hash table of
/// numbers, which keeps no key a second time.
///
/// A dictionary from token to number costs 120 bytes for each app, this 16: of a million devices
/// that are not connected, most is tokens. Open addressing with linear probing; a removal moves
/// later ones up, so that nothing is left behind by tokens and streams that come and go.
///
/// The hashes are seeded by the process (`Hasher`), because peers choose some of the keys: stream
/// identifiers, and tokens that a device brings along. Nothing ever iterates over the places, so
/// the seed decides nothing that shows.
@frozen
public struct HashIndex: Sendable {
  @frozen
  @usableFromInline
  struct Place: Sendable {
    /// -1 when it is free.
    @usableFromInline var number: Int32
    /// Kept, so that most foreign places are passed without a look at their keys, and so that
    /// growing and removing need no keys at all.
    @usableFromInline var hash: UInt32

    @inlinable
    init(number: Int32, hash: UInt32) {
      self.number = number
      self.hash = hash
    }

    @inlinable
    static var free: Place { Place(number: -1, hash: 0) }
  }

  /// None, or a power of two of them, a quarter free at least.
  @usableFromInline var places: [Place] = []
  @usableFromInline var used = 0

  @inlinable
  public init() {}

  @usableFromInline
  var mask: Int {
    @inlinable get { places.count &- 1 }
  }

  /// How many numbers are in it.
  @inlinable
  public var count: Int { used }

  /// How much memory it has taken, in places.
  public var capacity: Int { places.count }

  /// The number under this hash that `isIt`.
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

  /// Adds a number; the caller knows that its key is not there.
  @inlinable
  public mutating func insert(_ number: Int32, _ hash: UInt32) {
    if (used + 1) * 4 > places.count * 3 { grow() }
    put(Place(number: number, hash: hash))
    used += 1
  }

  /// Takes a number away. One that is not there is ignored.
  @inlinable
  public mutating func remove(_ number: Int32, _ hash: UInt32) {
    guard used > 0 else { return }
    var hole = Int(hash) & mask
    while places[hole].number != number {
      guard places[hole].number >= 0 else { return }
      hole = (hole + 1) & mask
    }
    used -= 1
    // What follows moves up, unless it would come to lie before its own start.
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

  /// The farthest that any number lies from where it would like to be.
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

/// Hashes of the keys that are asked for with every push, by keys that only this process knows:
/// multilinear, over halves of words, so that two different keys have the same hash with a chance
/// of one in 2^32, whoever chose them (Lemire and Kaser, "Strongly universal string hashing is
/// fast", 2014).
@frozen
public struct KeyedHash: Sendable {
  public let start: UInt64
  public let rest: UInt64
  public let first: (UInt64, UInt64)
  public let second: (UInt64, UInt64)
  public let third: (UInt64, UInt64)
  public let fourth: (UInt64, UInt64)

  /// By these keys.
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

  /// The hash of anything, where it is not asked for often.
  public static func hash(_ key: some Hashable) -> UInt32 {
    UInt32(truncatingIfNeeded: key.hashValue)
  }

  /// The hash of a number that a peer counts up, as HTTP/2's stream identifiers (RFC 9113 section
  /// 5.1.1). Neighbours would form one long run; so the high half is folded into the low one and
  /// multiplied again, which breaks up what is left of the order.
  @inlinable
  @inline(__always)
  public func hash(counting number: Int32) -> UInt32 {
    var product = UInt64(UInt32(bitPattern: number)) &* (first.0 | 1) &+ start
    product = (product ^ product >> 32) &* 0x9e37_79b9_7f4a_7c15
    return UInt32(truncatingIfNeeded: product >> 32)
  }
}
