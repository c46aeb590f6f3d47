import HTTP2
import NIOCore
import Primitives
import Testing

/// Telling repeated fields must never change what a request says.
@Suite struct HPACKRepetitionTests {
  private var telling: HTTP2Configuration {
    var configuration = HTTP2Configuration()
    configuration.maximumConcurrentStreams = 10_000
    configuration.tellsRepeatedFields = true
    return configuration
  }

  @Test func theSecondOfTwoLikeRequestsRepeatsAllButItsPath() throws {
    let pipe = try Pipe(server: telling)
    for number in 1...3 {
      var head = HeaderBlock()
      head.append(":method", "POST")
      head.append(":scheme", "https")
      head.append(":authority", "relay")
      head.append(":path", "/3/device/\(number)", indexing: .withoutIndexing)
      head.append("apns-topic", "com.example.app")
      head.append("apns-priority", 10)
      _ = try pipe.client.session.request(head, body: nil, endStream: true)
      pipe.advance()
      #expect(pipe.server.repeatedCount == (number - 1) * 5)
    }
    let paths = pipe.server.seen.compactMap { event -> String? in
      guard case .headers(_, let fields, _) = event else { return nil }
      #expect(fields.count == 6)
      return fields[3]
    }
    #expect(paths == [":path: /3/device/1", ":path: /3/device/2", ":path: /3/device/3"])
  }

  /// As it was coded: in plain, and in Huffman's code where that is shorter.
  @Test(arguments: ["bearer 0123456789abcdef", "~~{{||}}~~"])
  func aLiteralWithTheSameBytesIsARepetition(_ start: String) throws {
    let values = [start + "1", start + "2"]
    let pipe = try Pipe(server: telling)
    var counts: [Int] = []
    for value in [values[0], values[0], values[1], values[1], values[1] + "0", values[1]] {
      var head = HeaderBlock()
      head.append(":method", "POST")
      head.append(":scheme", "https")
      head.append(":authority", "relay")
      head.append(":path", "/")
      head.append("authorization", value, indexing: .withoutIndexing)
      let before = pipe.server.repeatedCount
      _ = try pipe.client.session.request(head, body: nil, endStream: true)
      pipe.advance()
      counts.append(pipe.server.repeatedCount - before)
      let heads = pipe.server.seen.compactMap { event -> [String]? in
        if case .headers(_, let fields, _) = event { fields } else { nil }
      }
      #expect(heads.last?.last == "authorization: " + value)
    }
    #expect(counts == [0, 5, 4, 5, 4, 4])
  }

  @Test func nothingIsToldUnlessAskedFor() throws {
    let pipe = try Pipe()
    for _ in 0..<3 {
      _ = try pipe.client.session.request(getHead(), body: nil, endStream: true)
      pipe.advance()
    }
    #expect(pipe.server.repeatedCount == 0)
  }

  /// One random request: a few kinds of fields, so that shapes repeat often and change often.
  private func randomHead(_ generator: inout SeededRandom) -> HeaderBlock {
    var head = HeaderBlock()
    head.append(":method", "POST")
    head.append(":scheme", "https")
    head.append(":authority", "relay")
    let indexing: [HeaderBlock.Indexing] = [.incremental, .withoutIndexing, .nameOnly]
    func any() -> HeaderBlock.Indexing { indexing.randomElement(using: &generator)! }
    head.append(":path", "/\(Int.random(in: 0..<3, using: &generator))", indexing: any())
    let number = Int.random(in: 0..<3, using: &generator)
    head.append("apns-topic", "com.example.\(number)", indexing: any())
    switch Int.random(in: 0..<12, using: &generator) {
    case 0..<6: head.append("apns-priority", 10)
    case 6: head.append("apns-id", "some", indexing: any())
    case 7: head.append("x-large", String(repeating: "x", count: 9_000), indexing: any())
    case 8: head.append("x-empty", "", indexing: any())
    case 9:
      head.append("apns-priority", 5)
      head.append("apns-priority", 5)
    default: break
    }
    return head
  }

