import HTTP2
import NIOCore
import Testing

/// Telling repeated fields must never change what a request says.
@Suite struct BlockMemoryTests {
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

  @Test func nothingIsToldUnlessAskedFor() throws {
    let pipe = try Pipe()
    for _ in 0..<3 {
      _ = try pipe.client.session.request(getHead(), body: nil, endStream: true)
      pipe.advance()
    }
    #expect(pipe.server.repeatedCount == 0)
  }

  /// One random request: a few kinds of fields, so that shapes repeat often and change often.
  private func randomHead(_ generator: inout SeededGenerator) -> HeaderBlock {
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
    for seed in UInt64(0)..<150 {
      var generator = SeededGenerator(seed: seed)
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
          var cuts = SeededGenerator(seed: seed)
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
}
