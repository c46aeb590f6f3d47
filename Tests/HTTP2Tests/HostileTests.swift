import HTTP2
import NIOCore
import Primitives
import Testing

@Suite struct HostileTests {
  /// Frames without end, in batches, until the server gives up; the answers are read or not.
  private func flood(
    reading: Bool = false, limit: Int = 5_000, _ speak: (inout RawClient, Int) -> Void
  ) throws -> (failure: HTTP2Error?, frames: Int) {
    let server = try End(.server)
    var client = RawClient()
    for number in 0..<limit {
      speak(&client, number)
      if number % 50 == 49 {
        server.receive(client.take())
        if reading { _ = server.output() }
      }
      if server.failure != nil { return (server.failure, number) }
    }
    return (nil, limit)
  }

  @Test func floodsEndTheConnection() throws {
    let pings = try flood { client, _ in
      client.append(type: 6, stream: 0, [UInt8](repeating: 1, count: 8))
    }
    #expect(pings.failure == .flooded && pings.frames < 2_000)
    let settings = try flood { client, _ in client.append(type: 4, stream: 0) }
    #expect(settings.failure == .flooded && settings.frames < 2_000)
    let resets = try flood { client, number in
      client.headers(stream: number * 2 + 1, validRequest, endStream: false)
      client.reset(stream: number * 2 + 1)
    }
    #expect(resets.failure == .flooded && resets.frames < 1_100)
    // The server made to reset the streams itself ("MadeYouReset", CVE-2025-8671).
    let made = try flood(reading: true) { client, number in
      client.headers(stream: number * 2 + 1, [(":method", "GET")])
    }
    #expect(made.failure == .flooded && made.frames < 1_100)
  }

  /// Each is cheap to send and brings nothing; its answers, if any, are read.
  private enum Nothing: CaseIterable {
    case emptyData, bytewiseData, windowUpdate, unknownType, priority, resetOfClosed, ping, settings
    case longList

    func speak(_ client: inout RawClient, _ number: Int) {
      switch self {
      case .emptyData: client.append(type: 0, stream: 1)
      case .bytewiseData: client.append(type: 0, stream: 1, [65])
      case .windowUpdate: client.append(type: 8, stream: 0, [0, 0, 0, 1])
      case .unknownType: client.append(type: 0x77, stream: 0, [1, 2, 3])
      case .priority: client.append(type: 2, stream: 1, [0, 0, 0, 0, 1])
      case .resetOfClosed: client.append(type: 3, stream: 3, [0, 0, 0, 8])
      case .ping: client.append(type: 6, stream: 0, [UInt8](repeating: 1, count: 8))
      case .settings: client.append(type: 4, stream: 0)
      case .longList:
        let value = String(repeating: "x", count: 3_000)
        client.headers(
          stream: number * 2 + 5, validRequest + ["a", "b", "c"].map { ($0, value) })
      }
    }
  }

  @Test(arguments: Nothing.allCases) private func whatBringsNothingEnds(_ what: Nothing) throws {
    let server = try End(.server)
    var client = RawClient()
    _ = server.output()
    client.append(type: 4, flags: 1, stream: 0)
    client.headers(stream: 1, validRequest, endStream: false)
    client.headers(stream: 3, validRequest)
    server.receive(client.take())
    try server.session.respond(to: 3, head("200"), endStream: true)
    _ = server.output()
    server.react = { session, event in
      if case .headersTooLarge(let id) = event {
        try session.respond(to: id, head("431"), endStream: true)
      }
    }
    var wasTiresome = false
    for number in 0..<20_000 where server.failure == nil {
      what.speak(&client, number)
      guard number % 50 == 49 else { continue }
      server.receive(client.take())
      _ = server.output()
      wasTiresome = wasTiresome || server.session.isTiresome
    }
    #expect(server.failure == .flooded && wasTiresome, "\(String(describing: server.failure))")
  }

  /// A client with a wrong key is read more slowly, and goes on being told why.
  @Test func refusalsSlowDownAndDoNotEnd() throws {
    let server = try End(.server)
    var client = RawClient()
    func ask(_ number: Int, isRefused: Bool) throws {
      let stream = number * 2 + 1
      client.headers(stream: stream, validRequest)
      server.receive(client.take())
      if isRefused { server.session.chargeRefusal(StreamID(stream)) }
      try server.session.respond(to: StreamID(stream), head("403"), endStream: true)
      _ = server.output()
    }
    for number in 0..<4_900 { try ask(number, isRefused: true) }
    #expect(!server.session.isTiresome)
    for number in 4_900..<10_000 { try ask(number, isRefused: true) }
    #expect(server.failure == nil && server.session.isTiresome)
    // With the right key it is as good as new.
    for number in 10_000..<10_300 { try ask(number, isRefused: false) }
    #expect(!server.session.isTiresome)
  }

