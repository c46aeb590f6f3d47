import AdminAPI
import ArgumentParser
import NIOHTTP1
import Primitives

struct ClockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clock",
    abstract: "Show and move the clock of a relay that was started with --clock virtual.",
    discussion: """
      Examples:

        pushrelay serve --clock virtual
        pushrelay clock
        pushrelay clock advance 1h
        pushrelay clock advance next
        pushrelay clock rate 60

      Time stands until it is moved. An advance runs every timer in order and returns when all has \
      come of it that comes: no waiting is needed afterwards.
      """,
    subcommands: [Show.self, Advance.self, Rate.self], defaultSubcommand: Show.self)

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Show what time it is, and what comes next.")
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.show(.GET, "/v1/clock", as: ClockCommand.show)
    }
  }

  struct Advance: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "advance",
      abstract: "Move the clock: by a length of time, or to whatever comes next.",
      discussion: """
        Examples:

          pushrelay clock advance 90s
          pushrelay clock advance 1h30m
          pushrelay clock advance next
        """)
    // A list that takes all, so that -5m too gets an error about lengths of time.
    @Argument(
      parsing: .allUnrecognized,
      help: ArgumentHelp("A length of time such as 90s, 1h30m or 30d; or next.", valueName: "time"))
    var times: [String]
    /// `1h 30m` is `1h30m`.
    private var time: String { times.joined() }
    @OptionGroup var common: AdminOptions

    func validate() throws {
      guard time == "next" || Interval(time) != nil else {
        throw ValidationError(
          "'\(times.joined(separator: " "))' is not a length of time such as 90s or 1h30m, nor "
            + "next; back goes 'pushrelay checkpoint restore NAME'")
      }
    }

    func run() async throws {
      let body = try time == "next" ? JSONText.bytes(["next": true]) : JSONText.bytes(["by": time])
      try await common.show(.POST, "/v1/clock/advance", body: body) { (advance: ClockAdvance) in
        Console.say(Instant(milliseconds: advance.now).iso8601)
        for (what, count) in advance.fired.sorted(by: { $0.key < $1.key }) {
          Console.say("  \(count) \(what)")
        }
      }
    }
  }

  struct Rate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "rate",
      abstract: "Let time pass by itself: so many seconds in one of the machine's; 0 stands.")
    @Argument(help: "1 is as fast as the machine's time, 60 a minute a second.")
    var rate: Double
    @OptionGroup var common: AdminOptions

    func validate() throws {
      guard rate.isFinite else { throw ValidationError("a rate is a number, such as 60") }
    }

    func run() async throws {
      try await common.show(
        .PATCH, "/v1/clock", body: try JSONText.bytes(["rate": rate]), as: ClockCommand.show)
    }
  }

  private static func show(_ status: ClockStatus) {
    let rate = status.rate == 0 ? "stands" : "passes at rate \(status.rate)"
    Console.say(
      "\(Instant(milliseconds: status.now).iso8601)  \(status.mode) clock, "
        + (status.mode == "system" ? "the machine's time" : rate))
    if let next = status.next {
      Console.say("next: \(Instant(milliseconds: next.at).iso8601)  \(next.what)")
    }
  }
}
