import Foundation

/// `core-benchmarks [CASE …] [--count N] [--payloads FOLDER]`: times the core's decisions. Every
/// run does the same work, so that instructions can be counted too; see the help.
@main struct CoreBenchmarks {
  private static let help = """
    usage: core-benchmarks [CASE ...] [--count N] [--payloads FOLDER]

    Runs the cases, or all of them, and prints for each the nanoseconds of one operation.

    \(BenchmarkCase.allCases.map(\.line).joined(separator: "\n"))

      --count N          operations of each case (200000)
      --payloads FOLDER  where the payload files are (payloads)

    Instructions are steadier than time. Of one case, without what comes before the operations:

      export SWIFT_DETERMINISTIC_HASHING=1
      valgrind --tool=callgrind core-benchmarks CASE --count 20000
      valgrind --tool=callgrind core-benchmarks CASE --count 40000

    and the difference of the two totals divided by 20000.

    """

  static func main() {
    do throws(CommandError) {
      let options = try Options(CommandLine.arguments.dropFirst())
      guard !options.wantsHelp else { return say(help, to: .standardOutput) }
      for benchmark in options.cases {
        let result = try benchmark.run(options)
        say(line(benchmark, options.count, result), to: .standardOutput)
      }
    } catch {
      say("core-benchmarks: \(error)\n", to: .standardError)
      exit(1)
    }
  }

  private static func line(
    _ benchmark: BenchmarkCase, _ count: Int, _ result: Measurement
  ) -> String {
    let nanoseconds = Double(result.nanoseconds) / Double(max(count, 1))
    let name = benchmark.rawValue.padding(toLength: 16, withPad: " ", startingAt: 0)
    let perOperation = String(format: "%10.1f", nanoseconds)
    return "\(name)\(perOperation) ns  (\(count) operations, sum \(result.sum))\n"
  }

  private static func say(_ text: String, to output: FileHandle) {
    output.write(Data(text.utf8))
  }
}

/// The command line.
struct Options {
  var cases: [BenchmarkCase] = []
  var count = 200_000
  var payloads = "payloads"
  var wantsHelp = false

  init(_ arguments: some Sequence<String>) throws(CommandError) {
    var rest = Array(arguments)[...]
    while let word = rest.popFirst() {
      switch word {
      case "--help", "-h": wantsHelp = true
      case "--count":
        guard let value = rest.popFirst(), let count = Int(value), count > 0 else {
          throw .badCount
        }
        self.count = count
      case "--payloads":
        guard let folder = rest.popFirst() else { throw .noFolder }
        payloads = folder
      default:
        guard let benchmark = BenchmarkCase(rawValue: word) else { throw .unknown(word) }
        cases.append(benchmark)
      }
    }
    if cases.isEmpty { cases = BenchmarkCase.allCases }
  }

  func payload(_ name: String) throws(CommandError) -> [UInt8] {
    let path = "\(payloads)/\(name)"
    guard let content = FileManager.default.contents(atPath: path) else { throw .noFile(path) }
    return [UInt8](content)
  }
}

enum CommandError: Error, CustomStringConvertible {
  case badCount
  case noFolder
  case unknown(String)
  case noFile(String)
  /// The core refused what a case asks of it.
  case refused(String)

  var description: String {
    switch self {
    case .badCount: "--count wants a number above 0"
    case .noFolder: "--payloads wants a folder"
    case .unknown(let word): "no case or option is called \(word); see --help"
    case .noFile(let path): "cannot read \(path); run it in the repository or name --payloads"
    case .refused(let what): "the core refused \(what); the case no longer fits it"
    }
  }
}
