import Testing

/// The sizes that keep a file readable in one sitting and a function on one screen.
private enum Most {
  static let columns = 100
  static let linesPerFunction = 70
  static let linesPerFile = 500
}

/// The most lines of Swift in each target of `Sources`: what the features of today take. Raising
/// one is a line in the commit that needs it, which says what for; docs/COST.md: what they buy.
private let linesPerTarget = [
  "AdminAPI": 1280, "Cockpit": 4225, "CoreBenchmarks": 900, "DeviceLink": 800, "DeviceModel": 7135,
  "DeviceSimulator": 5990, "HTTP2": 3270, "NATS": 390, "PhoneRuntime": 3075, "Primitives": 710,
  "ProviderCredentials": 1990, "RelayClient": 2080, "RelayCluster": 5640, "RelayCore": 10075,
  "RelayFaults": 350, "RelayRecording": 2955, "RelayRequests": 970, "RelayServer": 12260,
  "RelaySetup": 800, "RelayStore": 2858, "RelayTestKit": 350, "SQLite": 450, "TLS": 1895,
  "Transport": 150, "pushrelay": 6975,
]

/// Files that are one table, a row a case, and may be longer. None is today.
private let tables: Set<String> = []

/// Everything about one file that is too large, one sentence each.
private func sizeViolations(path: String, text: String) -> [String] {
  var found: [String] = []
  var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
  if lines.last == "" { lines.removeLast() }
  if lines.count > Most.linesPerFile, !tables.contains(path) {
    found.append("\(path): \(lines.count) lines, the most is \(Most.linesPerFile)")
  }
  for (index, line) in lines.enumerated() where line.count > Most.columns {
    found.append("\(path):\(index + 1): \(line.count) columns, the most is \(Most.columns)")
  }
  for function in functions(in: SourceText(text)) where function.lineCount > Most.linesPerFunction {
    let size = "\(function.lineCount) lines, the most is \(Most.linesPerFunction)"
    found.append("\(path):\(function.line): a function of \(size)")
  }
  return found
}

@Suite("Sizes") struct SizeTests {
  @Test func nothingIsTooLarge() throws {
    for file in try Repository.swiftFiles() {
      for sentence in sizeViolations(path: file.path, text: file.text) {
        Issue.record("\(sentence)")
      }
    }
  }

  @Test func noTargetOutgrowsItsRoom() throws {
    var lines: [String: Int] = [:]
    for file in try Repository.swiftFiles() {
      let parts = file.path.split(separator: "/")
      guard parts[0] == "Sources" else { continue }
      lines[String(parts[1]), default: 0] += file.text.utf8.count { $0 == UInt8(ascii: "\n") }
    }
    #expect(Set(lines.keys) == Set(linesPerTarget.keys))
    for (target, most) in linesPerTarget {
      let count = lines[target, default: 0]
      #expect(count <= most, "\(target) has \(count) lines, its room is \(most)")
      // Room that is not needed is given back, so that the table stays true.
      #expect(count > most - 100, "\(target) has \(count) lines only: lower its room")
    }
  }

  @Test func whatIsExemptIsThereAndNeedsIt() throws {
    let lineCounts = Dictionary(
      uniqueKeysWithValues: try Repository.swiftFiles().map { file in
        (file.path, file.text.split(separator: "\n", omittingEmptySubsequences: false).count)
      })
    for path in tables { #expect(lineCounts[path, default: 0] > Most.linesPerFile, "\(path)") }
  }

  @Test func theTestsThemselvesAreAmongTheFilesRead() throws {
    let paths = try Repository.swiftFiles().map(\.path)
    #expect(paths.contains("Tests/TidyTests/SizeTests.swift"))
    #expect(paths.contains("Package.swift"))
  }

  @Test(arguments: [(100, 0), (101, 1)])
  func lineLengthIsCounted(columns: Int, expected: Int) {
    let text = "// " + String(repeating: "é", count: columns - 3) + "\n"
    #expect(sizeViolations(path: "X.swift", text: text).count == expected)
  }

  @Test(arguments: [(500, 0), (501, 1)])
  func fileLengthIsCounted(lines: Int, expected: Int) {
    let text = String(repeating: "let a = 1\n", count: lines)
    #expect(sizeViolations(path: "X.swift", text: text).count == expected)
  }

  @Test(arguments: ["func f() {", "init?(a: Int) {", "deinit {", "subscript(i: Int) -> Int {"])
  func functionLengthIsCounted(head: String) {
    for (lines, expected) in [(70, 0), (71, 1)] {
      let body = String(repeating: "    work()\n", count: lines - 2)
      let text = "struct S {\n  \(head)\n\(body)  }\n}\n"
      #expect(sizeViolations(path: "X.swift", text: text).count == expected, "\(lines) lines")
    }
  }

  @Test func functionsAreFoundWhereTheyAre() {
    let text = #"""
      protocol P {
        func noBody(a: Int) -> String
        init()
      }
      extension P {
        func withDefault(block: () -> Void = { print("}") }) -> [String: Int] {
          let call = String.init("{")  // }
          return [call: 1]
        }
        /* func commented() { } */
        subscript(_ index: Int) -> Int { index }
      }
      """#
    #expect(
      functions(in: SourceText(text)) == [
        FunctionExtent(line: 6, lineCount: 4), FunctionExtent(line: 11, lineCount: 1),
      ])
  }

  @Test func onlyCodeIsLeft() {
    let text = ##"""
      let a = "x // \(call("inner \(deep)") + 1) \" /*" // fatalError
      let b = #"raw \( " \#(code) "# /* one /* two */ still */ + c
      """##
    let left = SourceText(text).lines.map { $0.split(separator: " ").joined(separator: " ") }
    #expect(left == ["let a = call( deep ) + 1", "let b = code + c"])
    #expect(SourceText(text).bytes.count == text.utf8.count)
  }
}
