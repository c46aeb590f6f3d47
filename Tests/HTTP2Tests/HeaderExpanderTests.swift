import Testing

@testable import HTTP2

struct HeaderExpanderTests {
  private static let path = "/3/device/0123456789abcdef0123456789abcdef0123456789abcdef"

  /// Runs bytes through an expander in pieces of so many bytes.
  private func expand(_ bytes: [UInt8], pieces: Int, preface: Int = 0) -> [UInt8] {
    var expander = HeaderExpander(prefaceBytes: preface)
    var all: [UInt8] = []
    var start = 0
    while start < bytes.count {
      let piece = Array(bytes[start..<min(bytes.count, start + pieces)])
      var room = [UInt8](repeating: 0, count: HeaderExpander.room(for: piece.count))
      let count = piece.withUnsafeBytes { input in
        room.withUnsafeMutableBytes { expander.expand(input, into: $0.baseAddress!) }
      }
      all += count.map { Array(room[..<$0]) } ?? piece
      start += piece.count
    }
    return all
  }

  private func frame(_ type: UInt8, flags: UInt8, stream: UInt8 = 1, _ body: [UInt8]) -> [UInt8] {
    [0, UInt8(body.count >> 8), UInt8(body.count & 255), type, flags, 0, 0, 0, stream] + body
  }

  private func huffman(_ text: String) throws -> [UInt8] {
    let code = try #require(HuffmanDecoderTests.encode(Array(text.utf8)))
    return Self.length(code.count, 0x80) + code
  }

  private func plain(_ text: String) -> [UInt8] {
    Self.length(text.utf8.count, 0) + Array(text.utf8)
  }

  /// RFC 7541, section 5.1, with a prefix of 7 bits.
  private static func length(_ count: Int, _ mark: UInt8) -> [UInt8] {
    guard count >= 127 else { return [mark | UInt8(count)] }
    var (bytes, rest) = ([mark | 127], count - 127)
    while rest >= 128 {
      bytes.append(UInt8(rest & 127 | 128))
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  @Test func longStringsAreWrittenInPlain() throws {
    let long = String(repeating: Self.path, count: 4)
    let coded: [UInt8] =
      try [0x83, 0x04] + huffman(Self.path) + [0x40] + huffman("a-name-of-its-own-kind")
      + huffman(long) + [0x3F, 0xE1, 0x1F, 0x10] + plain("n") + huffman("short") + [0xBE]
    let expected: [UInt8] =
      try [0x83, 0x04] + plain(Self.path) + [0x40] + plain("a-name-of-its-own-kind")
      + plain(long) + [0x3F, 0xE1, 0x1F, 0x10] + plain("n") + huffman("short") + [0xBE]
    let before = Array("preface!".utf8)
    let data = frame(0, flags: 1, [UInt8](repeating: 7, count: 300))
    let input = before + frame(1, flags: 4, coded) + data + frame(1, flags: 4, stream: 3, coded)
    let output =
      before + frame(1, flags: 4, expected) + data + frame(1, flags: 4, stream: 3, expected)
    #expect(expand(input, pieces: input.count, preface: 8) == output)
    // With its priority in front, too.
    let priority: [UInt8] = [0, 0, 0, 0, 15]
    let input2 = frame(1, flags: 0x24, priority + coded)
    #expect(
      expand(input2, pieces: input2.count) == frame(1, flags: 0x24, priority + expected))
  }

  /// A token that comes with every request, then another of the same length, then the first again.
  @Test func aStringThatComesAgainIsTheSame() throws {
    let tokens = ["a", "b", "a", "a", "b"].map { String(repeating: $0 + "0", count: 120) }
    let coded = try tokens.flatMap { frame(1, flags: 4, try [0x1F, 0x08] + huffman($0)) }
    let expected = tokens.flatMap { frame(1, flags: 4, [0x1F, 0x08] + plain($0)) }
    #expect(expand(coded, pieces: coded.count) == expected)
    // Not over the limit of what is remembered, and across reads.
    let long = try frame(
      1, flags: 4, [0x10] + plain("n") + huffman(String(repeating: "e", count: 5000)))
    let plainLong = frame(
      1, flags: 4, [0x10] + plain("n") + plain(String(repeating: "e", count: 5000)))
    #expect(expand(long + coded, pieces: long.count).starts(with: plainLong))
  }

  @Test func whatIsNotSimpleGoesOnAsItCame() throws {
    let block = try [0x04] + huffman(Self.path)
    let code = try #require(HuffmanDecoderTests.encode(Array(Self.path.utf8)))
    let strange: [[UInt8]] = [
      frame(1, flags: 0, block), frame(1, flags: 0x0C, [0] + block), frame(9, flags: 4, block),
      frame(0, flags: 4, block), frame(1, flags: 4, []), frame(1, flags: 0x24, [0, 0]),
      frame(1, flags: 4, Array(block.dropLast())), frame(1, flags: 4, block + [0x04]),
      frame(1, flags: 4, block + [0x04, 0xFF]), frame(1, flags: 4, block + [0x7F]),
      frame(1, flags: 4, block + [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]),
      // Wrong padding, and a symbol with a long code.
      frame(1, flags: 4, [0x04] + Self.length(code.count + 1, 0x80) + code + [0]),
      frame(1, flags: 4, try [0x04] + huffman(Self.path + "{")),
      frame(1, flags: 4, [0x04] + plain(Self.path)),
    ]
    for input in strange {
      let all = input + frame(6, flags: 0, [1, 2, 3, 4, 5, 6, 7, 8])
      #expect(expand(all, pieces: all.count) == all, "\(input)")
    }
  }

  @Test func atEverySplitItMeansTheSame() throws {
    let coded = try frame(1, flags: 4, [0x83, 0x04] + huffman(Self.path))
    let plain = frame(1, flags: 4, [0x83, 0x04] + plain(Self.path))
    let data = frame(0, flags: 0, [1, 2, 3])
    let input = Array("hello".utf8) + coded + data + coded + data
    for pieces in 1...input.count {
      let output = expand(input, pieces: pieces, preface: 5)
      // Each head either as it came or in plain; nothing else, and nothing lost.
      let options = [coded, plain].flatMap { first in
        [coded, plain].map { Array("hello".utf8) + first + data + $0 + data }
      }
      #expect(options.contains(output), "pieces of \(pieces)")
    }
  }

  @Test func aFrameThatWouldBeTooLargeStaysAsItIs() throws {
    let block = try [0x04] + huffman(String(repeating: "a", count: 20_000))
    let input = frame(1, flags: 4, block)
    #expect(expand(input, pieces: input.count) == input)
  }

  @Test func noiseNeverLosesTrack() {
    var generator = HuffmanDecoderTests.Generator(state: 3)
    for _ in 0..<2_000 {
      let body = (0..<Int(generator.next() % 200)).map { _ in
        UInt8(truncatingIfNeeded: generator.next() >> 9)
      }
      let noise = frame(1, flags: 4, body)
      let ping = frame(6, flags: 0, [1, 2, 3, 4, 5, 6, 7, 8])
      let output = expand(noise + ping, pieces: 1 + Int(generator.next() % 300))
      #expect(Array(output.suffix(ping.count)) == ping)
    }
  }
}
