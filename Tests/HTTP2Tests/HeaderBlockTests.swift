import HTTP2
import Testing

@Suite struct HeaderBlockTests {
  /// Bytes of each HEADERS frame when a client makes five requests with one more field.
  private func sizes(_ add: (Int, inout HeaderBlock) -> Void) throws -> [Int] {
    let client = try End(.client)
    _ = client.output()
    var sizes: [Int] = []
    for number in 0..<5 {
      var block = getHead()
      add(number, &block)
      _ = try client.session.request(block, body: nil, endStream: true)
      sizes += WireFrame.parse(client.output()).filter { $0.type == 1 }.map(\.payload.count)
    }
    return sizes
  }

  private static let value = "!!!!!!!!-"

  /// `nameOnly` spells the name once and then refers to it.
  @Test func nameOnlySendsTheNameOnce() throws {
    let rest = try sizes { _, _ in }
    let sizes = try sizes { $1.append("apns-id", "\(Self.value)\($0)", indexing: .nameOnly) }
    let value = 1 + Self.value.utf8.count + 1
    #expect(sizes[0] - rest[0] > value)
    for number in 1..<5 { #expect(sizes[number] - rest[number] <= value + 2, "sizes \(sizes)") }
  }

  /// Nothing that was not to be indexed ends up in the table: the sizes never shrink.
  @Test func withoutIndexingSpellsEverythingEveryTime() throws {
    let rest = try sizes { _, _ in }
    let sizes = try sizes {
      $1.append("apns-id", "\(Self.value)\($0)", indexing: .withoutIndexing)
    }
    #expect(Set(zip(sizes, rest).map { $0 - $1 }).count == 1, "sizes \(sizes)")
  }

  @Test func incrementalIndexesNameAndValueOfLiterals() throws {
    let rest = try sizes { _, _ in }
    let sizes = try sizes { $1.append("apns-id", literal: "!!!!!!!!-7") }
    for number in 1..<5 { #expect(sizes[number] - rest[number] == 1, "sizes \(sizes)") }
  }

  @Test func everyKindOfFieldArrives() throws {
    var block = HeaderBlock()
    for _ in 0..<3 {
      block.removeAll()
      block.append(":status", "200")
      block.append("static", literal: "value")
      block.append("text", "über")
      block.append("bytes", bytes: Array("a b".utf8).span)
      block.append("number", 1_234_567_890)
      block.append("negative", -5)
      block.append("empty", "")
      block.append(name: "made-at-run-time", value: "x", indexing: .nameOnly)
    }
    #expect(block.count == 8)
    let pipe = try Pipe()
    pipe.server.react = { session, event in
      if case .headers(let id, _, _) = event {
        try session.respond(to: id, block, endStream: true)
      }
    }
    _ = try pipe.client.session.request(getHead(), body: nil, endStream: true)
    pipe.advance()
    #expect(
      pipe.client.seen(of: 1)
        == [
          .headers(
            1,
            [
              ":status: 200", "static: value", "text: über", "bytes: a b", "number: 1234567890",
              "negative: -5", "empty: ", "made-at-run-time: x",
            ], end: true), .closed(1, 0),
        ])
  }

  @Test func aValueIsReplacedWhereItIs() throws {
    var block = HeaderBlock()
    block.append(":status", literal: "200")
    let first = block.append("a", bytes: Array("one".utf8).span)
    let second = block.append("b", bytes: Array("two".utf8).span)
    let before = block
    block.replace(second, by: Array("2.b".utf8).span)
    block.replace(first, by: Array("1.a".utf8).span)
    for (block, values) in [(before, ["a: one", "b: two"]), (block, ["a: 1.a", "b: 2.b"])] {
      let pipe = try Pipe()
      pipe.server.react = { session, event in
        guard case .headers(let id, _, _) = event else { return }
        try session.respond(to: id, block, endStream: true)
      }
      _ = try pipe.client.session.request(getHead(), body: nil, endStream: true)
      pipe.advance()
      #expect(
        pipe.client.seen(of: 1) == [
          .headers(1, [":status: 200"] + values, end: true), .closed(1, 0),
        ])
    }
  }

  @Test func manyFields() throws {
    var block = getHead()
    for number in 0..<150 { block.append(name: "x-\(number)", value: "\(number)") }
    let pipe = try Pipe()
    _ = try pipe.client.session.request(block, body: nil, endStream: true)
    pipe.advance()
    guard case .headers(1, let fields, end: true)? = pipe.server.seen(of: 1).first else {
      Issue.record("no request")
      return
    }
    #expect(fields.count == 154)
    #expect(fields.last == "x-149: 149")
  }

  @Test func anAnswersHeadFitsAFrame() throws {
    let server = try End(.server)
    var client = RawClient()
    client.headers(stream: 1, validRequest)
    server.receive(client.take())
    var large = head("200")
    large.append("x", String(repeating: "v", count: 9_000))
    #expect(throws: HTTP2Error.headersTooLarge(1)) {
      try server.session.respond(to: 1, large, endStream: true)
    }
    try server.session.respond(to: 1, head("500"), endStream: true)
    _ = server.output()
    #expect(server.closings() == [1: [0]])
  }
}
