import AdminAPI
import ArgumentParser
import NIOHTTP1
import Primitives
import RelayCore

struct DevicesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices",
    abstract: "List the phones: connected or not, what is stored for them, what is left to send.",
    discussion: """
      Examples:

        pushrelay devices
        pushrelay devices --search com.example.app
        pushrelay devices --json
      """)

  @Option(help: "The beginning of an id, or a part of a name or a topic.")
  var search: String?
  @Option(help: "How many at most, up to 500.")
  var limit = 50
  @OptionGroup var common: AdminOptions

  func run() async throws {
    let path = "/v1/devices" + Query([("search", search), ("limit", String(limit))]).text
    guard let page = try await common.ask(DeviceList.self, .GET, path) else { return }
    var (rows, colours): ([[String]], [Highlight.Colour?]) = ([], [])
    for device in page.devices {
      let phone = [device.device, device.name ?? "", device.connected ? "connected" : "away"]
      if device.apps.isEmpty { rows.append(phone + ["no app"]) }
      colours += device.apps.isEmpty ? [nil] : device.apps.map { $0.budget.allowed ? nil : .yellow }
      for app in device.apps {
        let stored = [app.visible.map { _ in "visible" }, app.silent.map { _ in "silent" }]
          .compactMap(\.self).joined(separator: " and ")
        rows.append(
          phone + [app.topic, Self.text(app.budget), stored.isEmpty ? "" : "stored: \(stored)"])
      }
    }
    Console.say(table: rows, colours: colours)
    if page.devices.isEmpty { Console.log("none; 'pushrelay device NAME' makes one") }
    if page.hasMore { Console.log("there are more: --limit or --search") }
  }

  private static func text(_ budget: DeviceStatus.AppBudget) -> String {
    if !budget.allowed {
      let until = budget.heldUntil.map { " until \(Instant(milliseconds: $0).iso8601)" } ?? ""
      return "no silent\(until) by \(budget.limit ?? "its state")"
    }
    return budget.remaining.map { "\($0) silent left" } ?? "silent without limit"
  }
}

struct NotificationsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "notifications",
    abstract: "List the last notifications and what became of each, newest first.",
    discussion: """
      Examples:

        pushrelay notifications
        pushrelay notifications --only stored --kind silent
        pushrelay notifications --device ID --json
      """)

  @Option(help: "received, sent, stored, delivered, discarded, or replaced, expired, …")
  var only: String?
  @Option(help: "The topic.")
  var topic: String?
  @Option(help: "The device, by its name or id.")
  var device: String?
  @Option(help: "visible or silent.")
  var kind: String?
  @Option(help: "How many at most, up to 500.")
  var limit = 50
  @OptionGroup var common: AdminOptions

  func run() async throws {
    let query = Query([
      ("state", only), ("topic", topic), ("device", device), ("kind", kind),
      ("limit", String(limit)),
    ])
    let path = "/v1/notifications" + query.text
    guard let page = try await common.ask(NotificationList.self, .GET, path) else { return }
    Console.say(
      table: page.notifications.map {
        [
          $0.steps.first?.at ?? "", $0.uniqueId, $0.phone ?? "", $0.topic, $0.kind,
          $0.sentence ?? "",
        ]
      }, colours: page.notifications.map { Highlight.colour(of: $0.state) })
    if page.notifications.isEmpty { Console.log("none") }
    if page.hasMore { Console.log("there are more: --limit, or a filter") }
  }
}

struct ChannelsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "channels",
    abstract: "List the broadcast channels: their subscribers, and what was published.",
    discussion: """
      Examples:

        pushrelay channels
        pushrelay channels --app com.example.app --json
      """)

  @Option(help: "The bundle id of an app.")
  var app: String?
  @Option(help: "How many at most, up to 500.")
  var limit = 50
  @OptionGroup var common: AdminOptions

  func run() async throws {
    let path = "/v1/channels" + Query([("app", app), ("limit", String(limit))]).text
    guard let list = try await common.ask(ChannelList.self, .GET, path) else { return }
    Console.say(
      table: list.channels.map {
        [
          $0.channel, $0.app, $0.environment?.rawValue ?? "both services",
          $0.storagePolicy == 0 ? "stores nothing" : "stores the newest",
          "\($0.subscribers) subscribed, \($0.published) published, \($0.delivered) delivered",
        ]
      })
    if list.channels.isEmpty {
      Console.log("none; a provider makes them at the listener for channels")
    }
    if list.count > list.channels.count { Console.log("there are more: --limit, or --app") }
  }
}

struct ResetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reset",
    abstract: "Empty the slots and refill the budgets: of a topic, of a device, or of all.",
    discussion: """
      Examples:

        pushrelay reset --topic com.example.app
        pushrelay reset --device ID
        pushrelay reset --all
      """)

  @Option(help: "Of all apps with this topic.")
  var topic: String?
  @Option(help: "Of a device, by its name or id.")
  var device: String?
  @Flag(help: "Of everybody.")
  var all = false
  @OptionGroup var common: AdminOptions

  func validate() throws {
    guard [topic != nil, device != nil, all].count(where: { $0 }) == 1 else {
      throw ValidationError("say one of --topic, --device and --all")
    }
  }

  func run() async throws {
    let body: JSONObject = ["topic": topic, "device": device, "all": all ? true : nil]
    try await common.call(.POST, "/v1/reset", body: try JSONText.bytes(body))
  }
}

struct Query {
  let text: String

  /// Skips parameters without a value.
  init(_ parameters: [(name: String, value: String?)]) {
    let parts = parameters.compactMap { name, value in
      value.map { "\(name)=\(Self.escaped($0))" }
    }
    text = parts.isEmpty ? "" : "?" + parts.joined(separator: "&")
  }

  /// Escapes all but unreserved characters (RFC 3986 section 2.3).
  static func escaped(_ text: String) -> String {
    text.utf8.map { byte in
      if byte.isLetterOrDigit || "-._~".utf8.contains(byte) { return String(UnicodeScalar(byte)) }
      let digits = String(byte, radix: 16, uppercase: true)
      return "%" + (digits.count == 1 ? "0" : "") + digits
    }.joined()
  }
}
