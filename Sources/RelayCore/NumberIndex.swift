/// Finds the place of a slab by a key that the value in that place holds anyway: a hash table of
/// numbers, which keeps no key a second time.
///
/// A dictionary from token to number costs 120 bytes for each app, this 16: of a million devices
/// that are not connected, most is tokens. Open addressing with linear probing; a removal moves
/// later ones up, so that nothing is left behind by tokens that come and go.
///
/// The hashes are seeded by the process (`Hasher`), because a device may bring tokens of its own
/// choice. Nothing ever iterates over the places, so the seed decides nothing that shows.
struct NumberIndex: Sendable {
  private struct Place: Sendable {
    /// -1 when it is free.
    var number: Int32
    /// Kept, so that most foreign places are passed without a look at their keys, and so that
    /// growing and removing need no keys at all.
    var hash: UInt32

    static let free = Place(number: -1, hash: 0)
  }

  /// A power of two of them, a quarter free at least.
  private var places = [Place](repeating: .free, count: 16)
  private(set) var count = 0

  private var mask: Int { places.count &- 1 }

  /// The hash of a key, as this index wants it.
  static func hash(_ key: some Hashable) -> UInt32 {
    UInt32(truncatingIfNeeded: key.hashValue)
  }

  /// The hash of a token, which every push asks for: multilinear, over its halves of words. With
  /// keys that nobody knows, two tokens have the same with a chance of one in 2^32, whoever chose
  /// them (Lemire and Kaser, "Strongly universal string hashing is fast", 2014).
  static func hash(_ token: DeviceToken) -> UInt32 {
    let (keys, words) = (Self.keys, token.words)
    var sum = keys.rest &* UInt64(token.restHash) &+ keys.start
    sum &+= keys.first.0 &* (words.0 >> 32) &+ keys.first.1 &* (words.0 & 0xFFFF_FFFF)
    sum &+= keys.second.0 &* (words.1 >> 32) &+ keys.second.1 &* (words.1 & 0xFFFF_FFFF)
    sum &+= keys.third.0 &* (words.2 >> 32) &+ keys.third.1 &* (words.2 & 0xFFFF_FFFF)
    sum &+= keys.fourth.0 &* (words.3 >> 32) &+ keys.fourth.1 &* (words.3 & 0xFFFF_FFFF)
    return UInt32(truncatingIfNeeded: sum >> 32)
  }

  /// The hash of a connection, which every acknowledgement asks for.
  static func hash(_ connection: ConnectionID) -> UInt32 {
    let keys = Self.keys
    var sum = keys.first.0 &* UInt64(connection.loop) &+ keys.start
    sum &+= keys.first.1 &* UInt64(connection.connection)
    sum &+= keys.second.0 &* UInt64(UInt32(bitPattern: connection.stream))
    return UInt32(truncatingIfNeeded: sum >> 32)
  }

  /// The hash of what a provider calls its notification, by which its life is found.
  static func hash(_ id: UniqueID) -> UInt32 {
    let keys = Self.keys
    var sum = keys.first.0 &* (id.high >> 32) &+ keys.start
    sum &+= keys.first.1 &* (id.high & 0xFFFF_FFFF)
    sum &+= keys.second.0 &* (id.low >> 32)
    sum &+= keys.second.1 &* (id.low & 0xFFFF_FFFF)
    return UInt32(truncatingIfNeeded: sum >> 32)
  }

  /// One key for each half of a word, one for what a token has beyond its words, and one to begin
  /// with.
  private struct Keys: Sendable {
    var start = Self.key(0)
    var rest = Self.key(1)
    var first = (Self.key(2), Self.key(3))
    var second = (Self.key(4), Self.key(5))
    var third = (Self.key(6), Self.key(7))
    var fourth = (Self.key(8), Self.key(9))

    private static func key(_ number: UInt8) -> UInt64 {
      UInt64(bitPattern: Int64(number.hashValue))
    }
  }

  private static let keys = Keys()

  /// The number under this hash that `isIt`.
  @inline(__always)
  func find(_ hash: UInt32, _ isIt: (Int32) -> Bool) -> Int32? {
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
  mutating func insert(_ number: Int32, _ hash: UInt32) {
    if (count + 1) * 4 > places.count * 3 { grow() }
    put(Place(number: number, hash: hash))
    count += 1
  }

  /// Takes a number away. One that is not there is ignored.
  mutating func remove(_ number: Int32, _ hash: UInt32) {
    var hole = Int(hash) & mask
    while places[hole].number != number {
      guard places[hole].number >= 0 else { return }
      hole = (hole + 1) & mask
    }
    count -= 1
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

  private mutating func grow() {
    let old = places
    places = [Place](repeating: .free, count: old.count * 2)
    for place in old where place.number >= 0 { put(place) }
  }

  private mutating func put(_ place: Place) {
    var position = Int(place.hash) & mask
    while places[position].number >= 0 { position = (position + 1) & mask }
    places[position] = place
  }
}
