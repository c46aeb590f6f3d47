import ArgumentParser
import DeviceSimulator

struct SimulateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Play scenario files: relay and phones in virtual time, with a verdict.",
    discussion: """
      Examples:

        pushrelay simulate payloads/scenarios/messenger.json
        pushrelay simulate payloads/scenarios/*.json --quiet
        pushrelay simulate payloads/scenarios/throttling.json --seed 7 --json

      Each file sets up phones and apps, says what happens when and what must come of it; \
      docs/SCENARIOS.md explains it. The same file and seed give the same output, to the byte. The \
      exit status is 1 when an expectation fails. On a terminal what was held, replaced and \
      carried along has a colour and a mark; NO_COLOR=1 turns them off.
      """)

  @Argument(help: "Scenario files.")
  var files: [String]

  @Option(help: "The seed that chance is drawn from (default: the file's own, or 1).")
  var seed: UInt64?

  @Flag(help: "Print everything that happened and the verdicts as one JSON object per line.")
  var json = false

  @Flag(help: "Print the verdicts only.")
  var quiet = false

  @Flag(help: "Print details too: sleep, snapshots, state archives, planned fetches, reports.")
  var verbose = false

  @Option(help: ArgumentHelp("Write the verdicts as JUnit's XML, too.", valueName: "file"))
  var junit: String?

  @Flag(help: "Print for each app when it was used, fetched and pushed to, week by week.")
  var heatMap = false

  func validate() throws {
    if heatMap, json { throw ValidationError("--heat-map and --json do not go together") }
    if json, quiet || verbose {
      throw ValidationError("--json prints everything; leave out --quiet and --verbose")
    }
    if quiet, verbose { throw ValidationError("--quiet and --verbose do not go together") }
  }

  func run() async throws {
    // All are read first: a mistake in the last file is reported at once.
    let scenarios = try files.map(Self.read)
    var failed = 0
    var checked = 0
    var report = JUnitReport()
    for (index, scenario) in scenarios.enumerated() {
      let result = scenario.run(seed: seed, keepsTrace: !quiet || heatMap)
      checked += result.verdicts.count
      failed += result.verdicts.count { !$0.isPassed }
      report.add(scenario, result)
      if json {
        show(json: result)
      } else {
        if index > 0, !quiet { Console.say("") }
        show(scenario, result)
        if heatMap { for map in result.simulation.heatMaps { Console.say(map.text) } }
      }
    }
    if !json {
      let files = scenarios.count == 1 ? "1 scenario" : "\(scenarios.count) scenarios"
      let expectations = checked == 1 ? "1 expectation" : "\(checked) expectations"
      Console.say("\(files), \(expectations), \(failed) failed")
    }
    if let junit { try report.write(to: junit) }
    guard failed == 0 else { throw ExitCode(1) }
  }

  static func read(_ file: String) throws -> Scenario {
    let json = try PrivateFile.read(file, else: "give the path of a scenario file")
    do {
      return try Scenario(json: json, file: file)
    } catch {
      throw CommandError("\(error)")
    }
  }

  private func show(json result: ScenarioResult) {
    // In large pieces: a month is tens of thousands of lines.
    var piece: [UInt8] = []
    for line in result.json {
      if !piece.isEmpty { piece.append(UInt8(ascii: "\n")) }
      piece += line.utf8
      guard piece.count > 65_536 else { continue }
      Console.say(bytes: piece)
      piece.removeAll(keepingCapacity: true)
    }
    if !piece.isEmpty { Console.say(bytes: piece) }
  }

  private func show(_ scenario: Scenario, _ result: ScenarioResult) {
    Console.say("\(scenario.title) (\(scenario.file), seed \(result.simulation.seed))")
    if !quiet {
      let simulation = result.simulation
      let lines = verbose ? simulation.trace() : simulation.timelineLines
      Console.say(
        styled: Highlight.isOn
          ? simulation.text(of: lines, styled: Highlight.text) : simulation.text(of: lines))
    }
    for verdict in result.verdicts {
      Console.say("\(verdict.isPassed ? "passed" : "FAILED")  \(verdict.says): \(verdict.found)")
    }
  }
}
