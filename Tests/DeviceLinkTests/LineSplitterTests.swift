import DeviceLink
import Primitives
import RelayCore
import Testing

struct LineSplitterTests {
  private func pieces(_ parts: [[UInt8]], limitBytes: Int = 20) -> [LineSplitter.Piece] {
    var splitter = LineSplitter(limitBytes: limitBytes)
    var pieces: [LineSplitter.Piece] = []
    for part in parts { splitter.receive(part.span) { pieces.append($0) } }
    splitter.finish { pieces.append($0) }
    return pieces
  }

  private static let table: [(String, [LineSplitter.Piece])] = [
    ("", []),
    ("\n\r\n\n", []),
    ("a", [.line(bytes("a"))]),
    ("a\n", [.line(bytes("a"))]),
    ("a\r\nb\n\nc", [.line(bytes("a")), .line(bytes("b")), .line(bytes("c"))]),
    ("a\rb\n", [.line(bytes("a\rb"))]),
    ("a\r\r\n", [.line(bytes("a\r"))]),
    ("12345678901234567890\n", [.line(bytes("12345678901234567890"))]),
    ("12345678901234567890\r\nx\n", [.line(bytes("12345678901234567890")), .line(bytes("x"))]),
    ("123456789012345678901\nx\n", [.tooLong, .line(bytes("x"))]),
    ("12345678901234567890\r1\nx\n", [.tooLong, .line(bytes("x"))]),
    ("12345678901234567890\r\r\nx\n", [.tooLong, .line(bytes("x"))]),
    ("1234567890123456789012345678901234567890123\n\nx", [.tooLong, .line(bytes("x"))]),
    ("123456789012345678901", [.tooLong]),
    ("é😀\n", [.line(bytes("é😀"))]),
  ]

  @Test func wholeAtEverySplitAndByteByByte() {
    for (text, expected) in Self.table {
      let whole = bytes(text)
      #expect(pieces([whole]) == expected, "\(text.debugDescription)")
      #expect(pieces(whole.map { [$0] }) == expected, "byte by byte: \(text.debugDescription)")
      for first in 0...whole.count {
        for second in first...whole.count {
          let parts = [whole[..<first], whole[first..<second], whole[second...]].map(Array.init)
          #expect(pieces(parts) == expected, "\(text.debugDescription) at \(first), \(second)")
        }
      }
    }
  }

  @Test func theSplitterServesOnAfterTheEnd() {
    var splitter = LineSplitter(limitBytes: 4)
    var pieces: [LineSplitter.Piece] = []
    splitter.receive(bytes("123456").span) { pieces.append($0) }
    splitter.finish { pieces.append($0) }
    splitter.receive(bytes("ab\n").span) { pieces.append($0) }
    #expect(pieces == [.tooLong, .line(bytes("ab"))])
  }

  @Test func randomSplitsOfRandomBytes() {
    for seed in UInt64(0)..<300 {
      var generator = SeededRandom(seed: seed)
      let alphabet: [UInt8] = [10, 10, 13, 65, 66, 0, 255]
      let whole = (0..<Int.random(in: 0...200, using: &generator)).map { _ in
        alphabet[Int.random(in: alphabet.indices, using: &generator)]
      }
      let limit = Int.random(in: 1...30, using: &generator)
      var parts: [[UInt8]] = []
      var start = 0
      while start < whole.count {
        let end = min(whole.count, start + Int.random(in: 1...17, using: &generator))
        parts.append(Array(whole[start..<end]))
        start = end
      }
      #expect(
        pieces(parts, limitBytes: limit) == reference(whole, limitBytes: limit), "seed \(seed)")
    }
  }

  /// The rule of `LineSplitter`, said the slow way.
  private func reference(_ whole: [UInt8], limitBytes: Int) -> [LineSplitter.Piece] {
    let lines = whole.split(separator: 10, omittingEmptySubsequences: false)
    return lines.compactMap { line in
      let line = line.last == 13 ? line.dropLast() : line
      if line.isEmpty { return nil }
      return line.count > limitBytes ? .tooLong : .line(Array(line))
    }
  }
}
