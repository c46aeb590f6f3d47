import FoundationEssentials
import NIOPosix
import RelayClient
import RelayServer
import TLS
import Testing

struct ClientTLSTests {
  private struct Fixture {
    let authority: [UInt8]
    let server: TLSContext

    /// The certificates are valid while the test runs: they are made for the machine's time.
    init(names: [String] = ["localhost", "127.0.0.1"]) throws {
      let seconds = Int64(Date().timeIntervalSince1970)
      let made = try DevelopmentAuthority(now: seconds * 1000)
      authority = Array(try made.pem().certificate.utf8)
      let identity = try made.issueServer(names: names, now: seconds * 1000)
      server = try TLSContext.server(
        identity: TLSIdentity(
          certificateChainPEM: Array(identity.certificate.utf8),
          privateKeyPEM: Array(identity.privateKey.utf8)),
        clientCertificates: .none, applicationProtocols: ["h2"])
    }
  }

  private func connect(
    _ server: TestServer, trust: TLSTrust, name: String? = "localhost"
  ) async throws -> RelayClient {
    try await RelayClient.connect(
      host: "127.0.0.1", port: server.port,
      security: .tls(
        try TLSContext.client(trust: trust, identity: nil, applicationProtocols: ["h2"]),
        serverName: name),
      on: MultiThreadedEventLoopGroup.singleton)
  }

  @Test func requestsAndStreams() async throws {
    let fixture = try Fixture()
    let server = try await TestServer(tls: fixture.server, RelayClientTests.echo)
    let client = try await connect(server, trust: .authorities(pem: fixture.authority))
    let body = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 5) }
    let answer = try await client.request(method: "POST", path: "/", body: Array(body[..<60_000]))
    #expect(answer.body == Array(body[..<60_000]))
    let small = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<300 {
        group.addTask {
          let body = Array(String(number).utf8)
          return Int(try await client.request(method: "POST", path: "/", body: body).text) ?? 0
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(small == 300 * 299 / 2)
    await client.close()
    await server.stop()
  }

  @Test func distrust() async throws {
    let fixture = try Fixture()
    let other = try Fixture()
    let server = try await TestServer(tls: fixture.server, RelayClientTests.echo)
    let attempts: [(TLSTrust, String?)] = [
      (.authorities(pem: other.authority), "localhost"),
      (.authorities(pem: fixture.authority), "other.example"),
    ]
    for (trust, name) in attempts {
      let error = await #expect(throws: ClientError.self) {
        try await connect(server, trust: trust, name: name)
      }
      guard case .tls(_, .certificateRejected) = error else {
        Issue.record("unexpected \(String(describing: error))")
        continue
      }
      #expect(error?.description.contains("ca.pem") == true)
    }
    let insecure = try await connect(server, trust: .insecure, name: nil)
    #expect(try await insecure.request(method: "GET", path: "/").status == 200)
    await insecure.close()
    await server.stop()
  }

  @Test func oneSidedTLS() async throws {
    let fixture = try Fixture()
    let plain = try await TestServer(RelayClientTests.echo)
    let error = await #expect(throws: ClientError.self) {
      try await connect(plain, trust: .insecure, name: nil)
    }
    #expect(error?.description.contains("--plaintext") == true)
    await plain.stop()
    let secure = try await TestServer(tls: fixture.server, RelayClientTests.echo)
    let other = await #expect(throws: ClientError.self) {
      try await RelayClient.connect(
        host: "127.0.0.1", port: secure.port, security: .plaintext,
        on: MultiThreadedEventLoopGroup.singleton)
    }
    #expect(other?.description.contains("TLS") == true)
    await secure.stop()
  }
}
