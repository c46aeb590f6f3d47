import DeviceLink
import Primitives
import RelayCore
import Testing

@testable import RelayServer

@Suite struct AdminPeersTests {
  private let device = DeviceID(UniqueID(high: 1, low: 2))

  @Test func aRequestIsAnsweredOnce() {
    var (peers, answers) = (AdminPeers(), [ProviderAnswer]())
    let stream = peers.ask { (answer: ProviderAnswer) in answers.append(answer) }
    peers.respond(stream, .rejected(.badTopic))
    peers.respond(stream, .rejected(.badTopic))
    #expect(answers == [.rejected(.badTopic)])
    let removed = peers.ask { (answer: ProviderAnswer) in answers.append(answer) }
    peers.remove(removed)
    peers.respond(removed, .rejected(.badTopic))
    #expect(answers.count == 1)
  }

  @Test func whoWaitsForTooLongIsRefused() {
    var (peers, answers) = (AdminPeers(), [DeviceAnswer]())
    _ = peers.ask { (answer: DeviceAnswer) in answers.append(answer) }
    peers.refuse(after: .hours(1))
    #expect(answers.isEmpty)
    peers.end()
    #expect(answers == [.refused(.unavailable)] && peers.isEnding)
  }

  @Test func linesAreWaitedForUntilTheyAreWritten() async {
    var peers = AdminPeers()
    let (lines, continuation) = AsyncStream.makeStream(of: AdminLine.self)
    let stream = peers.listen(as: device, continuation)
    #expect(peers.device(on: stream) == device && peers.isEmpty(stream))
    peers.send(.keepAlive(), to: stream)
    #expect(peers.awaited == [device] && !peers.isEmpty(stream))
    let isAll = peers.wrote(stream)
    #expect(isAll && peers.awaited.isEmpty)
    peers.closeListeners(.moved) { $0 != device }
    #expect(peers.device(on: stream) == device)
    peers.closeListeners(.moved)
    #expect(peers.device(on: stream) == nil)
    var count = 0
    for await _ in lines { count += 1 }
    #expect(count == 2, "the line, and bye")
  }
}
