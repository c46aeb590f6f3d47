import FoundationEssentials
import Primitives
package import RelayCore

/// The JSON of the device API's answers (docs/PROTOCOL.md, "Device API").
package enum DeviceAnswerBody {
  struct Enrolled: Encodable {
    var device: String
    var secret: String
  }

  struct Registered: Encodable { var token: String }

  struct Refused: Encodable {
    var reason: String
    var message: String
  }

  struct Health: Encodable {
    var status = "ok"
    /// With a virtual clock: its name and the time.
    var clock: String?
    var time: Int64?

    init(_ clock: RelayClock) {
      guard clock.isVirtual else { return }
      self.clock = RelayConfiguration.Clock.virtual.rawValue
      time = clock.now().milliseconds
    }
  }

  package struct Report: Encodable, Sendable {
    struct DeviceBudget: Encodable, Sendable {
      var policy: String
      var remaining: Int64?
    }

    struct AppBudget: Encodable, Sendable {
      var remaining: Int64?
      var allowed: Bool
      var heldUntil: Int64?
      var limit: String?
    }

    struct Slot: Encodable, Sendable {
      var uniqueId: String
      var id: String
      var acceptedAt: Int64
      var expiresAt: Int64?
    }

    struct App: Encodable, Sendable {
      var topic: String
      var token: String
      var visible: Slot?
      var silent: Slot?
      var budget: AppBudget
    }

    var device: String
    var connected: Bool
    var power: String
    var network: String
    var screen: String
    var inFlight: Int
    var budget: DeviceBudget
    var apps: [App]

    package init(_ report: DeviceReport) {
      device = report.device.description
      connected = report.isConnected
      power = report.condition.power.rawValue
      network = report.condition.network.rawValue
      screen = report.condition.screen.rawValue
      inFlight = report.inFlight
      budget = DeviceBudget(policy: report.policy, remaining: report.remaining)
      apps = report.apps.map { app in
        var budget = AppBudget(remaining: app.remaining, allowed: true)
        if case .held(let until, let limit) = app.budget {
          budget.allowed = false
          budget.heldUntil = until?.milliseconds
          budget.limit = limit.name
        }
        return App(
          topic: app.topic.description, token: app.token.hexadecimal,
          visible: app.visible.map(Self.slot), silent: app.silent.map(Self.slot), budget: budget)
      }
    }

    private static func slot(_ slot: DeviceReport.Slot) -> Slot {
      Slot(
        uniqueId: slot.uniqueID.description, id: slot.apnsID.description,
        acceptedAt: slot.acceptedAt.milliseconds, expiresAt: slot.expiresAt?.milliseconds)
    }
  }

  /// The bytes of a body, with a line feed at the end: people read these in terminals.
  static func encode(_ body: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(body) else {
      preconditionFailure("strings and integers always encode")
    }
    return Array(data) + [UInt8(ascii: "\n")]
  }
}
