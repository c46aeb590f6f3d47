import Testing

/// Every import of one file that its target's rule does not allow, one sentence each.
private func importViolations(path: String, target: String, text: String) -> [String] {
  guard let rule = importRules.first(where: { $0.target == target }) else {
    return ["\(path): target \(target) is not in importRules; say there what it may import"]
  }
  return imports(in: SourceText(text)).filter { !rule.allows($0.module) }
    .map { "\(path):\($0.line): \(target) may not import \($0.module)" }
}

@Suite("Imports") struct ImportTests {
  @Test func importsGoDownOnly() throws {
    for file in try Repository.sources() {
      let target = file.target ?? ""
      for sentence in importViolations(path: file.path, target: target, text: file.text) {
        Issue.record("\(sentence)")
      }
    }
  }

  @Test func everyTargetHasARule() {
    let unknown = Set(Repository.targets()).subtracting(importRules.map(\.target))
    #expect(unknown.isEmpty)
  }

  /// "Earlier in the table only" makes cycles and sideways imports impossible.
  @Test func theTableItselfGoesDownOnly() {
    var earlier: Set<String> = []
    for rule in importRules {
      let unknown = rule.own.subtracting(earlier)
      #expect(unknown.isEmpty, "\(rule.target) may import what stands beside or above it")
      #expect(earlier.insert(rule.target).inserted, "\(rule.target) stands there twice")
      #expect(rule.others.isDisjoint(with: importRules.map(\.target)))
    }
  }

  @Test(arguments: [
    ("RelayCore", "import NIOCore"), ("RelayCore", "import Foundation"),
    ("DeviceModel", "package import RelayCore"), ("HTTP2", "import struct TLS.TLSSession"),
    ("DeviceLink", "@preconcurrency import RelayServer"), ("RelayServer", "import Dashboard"),
    ("RelayServer", "import COpenSSL"), ("DeviceSimulator", "internal import RelayServer"),
    ("RelayServer", "@testable import DeviceSimulator"), ("RelayServer", "import JWTKit"),
    ("RelayStore", "import struct Foundation.Data"), ("Surprise", "import RelayCore"),
  ])
  func whatIsNotAllowedIsFound(target: String, line: String) {
    let text = "// import Harmless\n\(line)\n"
    #expect(importViolations(path: "X.swift", target: target, text: text).count == 1)
  }

  @Test func whatIsAllowedPasses() {
    let text = "import DequeModule\n#if A\npublic import struct HeapModule.Heap\n#endif\n"
    #expect(importViolations(path: "X.swift", target: "RelayCore", text: text).isEmpty)
  }

  @Test func importsAreReadHoweverTheyAreWritten() {
    let text = """
      import A
        @preconcurrency package import B
      @_spi(Inner) private import struct C.D
      import E.F; import G
      let text = "import H"
      /* import I */ let imported = 1
      func important() {}
      """
    let found = imports(in: SourceText(text))
    #expect(found.map(\.module) == ["A", "B", "C", "E", "G"])
    #expect(found.map(\.line) == [1, 2, 3, 4, 4])
  }
}
