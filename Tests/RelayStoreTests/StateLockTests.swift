import Foundation
import Testing

@testable import RelayStore

@Suite("StateLock") struct StateLockTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private var file: URL { URL(fileURLWithPath: directory.path + "/" + StateLock.fileName) }

  @Test func theSecondIsToldWhoIsTheFirst() throws {
    let first = try StateLock.acquire(directory.path)
    let error = #expect(throws: StoreError.self) { try StateLock.acquire(directory.path) }
    let text = error?.description ?? ""
    #expect(text.contains("process \(ProcessInfo.processInfo.processIdentifier), started 20"))
    #expect(text.contains("pass another --state"))
    withExtendedLifetime(first) {}
  }

  @Test func aFileThatNobodyHoldsIsNoObstacle() throws {
    try Data("4711\n2001-01-01T00:00:00Z\n, and a good deal more than we write\n".utf8)
      .write(to: file)
    let lock = try StateLock.acquire(directory.path)
    let lines = try String(decoding: Data(contentsOf: file), as: UTF8.self).split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines.first == "\(ProcessInfo.processInfo.processIdentifier)")
    withExtendedLifetime(lock) {}
  }

  /// Whoever may write here must not have another file emptied.
  @Test func aLinkIsNotFollowed() throws {
    let victim = directory.path + "/victim"
    try Data("precious".utf8).write(to: URL(fileURLWithPath: victim))
    try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: victim)
    #expect(throws: StoreError.self) { try StateLock.acquire(directory.path) }
    #expect(FileManager.default.contents(atPath: victim) == Data("precious".utf8))
  }

  @Test func theLockEndsWithItsOwner() throws {
    for _ in 0..<3 { _ = try StateLock.acquire(directory.path) }
  }

  @Test func aJournalHoldsItUntilItStops() async throws {
    let journal = try Listener().open(directory)
    let error = #expect(throws: StoreError.self) { try Listener().open(directory) }
    guard case .locked? = error else { return #expect(Bool(false), "\(String(describing: error))") }
    await journal.stop()
    await (try Listener().open(directory)).stop()
  }

  @Test func anotherProcessIsKeptOut() async throws {
    let journal = try Listener().open(directory)
    func otherProcess() throws -> Int32 {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = ["flock", "--nonblock", file.path, "true"]
      try process.run()
      process.waitUntilExit()
      return process.terminationStatus
    }
    #expect(try otherProcess() == 1)
    await journal.stop()
    #expect(try otherProcess() == 0)
  }
}
