import Primitives

extension KeyedHash {
  /// A copy here makes using one key one load; from another module all ten are copied.
  private static let keys = ofProcess

  /// Used for every push.
  static func hash(_ token: DeviceToken) -> UInt32 {
    let (keys, words) = (Self.keys, token.words)
    var sum = keys.rest &* UInt64(token.restHash) &+ keys.start
    sum &+= keys.first.0 &* (words.0 >> 32) &+ keys.first.1 &* (words.0 & 0xFFFF_FFFF)
    sum &+= keys.second.0 &* (words.1 >> 32) &+ keys.second.1 &* (words.1 & 0xFFFF_FFFF)
    sum &+= keys.third.0 &* (words.2 >> 32) &+ keys.third.1 &* (words.2 & 0xFFFF_FFFF)
    sum &+= keys.fourth.0 &* (words.3 >> 32) &+ keys.fourth.1 &* (words.3 & 0xFFFF_FFFF)
    return UInt32(truncatingIfNeeded: sum >> 32)
  }

  /// Used for every acknowledgement.
  static func hash(_ connection: ConnectionID) -> UInt32 {
    let keys = Self.keys
    var sum = keys.first.0 &* UInt64(connection.place) &+ keys.start
    sum &+= keys.first.1 &* UInt64(connection.connection.value)
    sum &+= keys.second.0 &* UInt64(UInt32(bitPattern: connection.stream))
    return UInt32(truncatingIfNeeded: sum >> 32)
  }

  /// For an `apns-id`.
  static func hash(_ id: UniqueID) -> UInt32 {
    let keys = Self.keys
    var sum = keys.first.0 &* (id.high >> 32) &+ keys.start
    sum &+= keys.first.1 &* (id.high & 0xFFFF_FFFF)
    sum &+= keys.second.0 &* (id.low >> 32)
    sum &+= keys.second.1 &* (id.low & 0xFFFF_FFFF)
    return UInt32(truncatingIfNeeded: sum >> 32)
  }
}
