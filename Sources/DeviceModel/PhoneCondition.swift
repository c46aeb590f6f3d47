/// What a relay is told of a phone.
package struct PhoneCondition: Hashable, Codable, Sendable, CustomStringConvertible {
  package enum Power: String, CaseIterable, Hashable, Codable, Sendable {
    case battery
    case charging
    case low
  }

  package var power: Power
  package var network: Network
  package var isScreenOn: Bool

  package var description: String {
    "power \(power), network \(network), screen \(isScreenOn ? "on" : "off")"
  }
}

/// What the phone is connected to.
public enum Network: String, CaseIterable, Hashable, Codable, Sendable {
  case wifi
  case cellular
  /// No coverage.
  case none
  case airplane

  /// Whether anything gets through.
  public var isConnected: Bool { self == .wifi || self == .cellular }
}