  /// To be refused is no licence to abandon streams.
  @Test func refusedAndAbandonedStreamsEnd() throws {
    let server = try End(.server)
    var client = RawClient()
    var number = 0
    while server.failure == nil, number < 2_000 {
      let stream = number * 2 + 1
      client.headers(stream: stream, validRequest, endStream: false)
      server.receive(client.take())
      server.session.chargeRefusal(StreamID(stream))
      client.append(type: 3, stream: stream, [0, 0, 0, 8])
      server.receive(client.take())
      number += 1
    }
    #expect(server.failure == .flooded && number < 1_000)
  }

  private enum Deed { case abandoned, answered, refused, data }

  /// Of 30 frames without effect: how many are left after these deeds, to the frame. An abandoned
  /// stream is worth ten and the frame that ends it.
  private static let budgets: [(deeds: [Deed], left: Int)] = [
    ([.answered], 30), ([.answered, .abandoned], 19), ([.answered, .refused], 29),
    ([.answered, .abandoned, .answered], 29), ([.answered, .abandoned, .abandoned], 8),
    ([.answered, .abandoned, .abandoned, .answered], 18),
    ([.answered, .abandoned, .abandoned, .data], 10),
    ([.answered, .abandoned, .abandoned, .refused, .answered], 18),
    ([.answered] + [Deed](repeating: .refused, count: 50), 8),
  ]

  /// Each window for all streams costs libnghttp2 a walk over them (RFC 9113 section 6.9.2): what
  /// is too much is not even read.
  @Test(arguments: [(640, 3), (6_400, 1)], [true, false])
  func settingsCostAsMuchAsThereAreStreams(_ row: (streams: Int, frames: Int), inOne: Bool) throws {
    let (streams, most) = row
    var configuration = HTTP2Configuration()
    configuration.maximumIdleWork = 25
    configuration.maximumConcurrentStreams = 10_000
    let server = try End(.server, configuration)
    var client = RawClient()
    for number in 0..<streams {
      client.headers(stream: number * 2 + 1, validRequest, endStream: false)
    }
    server.receive(client.take())
    #expect(server.failure == nil && server.session.openStreamCount == streams)
    _ = server.output()
    var frames = 0
    while server.failure == nil, frames < 100 {
      for _ in 0..<(inOne ? 100 : 1) { client.append(type: 4, stream: 0, [0, 4, 0, 0, 0, 1]) }
      server.receive(client.take())
      frames += 1
    }
    #expect(server.failure == .flooded && frames == (inOne ? 1 : most))
    let answers = WireFrame.parse(server.output()).filter { $0.type == 4 && $0.flags == 1 }
    #expect(answers.count < most)
  }

  @Test(arguments: budgets) private func theBudgetIsExact(_ deeds: [Deed], _ left: Int) throws {
    var configuration = HTTP2Configuration()
    configuration.maximumIdleWork = 30
    let server = try End(.server, configuration)
    var client = RawClient()
    for (number, deed) in deeds.enumerated() {
      let stream = number * 2 + 1
      let id = StreamID(stream)
      client.headers(stream: stream, validRequest, endStream: deed != .abandoned)
      if deed == .abandoned { client.reset(stream: stream) }
      server.receive(client.take())
      switch deed {
      case .abandoned: break
      case .answered: try server.session.respond(to: id, head("200"), endStream: true)
      case .refused:
        server.session.chargeRefusal(id)
        try server.session.respond(to: id, head("403"), endStream: true)
      case .data:
        try server.session.respond(to: id, head("200"), endStream: false)
        try server.session.write([65].span, to: id)
      }
      _ = server.output()
    }
    var frames = 0
    while server.failure == nil, frames < 100 {
      #expect(server.session.isTiresome == (30 - left + frames > 15), "\(frames)")
      client.append(type: 2, stream: 1, [0, 0, 0, 0, 1])
      server.receive(client.take())
      frames += 1
    }
    #expect(server.failure == .flooded && frames == left + 1)
  }

  /// After our GOAWAY nobody is to blame for streams that end.
  @Test func whatEndsAfterAGoAwayIsNoCrime() throws {
    var configuration = HTTP2Configuration()
    configuration.maximumIdleWork = 30
    for isLeaving in [false, true] {
      let server = try End(.server, configuration)
      var client = RawClient()
      for number in 0..<5 {
        client.headers(stream: number * 2 + 1, validRequest, endStream: false)
      }
      server.receive(client.take())
      if isLeaving { server.session.goAway(errorCode: 0, debugData: []) }
      for number in 0..<5 { client.reset(stream: number * 2 + 1) }
      server.receive(client.take())
      #expect(server.failure == (isLeaving ? nil : .flooded))
    }
  }

  /// The same for days, with honest work between it or slowly enough, is nobody's crime.
  @Test func honestWorkMakesGood() throws {
    let server = try End(.server)
    var client = RawClient()
    for number in 0..<10_000 {
      let stream = number * 2 + 1
      client.headers(stream: stream, validRequest, endStream: false)
      client.append(type: 0, stream: stream, Array("payload!".utf8))
      client.append(type: 0, flags: 1, stream: stream)
      client.append(type: 8, stream: 0, [0, 0, 0, 1])
      client.append(type: 6, stream: 0, [UInt8](repeating: 1, count: 8))
      server.receive(client.take())
      try server.session.respond(to: StreamID(stream), head("200"), endStream: true)
      _ = server.output()
    }
    #expect(server.failure == nil && !server.session.isTiresome)
    for _ in 0..<1_000 {
      for _ in 0..<90 { client.append(type: 8, stream: 0, [0, 0, 0, 1]) }
      server.receive(client.take())
      server.session.forgive(100)
    }
    #expect(server.failure == nil && !server.session.isTiresome)
  }