  /// Requests, trailers, heads that are too large and resets in any order, cut anywhere: a session
  /// that tells repeated fields sees just what another sees.
  @Test func whatARequestSaysIsTheSameEitherWay() throws {
    var repeated = 0
    for seed in UInt64(0)..<60 {
      var generator = SeededRandom(seed: seed)
      var plain = telling
      plain.tellsRepeatedFields = false
      let (first, second) = (try End(.server, plain), try End(.server, telling))
      var loose = HTTP2Configuration()
      loose.maximumHeaderListBytes = 1 << 20
      let client = try End(.client, loose)
      for _ in 0..<12 {
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
          let ends = Bool.random(using: &generator)
          let id = try client.session.request(
            randomHead(&generator), body: ends ? nil : [1, 2, 3], endStream: ends)
          if !ends, Bool.random(using: &generator) { client.session.finish(id) }
          if Int.random(in: 0..<8, using: &generator) == 0 {
            client.session.reset(id, errorCode: 8)
          }
        }
        let bytes = client.output()
        for end in [first, second] {
          var start = 0
          var cuts = SeededRandom(seed: seed)
          while start < bytes.count {
            let stop = min(bytes.count, start + Int.random(in: 1...400, using: &cuts))
            end.receive(bytes[start..<stop])
            start = stop
          }
        }
        client.receive(first.output()[...])
        _ = second.output()
      }
      #expect(first.seen == second.seen, "seed \(seed)")
      #expect(first.failure == second.failure, "seed \(seed)")
      repeated += second.repeatedCount
    }
    #expect(repeated > 1_000, "the test must meet repeated fields")
  }

  // MARK: Peers that keep no table, or are odd about it

  /// One field in some representation of RFC 7541 section 6.2, strings in plain.
  private func literal(_ mark: UInt8, index: UInt8 = 0, _ name: String, _ value: String) -> [UInt8]
  {
    let text = index > 0 ? [] : [UInt8(name.utf8.count)] + Array(name.utf8)
    return [mark | index] + text + [UInt8(value.utf8.count)] + Array(value.utf8)
  }

  /// What a server tells of these blocks, one request each.
  private func seen(_ blocks: [[UInt8]]) throws -> [[String]] {
    let server = try End(.server, telling)
    var client = RawClient()
    for (number, block) in blocks.enumerated() {
      client.append(type: 1, flags: 5, stream: number * 2 + 1, block)
      server.receive(client.take())
    }
    return server.seen.compactMap {
      guard case .headers(_, let fields, _) = $0 else { return nil }
      return fields
    }
  }

  private let common: [UInt8] = [0x83, 0x87, 0x84]

  /// Two names that stand in no table are not the same name.
  @Test(arguments: [0x00, 0x10]) func namesThatAreSpelledOutAreToldAnew(mark: UInt8) throws {
    let blocks = ["apns-priority", "x-riority", "apns-priority"].map {
      common + literal(mark, index: 1, ":authority", "relay") + literal(mark, $0, "7")
    }
    let fields = try seen(blocks)
    #expect(fields.map(\.last) == ["apns-priority: 7", "x-riority: 7", "apns-priority: 7"])
    let server = try End(.server, telling)
    var client = RawClient()
    for (number, block) in blocks.enumerated() {
      client.append(type: 1, flags: 5, stream: number * 2 + 1, block)
    }
    server.receive(client.take())
    #expect(server.repeatedCount == 0, "a block of other names repeats nothing")
  }

  /// The bytes of an older block's field at the same place say nothing of the block before.
  @Test func onlyTheBlockBeforeIsRepeated() throws {
    let (authority, path): (UInt8, UInt8) = (1, 4)
    let fields = try seen([
      [0x83, 0x87] + literal(0, index: authority, "", "/1") + literal(0, index: path, "", "/0"),
      [0x83, 0x87] + literal(0, index: path, "", "/2") + literal(0, index: authority, "", "r"),
      [0x83, 0x87] + literal(0, index: path, "", "/1") + literal(0, index: authority, "", "r"),
    ])
    #expect(fields.map { $0[2] } == [":authority: /1", ":path: /2", ":path: /1"])
  }

  /// Random blocks in all representations, with names of which some are known to no table: what is
  /// told is what was sent.
  @Test func anyRepresentationSaysWhatItSays() throws {
    let statics: [String: UInt8] = [":path": 4, ":authority": 1]
    for seed in UInt64(0)..<300 {
      var random = SeededRandom(seed: seed)
      var blocks: [[UInt8]] = []
      var expected: [[String]] = []
      for _ in 0..<30 {
        var block: [UInt8] = [0x83, 0x87]
        var fields = [":method: POST", ":scheme: https"]
        var names = [":path", ":authority"]
        if Bool.random(using: &random) { names.reverse() }
        for _ in 0..<Int.random(in: 0...3, using: &random) {
          names.append(["a", "b", "apns-id", "c-d"].randomElement(using: &random)!)
        }
        for name in names {
          let value = "/\(Int.random(in: 0..<3, using: &random))"
          let mark = [0x00, 0x10, 0x40].randomElement(using: &random)! as UInt8
          let isNamed = Int.random(in: 0..<4, using: &random) > 0
          block += literal(mark, index: isNamed ? statics[name] ?? 0 : 0, name, value)
          fields.append("\(name): \(value)")
        }
        blocks.append(block)
        expected.append(fields)
      }
      #expect(try seen(blocks) == expected, "seed \(seed)")
    }
  }
}
