import DeviceLink
import HTTP2
import NIOPosix
import Testing

@testable import RelayClient

/// Where phones' streams go, with nodes that name each other.
@Suite(.timeLimit(.minutes(1))) struct LinkPoolTests {
  private enum Habit: Sendable {
    case greets
    case refuses
    case breaksOff
  }

  /// A node that names an owner in each `hello`.
  private final class Node: Sendable {
    let owner = Shared<String?>(nil)
    let habit = Shared(Habit.greets)
    let streams = Shared(0)
    let connections = Shared(0)
    let disconnects: AsyncStream<Void>
    let server: TestServer

    init() async throws {
      var script = TestServer.Script()
      let (disconnects, isDisconnected) = AsyncStream.makeStream(of: Void.self)
      script.onConnect = { [connections] _ in connections.change { $0 += 1 } }
      script.onDisconnect = { isDisconnected.yield() }
      script.onHead = { [owner, habit, streams] exchange in
        streams.change { $0 += 1 }
        switch habit.value {
        case .greets:
          let owner = owner.value.map { #","owner":"\#($0)""# } ?? ""
          exchange.open(200)
          exchange.write(Array("{\"type\":\"hello\"\(owner)}\n{\"type\":\"empty\"}\n".utf8))
        case .refuses: exchange.answer(503, body: Array(#"{"reason":"Away"}"#.utf8))
        case .breaksOff: exchange.connection.http2.reset(exchange.stream, errorCode: 2)
        }
      }
      self.disconnects = disconnects
      server = try await TestServer(script)
    }

    var address: String { "127.0.0.1:\(server.port)" }
  }

  private static let identity = DeviceIdentity(device: "phone", secret: "secret")

  private let connects = Shared<[String?]>([])

  private func pool(_ given: Node, phonesPerConnection: Int = 1) -> LinkPool {
    LinkPool(phonesPerConnection: phonesPerConnection) { [connects] owner in
      connects.change { $0.append(owner) }
      var port = given.server.port
      if let owner {
        guard let named = owner.split(separator: ":").last.flatMap({ Int($0) }) else {
          throw ClientError.closed
        }
        port = named
      }
      return try await RelayClient.connect(
        host: "127.0.0.1", port: port, security: .plaintext, options: .patient,
        on: MultiThreadedEventLoopGroup.singleton)
    }
  }

  /// Opens a stream, whose lines are all there; the address of its node.
  private func open(_ pool: LinkPool, _ phone: Int = 0) async throws -> String {
    let stream = try await pool.openStream(for: phone, of: Self.identity)
    var lines = stream.lines.makeAsyncIterator()
    for expected in ["hello", "empty"] {
      let line = try #require(try await lines.next(isolation: nil))
      #expect(String(decoding: line, as: UTF8.self).contains(#"{"type":"\#(expected)""#))
    }
    return stream.connection.address
  }

  private func nodes() async throws -> (given: Node, owner: Node) {
    (try await Node(), try await Node())
  }

  private func end(_ pool: LinkPool, _ nodes: Node...) async {
    await pool.closeAll()
    for node in nodes { await node.server.stop() }
  }

  @Test func aPhoneIsLedToItsOwnerAndStaysThere() async throws {
    let (given, owner) = try await nodes()
    given.owner.change { $0 = owner.address }
    let pool = pool(given)
    #expect(try await open(pool) == owner.address)
    #expect(try await pool.client(for: 0).address == owner.address)
    #expect(try await open(pool) == owner.address)
    #expect(connects.value == [nil, owner.address] && given.streams.value == 1)
    // Nobody needs the first connection.
    for await _ in given.disconnects { break }
    await end(pool, given, owner)
  }

  @Test func whoIsWhereItBelongsIsNotLed() async throws {
    let (given, owner) = try await nodes()
    let pool = pool(given)
    #expect(try await open(pool) == given.address)
    given.owner.change { $0 = "no address" }
    #expect(try await open(pool) == given.address)
    #expect(connects.value == [nil, "no address"])
    await end(pool, given, owner)
  }

  @Test func aPhoneStaysWhenTheOwnerCannotBeReached() async throws {
    let given = try await Node()
    // A port that was free would soon be another test's.
    let closed = "127.0.0.1:1"
    given.owner.change { $0 = closed }
    let pool = pool(given)
    for _ in 0..<3 { #expect(try await open(pool) == given.address) }
    #expect(connects.value == [nil, closed], "it is tried once")
    await pool.lead(0, to: closed)
    #expect(try await pool.client(for: 0).address == given.address)
    #expect(connects.value.count == 2)
    await end(pool, given)
  }

  @Test func aPhoneStaysWhenTheOwnerRefusesIt() async throws {
    let (given, owner) = try await nodes()
    given.owner.change { $0 = owner.address }
    owner.habit.change { $0 = .refuses }
    let pool = pool(given)
    for _ in 0..<3 { #expect(try await open(pool) == given.address) }
    owner.habit.change { $0 = .greets }
    #expect(try await open(pool) == owner.address)
    #expect(owner.streams.value == 4 && owner.connections.value == 1)
    await end(pool, given, owner)
  }

  /// The relay may have taken the stream for the phone's newest before it was lost.
  @Test func whatBreaksAtTheOwnerEndsTheAttempt() async throws {
    let (given, owner) = try await nodes()
    given.owner.change { $0 = owner.address }
    owner.habit.change { $0 = .breaksOff }
    let pool = pool(given)
    await #expect(throws: ClientError.streamReset(errorCode: 2)) { try await open(pool) }
    #expect(try await open(pool) == given.address)
    await end(pool, given, owner)
  }

  @Test func nodesThatLeadInCirclesKeepThePhoneSomewhere() async throws {
    let (given, owner) = try await nodes()
    given.owner.change { $0 = owner.address }
    owner.owner.change { $0 = given.address }
    let pool = pool(given)
    #expect(try await open(pool) == owner.address)
    #expect(given.streams.value + owner.streams.value == LinkPool.leadsAtMost + 1)
    await end(pool, given, owner)
  }

  @Test func aByeLeadsTheNextConnectionAndALossBringsItBack() async throws {
    let (given, owner) = try await nodes()
    let pool = pool(given)
    await pool.lead(0, to: owner.address)
    #expect(try await open(pool) == owner.address && given.streams.value == 0)
    let lost = try await pool.client(for: 0)
    await pool.discard(lost, of: 0)
    #expect(try await open(pool) == given.address)
    // Of another phone's, or of one that is replaced already.
    await pool.discard(lost, of: 0)
    #expect(try await open(pool) == given.address)
    #expect(connects.value == [owner.address, nil])
    // The stream of one that was led and cannot have it is not tried there again.
    await pool.lead(0, to: owner.address)
    owner.habit.change { $0 = .refuses }
    await #expect(throws: ClientError.self) { try await open(pool) }
    #expect(try await open(pool) == given.address)
    await end(pool, given, owner)
  }

  @Test func phonesThatShareAConnectionShareOneToEachOwner() async throws {
    let (given, owner) = try await nodes()
    let pool = pool(given, phonesPerConnection: 4)
    #expect(try await open(pool, 0) == given.address)
    given.owner.change { $0 = owner.address }
    for phone in 1..<4 { #expect(try await open(pool, phone) == owner.address) }
    #expect(given.connections.value == 1 && owner.connections.value == 1)
    #expect(try await open(pool, 4) == owner.address)
    #expect(given.connections.value == 2 && owner.connections.value == 2)
    let broken = try await pool.client(for: 1)
    await pool.discard(broken, of: 1)
    for (phone, node) in [(0, given), (1, given), (2, owner), (4, owner)] {
      #expect(try await pool.client(for: phone).address == node.address, "\(phone)")
    }
    #expect(given.connections.value == 2 && owner.connections.value == 3)
    await pool.closeAll()
    #expect(try await pool.client(for: 4).address == given.address)
    await end(pool, given, owner)
  }
}
