import Primitives
import RelayCore

/// A stored notification as bytes. All numbers are little-endian.
///
/// ```
///  0  format, 1
///  1  flags: 1 silent, 2 wakes the app, 4 shows nothing
///  2  push type, 3 priority
///  4  accepted at, 12 expires at: milliseconds since the epoch
/// 20  unique id, 36 apns-id: high word, low word
/// 52  length of the payload (4 bytes)
/// 56  length of the token, 57 of the topic, 58 of the collapse id
/// 59  token, topic, collapse id, payload
///     CRC-32C of the sequence and of all before (4 bytes)
/// ```
///
/// `expires at` is `Int64.min` for a notification that is tried once; the relay stores none such.
enum RecordCodec {
  private static let format: UInt8 = 1
  private static let headerBytes = 59
  private static let checksumBytes = 4
  private static let once = Int64.min
  private static let silent: UInt8 = 1
  private static let wakesApp: UInt8 = 2
  private static let showsNothing: UInt8 = 4

  /// Replaces `bytes` with the record.
  static func encode(
    _ notification: Notification, acceptedAt: Instant, sequence: UInt64, into bytes: inout [UInt8]
  ) {
    let token = notification.token.bytes
    let topic = notification.topic.bytes
    let collapseID = notification.collapseID
    let payload = notification.payload
    precondition(
      topic.count <= 255 && collapseID.count <= 255,
      "the edge has refused topics and collapse ids beyond Limits")
    bytes.removeAll(keepingCapacity: true)
    bytes.reserveCapacity(
      headerBytes + token.count + topic.count + collapseID.count + payload.count + checksumBytes)
    bytes.append(format)
    bytes.append(
      (notification.notificationClass == .silent ? silent : 0)
        | (notification.wakesApp ? wakesApp : 0)
        | (notification.showsNothing ? showsNothing : 0))
    bytes.append(notification.pushType.rawValue)
    bytes.append(notification.priority.rawValue)
    append(UInt64(bitPattern: acceptedAt.milliseconds), to: &bytes)
    var expiresAt = once
    if case .at(let moment) = notification.expiration { expiresAt = moment.milliseconds }
    append(UInt64(bitPattern: expiresAt), to: &bytes)
    append(notification.uniqueID.high, to: &bytes)
    append(notification.uniqueID.low, to: &bytes)
    append(notification.apnsID.high, to: &bytes)
    append(notification.apnsID.low, to: &bytes)
    append(UInt32(payload.count), to: &bytes)
    bytes.append(UInt8(token.count))
    bytes.append(UInt8(topic.count))
    bytes.append(UInt8(collapseID.count))
    bytes.append(contentsOf: token)
    bytes.append(contentsOf: topic)
    bytes.append(contentsOf: collapseID)
    bytes.append(contentsOf: payload)
    append(Checksum.crc32C(of: sequence, then: bytes.span), to: &bytes)
  }

  /// Nil for anything but what `encode` made for this sequence.
  static func decode(
    _ bytes: Span<UInt8>, sequence: UInt64, topics: inout TopicCache
  ) -> (notification: Notification, acceptedAt: Instant)? {
    guard bytes.count >= headerBytes + checksumBytes, bytes[0] == format,
      bytes[1] & ~(silent | wakesApp | showsNothing) == 0
    else { return nil }
    let end = bytes.count - checksumBytes
    let payloadCount = Int(number(bytes, at: 52, byteCount: 4))
    let tokenEnd = headerBytes + Int(bytes[56])
    let topicEnd = tokenEnd + Int(bytes[57])
    let collapseEnd = topicEnd + Int(bytes[58])
    guard collapseEnd + payloadCount == end,
      UInt32(truncatingIfNeeded: number(bytes, at: end, byteCount: 4))
        == Checksum.crc32C(of: sequence, then: bytes.extracting(0..<end)),
      let token = DeviceToken(bytes: bytes.extracting(headerBytes..<tokenEnd)),
      let topic = topics.topic(bytes.extracting(tokenEnd..<topicEnd)),
      let pushType = PushType(rawValue: bytes[2]), let priority = Priority(rawValue: bytes[3])
    else { return nil }
    let expiresAt = Int64(bitPattern: number(bytes, at: 12))
    let notification = Notification(
      uniqueID: UniqueID(high: number(bytes, at: 20), low: number(bytes, at: 28)),
      apnsID: UniqueID(high: number(bytes, at: 36), low: number(bytes, at: 44)),
      token: token, topic: topic, notificationClass: bytes[1] & silent != 0 ? .silent : .visible,
      pushType: pushType, priority: priority, wakesApp: bytes[1] & wakesApp != 0,
      showsNothing: bytes[1] & showsNothing != 0,
      collapseID: topicEnd == collapseEnd ? [] : bytes.extracting(topicEnd..<collapseEnd).array,
      expiration: expiresAt == once ? .once : .at(Instant(milliseconds: expiresAt)),
      payload: bytes.extracting(collapseEnd..<end).array)
    return (notification, Instant(milliseconds: Int64(bitPattern: number(bytes, at: 4))))
  }

  private static func append<Number: FixedWidthInteger>(_ value: Number, to bytes: inout [UInt8]) {
    var rest = value
    for _ in 0..<Number.bitWidth / 8 {
      bytes.append(UInt8(truncatingIfNeeded: rest))
      rest = rest >> 8
    }
  }

  @inline(__always)
  private static func number(_ bytes: Span<UInt8>, at position: Int, byteCount: Int = 8) -> UInt64 {
    var value: UInt64 = 0
    for index in 0..<byteCount {
      value |= UInt64(bytes[position &+ index]) &<< UInt64(index &* 8)
    }
    return value
  }
}
