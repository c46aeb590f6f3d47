import AdminAPI
import ArgumentParser
import NIOHTTP1
import Primitives
import ProviderCredentials
import RelayClient
import RelayCore
import RelayServer
import RelaySetup

struct InspectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Show what waits for a device and what budget it has; or whether the relay answers.",
    discussion: """
      Examples:

        pushrelay inspect
        pushrelay inspect phone
        pushrelay inspect 0b5c…41 --secret SECRET --json

      Without a device: asks for GET /v1/health; exit status 0 when the relay answers. Provider \
      keys of the state directory that cannot be used are shown too.
      """)

  @Argument(help: "The name or id of a device; an id with --secret for another machine's relay.")
  var device: String?

  @Option(help: "The device's secret (default: from the state directory).")
  var secret: String?

  @Option(name: .customLong("device"), help: RelayConfiguration.Endpoint.help("device", port: 5223))
  var listener: RelayConfiguration.Endpoint?

  @Flag(help: "Print the relay's answer as JSON.")
  var json = false

  @OptionGroup var connection: ConnectionOptions

  func run() async throws {
    if secret == nil, let device, try DeviceFile.load(device, state: connection.files.state) == nil
    {
      return try await inspectOfRelay(device)
    }
    let identity = try device.map { try self.identity($0) }
    let place = connection.find(device: listener)
    let api = DeviceAPI(try await connection.connect(to: place))
    guard let identity else {
      try await api.health()
      return try showHealth(of: place.address)
    }
    if json {
      let body = try await api.statusBody(of: identity)
      Console.say(bytes: Array(body.prefix { $0 != UInt8(ascii: "\n") }))
    } else {
      let status = try await api.status(of: identity)
      // A relay with a virtual clock says its time.
      let now = try await api.health().time.map { Instant(milliseconds: $0) } ?? WallClock.now
      show(status, at: now)
    }
  }

  private func identity(_ name: String) throws -> DeviceIdentity {
    let file = try DeviceFile.load(name, state: connection.files.state)
    let secret = secret ?? file?.secret ?? ""
    return DeviceIdentity(device: file?.device ?? name, secret: secret)
  }

  /// A device of others, by its name or id: the relay of this state knows it.
  private func inspectOfRelay(_ name: String) async throws {
    let state = connection.files.state
    do {
      let relay = ControlClient(state: state)
      guard
        let status = try await relay.ask(
          DeviceStatus.self, .GET, "/v1/devices/\(Query.escaped(name))", printing: json)
      else { return }
      let clock = try await relay.ask(ClockStatus.self, .GET, "/v1/clock", printing: false)
      show(status, at: clock.map { Instant(milliseconds: $0.now) } ?? WallClock.now)
    } catch let problem as CommandError {
      let advice = UniqueID(name) == nil ? "make it with 'pushrelay device \(name)', or " : ""
      throw CommandError(
        "no device \(name) in \(state)/devices: \(advice)give its id with --secret (\(problem))")
    }
  }

  private func showHealth(of address: RelayConfiguration.Endpoint) throws {
    let broken: [(key: String, problem: String)]
    do throws(CredentialFileError) {
      broken = try connection.files.keys.load().broken.map { ($0.keyID, $0.problem.description) }
    } catch {
      broken = [("all", error.description)]
    }
    if json {
      let keys: [JSONObject] = broken.map { ["keyId": $0.key, "problem": $0.problem] }
      return try Console.say(object: ["status": "ok", "brokenKeys": keys.isEmpty ? nil : keys])
    }
    Console.say("ok: the relay at \(address) answers")
    for (key, problem) in broken { Console.say("provider key not used: \(key): \(problem)") }
  }

  private func show(_ status: DeviceStatus, at now: Instant) {
    Console.say(table: [
      ["device", status.device + (status.name.map { " (\($0))" } ?? "")],
      ["connection", status.connected ? "connected" : "away"],
      ["condition", "power \(status.power), network \(status.network), screen \(status.screen)"],
      ["in flight", String(status.inFlight)],
      [
        "budget",
        "policy \(status.budget.policy), "
          + Self.left(
            status.budget.remaining, status.budget.burst, status.budget.every, status.budget.next,
            now),
      ],
    ])
    guard !status.apps.isEmpty else { return Console.say("no apps") }
    for app in status.apps {
      Console.say("")
      var rows = [["app", app.topic], ["token", app.token]]
      rows.append(["visible", Self.text(app.visible, now)])
      rows.append(["silent", Self.text(app.silent, now)])
      rows.append(["budget", Self.text(app.budget, now)])
      Console.say(table: rows)
    }
  }

  private static func text(_ slot: DeviceStatus.Slot?, _ now: Instant) -> String {
    guard let slot else { return "empty" }
    var text = "\(slot.id), accepted \(Instant(milliseconds: slot.acceptedAt).described(at: now))"
    if let end = slot.expiresAt {
      text += ", expires \(Instant(milliseconds: end).described(at: now))"
    }
    return text
  }

  private static func text(_ budget: DeviceStatus.AppBudget, _ now: Instant) -> String {
    let left = left(budget.remaining, budget.burst, budget.every, budget.next, now)
    guard !budget.allowed else { return left }
    let until = budget.heldUntil.map {
      "until \(Instant(milliseconds: $0).described(at: now))"
    }
    return
      "\(left), none may go \(until ?? "until something changes"): \(budget.limit ?? "a limit")"
  }

  private static func left(
    _ remaining: Int64?, _ burst: Int64?, _ every: String?, _ next: Int64?, _ now: Instant
  ) -> String {
    guard let remaining else { return "unlimited silent left" }
    let left = "\(remaining)\(burst.map { " of \($0)" } ?? "") silent left"
    guard let every, let next else { return left }
    return "\(left), one comes back every \(every), the next at "
      + Instant(milliseconds: next).described(at: now)
  }
}
