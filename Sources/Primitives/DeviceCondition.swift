public enum Power: String, CaseIterable, Codable, Hashable, Sendable {
  case battery
  case charging
  /// Low Power Mode.
  case low
}

public enum Network: String, CaseIterable, Codable, Hashable, Sendable {
  case wifi
  case cellular
  /// No coverage.
  case none
  case airplane

  public var isConnected: Bool { self == .wifi || self == .cellular }
}

public enum Screen: String, CaseIterable, Codable, Hashable, Sendable {
  case on
  case off
}

/// A phone's power, network and screen, which decide its silent budget.
public struct DeviceCondition: Hashable, Codable, Sendable, CustomStringConvertible {
  public var power: Power
  public var network: Network
  public var screen: Screen

  /// The defaults hold for a phone that has not reported yet.
  public init(power: Power = .battery, network: Network = .cellular, screen: Screen = .off) {
    self.power = power
    self.network = network
    self.screen = screen
  }

  /// Charging on Wi-Fi.
  public var liftsBudget: Bool { power == .charging && network == .wifi }
  /// Low Power Mode.
  public var withholdsSilent: Bool { power == .low }

  /// Applies the values that the report has.
  public mutating func apply(_ report: ConditionReport) {
    if let power = report.power { self.power = power }
    if let network = report.network { self.network = network }
    if let screen = report.screen { self.screen = screen }
  }

  public var description: String {
    "power \(power), network \(network), screen \(screen)"
  }
}

/// One `state` line. Nil leaves what the phone reported before, also on an earlier connection.
public struct ConditionReport: Hashable, Sendable {
  public var power: Power?
  public var network: Network?
  public var screen: Screen?

  public init(power: Power? = nil, network: Network? = nil, screen: Screen? = nil) {
    self.power = power
    self.network = network
    self.screen = screen
  }

  /// A complete report, except that "no network" cannot be sent.
  public init(_ condition: DeviceCondition) {
    self.init(
      power: condition.power, network: condition.network.isConnected ? condition.network : nil,
      screen: condition.screen)
  }
}
