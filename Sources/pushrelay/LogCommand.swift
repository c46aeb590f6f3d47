import AdminAPI
import ArgumentParser
import FoundationEssentials
import NIOHTTP1
import Primitives
import RelayClient
import RelayCore
import RelayServer
import RelaySetup

struct LogCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log",
    abstract: "Show the life of one notification: received, held until when by what, sent, …",
    discussion: """
      Examples:

        pushrelay log 3f1c9a52-0d6e-8b34-8000-00000000002a
        pushrelay log 3f1c9a52-0d6e-8b34-8000-00000000002a --json
        pushrelay log --refused
        pushrelay log --device 5bd1e995-0d6e-4b34-9000-00000000002a
        pushrelay log --follow
        pushrelay log --follow --topic com.example.app --json

      The id is the apns-unique-id or the apns-id of the answer to the push; 'pushrelay send' \
      prints both. The relay remembers the last notifications (logNotifications, 100000), and all \
      that are still stored. With the relay's state directory it also says in a sentence why a \
      push waits, and shows the request as it was sent. --refused lists the last requests that \
      were refused, and exactly why; --device tells when a phone came, went or became another. \
      --follow tells what happens as it happens, of everything or of an id, a topic, a phone, \
      until Ctrl-C or the relay's end. These ask over the admin socket in the state directory.
      """)

  @Argument(help: "apns-unique-id or apns-id, a UUID.")
  var id: String?

  @Flag(help: "List the last refused requests instead.")
  var refused = false

  @Option(
    help: ArgumentHelp(
      "Tell what happened to this phone instead; with --follow, what does.", valueName: "id"))
  var device: String?

  @Flag(name: .shortAndLong, help: "Tell what happens from now on, as it happens.")
  var follow = false

  @Option(help: "With --follow: only what is about this topic.")
  var topic: String?

  @OptionGroup var signing: ProviderOptions

  @Flag(help: "Print the relay's answer as JSON.")
  var json = false

  @OptionGroup var connection: ConnectionOptions

  func validate() throws {
    if follow, !refused { return }
    guard !follow else {
      throw ValidationError("--follow shows what happens from now on, --refused what was")
    }
    guard topic == nil else { throw ValidationError("--topic goes with --follow") }
    guard [id != nil, refused, device != nil].count(where: \.self) == 1 else {
      throw ValidationError(
        "give one of these: the id of a notification, --refused, --device ID, --follow")
    }
  }

  func run() async throws {
    if follow { return try await Services.run([.leading(Work { try await followAll() })]) }
    if let device { return try await showChanges(of: device) }
    guard let id else { return try await showRefused() }
    try Self.check(id)
    let token = try signing.token(connection.files.keys, topic: nil)
    let client = try await connection.connect(to: connection.find(provider: signing.provider))
    let answer = try await client.life(of: id, providerToken: token)
    await client.close()
    guard answer.status == 200 else {
      // One that was refused has no life, nor has a broadcast.
      if answer.status == 404, !json, let request = await self.request(id) {
        RequestsCommand.show(request)
        guard request.status == 200 else { return }
        let isBroadcast = request.headers.contains { $0.name == "apns-channel-id" }
        Console.say(
          isBroadcast
            ? "a broadcast has no life of its own"
            : "what became of it is not known: the node that saw it is gone, or it was forgotten")
        return
      }
      let refusal = ReasonBody(answer.body)
      let message = refusal?.message.map { ": \($0)" } ?? ""
      throw CommandError(
        "the relay answered \(answer.status) \(refusal?.reason ?? "without a reason")\(message)")
    }
    if json {
      Console.say(bytes: Array(answer.body.prefix { $0 != UInt8(ascii: "\n") }))
    } else {
      let life = try JSONDecoder().decode(NotificationLife.self, from: Data(answer.body))
      // Providers are not told why it waits, which is about the device; an operator is.
      let told = try? await ControlClient(state: connection.files.state).ask(
        NotificationLife.self, .GET, "/v1/notifications/\(life.uniqueId)", printing: false)
      show(life, told?.sentence, await tokenStep(after: told))
      guard let request = told?.request else { return }
      Console.say("")
      RequestsCommand.show(request)
    }
  }

  /// Of a push that started a Live Activity: when its server could update it. Until the app has run
  /// there is no token, which is the race that people debug.
  private func tokenStep(after life: NotificationLife?) async -> (time: Int64?, text: String)? {
    let parts = life?.topic.split(separator: ".").map(String.init) ?? []
    guard let life, let device = life.device, life.steps.contains(where: { $0.outcome == "shown" }),
      let place = parts.lastIndex(of: "start"), place > 0, parts[place - 1] == "liveactivity",
      let events = try? await ControlClient(state: connection.files.state).ask(
        DeviceEvents.self, .GET, "/v1/devices/\(Query.escaped(device))/events", printing: false)?
        .events
    else { return nil }
    let token = parts[..<place].joined(separator: ".") + ".activity."
    let found = events.first {
      $0.time >= life.steps[0].time && $0.what == "registered" && $0.topic?.hasPrefix(token) == true
    }
    guard let found, let topic = found.topic else {
      return (nil, "no token of a new activity since: its server cannot update it, but by channel")
    }
    return (found.time, "token of \(topic.dropFirst(token.count - 9)): its server can update it")
  }

  /// nil where the admin socket cannot be asked, or the request is not kept.
  private func request(_ id: String) async -> RequestStatus? {
    let client = ControlClient(state: connection.files.state)
    return try? await client.ask(
      RequestStatus.self, .GET, "/v1/requests/\(Query.escaped(id))", printing: false)
  }

  private static func check(_ id: String) throws {
    guard UniqueID(id) != nil else {
      throw CommandError(
        "\(id) is no notification id: give a UUID, as apns-unique-id or apns-id says it")
    }
  }

  private func followAll() async throws {
    if let id { try Self.check(id) }
    let state = connection.files.state
    // A name that this machine plays stands for its id.
    let device = try device.map { try DeviceFile.load($0, state: state)?.device ?? $0 }
    try await LogFollower(state: state, isJSON: json, device: device, topic: topic, id: id).run()
  }

  private func showRefused() async throws {
    let list = try await ControlClient(state: connection.files.state).ask(
      RefusalList.self, .GET, "/v1/refusals?limit=200", printing: json)?.refusals
    guard let list else { return }
    Console.say(
      table: list.reversed().map {
        [
          Instant(milliseconds: $0.time).iso8601, $0.uniqueId, "\($0.status) \($0.reason)",
          $0.cause,
        ]
      }, isWhole: true)
    if list.isEmpty { Console.log("none was refused") }
  }

  private func showChanges(of device: String) async throws {
    let list = try await ControlClient(state: connection.files.state).ask(
      DeviceEvents.self, .GET, "/v1/devices/\(Query.escaped(device))/events", printing: json)?
      .events
    guard let list else { return }
    Console.say(
      table: list.map { [Instant(milliseconds: $0.time).iso8601, $0.what, Self.detail(of: $0)] })
    if list.isEmpty { Console.log("nothing has happened to it since the relay started") }
  }

  private static func detail(of event: DeviceEvent) -> String {
    event.condition.map(text) ?? event.topic ?? event.policy ?? ""
  }

  static func text(_ condition: DeviceEvent.Condition) -> String {
    "power \(condition.power), network \(condition.network), screen \(condition.screen)"
  }

  private func show(
    _ life: NotificationLife, _ sentence: String?, _ token: (time: Int64?, text: String)?
  ) {
    Console.say(
      table: [
        ["apns-unique-id", life.uniqueId], ["apns-id", life.id], ["topic", life.topic],
        ["kind", life.kind], ["state", life.state],
      ] + (life.traceparent.map { [["traceparent", $0]] } ?? []))
    for warning in life.warnings { Console.say("note: \(warning)") }
    if let sentence { Console.say(sentence) }
    Console.say("")
    let first = life.steps.first?.time ?? 0
    let steps =
      (life.steps.map { (time: Optional($0.time), text: $0.text, step: $0.step) }
      + (token.map { [($0.time, $0.text, "")] } ?? []))
      .sorted { $0.time ?? .max < $1.time ?? .max }
    Console.say(
      table: steps.map { time, text, _ in
        guard let time else { return ["", "", text] }
        let later = time == first ? "" : "+\(Self.seconds(time - first))"
        return [Instant(milliseconds: time).iso8601, later, text]
      }, isWhole: true, colours: steps.map { Highlight.colour(of: $0.step) })
  }

  /// Seconds, such as 0.012 s, 1.5 s, 3600 s.
  private static func seconds(_ milliseconds: Int64) -> String {
    guard milliseconds % 1000 != 0 else { return "\(milliseconds / 1000) s" }
    let fraction = String(milliseconds % 1000 + 1000).dropFirst()
    return "\(milliseconds / 1000).\(fraction) s"
  }
}
