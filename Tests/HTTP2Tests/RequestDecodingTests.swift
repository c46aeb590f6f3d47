import Primitives
import Testing

@testable import HTTP2

/// Header blocks of requests, with libnghttp2 for a judge.
@Suite struct RequestDecodingTests {
  private static let names = [
    ":path", ":method", "apns-id", "apns-topic", "authorization", "content-length", "x", "te",
    "a-name-that-is-quite-long-and-comes-again",
  ]

  private func randomField(_ random: inout SeededRandom) -> Field {
    let name =
      Int.random(in: 0..<8, using: &random) == 0
      ? "x-\(Int.random(in: 0..<1_000, using: &random))" : Self.names.randomElement(using: &random)!
    let count = [0, 1, 5, 36, 36, 74, 74, 200, 200, 900].randomElement(using: &random)!
    let values: [UInt8] =
      Bool.random(using: &random)
      ? (0..<count).map { _ in "0123456789abcdef".utf8.randomElement(using: &random)! }
      : (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    var field = Field(Array(name.utf8), Int.random(in: 0..<3, using: &random) > 0 ? values : [49])
    field.isIndexed = Bool.random(using: &random)
    return field
  }

  @Test func decodesWhatLibnghttp2Encodes() {
    for seed in UInt64(0)..<80 {
      var random = SeededRandom(seed: seed)
      let limit = [0, 40, 100, 600, 4_096].randomElement(using: &random)!
      let deflater = Deflater()
      var decoder = RequestDecoder()
      defer { decoder.destroy() }
      // A peer heeds a smaller limit once it has seen it.
      if limit < 4_096 {
        deflater.resize(limit)
        decoder.limitTable(limit)
      }
      for block in 0..<20 {
        let fields = (0..<Int.random(in: 1...12, using: &random)).map { _ in
          randomField(&random)
        }
        let decoded = decoder.decode(deflater.encode(fields))
        guard decoded?.fields == fields else {
          Issue.record("seed \(seed), block \(block)")
          break
        }
        if Int.random(in: 0..<6, using: &random) == 0 {
          deflater.resize(Int.random(in: 0...limit, using: &random))
          if Bool.random(using: &random) { deflater.resize(limit) }
        }
      }
    }
  }

  /// Damaged blocks: what libnghttp2 takes for wrong is wrong, and the rest says the same.
  @Test func agreesWithLibnghttp2OnAnything() {
    var (wrong, right) = (0, 0)
    for seed in UInt64(0)..<1_200 {
      var random = SeededRandom(seed: seed)
      let (deflater, inflater) = (Deflater(), Inflater())
      var decoder = RequestDecoder()
      defer { decoder.destroy() }
      for block in 0..<6 {
        var bytes = deflater.encode(
          (0..<Int.random(in: 1...5, using: &random)).map { _ in randomField(&random) })
        for _ in 0..<Int.random(in: 0...2, using: &random) where block > 1 && !bytes.isEmpty {
          let at = Int.random(in: 0..<bytes.count, using: &random)
          switch Int.random(in: 0..<4, using: &random) {
          case 0: bytes[at] = UInt8.random(in: 0...255, using: &random)
          case 1: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
          case 2: bytes.remove(at: at)
          default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: at)
          }
        }
        let (expected, decoded) = (inflater.decode(bytes), decoder.decode(bytes))
        guard decoded?.fields == expected else {
          Issue.record("seed \(seed), block \(block): \(bytes.prefix(80))")
          break
        }
        if expected == nil { wrong += 1 } else { right += 1 }
        if expected == nil { break }
      }
    }
    #expect(wrong > 150 && right > 1_500, "\(wrong) wrong, \(right) right")
  }

  @Test func sizesOfTheTableStandInFront() {
    let update: [UInt8] = [0x20]
    let field: [UInt8] = [0x82]
    for (block, isRight) in [
      (update + field, true), (update + update + field, true), (field + update, false),
      ([0x3F, 0xE1, 0x1F] + field, true), ([0x3F, 0xE2, 0x1F] + field, false),
    ] as [([UInt8], Bool)] {
      var decoder = RequestDecoder()
      defer { decoder.destroy() }
      #expect((decoder.decode(block) != nil) == isRight, "\(block)")
    }
  }

  /// What a request sends in an insert of its own is repeated by the next, from the table.
  @Test func namesSurviveTheEvictionOfTheirFirstField() {
    let deflater = Deflater()
    var decoder = RequestDecoder()
    defer { decoder.destroy() }
    for number in 0..<400 {
      let fields = [
        Field("x-name", "\(number)"), Field("x-\(number)", String(repeating: "y", count: 60)),
      ]
      #expect(decoder.decode(deflater.encode(fields))?.fields == fields, "\(number)")
    }
  }
}
