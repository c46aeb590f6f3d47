import DeviceSimulator
import FoundationEssentials

/// Verdicts as JUnit's XML, for build servers.
struct JUnitReport {
  private var suites = ""
  private var count = 0
  private var failed = 0

  mutating func add(_ scenario: Scenario, _ result: ScenarioResult) {
    let failures = result.verdicts.count { !$0.isPassed }
    count += result.verdicts.count
    failed += failures
    suites += #"  <testsuite name="\#(Self.escaped(scenario.title))" "#
    suites += #"tests="\#(result.verdicts.count)" failures="\#(failures)">"# + "\n"
    for verdict in result.verdicts {
      var head = #"    <testcase classname="\#(Self.escaped(scenario.file))" "#
      head += #"name="\#(Self.escaped(verdict.says))""#
      suites +=
        verdict.isPassed
        ? head + "/>\n"
        : head + "><failure message=\"\(Self.escaped(verdict.found))\"/></testcase>\n"
    }
    suites += "  </testsuite>\n"
  }

  func write(to path: String) throws {
    let text =
      #"<?xml version="1.0" encoding="UTF-8"?>"# + "\n"
      + #"<testsuites tests="\#(count)" failures="\#(failed)">"# + "\n" + suites
      + "</testsuites>\n"
    do {
      let isNew = !FileManager.default.fileExists(atPath: path)
      try Data(text.utf8).write(to: URL(filePath: path))
      // Readable for all: a CI server runs as another user, and it is no secret.
      if isNew {
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
      }
    } catch {
      throw CommandError("\(path) cannot be written: name a file in a directory that is there")
    }
  }

  /// Escapes an attribute (W3C, "Extensible Markup Language (XML) 1.0").
  private static func escaped(_ text: String) -> String {
    text.unicodeScalars.map { scalar in
      switch scalar {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "\"": "&quot;"
      case let scalar where scalar.value < 0x20 || scalar.value & 0xFFFE == 0xFFFE: " "
      default: String(scalar)
      }
    }.joined()
  }
}
