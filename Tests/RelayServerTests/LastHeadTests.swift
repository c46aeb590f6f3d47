import HTTP2
import NIOCore
import Primitives
import ProviderCredentials
import RelayCore
import TLS
import Testing

@testable import RelayServer

/// What is concluded from the last head must be what a look at the whole head would say.
@Suite struct LastHeadTests {
  private static let issuedAt: Int64 = 1_700_000_000

  /// Keys for one topic, of which the first two may share a connection.
  private struct Keys {
    private let keys = ["TOPICKEY01", "TOPICKEY02", "TOPICKEY03"].map { ($0, P256.PrivateKey()) }

    var verifier: ProviderTokenVerifier {
      ProviderTokenVerifier(
        keys: ProviderKeys(
          keys: keys.map { keyID, key in
            ProviderKeys.Key(
              .init(
                keyID: keyID, teamID: "TEAM123456", topics: ["com.example.app"],
                relatedKeyID: keyID == "TOPICKEY01" ? "TOPICKEY02" : nil), publicKey: key.publicKey)
          }))
    }

    func headers() throws -> [String] {
      try keys.map { keyID, key in
        let signer = try ProviderTokenSigner(keyID: keyID, teamID: "TEAM123456", privateKey: key)
        return "bearer \(try signer.token(issuedAtSeconds: LastHeadTests.issuedAt))"
      }
    }
  }

  /// The heads a session reports, judged.
  private struct Judge {
    let session: HTTP2Session
    var connection = ConnectionCredentials()
    var verifier: ProviderTokenVerifier
    /// Whether it remembers the last head.
    let remembers: Bool
    var last = LastHead()

    init(remembers: Bool, _ keys: Keys) throws {
      var configuration = HTTP2Configuration()
      configuration.tellsRepeatedFields = remembers
      session = try HTTP2Session(role: .server, configuration: configuration)
      verifier = keys.verifier
      self.remembers = remembers
    }

    mutating func judge(_ bytes: ByteBuffer) throws -> [String] {
      var bytes = bytes
      var events: [HTTP2Event] = []
      try session.receive(&bytes)
      session.takeEvents(into: &events)
      var verdicts: [String] = []
      for event in events {
        guard case .headers(_, let range, _) = event else { continue }
        if !remembers { last = LastHead() }
        last.read(session.fields[range], session.arena)
        do throws(LastHead.ReadingError) {
          let topic = try last.check(
            by: &connection, certificateProblem: nil, verifier: &verifier,
            at: Instant(milliseconds: LastHeadTests.issuedAt * 1000))
          verdicts.append("\(topic)")
        } catch {
          verdicts.append(error.rejection.reason)
        }
      }
      return verdicts
    }
  }

  /// Small numbers from a seed (Knuth's linear congruence, its upper half).
  private func head(
    _ tokens: [String], _ random: inout SeededRandom
  ) -> HeaderBlock {
    var head = HeaderBlock()
    let indexing: [HeaderBlock.Indexing] = [.incremental, .withoutIndexing]
    func any() -> HeaderBlock.Indexing { indexing.randomElement(using: &random)! }
    head.append(":method", Int.random(in: 0..<20, using: &random) == 0 ? "PUT" : "POST")
    head.append(":scheme", "https")
    head.append(":authority", "relay")
    head.append(":path", "/3/device/\(Int.random(in: 10...99, using: &random))", indexing: any())
    if Int.random(in: 0..<12, using: &random) > 0 {
      head.append("authorization", tokens.randomElement(using: &random)!, indexing: any())
    }
    let topics = ["com.example.app", "com.example.other", "com.example.app.location-query"]
    head.append(
      "apns-topic",
      Int.random(in: 0..<4, using: &random) > 0 ? topics[0] : topics.randomElement(using: &random)!,
      indexing: any())
    head.append(
      "apns-push-type", Int.random(in: 0..<6, using: &random) > 0 ? "alert" : "location",
      indexing: any())
    if Int.random(in: 0..<6, using: &random) == 0 {
      head.append("apns-priority", "7", indexing: any())
    }
    return head
  }

  /// Some clients name the host as in HTTP/1.1 (RFC 9113, section 8.3.1).
  @Test func withoutAnAuthorityTheHostNamesTheService() throws {
    let (production, sandbox) = ("api.push.apple.com", "api.sandbox.push.apple.com")
    let rows: [(authority: String?, host: String?, ProviderEnvironment?)] = [
      (production, nil, .production), (nil, sandbox, .sandbox), (nil, production, .production),
      (production, sandbox, .production), ("localhost", sandbox, nil), (nil, "localhost", nil),
    ]
    let client = try HTTP2Session(role: .client, configuration: HTTP2Configuration())
    var judge = try Judge(remembers: true, Keys())
    for (authority, host, expected) in rows + rows.flatMap({ [$0, $0] }) {
      var head = HeaderBlock()
      head.append(":method", "POST")
      head.append(":scheme", "https")
      if let authority { head.append(":authority", authority) }
      head.append(":path", "/3/device/00")
      if let host { head.append("host", host) }
      _ = try client.request(head, body: nil, endStream: true)
      var bytes = ByteBuffer()
      while client.send(into: &bytes, upTo: 1 << 16) {}
      #expect(try judge.judge(bytes).count == 1)
      #expect(judge.last.environment == expected, "\(authority ?? "-") \(host ?? "-")")
    }
  }

  @Test func rememberingChangesNoVerdict() throws {
    var reasons: Set<String> = []
    for seed in 1...20 as ClosedRange<UInt64> {
      var random = SeededRandom(seed: seed)
      let keys = Keys()
      let tokens = try keys.headers() + ["bearer nothing"]
      var (first, second) = (
        try Judge(remembers: true, keys), try Judge(remembers: false, keys)
      )
      let client = try HTTP2Session(role: .client, configuration: HTTP2Configuration())
      for _ in 0..<80 {
        let usual = Int.random(in: 0..<5, using: &random) > 0 ? [tokens[0]] : tokens
        _ = try client.request(head(usual, &random), body: nil, endStream: true)
        var bytes = ByteBuffer()
        while client.send(into: &bytes, upTo: 1 << 16) {}
        let (expected, found) = (try second.judge(bytes), try first.judge(bytes))
        #expect(found == expected, "seed \(seed)")
        reasons.formUnion(found)
      }
    }
    #expect(reasons.count > 4, "the test must meet refusals of many kinds: \(reasons)")
  }
}
