import AdminAPI
import FoundationEssentials
import NIOPosix
import ProviderCredentials
import RelayClient
import RelayServer
import RelaySetup
import TLS
import TestSupport
import Testing

/// The client against a relay over TLS: whom it trusts, and what it says when it does not.
struct ClientTLSTests {
  /// Runs a relay on free ports of this machine for as long as `body` takes.
  private func withRelay(
    plaintext: Bool = false,
    _ body: (Relay.Addresses, _ authority: [UInt8]) async throws -> Void
  ) async throws {
    let state = FileManager.default.temporaryDirectory.path() + "pushrelay-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: state) }
    try await LoopbackRelay.run { configuration in
      configuration.state = state
      configuration.plaintext = plaintext
    } _: { addresses, _ in
      let authority = FileManager.default.contents(atPath: state + "/ca.pem").map(Array.init)
      try await body(addresses, authority ?? [])
    }
  }

  private func connect(
    _ addresses: Relay.Addresses, trust: TLSTrust, name: String? = "localhost"
  ) async throws -> RelayClient {
    try await connect(
      addresses,
      .tls(
        try TLSContext.client(trust: trust, identity: nil, applicationProtocols: ["h2"]),
        serverName: name))
  }

  private func connect(
    _ addresses: Relay.Addresses, _ security: RelayClient.Security
  ) async throws -> RelayClient {
    try await RelayClient.connect(
      host: addresses.device.host, port: addresses.device.port, security: security,
      on: MultiThreadedEventLoopGroup.singleton)
  }

  @Test func requestsAndStreams() async throws {
    try await withRelay { addresses, authority in
      let api = DeviceAPI(try await connect(addresses, trust: .authorities(pem: authority)))
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<100 {
          group.addTask {
            let identity = try await api.enroll()
            let stream = try await api.openStream(of: identity)
            var lines = stream.lines.makeAsyncIterator()
            let hello = String(
              decoding: try await lines.next(isolation: nil) ?? [], as: UTF8.self)
            #expect(hello.contains(identity.device))
            #expect(try await api.status(of: identity).connected)
            stream.finish()
            while try await lines.next(isolation: nil) != nil {}
          }
        }
        try await group.waitForAll()
      }
      await api.client.close()
    }
  }

  @Test func distrust() async throws {
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    let stranger = Array(try DevelopmentAuthority(now: now).pem.certificate.utf8)
    try await withRelay { addresses, authority in
      let attempts: [(TLSTrust, String)] = [
        (.authorities(pem: stranger), "localhost"),
        (.authorities(pem: authority), "other.example"),
      ]
      for (trust, name) in attempts {
        let error = await #expect(throws: ClientError.self) {
          try await connect(addresses, trust: trust, name: name)
        }
        guard case .tls(_, .certificateRejected) = error else {
          Issue.record("unexpected \(String(describing: error))")
          continue
        }
        #expect(error?.description.contains("ca.pem") == true)
      }
      let insecure = try await connect(addresses, trust: .insecure, name: nil)
      try await DeviceAPI(insecure).health()
      await insecure.close()
    }
  }

  @Test func oneSidedTLS() async throws {
    try await withRelay(plaintext: true) { addresses, _ in
      let error = await #expect(throws: ClientError.self) {
        try await connect(addresses, trust: .insecure, name: nil)
      }
      #expect(error?.description.contains("--plaintext") == true)
    }
    try await withRelay { addresses, _ in
      let error = await #expect(throws: ClientError.self) {
        try await connect(addresses, .plaintext)
      }
      #expect(error?.description.contains("TLS") == true)
    }
  }
}
