import Testing

/// Where a target's tests are when there is no folder of its name.
private let testedElsewhere: [String: String] = [
  "CVersion": "PrimitivesTests", "COpenSSL": "TLSTests", "CNghttp2": "HTTP2Tests",
  // With a server.
  "CSQLite": "SQLiteTests",
  "CNATS": "RelayClusterTests", "NATS": "RelayClusterTests",
  // As a process.
  "pushrelay": "EndToEndTests",
  // Measures and is no product.
  "CoreBenchmarks": "RelayCoreTests",
]

/// The tests that let time pass, and what for.
private let sleeping: [String: String] = [
  "Tests/PhoneRuntimeTests/PhoneDriverTests.swift": "asks another actor again until it says so",
  "Tests/EndToEndTests/LivePhoneTests.swift": "asks another process again until it says so",
  "Tests/EndToEndTests/CrashProviders.swift": "chance decides when the next push is sent",
  "Tests/EndToEndTests/CrashFleet.swift": "chance decides when a phone comes and goes",
  "Tests/EndToEndTests/CrashPhone.swift": "chance decides when a phone comes and goes",
  "Tests/EndToEndTests/CrashPhone+Listening.swift": "chance decides when a phone answers",
  "Tests/EndToEndTests/CrashRelay.swift": "chance decides when the relay is killed",
  "Tests/EndToEndTests/ClusterAdminTests.swift": "asks another process again until it says so",
  "Tests/EndToEndTests/ClusterClockTests.swift": "asks another process again until it says so",
  "Tests/EndToEndTests/CrashCluster.swift": "an engine is slow for most of the time",
  "Tests/EndToEndTests/ClusterScene.swift": "asks another process again until it says so",
  "Tests/EndToEndTests/ClusterFaultTests.swift": "a lease runs out while a relay is away",
  "Tests/EndToEndTests/CrashTests.swift":
    "chance decides when the relay is killed; every second life waits until there were answers",
]

/// How the tests are laid out, as docs/STYLE.md and docs/ARCHITECTURE.md say.
@Suite("Test folders") struct TestFolderTests {
  @Test func everyTargetIsTestedWhereTheTableSays() {
    let folders = Set(Repository.names(in: "Tests"))
    for target in Repository.targets() {
      let folder = testedElsewhere[target] ?? "\(target)Tests"
      #expect(folders.contains(folder), "Tests/\(folder), where \(target) is tested, is not there")
    }
    for target in testedElsewhere.keys {
      #expect(Repository.targets().contains(target), "\(target) is no target")
      #expect(!folders.contains("\(target)Tests"), "\(target) has tests of its own")
    }
  }

  @Test func noTestSleepsButThoseInTheTable() throws {
    let found = try Repository.swiftFiles().filter { file in
      file.path.hasPrefix("Tests/")
        && SourceText(file.text).lines.contains { $0.contains("sleep(") }
    }.map(\.path)
    for path in found where sleeping[path] == nil {
      Issue.record("\(path) sleeps: wait for an event, or say in the table what for")
    }
    for path in sleeping.keys { #expect(found.contains(path), "\(path) does not sleep") }
  }
}
