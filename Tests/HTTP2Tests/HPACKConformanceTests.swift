import HTTP2
import Testing

/// What RFC 7541 section 4, and RFC 9113 section 4.3.1 with it, demand of a decoder's table.
@Suite struct HPACKConformanceTests {
  private let request: [UInt8] = [0x83, 0x87, 0x84, 0x41, 5] + Array("relay".utf8)
  private let requestFields = [":method: POST", ":scheme: https", ":path: /", ":authority: relay"]

  /// `bytes` as a size update (section 6.3).
  private func size(_ bytes: Int) -> [UInt8] {
    if bytes < 31 { return [0x20 | UInt8(bytes)] }
    let rest = bytes - 31
    if rest < 128 { return [0x3F, UInt8(rest)] }
    return [0x3F, UInt8(rest & 127 | 128), UInt8(rest >> 7)]
  }

  /// A field that goes into the table, of so many bytes there (section 4.1: 32 more than its text).
  private func insert(_ name: Character, _ tableBytes: Int) -> [UInt8] {
    let count = tableBytes - 33
    let length: [UInt8] =
      count < 127
      ? [UInt8(count)]
      : count < 255
        ? [127, UInt8(count - 127)]
        : [127, UInt8((count - 127) & 127 | 128), UInt8((count - 127) >> 7)]
    return [0x40, 1, name.asciiValue!] + length + [UInt8](repeating: 118, count: count)
  }

  /// What a server makes of blocks, one request each: the first bytes of their last fields, or nil
  /// when the connection is at its end with COMPRESSION_ERROR.
  private func judge(
    _ blocks: [[UInt8]], tableBytes: Int = 4_096, acknowledgedBefore place: Int = 0
  ) throws -> [String]? {
    var configuration = HTTP2Configuration()
    configuration.headerTableBytes = tableBytes
    configuration.maximumHeaderListBytes = 1 << 16
    var dialogue = try Dialogue(configuration, acknowledges: false)
    for (number, block) in blocks.enumerated() {
      if number == place { dialogue.client.append(type: 4, flags: 1, stream: 0) }
      dialogue.client.append(type: 1, flags: 5, stream: number * 2 + 1, block)
      dialogue.exchange()
    }
    guard dialogue.server.session.failure == nil else {
      #expect(dialogue.verdict == compressionError)
      return nil
    }
    return dialogue.server.seen.compactMap {
      guard case .headers(_, let fields, _) = $0 else { return nil }
      return String(fields.last?.prefix(4) ?? "")
    }
  }

  @Test func section4Point1SizeOfTheTable() throws {
    // Two fields of 2,048 bytes each, with `:authority` (47) too many: the older leaves.
    let blocks = [request, request + insert("a", 2_025), request + insert("b", 2_025)]
    #expect(try judge(blocks + [[0x80 | 64]]) == nil)
    let use: [UInt8] = [0x83, 0x87, 0x84, 0x01, 1, 120]
    let fitting = [use + insert("a", 2_048), use + insert("b", 2_048)]
    #expect(try judge(fitting + [use + [0x80 | 63]]) == ["a: v", "b: v", "a: v"])
    #expect(try judge(fitting + [use + [0x80 | 64]]) == nil)
  }

  @Test func section4Point2ChangesOfTheSize() throws {
    let use: [UInt8] = [0x83, 0x87, 0x84, 0x01, 1, 120]
    // At the beginning of a block, as many as two; nowhere else.
    #expect(try judge([size(0) + request]) != nil)
    #expect(try judge([size(0) + size(4_096) + request]) != nil)
    #expect(try judge([request + size(0)]) == nil)
    #expect(try judge([[0x83] + size(0) + request.dropFirst()]) == nil)
    // Not above the limit of SETTINGS.
    #expect(try judge([size(4_097) + request]) == nil)
    #expect(try judge([size(101) + request], tableBytes: 100) == nil)
    #expect(try judge([size(100) + request], tableBytes: 100) != nil)
    // Before it is acknowledged, the limit is the first one.
    #expect(
      try judge([size(101) + request, request], tableBytes: 100, acknowledgedBefore: 1) != nil)
    // What was allowed may be used.
    #expect(
      try judge([use + insert("a", 100), size(100) + use + [0xBE]], tableBytes: 100) != nil)
  }

  @Test func section4Point3EvictionWhenTheSizeChanges() throws {
    let use: [UInt8] = [0x83, 0x87, 0x84, 0x01, 1, 120]
    let first = use + insert("a", 100) + insert("b", 100)
    #expect(try judge([first, size(199) + use + [0xBE]]) == ["b: v", "b: v"])
    #expect(try judge([first, size(199) + use + [0xBF]]) == nil)
    #expect(try judge([first, size(200) + use + [0xBF]]) == ["b: v", "a: v"])
    // Smaller for a moment is enough.
    #expect(try judge([first, size(0) + size(4_096) + use + [0xBE]]) == nil)
  }

  @Test func section4Point4EvictionByNewFields() throws {
    let use: [UInt8] = [0x83, 0x87, 0x84, 0x01, 1, 120]
    // One larger than the table empties it, and is no error.
    #expect(
      try judge([size(100) + use + insert("a", 50) + insert("b", 101)]) == ["b: v"])
    #expect(
      try judge([size(100) + use + insert("a", 50) + insert("b", 101), use + [0xBE]]) == nil)
    #expect(
      try judge([size(100) + use + insert("b", 101) + insert("a", 100), use + [0xBE]])
        == ["a: v", "a: v"])
    // A new field may take its name from the one that it pushes out.
    let named: [UInt8] = [0x40 | 62, 40] + [UInt8](repeating: 119, count: 40)
    #expect(
      try judge([size(100) + use + insert("a", 100) + named, use + [0xBE]])
        == ["a: w", "a: w"])
  }

  /// RFC 9113 section 4.3.1: only a limit below what is in the table must be answered by a size.
  @Test func aSmallerTableMustBeSaidIfItTakesSomething() throws {
    let use: [UInt8] = [0x83, 0x87, 0x84, 0x01, 1, 120]
    let large = use + insert("a", 101)
    func judgeSmaller(_ blocks: [UInt8]...) throws -> [String]? {
      try judge(blocks, tableBytes: 100, acknowledgedBefore: 1)
    }
    #expect(try judgeSmaller(large, use) == nil)
    #expect(try judgeSmaller(large, size(101) + use) == nil)
    #expect(try judgeSmaller(large, []) == nil)
    #expect(try judgeSmaller(large, size(100) + use) != nil)
    // A client that keeps its larger table, and never says a size.
    let small = use + insert("a", 100)
    #expect(try judgeSmaller(small, use + [0xBE], use + [0xBE]) == ["a: v", "a: v", "a: v"])
    let another = use + insert("b", 60)
    #expect(try judgeSmaller(small, another, use + [0xBE]) == ["a: v", "b: v", "b: v"])
    #expect(try judgeSmaller(small, another, use + [0xBF]) == nil, "it is gone")
  }

  /// Most of a device's connections have a small table, and several clients never say a size.
  @Test func clientsThatDoNotSayASizeAreServed() throws {
    #expect(try judge([request, request, [0x83, 0x87, 0x84, 0xBE]], tableBytes: 1_024) != nil)
  }
}
