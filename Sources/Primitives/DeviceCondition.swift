/// How a phone is powered.
public enum Power: String, CaseIterable, Codable, Hashable, Sendable {
  case battery
  case charging
  /// Low Power Mode.
  case low
}

/// What a phone is connected to.
public enum Network: String, CaseIterable, Codable, Hashable, Sendable {
  case wifi
  case cellular
  /// No coverage.
  case none
  case airplane

  /// Whether anything gets through.
  public var isConnected: Bool { self == .wifi || self == .cellular }
}

/// Whether a phone's screen is lit.
public enum Screen: String, CaseIterable, Codable, Hashable, Sendable {
  case on
  case off
}

/// How a phone is: what a relay's silent budget goes by.
public struct DeviceCondition: Hashable, Codable, Sendable, CustomStringConvertible {
  public var power: Power
  public var network: Network
  public var screen: Screen

  /// What is assumed of a phone that has not said anything: the ordinary case, no favours.
  public init(power: Power = .battery, network: Network = .cellular, screen: Screen = .off) {
    self.power = power
    self.network = network
    self.screen = screen
  }

  /// Charging on Wi-Fi lifts the budget.
  public var liftsBudget: Bool { power == .charging && network == .wifi }
  /// Low Power Mode sets it to zero.
  public var withholdsSilent: Bool { power == .low }
  /// A visible push that is not urgent waits.
  public var withholdsLowPriority: Bool { power == .low && screen == .off }

  /// Takes over what a report says.
  public mutating func take(_ report: ConditionReport) {
    if let power = report.power { self.power = power }
    if let network = report.network { self.network = network }
    if let screen = report.screen { self.screen = screen }
  }

  public var description: String {
    "power \(power), network \(network), screen \(screen)"
  }
}

/// What one `state` line says: what it leaves out stays as the phone said before, also on an
/// earlier connection.
public struct ConditionReport: Hashable, Sendable {
  public var power: Power?
  public var network: Network?
  public var screen: Screen?

  public init(power: Power? = nil, network: Network? = nil, screen: Screen? = nil) {
    self.power = power
    self.network = network
    self.screen = screen
  }

  /// A report that leaves nothing out; but without a network there is nobody to tell.
  public init(_ condition: DeviceCondition) {
    self.init(
      power: condition.power, network: condition.network.isConnected ? condition.network : nil,
      screen: condition.screen)
  }
}
