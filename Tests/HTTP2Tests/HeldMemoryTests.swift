import NIOCore
import Testing

@testable import HTTP2

/// What a peer can have a server hold while it is silent, by what it has sent.
@Suite struct HeldMemoryTests {
  private static let large = [UInt8](repeating: 97, count: 3_800)
  /// `:method`, `:scheme`, `:path` and `:authority`.
  private static let request: [UInt8] = [0x83, 0x87, 0x84, 0x01, 1, 120]

  /// A literal with a name of one letter, a value of at least 127 bytes in plain.
  private static func literal(_ mark: UInt8, _ value: [UInt8]) -> [UInt8] {
    let rest = value.count - 127
    return [mark, 1, 120, 127, UInt8(rest & 127 | 128), UInt8(rest >> 7)] + value
  }

  /// Each takes its part of a connection's bytes and is silent then; what a connection holds.
  private func hold(
    connections: Int = 1_000, _ speak: (inout RawClient) -> Void
  ) throws -> (sent: Int, held: Int) {
    var configuration = HTTP2Configuration()
    configuration.maximumConcurrentStreams = 100_000
    configuration.tellsRepeatedFields = true
    var client = RawClient()
    speak(&client)
    let bytes = client.bytes
    var sessions: [HTTP2Session] = []
    var batch: [HTTP2Event] = []
    var sent = 0
    for _ in 0..<connections {
      let session = try HTTP2Session(role: .server, configuration: configuration)
      for start in stride(from: 0, to: bytes.count, by: 65_536) {
        var piece = ByteBuffer(bytes: bytes[start..<min(bytes.count, start + 65_536)])
        sent += piece.readableBytes
        try session.receive(&piece)
        // As the pump does: events, then those that sending brought.
        session.takeEvents(into: &batch)
        var output = ByteBuffer()
        while session.send(into: &output, upTo: 1 << 16) {}
        session.takeEvents(into: &batch)
      }
      sessions.append(session)
    }
    let held = sessions.reduce(0) { $0 + $1.state.pointee.heldBytes }
    return (sent / connections, held / connections)
  }

  @Test func indicesThatStandForMuch() throws {
    let (sent, held) = try hold(connections: 100) { client in
      client.append(
        type: 1, flags: 5, stream: 1, Self.request + Self.literal(0x40, Self.large))
      for number in 1...200 {
        client.append(
          type: 1, flags: 5, stream: number * 2 + 1, Self.request + [0xBE, 0xBE])
      }
    }
    #expect(held < 8 * sent, "\(held) bytes for \(sent)")
  }

  @Test func manyFieldsOfOneByte() throws {
    let (sent, held) = try hold(connections: 100) { client in
      for number in 0..<100 {
        client.append(
          type: 1, flags: 5, stream: number * 2 + 1,
          Self.request + [UInt8](repeating: 0x90, count: 120))
      }
    }
    #expect(held < 8 * sent, "\(held) bytes for \(sent)")
  }

  /// One long value, each time at another place of the block.
  @Test func aLongValueAtEveryPlace() throws {
    let (sent, held) = try hold(connections: 20) { client in
      for number in 0..<60 {
        var block = Self.request
        for place in 0..<60 {
          block += place == number ? Self.literal(0x40, Self.large) : [0x90]
        }
        client.append(type: 1, flags: 5, stream: number * 2 + 1, block)
      }
    }
    #expect(held < 40_000, "\(held) bytes for \(sent)")
  }

  /// The least that anybody sends: what an idle connection costs here.
  @Test func oneRequest() throws {
    let (sent, held) = try hold { $0.headers(stream: 1, validRequest) }
    #expect(held < 8_000, "\(held) bytes for \(sent)")
  }

  /// A list above its limit is counted, not copied.
  @Test func aListAboveItsLimitIsNotCopied() throws {
    var configuration = HTTP2Configuration()
    configuration.maximumHeaderListBytes = 4_000
    let server = try End(.server, configuration)
    var client = RawClient()
    client.append(type: 1, flags: 5, stream: 1, Self.request + Self.literal(0x40, Self.large))
    server.receive(client.take())
    let before = server.session.arena.count
    client.append(
      type: 1, flags: 5, stream: 3, Self.request + [UInt8](repeating: 0xBE, count: 5_000))
    server.receive(client.take())
    #expect(server.seen(of: 3) == [.headersTooLarge(3)])
    #expect(server.session.arena.count <= max(before, 8_192))
  }

  /// What an ordinary batch needs is not allocated for each.
  @Test func anOrdinaryBatchKeepsItsMemory() throws {
    let end = try End(.server)
    var client = RawClient()
    for number in 0..<3 {
      client.headers(stream: number * 2 + 1, validRequest)
      end.receive(client.take())
      _ = end.output()
      #expect(end.session.state.pointee.arena.count >= 1_024)
    }
  }

  /// Lists that are too long leave nothing in the batch for those after them.
  @Test func aDroppedListMakesRoom() throws {
    var configuration = HTTP2Configuration()
    configuration.maximumHeaderListBytes = 400
    configuration.maximumArenaBytes = 16_384
    let end = try End(.server, configuration)
    var client = RawClient()
    for number in 0..<100 {
      client.headers(
        stream: number * 2 + 1, validRequest + (0..<20).map { ("x\($0)", "y") })
    }
    end.receive(client.take())
    #expect(end.failure == nil)
    #expect(end.seen.count { if case .headersTooLarge = $0 { true } else { false } } == 100)
  }

  /// A field of two letters costs more than its text.
  @Test func shortFieldsCountWithTheirMemory() throws {
    for (requests, isTooMuch) in [(10, false), (60, true)] {
      var configuration = HTTP2Configuration()
      configuration.maximumArenaBytes = 16_384
      let end = try End(.server, configuration)
      var client = RawClient()
      for number in 0..<requests {
        client.headers(
          stream: number * 2 + 1, validRequest + (0..<20).map { _ in ("a", "b") })
      }
      end.receive(client.take())
      #expect((end.failure == .arenaFull) == isTooMuch)
    }
  }

  /// The frames of a body that come together are one event, where they lie together.
  @Test func aBodyInPiecesIsOneEvent() throws {
    let session = try HTTP2Session(role: .server, configuration: HTTP2Configuration())
    var client = RawClient()
    client.headers(stream: 1, validRequest, endStream: false)
    client.data(stream: 1, Array("hello, ".utf8), endStream: false)
    client.data(stream: 1, Array("world".utf8), endStream: true)
    var bytes = ByteBuffer(bytes: client.take())
    try session.receive(&bytes)
    var events: [HTTP2Event] = []
    session.takeEvents(into: &events)
    let bodies = events.compactMap { event -> String? in
      guard case .data(1, let range, true) = event else { return nil }
      return String(decoding: session.arena[range], as: UTF8.self)
    }
    #expect(bodies == ["hello, world"], "\(events)")
  }
}
