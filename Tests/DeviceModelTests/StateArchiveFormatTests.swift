import Foundation
import Primitives
import Testing

@testable import DeviceModel

@Suite struct StateArchiveFormatTests {
  @Test func jsonLeadsBackToTheArchive() throws {
    for seed in UInt64(1)...300 {
      var random = SeededRandom(seed: seed)
      let original = archive(randomInterface(&random))
      let bytes = try JSONEncoder().encode(original)
      #expect(original.isSound)
      #expect(try JSONDecoder().decode(StateArchive.self, from: bytes) == original, "seed \(seed)")
    }
  }

  /// What was read may be anything: what is sound can be restored and printed, whatever it is.
  @Test func whatIsSoundCanBeRestored() throws {
    var (sound, unsound) = (0, 0)
    for seed in UInt64(1)...3000 {
      var random = SeededRandom(seed: seed)
      var bytes = Array(try JSONEncoder().encode(archive(randomInterface(&random))))
      let digits = bytes.indices.filter { (0x30...0x39).contains(bytes[$0]) }
      for _ in 0...random.below(3) {
        bytes[digits[Int(random.below(Int64(digits.count)))]] = 0x30 + UInt8(random.below(10))
      }
      guard let read = try? JSONDecoder().decode(StateArchive.self, from: Data(bytes)),
        read.isSound
      else {
        unsound += 1
        continue
      }
      sound += 1
      _ = StateRestoration(read, base: sampleInterface()) { $1.className }
      _ = read.description
    }
    #expect(sound > 300 && unsound > 300, "\(sound), \(unsound)")
  }

  /// The search goes by ids that increase.
  @Test func idsThatDoNotIncreaseAreRefused() throws {
    var graph = StateGraph()
    for name in ["a", "b", "c"] { graph.add("A", identifier: name) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let text = String(decoding: try encoder.encode(archive(graph)), as: UTF8.self)
    for number in [1, 2, 3, 4] {
      let changed = text.replacing(
        "\"id\":{\"number\":2}", with: "\"id\":{\"number\":\(number)}")
      #expect((changed == text) == (number == 2))
      let read = try JSONDecoder().decode(StateArchive.self, from: Data(changed.utf8))
      #expect(read.isSound == (number == 2), "\(number)")
    }
  }

  @Test func deepListsAreRefused() {
    var graph = StateGraph()
    let id = graph.add("A", identifier: "a")
    for (depth, isSound) in [(PhoneLimits.archiveDepth, true), (100, false)] {
      var value = StateValue.number(1)
      for _ in 0..<depth { value = .list([value]) }
      graph.set(id, "deep", value)
      #expect(archive(graph).isSound == isSound)
    }
  }

  @Test func theVaultKeepsTheRule() throws {
    let saved = archive(sampleInterface())
    for lock in LockState.allCases {
      var vault = ArchiveVault()
      if lock == .unlocked {
        #expect(throws: ArchiveError.missing) { try vault.read(mail, lock) }
        try vault.save(saved, of: mail, lock)
        #expect(try vault.read(mail, lock) == saved)
      } else {
        #expect(throws: ArchiveError.locked) { try vault.save(saved, of: mail, lock) }
        #expect(throws: ArchiveError.locked) { try vault.read(mail, lock) }
        #expect(!vault.holds(mail))
      }
    }
  }
}

extension StateArchive {
  /// As whoever keeps it has it.
  func encoded() throws -> [UInt8] { Array(try JSONEncoder().encode(self)) }

  init(decoding bytes: [UInt8]) throws {
    self = try JSONDecoder().decode(Self.self, from: Data(bytes))
  }
}
