/// Apple's two services; a relay plays one of them, or both at once.
package enum ProviderEnvironment: String, Sendable, CaseIterable, Codable, Comparable {
  case sandbox
  case production

  /// The service that a host name of Apple's stands for (`AppleService`), with or without a port;
  /// nil for any other name, and for an address.
  package init?(host: some Sequence<UInt8>) {
    let name = String(decoding: host.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
    guard let found = Self.hosts[name.lowercased()] else { return nil }
    self = found
  }

  private static let hosts = Dictionary(
    uniqueKeysWithValues: AppleService.names.map { name in
      let isSandbox = name.contains(".sandbox.") || name.contains(".development.")
      return (name, isSandbox ? ProviderEnvironment.sandbox : .production)
    })

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  /// The first four bytes of tokens and channels that belong to it.
  fileprivate var tag: UInt64 {
    switch self {
    case .sandbox: 0x5341_4E44  // SAND
    case .production: 0x5052_4F44  // PROD
    }
  }
}

extension DeviceToken {
  /// The service that a minted token belongs to: its first four bytes spell SAND or PROD, so that
  /// people see it too, and every node and every backup knows. nil for any other token: both
  /// services take it.
  package var environment: ProviderEnvironment? {
    guard count == 32 else { return nil }
    let tag = words.0 >> 32
    return ProviderEnvironment.allCases.first { $0.tag == tag }
  }

  /// Whether it is one for a provider that asks this service; nil asks both.
  package func isThere(for environment: ProviderEnvironment?) -> Bool {
    guard let environment, let own = self.environment else { return true }
    return environment == own
  }

  /// A minted token: three random words, of which the first loses half to the environment's tag,
  /// then the device's routing key.
  package init(
    random: (UInt64, UInt64, UInt64), routingKey: UInt64, for environment: ProviderEnvironment?
  ) {
    let first = environment.map { $0.tag << 32 | random.0 & 0xFFFF_FFFF } ?? random.0
    self.init(random: (first, random.1, random.2), routingKey: routingKey)
  }
}

extension ChannelID {
  /// The service that a channel belongs to, said as by a token; nil for both.
  package var environment: ProviderEnvironment? {
    ProviderEnvironment.allCases.first { $0.tag == high >> 32 }
  }

  package init(random: (UInt64, UInt64), for environment: ProviderEnvironment?) {
    self.init(
      high: environment.map { $0.tag << 32 | random.0 & 0xFFFF_FFFF } ?? random.0, low: random.1)
  }

  /// Whether it is there for an app or a listener of this service; nil is both.
  package func isThere(for environment: ProviderEnvironment?) -> Bool {
    guard let environment, let own = self.environment else { return true }
    return environment == own
  }
}
