import DeviceLink
import Primitives
import RelayCore
import Synchronization
import Testing

@testable import RelayClient

/// The loop over a device's stream, against a server that says what a test wants.
@Suite struct DeviceListenerTests {
  private static let id = "4deb1c52-0d6e-8b34-8000-00000000002a"
  private static let push = #"{"type":"notification","id":"\#(id)","uniqueId":"\#(id)"}"#

  /// A server that says these lines at once on every stream, and what it is answered, by lines.
  private func makeServer(
    saying lines: [String]
  ) async throws -> (server: TestServer, answers: AsyncStream<String>) {
    let (answers, answered) = AsyncStream.makeStream(of: String.self)
    let rest = Mutex<[UInt8]>([])
    var script = TestServer.Script()
    script.onHead = { exchange in
      exchange.open(200)
      exchange.write(Array((lines.joined(separator: "\n") + "\n").utf8))
    }
    script.onData = { _, bytes in
      rest.withLock { rest in
        rest += bytes
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
          answered.yield(String(decoding: rest[..<end], as: UTF8.self))
          rest.removeFirst(end + 1)
        }
      }
    }
    return (try await TestServer(script), answers)
  }

  private func words(_ habits: DeviceListener.Habits?, _ lines: [String]) async throws -> [String] {
    let (server, answers) = try await makeServer(saying: lines)
    let client = try await connect(server)
    let stream = try await client.openStream(method: "POST", path: "/stream")
    var listener = DeviceListener(stream, habits)
    for _ in lines { #expect(try await listener.next() != nil) }
    #expect(!listener.hasMore)
    await listener.writeAnswers()
    // Behind all answers, so that none is missed.
    try await stream.write(Array("end\n".utf8))
    var words: [String] = []
    for await answer in answers {
      if answer == "end" { break }
      words.append(answer)
    }
    await client.close()
    await server.stop()
    return words
  }

  @Test func whatTakesNoThoughtIsAnswered() async throws {
    let lines = [
      #"{"type":"hello","device":"\#(Self.id)","keepAliveSeconds":9,"time":1,"clock":"virtual"}"#,
      #"{"type":"keepalive"}"#, Self.push, #"{"type":"barrier","number":7,"time":2}"#,
      #"{"type":"empty"}"#, #"{"type":"of a newer relay"}"#, "not a line", #"{"type":"bye"}"#,
    ]
    let ack = #"{"type":"ack","id":"\#(Self.id)","outcome":"newData"}"#
    let keepAlive = #"{"type":"keepalive"}"#
    let (joins, follows) = (#"{"type":"barrier","number":0}"#, #"{"type":"barrier","number":7}"#)
    #expect(
      try await words(.init(followsClock: true, outcome: .newData), lines)
        == [joins, keepAlive, ack, follows])
    #expect(try await words(.init(outcome: .newData), lines) == [keepAlive, ack])
    #expect(try await words(.init(acknowledges: false), lines) == [keepAlive])
    #expect(try await words(nil, lines) == [])
  }

  /// However long a program takes for a push: what came with it was answered.
  @Test func aFleetLeavesNothingUnanswered() async throws {
    let (server, answers) = try await makeServer(saying: [#"{"type":"keepalive"}"#, Self.push])
    let fleet = try await FleetConnection.connect(
      host: "127.0.0.1", port: server.port, authority: nil)
    let device = OwnDevice(id: Self.id, secret: String(repeating: "0", count: 64))
    let stream = try await fleet.listen(as: device)
    var pushes = stream.makeAsyncIterator()
    let push = try #require(try await pushes.next())
    try await stream.acknowledge(push)
    var answer = answers.makeAsyncIterator()
    #expect(await answer.next() == #"{"type":"keepalive"}"#)
    #expect(await answer.next() == #"{"type":"ack","id":"\#(Self.id)"}"#)
    await fleet.close()
    await server.stop()
  }
}
