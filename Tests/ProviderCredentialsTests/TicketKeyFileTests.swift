import Foundation
import Primitives
import TLS
import TestSupport
import Testing

@testable import ProviderCredentials

@Suite struct TicketKeyFileTests {
  private static let day = TicketKeyFile.dayMilliseconds
  private static let start: Int64 = 1_780_000_000_000

  @Test func keysOutliveTheProcessAndNobodyElseReadsThem() throws {
    let directory = try TemporaryDirectory()
    let file = TicketKeyFile(directory: directory.path)
    var random = SeededRandom(seed: 1)
    let made = try file.keys(now: Self.start, random: &random)
    #expect(made.count == 1)
    #expect(CredentialFiles.permissions(of: file.path) == 0o600)
    let before = try directory.read("tickets.keys")
    let later = Self.start + Self.day - 1
    #expect(try TicketKeyFile(directory: directory.path).keys(now: later, random: &random) == made)
    #expect(try directory.read("tickets.keys") == before)
  }

  /// Whoever read them can pose as the relay.
  @Test(arguments: [0o640, 0o604, 0o666]) func keysThatOthersCouldReadAreReplaced(mode: Int) throws
  {
    let directory = try TemporaryDirectory()
    let file = TicketKeyFile(directory: directory.path)
    var random = SeededRandom(seed: 6)
    let known = try file.keys(now: Self.start, random: &random)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
    let made = try file.keys(now: Self.start, random: &random)
    #expect(made.count == 1 && made != known)
    #expect(CredentialFiles.permissions(of: file.path) == 0o600)
    #expect(try file.keys(now: Self.start, random: &random) == made)
  }

  @Test func eachDayHasAKeyAndAWeekOfThemIsRead() throws {
    let directory = try TemporaryDirectory()
    let file = TicketKeyFile(directory: directory.path)
    var random = SeededRandom(seed: 2)
    var all: [TLSTicketKey] = []
    for day in 0..<20 {
      let keys = try file.keys(now: Self.start + Int64(day) * Self.day, random: &random)
      all.insert(keys[0], at: 0)
      #expect(keys == Array(all.prefix(8)), "day \(day)")
    }
    #expect(Set(all.map(\.bytes)).count == 20)
  }

  @Test func aClockThatWasSetBackMakesNoKeyEachSecond() throws {
    var random = SeededRandom(seed: 3)
    let first = TicketKeyFile.rotated([], now: Self.start, random: &random)
    let hourBefore = Self.start - 3_600_000
    #expect(TicketKeyFile.rotated(first, now: hourBefore, random: &random) == first)
    let weekBefore = Self.start - 7 * Self.day
    let second = TicketKeyFile.rotated(first, now: weekBefore, random: &random)
    #expect(second.count == 2 && second[1] == first[0])
    #expect(TicketKeyFile.rotated(second, now: weekBefore + 1, random: &random) == second)
    #expect(
      TicketKeyFile.rotated(second, now: Self.start + 9 * Self.day, random: &random).count == 1)
  }

  @Test(arguments: [
    "", "nonsense", "17 AAAA", "-1 \(zeros)", "9999999999999999 \(zeros)",
    "1780000000000 \(zeros) more", "1780000000000 \(zeros)\nnonsense",
  ])
  func whatIsNotUnderstoodIsReplaced(contents: String) throws {
    let directory = try TemporaryDirectory()
    var random = SeededRandom(seed: 4)
    let file = TicketKeyFile(directory: directory.path)
    try CredentialFiles.write(Array(contents.utf8), to: file.path)
    let keys = try file.keys(now: Self.start, random: &random)
    #expect(keys.count == 1 && !keys[0].bytes.allSatisfy { $0 == 0 })
    #expect(try file.keys(now: Self.start, random: &random) == keys)
  }

  @Test func whatCannotBeWrittenIsSaid() throws {
    var random = SeededRandom(seed: 5)
    let none = TicketKeyFile(directory: try TemporaryDirectory().path + "/none")
    #expect(throws: CredentialFileError.self) {
      try none.keys(now: Self.start, random: &random)
    }
  }

  private static let zeros = Data(repeating: 0, count: TLSTicketKey.length).base64EncodedString()
}
