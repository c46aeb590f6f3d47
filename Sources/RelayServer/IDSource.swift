import Primitives
import RelayCore

struct IDSource {
  private let generator: UInt64
  /// nil for the system's generator.
  private var random: SeededRandom?
  private var nextNumber: UInt64 = 1
  private var loopCount: UInt64 = 1

  /// - Parameter seed: of the whole relay.
  init(seed: UInt64?, loop: UInt16) {
    random = seed.map { SeededRandom(seed: $0 &+ UInt64(loop) &<< 32) }
    generator = random?.next() ?? UInt64.random(in: .min ... .max)
  }

  /// Loops number in turn, since people see the end of an `apns-unique-id`.
  mutating func number(asLoop index: UInt16, of count: Int) {
    nextNumber = UInt64(index) + 1
    loopCount = UInt64(count)
  }

  mutating func makeUniqueID() -> UniqueID {
    defer { nextNumber &+= loopCount }
    return UniqueID(generator: generator, number: nextNumber)
  }

  mutating func makeChannel() -> ChannelID { ChannelID(high: bits(), low: bits()) }

  mutating func makeDevice() -> DeviceID { DeviceID(UniqueID(high: bits(), low: bits())) }

  /// 256 bits as hexadecimal digits.
  mutating func makeSecret() -> String {
    (0..<4).map { _ in
      let digits = String(bits(), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  mutating func makeToken(for device: DeviceID) -> DeviceToken {
    DeviceToken(random: (bits(), bits(), bits()), routingKey: device.routingKey)
  }

  private mutating func bits() -> UInt64 { random?.next() ?? UInt64.random(in: .min ... .max) }
}
