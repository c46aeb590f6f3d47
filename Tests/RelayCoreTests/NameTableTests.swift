import Testing

@testable import RelayCore

@Suite struct NameTableTests {
  @Test func findsEveryNameAndNoOther() {
    let table = NameTable<ApsKey>(name: \.name)
    for key in ApsKey.allCases {
      let name = Array(key.name.utf8)
      #expect(name.count <= PackedName.capacityBytes, "\(key) would never be found")
      // At the end of the buffer and with bytes around it.
      for (before, after) in [(0, 0), (3, 0), (0, 3), (9, 9), (1, 30)] {
        let around = { (count: Int) in [UInt8](repeating: UInt8(ascii: "z"), count: count) }
        let bytes = around(before) + name + around(after)
        let found = table.find(PackedName(bytes.span, before..<before + name.count))
        #expect(found == key, "\(key) \(before) \(after)")
        if after > 0 {
          #expect(table.find(PackedName(bytes.span, before..<before + name.count + 1)) == nil)
        }
        #expect(table.find(PackedName(bytes.span, before..<before + name.count - 1)) == nil)
      }
    }
    #expect(table.find(PackedName()) == nil)
  }

  @Test func bothWaysOfPackingAgree() {
    let text = Array("abcdefghijklmnopqrstuvwxyz0123456789".utf8)
    var names: [PackedName] = []
    for length in 0...text.count {
      var byBytes = PackedName()
      for byte in text[..<length] { byBytes.append(byte) }
      let whole = PackedName(text.span, 0..<length)
      #expect(whole.count == min(length, PackedName.capacityBytes + 1))
      if length <= PackedName.capacityBytes {
        #expect(whole == byBytes, "\(length)")
        #expect(!names.contains(whole))
        names.append(whole)
      }
      for end in length...text.count where length < 8 {
        let word = paddedWord(Array(text[..<end]).span, at: 0)
        #expect(PackedName(word, count: length) == byBytes, "\(length) of \(end)")
      }
    }
  }

  @Test func longerNamesThanFitEqualNone() {
    let text = Array("abcdefghijklmnopqrstuvwxyz".utf8)
    var words = PackedName()
    for position in stride(from: 0, to: PackedName.capacityBytes, by: 8) {
      words.append(paddedWord(text.span, at: position), count: 8)
    }
    #expect(words == PackedName(text.span, 0..<PackedName.capacityBytes))
    for _ in 0..<2 {
      words.append(paddedWord(text.span, at: 24), count: 2)
      #expect(words.count == PackedName.capacityBytes + 1)
      #expect(words != PackedName(text.span, 0..<PackedName.capacityBytes))
    }
  }

  @Test func wordsBeyondTheEndAreZero() {
    let text = Array("abcdefghijklmnopqrst".utf8)
    for count in 0...text.count {
      let bytes = Array(text[..<count])
      for position in 0...count {
        var expected: UInt64 = 0
        for (index, byte) in bytes[position...].prefix(8).enumerated() {
          expected |= UInt64(byte) << UInt64(index * 8)
        }
        #expect(paddedWord(bytes.span, at: position) == expected, "\(position) of \(count)")
      }
    }
  }

  @Test func equalMeansEveryByte() {
    func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool { areEqual(left.span, right.span) }
    for count in 0...40 {
      let bytes = (0..<count).map { UInt8($0 + 1) }
      #expect(isEqual(bytes, bytes), "\(count)")
      #expect(!isEqual(bytes, bytes + [0]), "\(count), a zero more")
      #expect(!isEqual(bytes + [0], bytes), "\(count), a zero less")
      for index in 0..<count {
        var other = bytes
        other[index] ^= 0x80
        #expect(!isEqual(bytes, other), "\(count), another at \(index)")
      }
    }
  }
}
