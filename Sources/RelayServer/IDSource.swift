import Primitives
package import RelayCore

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

  /// Takes those of an earlier time again, where a seed is to give the same ones; others are new.
  mutating func goBack(to then: IDSource) { if random != nil { self = then } }

  mutating func makeUniqueID() -> UniqueID {
    defer { nextNumber &+= loopCount }
    return UniqueID(generator: generator, number: nextNumber)
  }

  mutating func makeChannel(for environment: ProviderEnvironment?) -> ChannelID {
    ChannelID(random: (bits(), bits()), for: environment)
  }

  mutating func makeDevice() -> DeviceID { DeviceID(UniqueID(high: bits(), low: bits())) }

  /// 256 bits as hexadecimal digits.
  mutating func makeSecret() -> String {
    (0..<4).map { _ in
      let digits = String(bits(), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  /// The device's own token, or a new one.
  mutating func makeToken(_ wanted: WantedToken, for device: DeviceID) -> DeviceToken {
    switch wanted {
    case .own(let token): token
    case .new(let environment):
      DeviceToken(random: (bits(), bits(), bits()), routingKey: device.routingKey, for: environment)
    }
  }

  private mutating func bits() -> UInt64 { random?.next() ?? UInt64.random(in: .min ... .max) }
}

/// The token that an app is to get.
package enum WantedToken: Equatable, Sendable {
  /// It brings one along.
  case own(DeviceToken)
  /// A new one, of a service or of both.
  case new(for: ProviderEnvironment?)

  package enum Problem: Error, CaseIterable, CustomStringConvertible {
    case token, environment, both

    package var description: String {
      switch self {
      case .token: "a token is 2 to 100 bytes as hexadecimal digits"
      case .environment: "environment is sandbox or production"
      case .both:
        "a token that is brought along belongs to both services: give token or environment"
      }
    }
  }

  package init(token: String?, environment: String?) throws(Problem) {
    let service = environment.flatMap { ProviderEnvironment(rawValue: $0) }
    guard environment == nil || service != nil else { throw .environment }
    guard let token else {
      self = .new(for: service)
      return
    }
    guard service == nil else { throw .both }
    guard let own = DeviceToken(hexadecimal: token) else { throw .token }
    self = .own(own)
  }

  var isOwn: Bool { if case .own = self { true } else { false } }
}
