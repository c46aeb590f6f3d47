import AdminAPI
import ArgumentParser
import NIOHTTP1
import Primitives

struct FaultCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fault",
    abstract: "Let things go wrong on purpose, counted: refusals, GOAWAY, resets, lost frames.",
    discussion: """
      Examples:

        pushrelay fault set busy provider answer=ServiceUnavailable --times 3
        pushrelay fault set bye connection goaway=once --skip 10 --times 1
        pushrelay fault set lossy delivery drop --probability 0.2 --seed 7
        pushrelay fault set slow-disk journal delay=2s --for 5m
        pushrelay fault list
        pushrelay fault remove busy

      At provider: answer=REASON, delay=2s, drop, reset. At connection: goaway=once|twice|bare, \
      reset, halfClose, blackhole, stall=5s. At delivery: delay=2s, drop, duplicate, reset. At \
      journal: delay=2s, failWrite. docs/ADMIN.md says what each does.
      """,
    subcommands: [Set.self, List.self, Remove.self, Tokens.self])

  struct Set: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "set", abstract: "Put a fault in force, in place of the one with this name.")
    @Argument(help: "1 to 64 of the characters a-z, 0-9 and -.")
    var name: String
    @Argument(help: "provider, connection, delivery or journal.")
    var place: String
    @Argument(help: "What goes wrong, such as drop or answer=ServiceUnavailable.")
    var action: String
    @Option(help: "Only pushes to this topic.")
    var topic: String?
    @Option(help: "Only pushes to this device, by its name or id.")
    var device: String?
    @Option(help: "Only pushes to this device token.")
    var token: String?
    @Option(help: "Only visible or only silent pushes.")
    var kind: String?
    @Option(help: "So many pass first.")
    var skip: Int?
    @Option(help: "At most so often.")
    var times: Int?
    @Option(help: "The chance of each, from 0 to 1.")
    var probability: Double?
    @Option(help: "Only what goes beyond a rate, such as 100/1m.")
    var over: String?
    @Option(help: "What chances are drawn from.")
    var seed: Int64?
    @Option(name: .customLong("for"), help: "How long, by the relay's time, such as 5m.")
    var duration: String?
    @OptionGroup var common: AdminOptions

    func validate() throws {
      guard probability?.isFinite ?? true else { throw ValidationError("a chance is from 0 to 1") }
      _ = try rate()
    }

    func run() async throws {
      let parts = action.split(separator: "=", maxSplits: 1).map(String.init)
      guard let word = parts.first else { throw ValidationError("say what goes wrong") }
      let detail = parts.count > 1 && parts[1] != "true" ? FaultStatus.Detail.text(parts[1]) : .flag
      let match = FaultStatus.Match(topic: topic, device: device, token: token, kind: kind)
      let when: JSONObject = [
        "skip": skip, "times": times, "probability": probability, "rate": try rate(),
      ]
      let body: JSONObject = [
        "at": place, "do": [word: detail], "match": match, "when": when, "seed": seed,
        "for": duration,
      ]
      try await common.show(
        .PUT, "/v1/faults/\(Query.escaped(name))", body: try JSONText.bytes(body)
      ) {
        FaultCommand.show([$0])
      }
    }

    private func rate() throws -> JSONObject? {
      guard let over else { return nil }
      let parts = over.split(separator: "/")
      guard parts.count == 2, let count = Int(parts[0]) else {
        throw ValidationError("'\(over)' is not a rate such as 100/1m")
      }
      return ["over": count, "per": String(parts[1])]
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the faults, and how often each has acted.")
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.list(
        "faults", else: "none; 'pushrelay fault set' puts one in force", as: FaultCommand.show)
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "remove", abstract: "Take a fault back.")
    @Argument(help: "Its name.")
    var name: String
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.call(.DELETE, "/v1/faults/\(Query.escaped(name))")
    }
  }

  struct Tokens: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "tokens",
      abstract: "List the device tokens that answer a reason each, without any set-up.")
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.show(.GET, "/v1/reserved-tokens") {
        (answer: [String: [ReservedTokenStatus]]) in
        Console.say(
          table: (answer["tokens"] ?? []).map { [$0.token, String($0.status), $0.reason] })
      }
    }
  }

  private static func text(_ action: [String: FaultStatus.Detail]) -> String {
    action.map { name, value in
      if case .text(let text) = value { "\(name)=\(text)" } else { name }
    }.joined(separator: " ")
  }

  private static func whom(_ match: FaultStatus.Match) -> String {
    let parts = [match.topic, match.device, match.token, match.kind].compactMap(\.self)
    return parts.isEmpty ? "" : "of " + parts.joined(separator: " ")
  }

  private static func often(_ fault: FaultStatus) -> String {
    var parts = fault.skip > 0 ? ["after \(fault.skip)"] : []
    if let times = fault.times { parts.append(times == 1 ? "1 time" : "\(times) times") }
    if fault.probability < 1 { parts.append("chance \(fault.probability)") }
    return parts.joined(separator: ", ")
  }

  private static func show(_ faults: [FaultStatus]) {
    Console.say(
      table: faults.map { fault in
        [
          fault.name, fault.at, text(fault.do), whom(fault.match), often(fault),
          fault.rate.map { "over \($0.over) per \($0.per)" } ?? "",
          "seen \(fault.seen)", "hit \(fault.hit)",
          fault.until.map { "until \(Instant(milliseconds: $0).iso8601)" } ?? "",
        ]
      })
  }
}