  @Test func continuationsEndTheConnection() throws {
    let server = try End(.server)
    var client = RawClient()
    client.headers(stream: 1, validRequest, endHeaders: false)
    for _ in 0..<1_000 { client.append(type: 9, stream: 1) }
    server.receive(client.take())
    _ = server.output()
    #expect(server.session.failure != nil)
    #expect(server.session.isFinished)
  }

  /// Resets in proportion are nobody's crime: phones come and go on a shared connection.
  @Test func answeredStreamsMayBeReset() throws {
    let server = try End(.server)
    var client = RawClient()
    for number in 0..<3_000 {
      let stream = number * 2 + 1
      client.headers(stream: stream, validRequest)
      server.receive(client.take())
      try server.session.respond(to: StreamID(stream), head("200"), endStream: false)
      _ = server.output()
      client.reset(stream: stream)
      server.receive(client.take())
    }
    #expect(server.failure == nil)
    #expect(server.session.openStreamCount == 0)
    #expect(server.closings().count == 3_000)
  }

  @Test func garbageNeverHarms() throws {
    for seed in UInt64(0)..<300 {
      var random = SeededRandom(seed: seed)
      var bytes = seed % 3 == 0 ? [] : RawClient().bytes
      bytes += (0..<Int.random(in: 1...2_000, using: &random)).map { _ in
        UInt8.random(in: 0...(seed % 2 == 0 ? 255 : 15), using: &random)
      }
      try survive(.server, bytes, &random, "garbage, seed \(seed)")
      if seed % 3 == 0 { try survive(.client, bytes, &random, "garbage to a client, seed \(seed)") }
    }
  }

  /// Recorded traffic of both directions with bytes changed, dropped, doubled or cut off.
  @Test func mutatedTrafficNeverHarms() throws {
    let (up, down) = try record()
    for seed in UInt64(0)..<1_500 {
      var random = SeededRandom(seed: seed)
      let towardsServer = seed % 3 != 0
      var bytes = towardsServer ? up : down
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        // The preface is spared, mostly.
        let at = Int.random(in: (seed % 16 == 0 ? 0 : 24)..<bytes.count, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: bytes[at] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 2: bytes.remove(at: at)
        case 3: bytes.insert(UInt8.random(in: 0...255, using: &random), at: at)
        default: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 60)], at: at)
        }
      }
      try survive(towardsServer ? .server : .client, bytes, &random, "mutation, seed \(seed)")
    }
  }

  /// Bytes of both directions of an exchange of four requests.
  private func record() throws -> (up: [UInt8], down: [UInt8]) {
    let client = try End(.client)
    let server = try End(.server)
    server.react = { session, event in
      guard case .headers(let id, _, _) = event else { return }
      try session.respond(to: id, head("200"), endStream: false)
      try session.write(Array("{\"line\":1}\n".utf8).span, to: id)
      session.finish(id)
    }
    for number in 0..<4 {
      _ = try client.session.request(
        pushHead(number), body: [UInt8](repeating: 7, count: 100), endStream: true)
    }
    let up = client.output() + [0, 0, 8, 6, 0, 0, 0, 0, 0] + [UInt8](repeating: 5, count: 8)
    server.receive(up[...])
    let down = server.output()
    return (up, down)
  }

  /// Gives the bytes to a session in random pieces; it acts on what it understands. At the end
  /// the books must balance: every stream seen was closed at most once and is then gone.
  private func survive(
    _ role: HTTP2Role, _ bytes: [UInt8], _ random: inout SeededRandom, _ comment: Comment
  ) throws {
    let end = try End(role)
    if role == .client {
      for number in 0..<4 {
        _ = try end.session.request(pushHead(number), body: nil, endStream: number % 2 == 0)
      }
      _ = end.output()
    }
    end.react = { session, event in
      switch event {
      case .headers(let id, _, let last) where role == .server:
        try? session.respond(to: id, head("200"), endStream: last)
      case .data(let id, let bytes, let last):
        try? session.write(bytes.span, to: id)
        if last { session.finish(id) }
      default: break
      }
    }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = Int.random(in: 1...200, using: &random)
      end.receive(rest.prefix(count))
      rest = rest.dropFirst(count)
      if Bool.random(using: &random) { _ = end.output() }
    }
    _ = end.output()
    let closings = end.closings()
    #expect(closings.values.allSatisfy { $0.count == 1 }, comment)
    for id in closings.keys {
      #expect(throws: HTTP2Error.streamClosed(id), comment) {
        try end.session.write([1].span, to: id)
      }
    }
    if end.session.failure != nil { #expect(end.session.isFinished, comment) }
  }
}
