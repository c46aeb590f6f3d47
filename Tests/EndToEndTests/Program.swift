import Foundation
import Subprocess
import SystemPackage

/// Why an end-to-end test could not go on.
enum EndToEndProblem: Error, CustomStringConvertible {
  case ended(expecting: String, after: [String])
  case failed(program: String, outcome: String)
  case missing(String)

  var description: String {
    switch self {
    case .ended(let expecting, let lines):
      "the program ended before \(expecting), after: \(lines.joined(separator: " | "))"
    case .failed(let program, let outcome): "\(program): \(outcome)"
    case .missing(let what): what
    }
  }
}

/// What a program left behind.
struct Outcome: Sendable {
  var status: TerminationStatus
  var output: String
  var errors: String

  var succeeded: Bool { status.isSuccess }

  /// The output, if the program succeeded; else an error with all it said.
  func checked(_ program: String) throws -> String {
    guard succeeded else {
      throw EndToEndProblem.failed(
        program: program, outcome: "\(status), says \(output) \(errors)")
    }
    return output
  }
}

/// Programs that are not ours, and ours, run from outside.
enum Program {
  /// The folder of the package.
  static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../..", directoryHint: .isDirectory).standardizedFileURL

  /// The binary under test: `RELAY_TEST_BINARY`, or what this build made.
  static let pushrelay: String = {
    if let path = ProcessInfo.processInfo.environment["RELAY_TEST_BINARY"] { return path }
    let files = FileManager.default
    let beside = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appending(path: "pushrelay").path(percentEncoded: false)
    if files.isExecutableFile(atPath: beside) { return beside }
    return root.appending(path: ".build/debug/pushrelay").path(percentEncoded: false)
  }()

  /// One of the scripts beside the tests that play clients.
  static func client(_ name: String) -> String {
    URL(filePath: #filePath).deletingLastPathComponent().appending(path: "clients/\(name)")
      .path(percentEncoded: false)
  }

  /// Runs a program to its end. Its standard input is a file: a pipe that the program does not
  /// read to its end traps in Subprocess 1.0.2 ("was not closed") when the program is quicker.
  static func run(
    _ program: String, _ arguments: [String], environment: [String: String] = [:],
    input: String = ""
  ) async throws -> Outcome {
    let scratch = try Scratch()
    let path = scratch.path + "/input"
    try Data(input.utf8).write(to: URL(filePath: path))
    let result = try await Subprocess.run(
      executable(program), arguments: Arguments(arguments),
      environment: .inherit.updating(keyed(environment)),
      input: .fileDescriptor(
        try FileDescriptor.open(FilePath(path), .readOnly), closeAfterSpawningProcess: true),
      output: .string(limit: 8_000_000), error: .string(limit: 8_000_000))
    return Outcome(
      status: result.terminationStatus, output: result.standardOutput,
      errors: result.standardError)
  }

  static func executable(_ program: String) -> Executable {
    program.contains("/") ? .path(FilePath(program)) : .name(program)
  }

  static func keyed(_ environment: [String: String]) -> [Environment.Key: String?] {
    var keyed: [Environment.Key: String?] = [:]
    for (key, value) in environment { keyed[.init(rawValue: key) ?? "PUSHRELAY"] = value }
    return keyed
  }
}

/// A folder of its own for a test, gone with it.
struct Scratch: ~Copyable {
  let path: String

  init() throws {
    let url = FileManager.default.temporaryDirectory
      .appending(path: "pushrelay-test-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = url.path(percentEncoded: false)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }
}

/// What a running program says, line by line. Every wait is on output; the suites' time limits end
/// those for output that never comes.
struct LineReader {
  private var iterator: SubprocessOutputSequence.StringSequence<UTF8>.AsyncIterator
  /// All lines read so far.
  private(set) var lines: [String] = []

  init(_ output: SubprocessOutputSequence) {
    iterator = output.strings().makeAsyncIterator()
  }

  /// The next line; nil when the program has ended its output.
  mutating func nextOrEnd() async throws -> String? {
    guard let line = try await iterator.next() else { return nil }
    let text = line.trimmingCharacters(in: .newlines)
    lines.append(text)
    return text
  }

  /// The next line.
  mutating func next(_ expecting: String) async throws -> String {
    guard let line = try await nextOrEnd() else {
      throw EndToEndProblem.ended(expecting: expecting, after: lines)
    }
    return line
  }

  /// The next line that begins so; others are passed over.
  mutating func skip(to prefix: String) async throws -> String {
    while true {
      let line = try await next(prefix)
      if line.hasPrefix(prefix) { return line }
    }
  }
}
