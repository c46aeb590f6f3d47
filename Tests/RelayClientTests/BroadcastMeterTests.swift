import DeviceLink
import Primitives
import RelayCore
import Synchronization
import Testing

@testable import RelayClient

@Suite struct BroadcastMeterTests {
  private static func line(_ number: Int) -> String {
    #"{"type":"broadcast","channel":"AAECAwQFBgcICQoLDA0ODw==","#
      + #""uniqueId":"4deb1c52-0d6e-8b34-8000-00000000002a","number":\#(number),"payload":{}}"#
  }

  private static func words(_ pieces: [String]) -> (taken: [Bool], reported: [String]) {
    let reported = Mutex<[String]>([])
    var meter = BroadcastMeter { broadcast, count in
      reported.withLock { $0.append("\(count) of \(broadcast.number)") }
    }
    let taken = pieces.map { meter.take(Array($0.utf8).span) }
    meter.endBatch()
    meter.endBatch()
    return (taken, reported.withLock { $0 })
  }

  @Test func wholeLinesAreCounted() {
    let (one, two) = (Self.line(1) + "\n", Self.line(2) + "\n")
    let (taken, reported) = Self.words([one, one, two, one])
    #expect(taken == [true, true, true, true])
    #expect(reported == ["2 of 1", "1 of 2", "1 of 1"])
  }

  @Test(arguments: [
    "", "\n", line(1), line(1) + "\n" + line(1) + "\n", line(1) + "\n{",
    #"{"type":"keepalive"}"# + "\n", String(line(1).dropFirst()) + "\n", "\n" + line(1),
  ])
  func anythingElseIsTheReaders(piece: String) {
    let (taken, reported) = Self.words([piece])
    #expect(taken == [false])
    #expect(reported == [])
  }

  /// A fleet's connection: the meter has the broadcasts, the streams' readers all else.
  @Test func aConnectionCountsAndReadersGetTheRest() async throws {
    let streams = 3
    var script = TestServer.Script()
    script.onHead = { exchange in
      exchange.open(200)
      exchange.write(Array((#"{"type":"empty"}"# + "\n").utf8))
    }
    script.onData = { exchange, _ in exchange.write(Array((Self.line(7) + "\n").utf8)) }
    let server = try await TestServer(script)
    let (counts, counted) = AsyncStream.makeStream(of: Int.self)
    var options = ClientOptions.patient
    options.onBroadcasts = { broadcast, count in
      #expect(broadcast.number == 7)
      counted.yield(count)
    }
    let client = try await connect(server, options: options)
    var listeners: [DeviceListener] = []
    for number in 0..<streams {
      let stream = try await client.openStream(method: "POST", path: "/\(number)")
      var listener = DeviceListener(stream, DeviceListener.Habits())
      #expect(try await listener.next() == .empty())
      listeners.append(listener)
    }
    for listener in listeners { try await listener.stream.write(Array("x".utf8)) }
    var sum = 0
    for await count in counts {
      sum += count
      if sum == streams { break }
    }
    #expect(sum == streams)
    await client.close()
    await server.stop()
  }
}
