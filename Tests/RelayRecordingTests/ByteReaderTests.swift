import Primitives
import RelayCore
import Testing

@testable import RelayRecording

@Suite struct ByteReaderTests {
  @Test func numbersComeBack() throws {
    var random = SeededRandom(seed: 1)
    for shift in 0..<64 {
      let word = random.next() >> UInt64(shift)
      for number in [Int64(bitPattern: word), -Int64(bitPattern: word >> 1)] {
        var writer = ByteWriter()
        writer.put(number, word, true)
        var reader = ByteReader(writer.bytes)
        #expect(try reader.read(Int64.self) == number)
        #expect(try reader.read(UInt64.self) == word)
        #expect(try reader.read(Bool.self))
        try reader.finish()
      }
    }
  }

  @Test func aNumberHasOneForm() {
    for bytes: [UInt8] in [
      [0x80, 0x00], [0xFF, 0x80, 0x00], Array(repeating: 0xFF, count: 10),
      Array(repeating: 0x80, count: 11),
    ] {
      var reader = ByteReader(bytes)
      #expect(throws: CodecError.self) { _ = try reader.varint() }
    }
    var reader = ByteReader(Array(repeating: 0xFF, count: 9) + [1])
    #expect((try? reader.varint()) == .max)
  }

  @Test func anErrorSaysWhere() {
    var reader = ByteReader([1, 2])
    _ = try? reader.byte()
    _ = try? reader.byte()
    #expect(throws: CodecError(offset: 2, problem: .endsEarly)) { _ = try reader.byte() }
    var texts = ByteReader([1, 0xFF])
    #expect(throws: CodecError(offset: 2, problem: .invalid("String"))) {
      _ = try texts.read(String.self)
    }
    #expect(throws: CodecError(offset: 0, problem: .goesOn)) { try ByteReader([1]).finish() }
  }

  @Test func aCountIsNotBelieved() {
    var writer = ByteWriter()
    writer.put(varint: .max)
    writer.put(raw: [1, 2, 3])
    var bytes = ByteReader(writer.bytes)
    #expect(throws: CodecError(offset: 10, problem: .endsEarly)) { _ = try bytes.byteString() }
    var list = ByteReader(writer.bytes)
    #expect(throws: CodecError(offset: 13, problem: .endsEarly)) {
      _ = try list.read([UInt8].self)
    }
  }
}
