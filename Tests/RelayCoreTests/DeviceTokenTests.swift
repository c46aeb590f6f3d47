import Primitives
import Testing

@testable import RelayCore

@Suite struct DeviceTokenTests {
  /// Bytes, hexadecimal digits of either case and the token agree at every length.
  @Test func everyLengthGoesThereAndBack() throws {
    for seed in UInt64(0)..<20 {
      var generator = SeededRandom(seed: seed)
      for count in 0...110 {
        let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let text = bytes.flatMap { [hexadecimalDigit($0 >> 4), hexadecimalDigit($0 & 0xF)] }
        let lower = String(decoding: text, as: UTF8.self)
        let token = DeviceToken(bytes: bytes.span)
        guard (2...100).contains(count) else {
          #expect(token == nil, "\(count)")
          #expect(DeviceToken(hexadecimal: lower) == nil, "\(count)")
          continue
        }
        let same = try #require(token)
        #expect(same.count == count)
        #expect(same.bytes == bytes, "seed \(seed), \(count)")
        #expect(same.hexadecimal == lower)
        #expect(DeviceToken(hexadecimal: lower) == same)
        #expect(DeviceToken(hexadecimal: lower.uppercased()) == same)
        #expect(DeviceToken(hexadecimal: lower.uppercased())?.hashValue == same.hashValue)
      }
    }
  }

  @Test func leadingZerosCount() {
    let tokens = ["0000", "000000", "0001", "000001", "00000001"].map {
      DeviceToken(hexadecimal: $0)
    }
    #expect(Set(tokens).count == tokens.count)
    #expect(!tokens.contains(nil))
  }

  @Test func oddOrForeignDigitsAreNoToken() {
    for text in ["", "0", "00", "000", "00f", "00fg", "0x00", "00 00", "<00ff>", "00ff\n"] {
      #expect(DeviceToken(hexadecimal: text) == nil, "\(text)")
    }
  }

  @Test func aMintedTokenRepeatsTheRoutingKey() throws {
    let token = DeviceToken(random: (1, 2, 3), routingKey: 0x0102_0304_0506_0708)
    #expect(token.count == 32)
    #expect(token.routingKey == 0x0102_0304_0506_0708)
    let read = try #require(DeviceToken(hexadecimal: token.hexadecimal))
    #expect(read == token)
    #expect(read.routingKey == token.routingKey)
    #expect(token.bytes.suffix(8) == [1, 2, 3, 4, 5, 6, 7, 8])
  }

  /// Of every length: the last eight bytes, or as many as there are.
  @Test func theLastEightBytesAreTheRoutingKey() {
    for count in Limits.deviceTokenBytes {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 1) }
      let key = bytes.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      let token = DeviceToken(bytes: bytes.span)
      #expect(token?.routingKey == key, "\(count) bytes")
    }
  }
}
