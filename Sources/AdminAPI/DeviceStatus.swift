package import Primitives
package import RelayCore

/// The answer to `GET /v1/devices/{device}` of both APIs. Times are UNIX milliseconds.
package struct DeviceStatus: Codable, Equatable, Sendable {
  /// A held notification.
  package struct Slot: Codable, Equatable, Sendable {
    package var uniqueId: String
    package var id: String
    package var acceptedAt: Int64
    package var expiresAt: Int64?

    fileprivate init(_ slot: DeviceReport.Slot) {
      uniqueId = slot.uniqueID.description
      id = slot.apnsID.description
      acceptedAt = slot.acceptedAt.milliseconds
      expiresAt = slot.expiresAt?.milliseconds
    }
  }

  /// Silent pushes left for the device, over all apps; nil is no limit.
  package struct Budget: Codable, Equatable, Sendable {
    package var policy: String
    package var remaining: Int64?
    /// As in `Waits.Budget`.
    package var burst: Int64?
    package var every: String?
    package var next: Int64?
  }

  /// Silent pushes left for an app, nil for no limit, and until when it has to wait.
  package struct AppBudget: Codable, Equatable, Sendable {
    package var remaining: Int64?
    package var burst: Int64?
    package var every: String?
    package var next: Int64?
    package var allowed: Bool
    package var heldUntil: Int64?
    package var limit: String?
  }

  package struct App: Codable, Equatable, Sendable {
    package var topic: String
    package var token: String
    /// `sandbox` or `production`; nil for both.
    package var environment: String?
    package var visible: Slot?
    package var silent: Slot?
    package var budget: AppBudget
  }

  package var device: String
  /// For people.
  package var name: String?
  package var connected: Bool
  package var power: String
  package var network: String
  package var screen: String
  package var inFlight: Int
  package var budget: Budget
  package var apps: [App]

  package init(_ report: DeviceReport, name: String? = nil) {
    device = report.device.description
    self.name = name
    connected = report.isConnected
    power = report.condition.power.rawValue
    network = report.condition.network.rawValue
    screen = report.condition.screen.rawValue
    inFlight = report.inFlight
    let all = report.allowance.map { Waits.Budget($0) }
    budget = Budget(
      policy: report.policy, remaining: all?.remaining, burst: all?.burst, every: all?.every,
      next: all?.next)
    apps = report.apps.map { app in
      let own = app.allowance.map { Waits.Budget($0) }
      var budget = AppBudget(
        remaining: own?.remaining, burst: own?.burst, every: own?.every, next: own?.next,
        allowed: true)
      if case .held(let until, let limit) = app.budget {
        budget.allowed = false
        budget.heldUntil = until?.milliseconds
        budget.limit = limit.name
      }
      return App(
        topic: app.topic.description, token: app.token.hexadecimal,
        environment: app.token.environment?.rawValue,
        visible: app.visible.map(Slot.init), silent: app.silent.map(Slot.init), budget: budget)
    }
  }
}

/// The answer to `GET /v1/devices`.
package struct DeviceList: Codable, Sendable {
  package var cursor: String?
  package var hasMore: Bool
  package var devices: [DeviceStatus]

  package init(_ devices: [DeviceStatus], cursor: String?) {
    self.cursor = cursor
    hasMore = cursor != nil
    self.devices = devices
  }
}

/// A change of a device, in `GET /v1/devices/{device}/events` and in the feed.
package struct DeviceEvent: Codable, Sendable {
  package struct Condition: Codable, Sendable {
    package var power: String
    package var network: String
    package var screen: String
  }

  package var time: Int64
  package var device: String
  /// Its name, if it has one.
  package var phone: String?
  package var what: String
  package var topic: String?
  package var condition: Condition?
  package var remaining: Int64?
  package var policy: String?

  package init(
    at moment: Instant, _ device: DeviceID, named phone: String?, _ what: String, topic: Topic?,
    condition: DeviceCondition?, remaining: Int64?, policy: String?
  ) {
    time = moment.milliseconds
    self.device = device.description
    self.phone = phone
    self.what = what
    self.topic = topic?.description
    self.condition = condition.map {
      Condition(power: $0.power.rawValue, network: $0.network.rawValue, screen: $0.screen.rawValue)
    }
    self.remaining = remaining
    self.policy = policy
  }
}

package struct DeviceEvents: Codable, Sendable {
  package var events: [DeviceEvent]

  package init(events: [DeviceEvent]) { self.events = events }
}

/// The answer to `GET /v1/policy`.
package struct PolicyStatus: Codable, Sendable {
  /// How many at once, and the time that gives one back, such as 20m.
  package struct Limit: Codable, Sendable {
    package var burst: Int64
    package var every: String

    fileprivate init(_ limit: RateLimit) {
      (burst, every) = (limit.burst, limit.interval.text)
    }
  }

  package var policy: String
  /// nil for no limit.
  package var app: Limit?
  package var device: Limit?
  package var known = SilentPolicy.named.map(\.name)

  package init(_ policy: SilentPolicy) {
    self.policy = policy.name
    app = policy.perApp.map(Limit.init)
    device = policy.perDevice.map(Limit.init)
  }
}

/// The answer to `POST /v1/devices/{device}/do`: what has happened on the phone, a line each.
package struct OrderDone: Codable, Sendable {
  package var time: Int64
  package var lines: [String]

  package init(time: Instant, told: [UInt8]) {
    self.time = time.milliseconds
    guard case .list(let told)? = (try? JSONTree.read(told))?["lines"]?.value else {
      lines = []
      return
    }
    lines = told.compactMap(\.text)
  }
}
