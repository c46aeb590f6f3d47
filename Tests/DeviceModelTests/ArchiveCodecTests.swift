import Primitives
import Testing

@testable import DeviceModel

@Suite struct ArchiveCodecTests {
  @Test func bytesLeadBackToTheArchive() throws {
    for seed in UInt64(1)...300 {
      var random = SeededRandom(seed: seed)
      let original = archive(randomInterface(&random))
      let decoded = try StateArchive(decoding: original.encoded())
      #expect(decoded == original, "seed \(seed)")
    }
  }

  @Test func everyDamageIsNoticed() {
    var random = SeededRandom(seed: 4)
    let bytes = archive(randomInterface(&random)).encoded()
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= UInt8(1 + random.below(255))
      #expect(throws: ArchiveError.self) { try StateArchive(decoding: damaged) }
      #expect(throws: ArchiveError.self) { try StateArchive(decoding: Array(bytes[..<index])) }
    }
    #expect(throws: ArchiveError.self) { try StateArchive(decoding: bytes + [0]) }
    #expect(throws: ArchiveError.self) {
      try StateArchive(decoding: [UInt8](repeating: 0, count: PhoneLimits.archiveBytes + 1))
    }
  }

  /// Whoever can make the checksum can make any bytes: the reader must not trap or allocate
  /// without end.
  @Test func anyBytesWithTheRightChecksumAreSafeToRead() {
    for seed in UInt64(1)...3000 {
      var random = SeededRandom(seed: seed)
      var bytes = archive(randomInterface(&random)).encoded()
      bytes.removeLast(StateArchive.checksumBytes)
      for _ in 0...random.below(4) {
        let place =
          StateArchive.magic.count
          + Int(random.below(Int64(bytes.count - StateArchive.magic.count)))
        switch random.below(3) {
        case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes.insert(0xFF, at: place)
        default: if bytes.count > StateArchive.magic.count + 1 { bytes.remove(at: place) }
        }
      }
      var hash: UInt64 = 0xCBF2_9CE4_8422_2325
      for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
      for shift in UInt64(0)..<8 { bytes.append(UInt8(truncatingIfNeeded: hash >> (8 * shift))) }
      do {
        let decoded = try StateArchive(decoding: bytes)
        // Whatever it was taken for can be restored and printed.
        _ = StateRestoration(decoded, base: sampleInterface()) { _, _ in true }
        _ = decoded.description
      } catch {}
    }
  }

  @Test func deepListsAreRefused() {
    var graph = StateGraph()
    let id = graph.add("A", identifier: "a")
    var value = StateValue.number(1)
    for _ in 0..<100 { value = .list([value]) }
    graph.set(id, "deep", value)
    #expect(throws: ArchiveError.self) { try StateArchive(decoding: archive(graph).encoded()) }
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
