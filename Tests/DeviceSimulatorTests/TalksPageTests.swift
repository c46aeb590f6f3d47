import Foundation
import Testing

/// docs/TALKS.md has every rule, and what is to show it exists.
@Suite struct TalksPageTests {
  @Test func everyRowNamesWhatShowsIt() throws {
    let folder = Files.root.appending(path: "Tests").path(percentEncoded: false)
    let paths = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
    let tests = try paths.filter { $0.hasSuffix("Tests.swift") }.map {
      try Files.text("Tests/\($0)")
    }
    var rows: [Int] = []
    for line in try Files.text("docs/TALKS.md").split(separator: "\n") {
      let cells = line.split(separator: "|", omittingEmptySubsequences: false)
      guard cells.count == 6 else { continue }
      let numbers = cells[1].split(separator: ",").compactMap {
        Int($0.trimmingCharacters(in: .whitespaces))
      }
      rows += numbers
      guard !numbers.isEmpty else { continue }
      let shown = cells[3].split(whereSeparator: { " ,;`".contains($0) }).map(String.init)
      let scenarios = shown.filter { Files.scenarios.contains($0) }
      let named = shown.filter { $0.contains("Tests") && $0.contains(".") }
      #expect(!scenarios.isEmpty || !named.isEmpty, "\(line)")
      for name in named {
        let parts = name.split(separator: ".")
        let isThere = tests.contains {
          $0.contains("struct \(parts[0]) ") && $0.contains("func \(parts[1])(")
        }
        #expect(isThere, "\(name)")
      }
    }
    #expect(rows.sorted() == Array(1...109))
  }
}
