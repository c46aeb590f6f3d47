import Foundation
import Primitives
import RelayCore
import Testing

@testable import RelayStore

@Suite("RecordCodec") struct RecordCodecTests {
  private func encoded(
    _ notification: RelayCore.Notification, sequence: UInt64 = 9, at: Int64 = 1
  ) -> [UInt8] {
    var bytes: [UInt8] = [1, 2, 3]
    RecordCodec.encode(
      notification, acceptedAt: Instant(milliseconds: at), sequence: sequence, into: &bytes)
    return bytes
  }

  private func decoded(_ bytes: [UInt8], sequence: UInt64 = 9) -> RelayCore.Notification? {
    var topics = TopicCache()
    return RecordCodec.decode(bytes.span, sequence: sequence, topics: &topics)?.notification
  }

  @Test(arguments: PushType.allCases, Priority.allCases)
  func everyPushTypeComesBack(type: PushType, priority: Priority) throws {
    for expiration in [
      Expiration.once, .at(.never), .at(Instant(milliseconds: -5)),
      .at(Instant(milliseconds: 1_800_000_000_123)),
    ] {
      for notificationClass in NotificationClass.allCases {
        for number: UInt64 in [4, 5] {
          let notification = try Make.notification(
            number, notificationClass: notificationClass, pushType: type, priority: priority,
            expiration: expiration)
          #expect(decoded(encoded(notification)) == notification)
        }
      }
    }
  }

  @Test func everyTokenLengthComesBack() throws {
    for count in Limits.deviceTokenBytes {
      let bytes = (0..<count).map { UInt8($0 + 100) }
      let token = DeviceToken(bytes: bytes.span)
      let notification = try Make.notification(1, token: token)
      #expect(notification.token.bytes == bytes)
      #expect(decoded(encoded(notification)) == notification, "\(count) bytes")
    }
  }

  @Test(arguments: [0, 1, 7, 8, 9, 4095, 4096, 5119, 5120])
  func payloadsComeBack(count: Int) throws {
    let notification = try Make.notification(77, payloadBytes: count)
    #expect(decoded(encoded(notification)) == notification)
  }

  @Test func longestTopicAndCollapseIDComeBack() throws {
    let notification = try Make.notification(
      1, topic: String(repeating: "a", count: 255),
      collapseID: [UInt8](repeating: 255, count: Limits.collapseIDBytes))
    #expect(decoded(encoded(notification)) == notification)
  }

  @Test(arguments: [Int64.min, -1, 0, 1, .max]) func momentsComeBack(milliseconds: Int64) throws {
    let bytes = encoded(try Make.notification(1), at: milliseconds)
    var topics = TopicCache()
    let record = RecordCodec.decode(bytes.span, sequence: 9, topics: &topics)
    #expect(record?.acceptedAt == Instant(milliseconds: milliseconds))
  }

  @Test func everyTruncationAndExtensionIsNoticed() throws {
    let bytes = encoded(try Make.notification(5))
    for count in 0..<bytes.count {
      #expect(decoded(Array(bytes.prefix(count))) == nil, "\(count) bytes")
    }
    #expect(decoded(bytes + [0]) == nil)
  }

  @Test func everyFlippedBitIsNoticed() throws {
    let bytes = encoded(try Make.notification(5))
    for bit in 0..<bytes.count * 8 {
      var flipped = bytes
      flipped[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(decoded(flipped) == nil, "bit \(bit)")
    }
  }

  @Test func aRecordUnderAnothersSequenceIsNoticed() throws {
    let bytes = encoded(try Make.notification(5), sequence: 9)
    #expect(decoded(bytes, sequence: 8) == nil)
    #expect(decoded(bytes, sequence: 9 | 1 << 63) == nil)
  }

  /// Neither is there a flag that nobody has set: what is read is written as the same bytes again.
  @Test(arguments: 3..<8) func aFlagThatThereIsNotIsNoticed(bit: UInt8) throws {
    var bytes = encoded(try Make.notification(5)).dropLast(4) as [UInt8]
    bytes[1] |= 1 << bit
    let checksum = Checksum.crc32C(of: 9, then: bytes.span)
    for shift in stride(from: 0, to: 32, by: 8) {
      bytes.append(UInt8(truncatingIfNeeded: checksum >> UInt32(shift)))
    }
    #expect(decoded(bytes) == nil)
  }

  @Test func garbageNeverTraps() {
    for seed in 0..<2000 as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      var bytes = (0..<Int.random(in: 0...300, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
      }
      if !bytes.isEmpty { bytes[0] = 1 }
      // Half of them with lengths that fit and a right checksum, so that the rest is looked at.
      if bytes.count >= 63, seed % 2 == 0 {
        bytes[56] = UInt8.random(in: 0...3, using: &random)
        bytes[57] = UInt8.random(in: 0...3, using: &random)
        bytes[58] = 0
        let rest = bytes.count - 63 - Int(bytes[56]) - Int(bytes[57])
        for index in 0..<4 { bytes[52 + index] = UInt8(max(0, rest) >> (index * 8) & 0xFF) }
        let crc = Checksum.crc32C(of: 9, then: bytes.span.extracting(0..<bytes.count - 4))
        for index in 0..<4 {
          bytes[bytes.count - 4 + index] = UInt8(truncatingIfNeeded: crc >> UInt32(index * 8))
        }
      }
      if let notification = decoded(bytes) {
        #expect(decoded(encoded(notification)) == notification, "seed \(seed)")
      }
    }
  }

  /// What version 1 has written must be read for ever.
  @Test func theFormatIsAsItWas() throws {
    let token = try #require(DeviceToken(hexadecimal: "abcd"))
    let notification = try Make.notification(2, payloadBytes: 0, token: token, topic: "t")
    let bytes = encoded(notification, sequence: 1, at: 0x0102_0304_0506_0708)
    let text = bytes.map { String(format: "%02x", $0) }.joined()
    #expect(
      text.hasPrefix(
        "0102000a" + "0807060504030201" + "00409452a3030000" + "0180000000000000"))
    #expect(text.contains("00000000" + "020100" + "abcd" + "74"))
    #expect(bytes.count == 59 + 3 + 4)
  }
}
